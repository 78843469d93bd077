// Measured times and bytes of one Transformer block, a row per micro-batch size, from a paper or a profiler. A machine
// with such a table is priced by it instead of by operators:
//
//   forward segment  = Σ blocks in it · forward_s         backward likewise
//   everything that is no Transformer block (embedding, head, optimizer, gradient norm) is free
//
// So a simulated step is the model of the table's authors: a pipeline of blocks and nothing else. Guarded by
// tests/models/kfac_cost_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct BlockTimes {
  std::int64_t micro_batch = 1;  // sequences
  double forward_s = 0, backward_s = 0;
  // K-FAC: all Kronecker factors of one micro-batch; inverses of all factors; the update of one step.
  double curvature_s = 0, inversion_s = 0, precondition_s = 0;
  double parameter_bytes = 0;    // weights and gradients are one copy each
  double activation_bytes = 0;   // kept from forward to backward, of one micro-batch
  double peak_error_bytes = 0;   // working memory of one backward
  double saved_error_bytes = 0;  // output gradients of the Linears, of one micro-batch
  double factor_bytes = 0;       // Kronecker factors
};

struct BlockTable {
  std::string name, source;
  // The measured block. The table is not valid for other shapes.
  std::int64_t hidden = 0, ffn = 0, heads = 0, sequence = 0;
  Dtype dtype = Dtype::float32;
  std::vector<BlockTimes> rows;
  bool empty() const { return rows.empty(); }
};

// Throws std::invalid_argument with the available micro-batches.
const BlockTimes& row_of(const BlockTable& table, std::int64_t micro_batch);
// The reason why the table does not describe this block under this shape, or "".
std::string mismatch(const BlockTable& table, const Block& block, const WorkShape& shape);

}  // namespace slipway::models
