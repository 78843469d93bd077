// Inputs and output gradients of Linears that are still needed after their backward pass: K-FAC makes its factors of
// them (exec/rank/kfac.h). linear() leaves these tensors here; they exist anyway:
//
//   forward ─► input ──────────► taken once for each factor A of the weight ─► gone
//   backward ─► output gradient ─► once for each factor B ─► gone
//
// There is one for each micro-batch (and slice). The compute lane's thread runs the pass or waits for it. Guarded by
// tests/exec/execute_kfac_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/operators/parameters.h"

namespace slipway::exec {

class LinearCapture {
 public:
  // Keeps input and output gradient of `weight` from now on, each to be taken `times`.
  void want(const ShardedParameter& weight, int times) { wanted_[&weight] = {{{}, 0}, {{}, 0}, times}; }

  // Both ignore weights that are not wanted.
  void keep_input(const ShardedParameter& weight, const at::Tensor& x) { keep(weight, &Kept::input, x); }
  void keep_output_gradient(const ShardedParameter& weight, const at::Tensor& dy) { keep(weight, &Kept::gradient, dy); }

  // Both throw std::logic_error when there is none: a task ran before its pass, or once too often.
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

// y = x·Wᵀ + b as this project's own autograd Function.
//
//   backward:  dx = dy·W          returned at once: others wait for it
//              dW += dyᵀ·x        handed to a queue that runs at once, or later as the graph's W task
//              db += Σ dy         small: at once. Where the bucket has no memory yet (ZeRO 2 and 3, whose buckets begin
//                                 with the weight-gradient pass) it waits for that pass
//
// Gradients are added directly in the block's bucket, in the bucket's dtype (fp32 for bf16 weights). The weight is no
// input of the autograd graph: a later query to the engine for weight gradients would walk the chain of input gradients
// a second time (2.75 instead of 2.00 forward-FLOPs for I + W). Sequence parallelism gathers the input of a segment's
// first Linear once more for the weight gradient, so it is not kept until then.
// Where the queue has a capture, inputs and output gradients stay there for K-FAC.
// Guarded by tests/exec/execute_parts_test.cpp: GEMM FLOPs of I + W = those of the full backward.

// A bias's or a norm's gradient whose bucket has no memory yet.
struct WaitingGradient {
  at::Tensor into;
  std::int64_t begin = 0;  // row of `into` where it is added
  at::Tensor value;
  void add() const { into.narrow(0, begin, value.size(0)).add_(value); }
};

class WeightGradientQueue {
 public:
  bool deferred = false;                 // false: add() does the work at once
  bool first_input_comes_again = false;  // for the next Linear, which resets it
  at::Tensor again;                      // that input; must exist when its work is done
  LinearCapture* capture = nullptr;      // must outlive the passes
  // `input` undefined: it is gathered again.
  void add(const at::Tensor& input, const at::Tensor& output_gradient, const ShardedParameter& weight);
  // For grouped_linear(): rows up to ends[e] are expert e's.
  void add_grouped(const at::Tensor& input, const at::Tensor& output_gradient, const ShardedParameter& weight,
                   const at::Tensor& ends);
  void run();  // does the deferred work and forgets it
  // Adds the gradient, or keeps it while its bucket has no memory.
  void add_small(WaitingGradient small);
  std::vector<WaitingGradient> take_waiting() { return std::exchange(waiting_, {}); }

 private:
  struct Item {
    at::Tensor input, output_gradient;
    const ShardedParameter* weight;
    at::Tensor ends;  // undefined: one matrix for all rows
  };
  std::vector<Item> items_;
  std::vector<WaitingGradient> waiting_;
};

// x: [..., in], weight: [out, in]. `queue` must outlive the backward pass, the parameters both passes.
at::Tensor linear(const at::Tensor& x, const ShardedParameter& weight, const ShardedParameter* bias,
                  WeightGradientQueue& queue);

}  // namespace slipway::exec
