// One segment's autograd region: from its forward pass (or recomputation) to its backward pass.
//
//   in wires ─ enter ─► operators (tap: small weights; linear: its own queue) ─► leave ─ out wires
//   d in     ◄──────────────── one backward per segment ◄──────────────────────  d out
//
// `enter` detaches, so no autograd graph spans two segments and no communication hides in one. The region keeps only
// the edges of the out wires in autograd's graph: their values live as long as the task graph's buffers. An operator
// that needs an input for its backward pass keeps it; the region does not. A wire that no operator changes is threaded
// through, so its gradient is one chain.
// Guarded by tests/exec/execute_parts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "exec/operators/linear.h"
#include "models/model/operators.h"

namespace slipway::exec {

using WireTensors = std::array<at::Tensor, wire_kinds>;
inline std::size_t index_of(Wires wire) { return static_cast<std::size_t>(std::countr_zero(wire)); }

class Region {
 public:
  // `recording` false: nothing is kept and there is no backward.
  explicit Region(bool recording) : recording_(recording) {}
  bool recording() const { return recording_; }

  at::Tensor enter(Wires wire, const at::Tensor& value);
  // Returns the value to hand on, detached. `needed`: the backward pass must get its gradient. A recomputation does not
  // know which of its wires lead on, so it marks all as not needed.
  at::Tensor leave(Wires wire, const at::Tensor& value, bool needed);
  // A small weight as a leaf of this region. In the backward pass its gradient is added to the rows of `gradient` from
  // `begin` on, which need no memory before (exec/operators/gathered_weights.h). If they have none even then, it waits
  // in `weight_gradients`.
  at::Tensor tap(const at::Tensor& weight, const at::Tensor& gradient, std::int64_t begin = 0);
  // An empty leaf for operators without an input that needs a gradient (embed).
  at::Tensor anchor();

  // Gradients of the out wires (the loss needs none: it is seeded with 1) → gradients of the in wires.
  WireTensors backward(const WireTensors& out_gradients);

  WeightGradientQueue weight_gradients;
  // Rounds of a ring, which have a separate backward (exec/rank/rank_ring.cpp): queries, keys and values of the first
  // round; output and log-sum-exp of the last.
  std::vector<at::Tensor> kept;

 private:
  bool has_entered(const at::Tensor& value) const;

  bool recording_;
  struct Out {
    Wires wire;
    torch::autograd::Edge edge;
    bool needed;
  };
  std::vector<std::pair<Wires, torch::autograd::Edge>> ins_;
  std::vector<Out> outs_;
  struct Tap {
    at::Tensor gradient;  // bucket view; undefined: an anchor
    std::int64_t begin;
    torch::autograd::Edge edge;
  };
  std::vector<Tap> taps_;
  at::TensorOptions loss_options_;
};

}  // namespace slipway::exec
