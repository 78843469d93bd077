#include "exec/files/data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "exec/files/seeded_bits.h"
#include "exec/run/data_files.h"

namespace slipway::exec {

namespace {

constexpr double masked_share = 0.15;  // Devlin 2019 (BERT)

std::int64_t masked_tokens(std::int64_t sequence) {
  return std::max<std::int64_t>(1, std::llround(masked_share * static_cast<double>(sequence)));
}

// The positions of a sample that are masked: the smallest hashes.
std::vector<std::int64_t> masked_positions(std::uint64_t key, std::int64_t sequence) {
  std::vector<std::int64_t> positions(sequence);
  std::iota(positions.begin(), positions.end(), 0);
  const auto hash = [key](std::int64_t at) { return mix(key, static_cast<std::uint64_t>(at)); };
  std::sort(positions.begin(), positions.end(), [&](std::int64_t a, std::int64_t b) { return hash(a) < hash(b); });
  positions.resize(masked_tokens(sequence));
  return positions;
}

std::uint64_t windows_of(const TokenSource& source, std::int64_t sequence, const std::string& path) {
  const std::string why = why_no_sample(path, source.size(), source.is_bytes(), sequence);
  if (!why.empty()) throw std::runtime_error("run.data: " + why);
  return (source.size() - 1) / static_cast<std::uint64_t>(sequence);
}

}  // namespace

std::int64_t predicted_tokens(const Model& model) {
  return is_causal(model) ? model.sequence : masked_tokens(model.sequence);
}

TokenData::TokenData(const std::string& path, const Model& model, std::uint64_t seed)
    : path_(path),
      source_(open_tokens(path)),
      seed_(mix(seed, "data")),
      sequence_(model.sequence),
      vocab_(model.runs.front().block.vocab),
      samples_(static_cast<std::int64_t>(windows_of(*source_, sequence_, path))),
      causal_(is_causal(model)),
      order_(static_cast<std::uint64_t>(samples_), mix(seed_, "order")) {
  if (!source_->is_bytes()) return;
  if (const std::string why = why_no_bytes(path, model); !why.empty()) throw std::runtime_error("run.data: " + why);
}

TokenBatch TokenData::batch(std::int64_t first_sample, std::int64_t samples, at::Device device) {
  TokenBatch batch{at::empty({samples, sequence_}, at::kLong), at::empty({samples, sequence_}, at::kLong), {}};
  if (!causal_) batch.counted = at::zeros({samples, sequence_}, at::kBool);
  std::vector<std::int64_t> window(sequence_ + 1);
  const std::int64_t known = causal_ ? vocab_ : vocab_ - 1;  // the last one is the mask
  for (std::int64_t row = 0; row < samples; ++row) {
    const auto sample = static_cast<std::uint64_t>(first_sample + row);
    const std::uint64_t first = order_.window_of(sample) * static_cast<std::uint64_t>(sequence_);
    source_->read(first, window);
    const auto foreign =
        std::find_if(window.begin(), window.end(), [&](std::int64_t id) { return id < 0 || id >= known; });
    if (foreign != window.end())
      throw std::runtime_error("run.data: token " +
                               std::to_string(first + static_cast<std::uint64_t>(foreign - window.begin())) + " of " +
                               path_ + " is " + std::to_string(*foreign) + ", but the model's vocabulary allows 0 to " +
                               std::to_string(known - 1) + "; was it made with another tokenizer?");
    auto* token = batch.tokens.mutable_data_ptr<std::int64_t>() + row * sequence_;
    auto* target = batch.targets.mutable_data_ptr<std::int64_t>() + row * sequence_;
    for (std::int64_t i = 0; i < sequence_; ++i) {
      token[i] = window[i];
      target[i] = causal_ ? window[i + 1] : token[i];
    }
    if (causal_) continue;
    auto* counted = batch.counted.mutable_data_ptr<bool>() + row * sequence_;
    for (std::int64_t at : masked_positions(mix(mix(seed_, "mask"), sample), sequence_)) {
      token[at] = vocab_ - 1;
      counted[at] = true;
    }
  }
  // Pinned memory for a copy to a GPU, so that the host need not wait for it.
  const auto sequence_first = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    const at::Tensor turned = t.t().contiguous();
    return device.is_cpu() ? turned : turned.pin_memory().to(device, turned.scalar_type(), /*non_blocking=*/true);
  };
  return {sequence_first(batch.tokens), sequence_first(batch.targets), sequence_first(batch.counted)};
}

}  // namespace slipway::exec
