#include "exec/operators/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <utility>

#include "exec/operators/gathered_weights.h"
#include "exec/operators/grouped_linear.h"
#include "exec/transport/device.h"

namespace slipway::exec {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
T* pointer_from(AutogradContext* context, const char* key) {
  return reinterpret_cast<T*>(context->saved_data[key].toInt());
}
template <typename T>
std::int64_t address_of(T* pointer) {
  return reinterpret_cast<std::int64_t>(pointer);
}

at::Tensor as_matrix(const at::Tensor& t) { return t.reshape({-1, t.size(-1)}); }

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const ShardedParameter* weight,
                            const ShardedParameter* bias, WeightGradientQueue* queue) {
    const bool comes_again = std::exchange(queue->first_input_comes_again, false);
    context->save_for_backward({comes_again ? at::Tensor() : x, weight->weight});
    context->saved_data["weight"] = address_of(weight);
    context->saved_data["bias"] = address_of(bias);
    context->saved_data["queue"] = address_of(queue);
    return at::linear(x, weight->weight, bias ? std::optional(bias->weight) : std::nullopt);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& dy = gradients[0];
    auto& queue = *pointer_from<WeightGradientQueue>(context, "queue");
    if (const auto* bias = pointer_from<const ShardedParameter>(context, "bias"))
      queue.add_small({bias->gradient, 0, at::sum(as_matrix(dy), {0}, false, bias->gradient.scalar_type())});
    if (queue.capture)
      queue.capture->keep_output_gradient(*pointer_from<const ShardedParameter>(context, "weight"), dy);
    queue.add(saved[0], dy, *pointer_from<const ShardedParameter>(context, "weight"));
    return {at::matmul(dy, saved[1]), {}, {}, {}};
  }
};

}  // namespace

void WeightGradientQueue::add(const at::Tensor& input, const at::Tensor& output_gradient,
                              const ShardedParameter& weight) {
  add_grouped(input, output_gradient, weight, {});
}

void WeightGradientQueue::add_grouped(const at::Tensor& input, const at::Tensor& output_gradient,
                                      const ShardedParameter& weight, const at::Tensor& ends) {
  items_.push_back({input, output_gradient, &weight, ends});
  if (!deferred) run();
}

void WeightGradientQueue::run() {
  for (const Item& item : items_) {
    const at::Tensor& input = item.input.defined() ? item.input : again;
    if (!input.defined()) throw std::logic_error("the input of " + item.weight->meta.name + " was not gathered again");
    at::Tensor into = item.weight->gradient;  // a view: the sum goes into the bucket
    if (item.ends.defined())
      add_grouped_product(into, item.output_gradient, input, item.ends);
    else
      add_product(into, as_matrix(item.output_gradient).t(), as_matrix(input));
  }
  items_.clear();
}

void WeightGradientQueue::add_small(WaitingGradient small) {
  if (has_memory(small.into))
    small.add();
  else
    waiting_.push_back(std::move(small));
}

at::Tensor linear(const at::Tensor& x, const ShardedParameter& weight, const ShardedParameter* bias,
                  WeightGradientQueue& queue) {
  if (queue.capture && at::GradMode::is_enabled()) queue.capture->keep_input(weight, x);  // else it is recomputed later
  return LinearFunction::apply(x, &weight, bias, &queue);
}

}  // namespace slipway::exec
