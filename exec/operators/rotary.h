// Rotary positions (Su 2021): the pairs (i, i + d/2) of every head turned by position · theta^(−2i/d).
//
//   x₀' = x₀·cos − x₁·sin        backward: the same with −sin
//   x₁' = x₁·cos + x₀·sin
//
// It is one autograd Function over the packed projection: autograd's own would go through views and fill a tensor of
// zeros for each. ATen has no single kernel for it; here it takes five, each in place or into the result.
// Guarded by tests/exec/execute_numerics_test.cpp, against a complex rotation.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <tuple>
#include <utility>

#include "models/model/model.h"

namespace slipway::exec {

// Cosines and sines, each [s, 1, 1, d/2]; made once per shape.
class RotaryTables {
 public:
  const std::pair<at::Tensor, at::Tensor>& get(std::int64_t sequence, const Block& block,
                                               const at::TensorOptions& options);

 private:
  std::map<std::tuple<std::int64_t, std::int64_t, double>, std::pair<at::Tensor, at::Tensor>> tables_;
};

// packed: [s, b, features]. Its first `heads` heads of `size` are turned; features behind them stay. `cosine` and
// `sine`: [s, 1, 1, size/2].
at::Tensor with_positions(const at::Tensor& packed, const at::Tensor& cosine, const at::Tensor& sine,
                          std::int64_t heads, std::int64_t size);

}  // namespace slipway::exec
