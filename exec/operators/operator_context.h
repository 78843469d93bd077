// What an operator of a block works on: its wires, parameters and batch. Keys and values of earlier slices are in a cache.
// Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "exec/files/data.h"
#include "exec/operators/experts.h"
#include "exec/operators/parameters.h"
#include "exec/operators/region.h"
#include "exec/operators/rotary.h"
#include "models/model/model.h"
#include "models/model/operators.h"
#include "models/model/routing.h"
#include "models/model/token_ranges.h"

namespace slipway::exec {

// Keys and values of the tokens before a slice of a sequence, layer by layer as a segment runs them, and those of all
// tokens up to its end. Each is [tokens, b, 2·heads·d]: keys (with rotary positions), then values.
struct KeyValueCache {
  at::Tensor past;  // [layers of the segment, tokens, b, 2·heads·d]; undefined for the first slice
  std::vector<at::Tensor> whole;
};

struct OperatorContext {
  const Operator& op;
  const Block& block;
  const BlockParameters& parameters;
  Region& region;
  WireTensors& wires;
  const TokenBatch& batch;                // embed, logits, loss
  const std::vector<TokenRange>& tokens;  // of the sequence: a slice's, or those of this context rank
  RotaryTables& rotary;
  ExpertRows& rows;  // from `route` to the `combine` of the same block, whose segments may be others
  int tensor_rank = 0, tensor_degree = 1;
  bool sequence_parallel = false;
  double loss_tokens = 1;          // predicted tokens of the whole step, over all ranks
  KeyValueCache* cache = nullptr;  // null: no slices
  int context_degree = 1;
  Routing routing = {};
  std::int64_t balanced_parts = 1;  // of a micro-batch, each balanced by itself
  double balancing_factor =
      0;  // α·E / (T²·M) of this block (experts.h), by the tensor ranks that route the same tokens
};

}  // namespace slipway::exec
