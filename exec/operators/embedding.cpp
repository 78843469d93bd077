#include "exec/operators/embedding.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace slipway::exec {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of this vocabulary shard; tokens of other shards give zero. The gradient goes straight into the bucket's rows,
// never through a dense vocabulary × hidden tensor.
struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*anchor*/, const at::Tensor& tokens,
                            const ShardedParameter* table) {
    const std::int64_t first = table->pieces.front().begin;
    const at::Tensor local = (tokens - first).reshape({-1});
    const at::Tensor outside = (local < 0).logical_or(local >= table->weight.size(0));
    const at::Tensor rows = local.masked_fill(outside, 0);
    context->save_for_backward({rows, outside});
    context->saved_data["table"] = reinterpret_cast<std::int64_t>(table);
    const at::Tensor found = table->weight.index_select(0, rows).masked_fill_(outside.unsqueeze(1), 0);
    return found.view({tokens.size(0), tokens.size(1), -1});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto* table = reinterpret_cast<const ShardedParameter*>(context->saved_data["table"].toInt());
    at::Tensor into = table->gradient;
    const at::Tensor rows = gradients[0].reshape({-1, into.size(1)}).to(into.scalar_type());
    const at::Tensor kept = rows.masked_fill(saved[1].unsqueeze(1), 0);
    if (into.is_cuda())
      into.index_put_({saved[0]}, kept, true);  // sorted, so deterministic; index_add_ is not on GPUs
    else
      into.index_add_(0, saved[0], kept);
    return {at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// Rows of a replicated table, as a leaf.
at::Tensor tap_rows(OperatorContext& c, const ShardedParameter& table, std::int64_t begin, std::int64_t rows) {
  return c.region.tap(table.weight.narrow(0, begin, rows), table.gradient, begin);
}

}  // namespace

void run_embed(OperatorContext& c) {
  const ShardedParameter& table = parameter_named(c.parameters, "embedding.weight");
  c.wires[index_of(wire_residual)] = EmbedFunction::apply(c.region.anchor(), c.batch.tokens, &table);
}

// Under sequence parallelism this rank holds a part of its context rank's tokens, and so of the positions.
void run_add_positions(OperatorContext& c) {
  at::Tensor& residual = c.wires[index_of(wire_residual)];
  const std::int64_t rows = residual.size(0), first = c.sequence_parallel ? c.tensor_rank * rows : 0;
  std::vector<at::Tensor> positions;
  for (const TokenRange& range : ranges_within(c.tokens, first, rows))
    positions.push_back(tap_rows(c, parameter_named(c.parameters, "embedding.positions"), range.first, range.count));
  at::Tensor sum = residual + at::cat(positions).unsqueeze(1);
  if (const ShardedParameter* types = find_parameter(c.parameters, "embedding.token_types"))
    sum = sum + tap_rows(c, *types, 0, 1).unsqueeze(1);  // plain text is one segment: all tokens have type 0
  residual = sum;
}

}  // namespace slipway::exec
