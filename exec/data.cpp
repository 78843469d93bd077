#include "exec/data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "exec/parameters.h"

namespace slipway {
namespace {

constexpr double masked_share = 0.15;  // Devlin 2019 (BERT)

std::int64_t masked_tokens(std::int64_t sequence) {
  return std::max<std::int64_t>(1, std::llround(masked_share * static_cast<double>(sequence)));
}

// The positions of a sample that are masked: the smallest hashes.
std::vector<std::int64_t> masked_positions(std::uint64_t key, std::int64_t sequence) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(sequence));
  std::iota(positions.begin(), positions.end(), 0);
  const auto hash = [key](std::int64_t at) { return mix(key, static_cast<std::uint64_t>(at)); };
  std::sort(positions.begin(), positions.end(),
            [&](std::int64_t a, std::int64_t b) { return hash(a) < hash(b); });
  positions.resize(static_cast<std::size_t>(masked_tokens(sequence)));
  return positions;
}

}  // namespace

std::int64_t predicted_tokens(const Model& model) {
  return is_causal(model) ? model.sequence : masked_tokens(model.sequence);
}

TextData::TextData(std::string path, const Model& model, std::uint64_t seed)
    : path_(std::move(path)),
      file_(path_, std::ios::binary),
      seed_(mix(seed, "data")),
      sequence_(model.sequence),
      vocab_(model.runs.front().block.vocab),
      causal_(is_causal(model)) {
  if (!file_) throw std::runtime_error("run.data: cannot read " + path_ + "; give the path of a text file");
  file_.seekg(0, std::ios::end);
  size_ = static_cast<std::uint64_t>(file_.tellg());
  const auto needed = static_cast<std::uint64_t>(sequence_ + 2);
  if (size_ < needed)
    throw std::runtime_error("run.data: " + path_ + " has " + std::to_string(size_) +
                             " bytes; sequences of " + std::to_string(sequence_) +
                             " tokens need at least " + std::to_string(needed));
  const std::int64_t tokens = causal_ ? 256 : 257;
  if (vocab_ < tokens)
    throw std::runtime_error("model " + model.name + ": a vocabulary of " + std::to_string(vocab_) +
                             " is too small for byte-level text, which needs " + std::to_string(tokens) +
                             (causal_ ? "" : " (256 bytes and the mask)"));
}

std::string TextData::read_window(std::uint64_t sample) {
  const std::uint64_t places = size_ - static_cast<std::uint64_t>(sequence_) - 1;
  std::string bytes(static_cast<std::size_t>(sequence_ + 1), '\0');
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(mix(seed_, sample) % places));
  file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file_) throw std::runtime_error("run.data: " + path_ + " became shorter while it was read");
  return bytes;
}

TokenBatch TextData::batch(std::int64_t first_sample, std::int64_t samples, at::Device device) {
  TokenBatch batch{
      at::empty({samples, sequence_}, at::kLong), at::empty({samples, sequence_}, at::kLong), {}};
  if (!causal_) batch.counted = at::zeros({samples, sequence_}, at::kBool);
  for (std::int64_t row = 0; row < samples; ++row) {
    const auto sample = static_cast<std::uint64_t>(first_sample + row);
    const std::string bytes = read_window(sample);
    auto* token = batch.tokens.mutable_data_ptr<std::int64_t>() + row * sequence_;
    auto* target = batch.targets.mutable_data_ptr<std::int64_t>() + row * sequence_;
    for (std::int64_t i = 0; i < sequence_; ++i) {
      token[i] = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
      target[i] = causal_ ? static_cast<unsigned char>(bytes[static_cast<std::size_t>(i + 1)]) : token[i];
    }
    if (causal_) continue;
    auto* counted = batch.counted.mutable_data_ptr<bool>() + row * sequence_;
    for (std::int64_t at : masked_positions(mix(mix(seed_, "mask"), sample), sequence_)) {
      token[at] = vocab_ - 1;
      counted[at] = true;
    }
  }
  const auto sequence_first = [&](const at::Tensor& t) {
    return t.defined() ? t.t().contiguous().to(device) : t;
  };
  return {sequence_first(batch.tokens), sequence_first(batch.targets), sequence_first(batch.counted)};
}

}  // namespace slipway
