#include "exec/operators/grouped_linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "exec/operators/wide.h"
#include "exec/transport/device.h"

namespace slipway::exec {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// True if the one kernel applies: its rows must begin at multiples of 16 bytes.
bool one_kernel(const at::Tensor& x, std::int64_t width) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.size(1) % 8 == 0 && width % 8 == 0;
}

// Calls each(expert, first row, rows) for every expert that has any.
template <typename Each>
void over_experts(const at::Tensor& ends, Each each) {
  const at::Tensor on_host = ends.cpu();
  const int* end = on_host.const_data_ptr<int>();
  std::int64_t first = 0;
  for (std::int64_t expert = 0; expert < on_host.size(0); ++expert) {
    if (end[expert] > first) each(expert, first, end[expert] - first);
    first = end[expert];
  }
}

// [rows, in] and [E, in, out] → [rows, out].
at::Tensor grouped_product(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& ends) {
  if (one_kernel(x, matrices.size(2))) return at::_grouped_mm(x, matrices, ends);
  at::Tensor y = at::empty({x.size(0), matrices.size(2)}, x.options());
  over_experts(ends, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    at::Tensor part = y.narrow(0, first, rows);
    at::mm_out(part, x.narrow(0, first, rows), matrices[expert]);
  });
  return y;
}

// [E·out, in] → [E, out, in].
at::Tensor by_expert(const at::Tensor& weight, const at::Tensor& ends) {
  return weight.view({ends.size(0), -1, weight.size(1)});
}

struct GroupedLinearFunction : torch::autograd::Function<GroupedLinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& ends,
                            const ShardedParameter* weight, WeightGradientQueue* queue) {
    context->save_for_backward({x, ends, weight->weight});
    context->saved_data["weight"] = reinterpret_cast<std::int64_t>(weight);
    context->saved_data["queue"] = reinterpret_cast<std::int64_t>(queue);
    return grouped_product(x, by_expert(weight->weight, ends).transpose(1, 2), ends);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto* weight = reinterpret_cast<const ShardedParameter*>(context->saved_data["weight"].toInt());
    auto* queue = reinterpret_cast<WeightGradientQueue*>(context->saved_data["queue"].toInt());
    const at::Tensor dy = gradients[0].contiguous();
    queue->add_grouped(saved[0], dy, *weight, saved[1]);
    return {grouped_product(dy, by_expert(saved[2], saved[1]), saved[1]), {}, {}, {}};
  }
};

}  // namespace

at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& ends, const ShardedParameter& weight,
                          WeightGradientQueue& queue) {
  return GroupedLinearFunction::apply(x, ends, &weight, &queue);
}

// The one kernel adds in float32 and returns the weights' dtype: it rounds once per micro-batch.
void add_grouped_product(at::Tensor sum, const at::Tensor& output_gradient, const at::Tensor& input,
                         const at::Tensor& ends) {
  at::Tensor matrices = by_expert(sum, ends);
  if (one_kernel(input, output_gradient.size(1))) {
    matrices.add_(at::_grouped_mm(output_gradient.t(), input, ends));
    return;
  }
  over_experts(ends, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    at::Tensor into = matrices[expert];
    add_product(into, output_gradient.narrow(0, first, rows).t(), input.narrow(0, first, rows));
  });
}

}  // namespace slipway::exec
