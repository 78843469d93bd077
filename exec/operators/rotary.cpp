#include "exec/operators/rotary.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace slipway::exec {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `direction`: 1, or −1 against the angle.
at::Tensor turned(const at::Tensor& packed, const at::Tensor& cosine, const at::Tensor& sine, std::int64_t heads,
                  std::int64_t size, double direction) {
  at::Tensor result = at::empty(packed.sizes(), packed.options());
  const auto halves = [&](const at::Tensor& x) {
    return x.narrow(-1, 0, heads * size).unflatten(-1, {heads, size}).chunk(2, -1);
  };
  const std::vector<at::Tensor> from = halves(packed);
  std::vector<at::Tensor> into = halves(result);
  at::mul_out(into[0], from[0], cosine).addcmul_(from[1], sine, -direction);
  at::mul_out(into[1], from[1], cosine).addcmul_(from[0], sine, direction);
  const std::int64_t end = heads * size, rest = packed.size(-1) - end;
  if (rest > 0) result.narrow(-1, end, rest).copy_(packed.narrow(-1, end, rest));
  return result;
}

struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& packed, const at::Tensor& cosine,
                            const at::Tensor& sine, std::int64_t heads, std::int64_t size) {
    context->save_for_backward({cosine, sine});
    context->saved_data["heads"] = heads;
    context->saved_data["size"] = size;
    return turned(packed, cosine, sine, heads, size, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list tables = context->get_saved_variables();
    const std::int64_t heads = context->saved_data["heads"].toInt(), size = context->saved_data["size"].toInt();
    return {turned(gradients[0], tables[0], tables[1], heads, size, -1), {}, {}, {}, {}};
  }
};

}  // namespace

const std::pair<at::Tensor, at::Tensor>& RotaryTables::get(std::int64_t sequence, const Block& block,
                                                           const at::TensorOptions& options) {
  auto& table = tables_[{sequence, block.head_dim, block.rope_theta}];
  if (table.first.defined()) return table;
  const std::int64_t half = block.head_dim / 2;
  const at::Tensor exponent = at::arange(half, at::kDouble) * (-2.0 / static_cast<double>(block.head_dim));
  const at::Tensor frequency = at::pow(at::Scalar(block.rope_theta), exponent);
  const at::Tensor angle = at::outer(at::arange(sequence, at::kDouble), frequency).view({sequence, 1, 1, half});
  table = {angle.cos().to(options), angle.sin().to(options)};
  return table;
}

at::Tensor with_positions(const at::Tensor& packed, const at::Tensor& cosine, const at::Tensor& sine,
                          std::int64_t heads, std::int64_t size) {
  return RotaryFunction::apply(packed, cosine, sine, heads, size);
}

}  // namespace slipway::exec
