#include "exec/files/data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "exec/files/token_source.h"
#include "exec/run/data_files.h"

namespace slipway::exec {

std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t mix(std::uint64_t seed, std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(mix(seed, std::uint64_t{0}), hash);
}

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

}  // namespace

std::int64_t predicted_tokens(const Model& model) {
  return is_causal(model) ? model.sequence : masked_tokens(model.sequence);
}

namespace {

std::uint64_t windows_of(const TokenSource& source, std::int64_t sequence, const std::string& path) {
  const std::string why = why_no_sample(path, source.size(), source.is_bytes(), sequence);
  if (!why.empty()) throw std::runtime_error("run.data: " + why);
  return (source.size() - 1) / static_cast<std::uint64_t>(sequence);
}

}  // namespace

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

SampleOrder::SampleOrder(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < count_) ++half_bits_;
}

std::uint64_t SampleOrder::window_of(std::uint64_t sample) const {
  constexpr std::uint64_t rounds = 4;  // enough for a pseudorandom permutation (Luby and Rackoff 1988)
  const std::uint64_t epoch_key = mix(seed_, sample / count_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = sample % count_;
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t next = left ^ (mix(mix(epoch_key, round), right) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= count_);
  return value;
}

}  // namespace slipway::exec
