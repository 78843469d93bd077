// AdamW (Loshchilov 2019), or a natural gradient step, on the slice of a block's flat tensors that this rank updates:
// the whole block, or 1/n of it when n ranks share the optimizer (ZeRO ≥ 1).
//
//   w ← w − lr·λ·w                      only where Parameter::decays; lr is the step's rate
//   m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²
//   w ← w − lr·m̂/(√v̂ + ε),             m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ)
//
// With the optimizer kfac the matrices of Transformer blocks (ShardedParameter::natural) have no moments. Their
// gradient is already a direction (exec/rank/kfac.h), applied with the same rate, decay and clipping:
//
//   w ← w − lr·(λ·w + direction)
//
// Weights below 32 bits have a float32 master here.
// Guarded by tests/exec/execute_parts_test.cpp, against torch::optim::AdamW, and tests/exec/execute_kfac_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/operators/parameters.h"
#include "exec/rank/parameter_state.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

struct UpdateRange {
  std::int64_t begin = 0, end = 0;  // in the flat tensor
  bool decays = false, natural = false, balances = false;
};

// The slice [begin, end) of `block` cut where weight decay or the rule of the update changes. Padding is left out.
std::vector<UpdateRange> update_ranges(const BlockParameters& block, std::int64_t begin, std::int64_t end);

class OptimizerShard {
 public:
  // `begin`: start of the slice in the block's flat weights. `slice`: its weights; undefined = those of `block`.
  OptimizerShard(const BlockParameters& block, std::int64_t begin, std::int64_t end, at::Tensor slice = {});
  // `gradient`: this rank's slice, any floating dtype; its values are used up. `rate`: the learning rate of this step.
  // `scale`: clipping factor without dimensions, on the gradient's device so that no thread waits for its value;
  // undefined = 1.
  void step(const at::Tensor& gradient, const Optimizer& optimizer, double rate, const at::Tensor& scale);
  // State of the elements [from, to) of the block's flat tensors, as views. They belong to one parameter and this
  // slice. Where there are no moments they are zeros, after no updates.
  ParameterState state(std::int64_t from, std::int64_t to) const;
  // Sets the state that exists; the weights follow from the masters.
  void restore(std::int64_t from, std::int64_t to, const ParameterState& state);

 private:
  struct Range {
    std::int64_t elements() const { return master.size(0); }
    at::Tensor weight, master;       // master is `weight` itself if that is wide enough
    at::Tensor mean, square, steps;  // undefined where there are no moments
    std::int64_t begin = 0;          // in the slice
    bool decays = false, natural = false, balances = false;
    bool has_moments() const { return !natural && !balances; }
  };
  static void step_adamw(Range& range, const at::Tensor& gradient, const Optimizer& optimizer, double rate,
                         const std::optional<at::Tensor>& divisor);
  const Range& range_of(std::int64_t from, std::int64_t to) const;
  std::int64_t begin_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace slipway::exec
