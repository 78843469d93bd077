#include "exec/operators/region.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <stdexcept>

namespace slipway::exec {

using torch::autograd::Edge;
using torch::autograd::impl::gradient_edge;

namespace {

// Where a wire enters: the gradient is taken here and goes no further. Unlike the accumulator of a leaf it does not
// hold the value, which lives only as long as an operator needs it.
struct Entrance : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

}  // namespace

at::Tensor Region::enter(Wires wire, const at::Tensor& value) {
  at::Tensor entered = value.detach();
  if (!recording_) return entered;
  const auto entrance = std::make_shared<Entrance>();
  entrance->add_input_metadata(entered);
  torch::autograd::impl::set_gradient_edge(entered, {entrance, 0});
  ins_.emplace_back(wire, gradient_edge(entered));
  return entered;
}

bool Region::has_entered(const at::Tensor& value) const {
  return value.requires_grad() &&
         std::any_of(ins_.begin(), ins_.end(), [&](const auto& in) { return in.second == gradient_edge(value); });
}

at::Tensor Region::leave(Wires wire, const at::Tensor& value, bool needed) {
  if (!recording_) return value.detach();
  // A value that is handed on unchanged gets a new node, so that edges of in and out differ.
  const at::Tensor out = has_entered(value) ? value.view_as(value) : value;
  if (out.requires_grad()) outs_.push_back({wire, gradient_edge(out), needed});
  if (wire == wire_loss) loss_options_ = out.options();
  return out.detach();
}

at::Tensor Region::tap(const at::Tensor& weight, const at::Tensor& gradient, std::int64_t begin) {
  if (!recording_) return weight;
  at::Tensor leaf = weight.detach();
  leaf.set_requires_grad(true);
  taps_.push_back({gradient, begin, gradient_edge(leaf)});
  return leaf;
}

at::Tensor Region::anchor() {
  at::Tensor leaf = at::empty({0});
  if (!recording_) return leaf;
  leaf.set_requires_grad(true);
  taps_.push_back({at::Tensor(), 0, gradient_edge(leaf)});
  return leaf;
}

WireTensors Region::backward(const WireTensors& out_gradients) {
  torch::autograd::edge_list roots, wanted;
  torch::autograd::variable_list gradients;
  for (const Out& out : outs_) {
    at::Tensor gradient = out_gradients[index_of(out.wire)];
    if (out.wire == wire_loss) gradient = at::ones({}, loss_options_.requires_grad(false));
    if (!gradient.defined() && out.needed)
      throw std::runtime_error("a segment's backward has no gradient for one of its output wires");
    if (!gradient.defined()) continue;
    roots.push_back(out.edge);
    gradients.push_back(gradient);
  }
  for (const auto& [wire, edge] : ins_) wanted.push_back(edge);
  for (const Tap& tap : taps_) wanted.push_back(tap.edge);
  // The engine runs only what leads to a wanted edge, so an operator without inputs needs the anchor.
  auto found = torch::autograd::Engine::get_default_engine().execute(roots, gradients, false, false, false, wanted);
  WireTensors in_gradients;
  for (std::size_t i = 0; i < ins_.size(); ++i) in_gradients[index_of(ins_[i].first)] = found[i];
  for (std::size_t i = 0; i < taps_.size(); ++i) {
    const at::Tensor& gradient = found[ins_.size() + i];
    const Tap& tap = taps_[i];
    if (gradient.defined() && tap.gradient.defined()) weight_gradients.add_small({tap.gradient, tap.begin, gradient});
  }
  ins_.clear(), outs_.clear(), taps_.clear();
  return in_gradients;
}

}  // namespace slipway::exec
