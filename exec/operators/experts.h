// The order of rows in a mixture of experts. A token has k rows, one for each of its experts, and all rows are sorted
// by expert. Within an expert, rows keep the order of the tokens:
//
//   choice  = token·k + i, its i-th best expert          row of choice c: place[c]        choice of row r: order[r]
//
// Unless rows are dropped or travel, their number is tokens·k, independent of the router, so all shapes are constant.
// Guarded by tests/exec/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/model/model.h"
#include "models/model/routing.h"

namespace slipway::exec {

// Rows that came from other ranks, source after source, from each sorted by expert.
struct ArrivedRows {
  at::Tensor counts;        // [sources, this rank's experts], on the host
  at::Tensor order, place;  // as below; undefined until the experts run, and where one source has sorted them
  at::Tensor ends;          // [this rank's experts] int32; undefined until the experts run
};

struct ExpertRows {
  at::Tensor order;          // [rows]; dropped ones have no row
  at::Tensor place;          // [tokens·k]; of a dropped one: the number of rows
  at::Tensor ends;           // [E] int32: end of each expert's rows
  at::Tensor choices;        // [E] int64, those that are dropped included, where anything counts them
  at::Tensor expert;         // [tokens, k], where a loss balances experts; undefined once their choices are counted
  at::Tensor scores;         // [tokens, E], summing to 1 for each token, where a loss balances them; has a gradient
  at::Tensor weights;        // [tokens, k], of the rows' dtype; has a gradient; undefined once the wire has them
  std::int64_t samples = 1;  // of the tokens, which come as [s', samples, h]
  // Set where rows travel (exec/rank/rank_rows.cpp): numbers of rows to and from each rank of the expert group, and of
  // rows from each rank that cuts the same experts.
  ArrivedRows arrived;
  std::vector<std::int64_t> sent, received, of_cut;
};

// Chooses experts by the router's logits [tokens, E] and the block's rules (models/model/model.h), and sorts the rows.
// `bias` [E], of the block's router, or undefined. `samples`: of the tokens, which come as [s', samples].
ExpertRows rows_for_experts(const at::Tensor& logits, const Block& block, const Routing& routing = {},
                            const at::Tensor& bias = {}, std::int64_t samples = 1);
// Sorts them by expert.
void sort_arrived(ArrivedRows& arrived, at::Device device);
// x [tokens, h] → [rows, h].
at::Tensor to_experts(const at::Tensor& x, const ExpertRows& rows);
// y [rows, h] → [tokens, h]: the weighted sum of each token's rows, a dropped one 0.
at::Tensor from_experts(const at::Tensor& y, const ExpertRows& rows);

}  // namespace slipway::exec
