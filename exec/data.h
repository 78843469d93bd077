// Training text as bytes. Samples are numbered globally, so any layout reads the same ones:
//
//   sample(step k, data rank r, micro-batch m, row j) = k·global_batch + (r·micro_batches + m)·b + j
//   sample i = the s + 1 bytes at offset hash(seed, i) mod (size − s − 1)
//
// Causal models predict each next byte. BERT predicts the bytes under a mask: of each sample exactly
// max(1, round(0.15·s)) positions, those with the smallest hash(seed, sample, position), are replaced by
// the token vocabulary − 1, so the number of predicted tokens of a step is known without communication.
// Guarded by tests/execute_inputs_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "models/model.h"

namespace slipway {

struct TokenBatch {
  at::Tensor tokens, targets;  // int64 [s, b]
  at::Tensor counted;          // bool [s, b]: targets in the loss; undefined = all
};

// Predicted tokens of one sample.
std::int64_t predicted_tokens(const Model& model);

class TextData {
 public:
  // Throws std::runtime_error when the file cannot be read, is shorter than s + 2 bytes, or when the
  // vocabulary is too small for bytes (256; with a mask token 257).
  TextData(std::string path, const Model& model, std::uint64_t seed);
  TokenBatch batch(std::int64_t first_sample, std::int64_t samples, at::Device device);

 private:
  std::string read_window(std::uint64_t sample);
  std::string path_;
  std::ifstream file_;
  std::uint64_t size_ = 0, seed_;
  std::int64_t sequence_, vocab_;
  bool causal_;
};

}  // namespace slipway
