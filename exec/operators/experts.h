// Which row goes where in a mixture of experts. A token has k rows, one for each of its experts, and all rows are sorted
// by expert (a token's place among an expert's rows is that among the tokens):
//
//   choice  = token·k + i, its i-th best expert          row of choice c: place[c]        choice of row r: order[r]
//
// Their number is tokens·k whatever the router says, so no shape depends on it.
// Guarded by tests/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace slipway {

struct ExpertRows {
  at::Tensor order, place;  // [tokens·k]
  at::Tensor ends;          // [E] int32: rows up to and with each expert's
  at::Tensor weights;       // [tokens, k], of the rows' dtype; has a gradient
  std::int64_t samples = 1;  // that the tokens are of: they come as [s', samples, h]
};

// From the router's logits [tokens, E].
ExpertRows rows_for_experts(const at::Tensor& logits, std::int64_t experts_per_token);
// x [tokens, h] → [tokens·k, h].
at::Tensor to_experts(const at::Tensor& x, const ExpertRows& rows);
// y [tokens·k, h] → [tokens, h]: the weighted sum of each token's rows.
at::Tensor from_experts(const at::Tensor& y, const ExpertRows& rows);

}  // namespace slipway
