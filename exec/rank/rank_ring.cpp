// Rounds of ring attention (schedules/lower/ring.cpp): the present block of keys and values, the part that the queries
// see (models/model/token_ranges.h), and the message to the next rank.
#include <ATen/ATen.h>

#include <stdexcept>

#include "exec/operators/attention.h"
#include "exec/operators/partial_attention.h"
#include "exec/rank/rank_state.h"
#include "exec/transport/device.h"

namespace slipway::exec {
namespace {

// The tensor on `wire` among these buffers; undefined if there is none.
at::Tensor find_wire(const TaskGraph& graph, const Slots& slots, const std::vector<BufferId>& buffers, Wires wire,
                     int step) {
  for (const BufferId buffer : buffers)
    if (graph.buffers[buffer].wire == wire) return slots.tensor(buffer, step);
  return {};
}

// [k | v] of a block, by head.
struct KeysValues {
  at::Tensor k, v;
};
KeysValues cut(const at::Tensor& packed, std::int64_t head_dim) {
  const std::vector<at::Tensor> halves = packed.chunk(2, -1);
  return {by_head(halves[0], head_dim), by_head(halves[1], head_dim)};
}

at::Tensor part(const at::Tensor& x, const TokenRange& range) { return x.narrow(2, range.first, range.count); }

}  // namespace

void RankModel::State::ring_forward(TaskId task, int step) {
  const Operator& op = graph.operators(graph.work(task))[graph.work(task).first_op];
  const std::int64_t head_dim = blocks[op.block].head_dim;
  const std::vector<BufferId> values = slots.inputs(task, BufferKind::value),
                              saved = slots.inputs(task, BufferKind::saved);
  const at::Tensor queries = saved.empty() ? find_wire(graph, slots, values, wire_branch, step)
                                           : slots.region(saved.front(), step)->kept.front();
  const at::Tensor keys_values = find_wire(graph, slots, values, wire_kv, step);
  const RingRound round =
      ring_round(is_causal(graph.step.model), graph.step.layout.context, at.context, op.round, own_tokens());
  const KeysValues block = cut(keys_values, head_dim);
  const PartialAttention partial =
      attend_to_part(part(by_head(queries, head_dim), round.queries), part(block.k, round.keys),
                     part(block.v, round.keys), round.masked, part_kernel_for(queries));
  at::Tensor running = find_wire(graph, slots, values, wire_attended, step);
  if (running.defined())
    merge_into(running, partial, round.queries.first);
  else
    running = running_attention(partial);
  const auto region = std::make_shared<Region>(false);
  if (op.round == 0) region->kept = {queries, keys_values};
  for (const BufferId buffer : slots.outputs(task, BufferKind::value)) {
    if (graph.buffers[buffer].wire == wire_attended) {
      slots.put(buffer, step, running);
      continue;
    }
    const PartialAttention all = whole_attention(running, queries.scalar_type());
    region->kept = {all.out, all.log_sum_exp};
    slots.put(buffer, step, from_heads(all.out).contiguous());
  }
  for (const BufferId buffer : slots.outputs(task, BufferKind::saved)) slots.put(buffer, step, region);
}

void RankModel::State::ring_backward(TaskId task, int step) {
  const Operator& op = graph.operators(graph.work(task))[graph.work(task).first_op];
  const std::int64_t head_dim = blocks[op.block].head_dim;
  const std::vector<BufferId> saved = slots.inputs(task, BufferKind::saved),
                              gradients = slots.inputs(task, BufferKind::gradient);
  if (saved.size() != 2)
    throw std::runtime_error(label_of(graph, task) + " reads " + std::to_string(saved.size()) +
                             " saved buffers instead of those of the ring's first and last round");
  const std::vector<at::Tensor> first = slots.region(saved[0], step)->kept, last = slots.region(saved[1], step)->kept;
  const at::Tensor arrived = find_wire(graph, slots, slots.inputs(task, BufferKind::value), wire_kv, step);
  const at::Tensor keys_values = arrived.defined() ? arrived : first[1];
  const RingRound round =
      ring_round(is_causal(graph.step.model), graph.step.layout.context, at.context, op.round, own_tokens());
  const KeysValues block = cut(keys_values, head_dim);
  const at::Tensor queries = by_head(first[0], head_dim),
                   out = by_head(find_wire(graph, slots, gradients, wire_branch, step), head_dim);
  const AttentionGradients found = gradients_of_part(
      part(out, round.queries), part(queries, round.queries), part(block.k, round.keys), part(block.v, round.keys),
      {part(last[0], round.queries), part(last[1], round.queries)}, round.masked, part_kernel_for(queries));
  at::Tensor query = find_wire(graph, slots, gradients, wire_attended, step);
  if (!query.defined()) query = at::zeros(queries.sizes(), last[1].options());
  part(query, round.queries).add_(found.q);
  const at::Tensor back = at::zeros_like(keys_values);
  const KeysValues into = cut(back, head_dim);
  part(into.k, round.keys).copy_(found.k);
  part(into.v, round.keys).copy_(found.v);
  for (const BufferId buffer : slots.outputs(task, BufferKind::gradient)) {
    const Wires wire = graph.buffers[buffer].wire;
    slots.put(buffer, step,
              wire == wire_kv         ? back
              : wire == wire_attended ? query
                                      : from_heads(query).to(first[0].scalar_type()).contiguous());
  }
}

Message RankModel::State::shift_message(TaskId task, int step) const {
  at::Tensor sent;
  for (const BufferId buffer : slots.inputs(task, BufferKind::value)) sent = slots.tensor(buffer, step);
  for (const BufferId buffer : slots.inputs(task, BufferKind::saved)) {
    sent = slots.region(buffer, step)->kept.back();
    keep_for_this_lane(sent);
  }
  for (const BufferId buffer : slots.inputs(task, BufferKind::gradient)) {
    const at::Tensor gradient = slots.tensor(buffer, step);
    sent = sent.defined() ? sent + gradient : gradient;
  }
  if (!sent.defined()) throw std::runtime_error(label_of(graph, task) + " has nothing to send");
  sent = sent.contiguous();
  return {sent, at::empty_like(sent)};
}

}  // namespace slipway::exec
