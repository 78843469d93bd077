// The order of rows in a mixture of experts. A token has k rows, one for each of its experts, and all rows are sorted
// by expert. Within an expert, rows keep the order of the tokens:
//
//   choice  = token·k + i, its i-th best expert          row of choice c: place[c]        choice of row r: order[r]
//
// The number of rows is tokens·k, independent of the router, so all shapes are constant.
// Guarded by tests/exec/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "exec/operators/linear.h"
#include "models/model/model.h"

namespace slipway::exec {

// Rows that came from other ranks, source after source, from each sorted by expert.
struct ArrivedRows {
  at::Tensor counts;        // [sources, this rank's experts], on the host
  at::Tensor order, place;  // as below; undefined until the experts run, and where one source has sorted them
  at::Tensor ends;          // [this rank's experts] int32; undefined until the experts run
};

struct ExpertRows {
  at::Tensor order, place;   // [tokens·k]
  at::Tensor ends;           // [E] int32: end of each expert's rows
  at::Tensor weights;        // [tokens, k], of the rows' dtype; has a gradient; undefined once the wire has them
  std::int64_t samples = 1;  // of the tokens, which come as [s', samples, h]
  // Where rows travel (exec/rank/rank_rows.cpp): numbers of rows that go to and come from each rank of the expert group,
  // and that each rank has brought that cuts the same experts.
  ArrivedRows arrived;
  std::vector<std::int64_t> sent, received, of_cut;
};

// Chooses experts by the router's logits [tokens, E] and the block's rules (models/model/model.h), and sorts the rows.
ExpertRows rows_for_experts(const at::Tensor& logits, const Block& block);
// Sorts them by expert.
void sort_arrived(ArrivedRows& arrived, at::Device device);
// x [tokens, h] → [tokens·k, h].
at::Tensor to_experts(const at::Tensor& x, const ExpertRows& rows);
// y [tokens·k, h] → [tokens, h]: the weighted sum of each token's rows.
at::Tensor from_experts(const at::Tensor& y, const ExpertRows& rows);

// y = x·Wₑᵀ for rows sorted by expert: rows [ends[e−1], ends[e]) of x go through the matrix of expert e.
//
//   x [rows, in]   W [E·out, in], the experts' matrices one below the other   ends [E], int32, on x's device
//
// Like linear() (exec/operators/linear.h): the weight is no input of the autograd graph, its gradient goes to the
// queue. On a GPU in bfloat16, with widths that are multiples of 8, all experts are one kernel and the host never reads
// `ends`. Elsewhere each expert is a product, and a GPU's host waits for `ends`.

// `queue` must outlive the backward pass, the parameter both passes.
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& ends, const ShardedParameter& weight,
                          WeightGradientQueue& queue);

// sum [E, out, in] += dyₑᵀ·xₑ for each expert. `sum` may be wider than the rows.
void add_grouped_product(at::Tensor sum, const at::Tensor& output_gradient, const at::Tensor& input,
                         const at::Tensor& ends);

}  // namespace slipway::exec
