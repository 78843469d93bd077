// Inputs and output gradients of Linears that are still needed after their backward pass: K-FAC makes its
// factors of them (exec/kfac.h). linear() leaves them here in passing, tensors that exist anyway:
//
//   forward ─► input ──────────► taken once for each factor A of the weight ─► gone
//   backward ─► output gradient ─► once for each factor B ─► gone
//
// One for each micro-batch (and slice), while the compute lane's thread runs the pass or waits for it. Guarded by
// tests/execute_kfac_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "exec/parameters.h"

namespace slipway {

class LinearCapture {
 public:
  // Keeps those of `weight` from now on, each to be taken `times`.
  void want(const ShardedParameter& weight, int times) { wanted_[&weight] = {{{}, 0}, {{}, 0}, times}; }

  // Others than the wanted ones are let go.
  void keep_input(const ShardedParameter& weight, const at::Tensor& x) { keep(weight, &Kept::input, x); }
  void keep_output_gradient(const ShardedParameter& weight, const at::Tensor& dy) {
    keep(weight, &Kept::gradient, dy);
  }

  // Throw std::logic_error when there is none: a task ran before its pass, or once too often.
  at::Tensor take_input(const ShardedParameter& weight) { return take(weight, &Kept::input); }
  at::Tensor take_output_gradient(const ShardedParameter& weight) { return take(weight, &Kept::gradient); }

 private:
  struct One {
    at::Tensor tensor;
    int left = 0;
  };
  struct Kept {
    One input, gradient;
    int times = 0;
  };

  void keep(const ShardedParameter& weight, One Kept::*which, const at::Tensor& tensor) {
    const auto found = wanted_.find(&weight);
    if (found != wanted_.end()) found->second.*which = {tensor.detach(), found->second.times};
  }
  at::Tensor take(const ShardedParameter& weight, One Kept::*which) {
    const auto found = wanted_.find(&weight);
    if (found == wanted_.end() || (found->second.*which).left == 0)
      throw std::logic_error("a factor of " + weight.meta.name + " has nothing to be made of");
    One& one = found->second.*which;
    return --one.left == 0 ? std::exchange(one.tensor, at::Tensor()) : one.tensor;
  }

  std::unordered_map<const ShardedParameter*, Kept> wanted_;
};

}  // namespace slipway
