// Batches of training tokens. Samples are numbered globally, so any layout reads the same samples:
//
//   sample(step k, data rank r, micro-batch m, row j) = k·global_batch + ((⌊r/n⌋·micro_batches + m)·n + r mod n)·b + j
//
// n data ranks whose experts a loss balances together (else 1) have consecutive samples in a micro-batch.
//
//   sample i = the s + 1 tokens of window π(i), π a permutation of all windows in every epoch (sample_order.h)
//
// Causal models predict each next token. BERT predicts the tokens under a mask. In each sample it replaces exactly
// max(1, round(0.15·s)) positions, those with the smallest hash(seed, sample, position), by the token vocabulary − 1.
// So the number of predicted tokens of a step is known without communication.
// Guarded by tests/exec/execute_inputs_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "exec/files/sample_order.h"
#include "exec/files/token_source.h"
#include "models/model/model.h"

namespace slipway::exec {

struct TokenBatch {
  at::Tensor tokens, targets;  // int64 [s, b]
  at::Tensor counted;          // bool [s, b]: targets in the loss; undefined = all
};

// Number of predicted tokens of one sample.
std::int64_t predicted_tokens(const Model& model);

class TokenData {
 public:
  // Throws std::runtime_error when the file cannot be read or has fewer than s + 1 tokens, or when the vocabulary is
  // too small for bytes (256; with a mask token 257).
  TokenData(const std::string& path, const Model& model, std::uint64_t seed);
  // Throws std::runtime_error when a token is not in the model's vocabulary.
  TokenBatch batch(std::int64_t first_sample, std::int64_t samples, at::Device device);
  // Number of samples of an epoch; then the same samples come again, in another order.
  std::int64_t samples() const { return samples_; }

 private:
  std::string path_;
  std::unique_ptr<TokenSource> source_;
  std::uint64_t seed_;
  std::int64_t sequence_, vocab_, samples_;
  bool causal_;
  SampleOrder order_;
};

}  // namespace slipway::exec
