// The head: logits of a vocabulary shard, and the loss from the statistics of all shards.
// Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_head_transform(OperatorContext&);
void run_logits(OperatorContext&);
void run_loss(OperatorContext&);

// Per token (maximum, sum of exponentials relative to it, target logit or 0) of this vocabulary shard, stacked to
// [3·tokens]; float32 at least. `first` is the shard's first token.
at::Tensor vocabulary_statistics(const at::Tensor& logits, const at::Tensor& targets, std::int64_t first);
// Σ counted token losses / loss_tokens, from local logits and the statistics of all shards [t·3·tokens].
at::Tensor vocabulary_loss(const at::Tensor& logits, const at::Tensor& statistics, const at::Tensor& targets,
                           const at::Tensor& counted, std::int64_t first, double loss_tokens);

}  // namespace slipway::exec
