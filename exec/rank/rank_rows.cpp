// Rows that travel between ranks: to those of their experts and back, and between ranks that cut the same experts.
//
//   dispatch      own rows, by expert           ──► to the ranks of an expert group       rows, source after source
//   ag_experts    rows                          ──► of all ranks that cut these experts    rows, source after source
//   rs_experts    parts of the products' sums   ◄──                                        summed on the rows' own rank
//   combine_rows  rows back in their first order ◄──
//
// The router decides how many rows travel. In a forward pass, each rank first sends the others its number of rows for
// each expert; later passes use the same numbers. The backward passes go the other way.
// Guarded by tests/exec/execute_expert_parallel_test.cpp.
#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "exec/rank/rank_state.h"
#include "exec/transport/transport.h"

namespace slipway::exec {
namespace {

using RowCounts = std::vector<std::int64_t>;

RowCounts list_of(const at::Tensor& counts) {
  const at::Tensor host = counts.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<std::int64_t>(), host.const_data_ptr<std::int64_t>() + host.numel()};
}

at::Tensor empty_rows(std::int64_t rows, const at::Tensor& like) {
  return at::empty({rows, like.size(1)}, like.options());
}

// Rows of each expert among `rows`, which are sorted by expert: [1, E] on the host.
at::Tensor counts_of(const ExpertRows& rows) {
  const at::Tensor ends = rows.ends.to(at::kCPU, at::kLong);
  return at::diff(ends, 1, 0, at::zeros({1}, ends.options())).unsqueeze(0);
}

// One line of `counts` to each member, and one from each.
at::Tensor tell_counts(Transport& transport, const at::Tensor& counts, at::Device device) {
  const RowCounts each(static_cast<std::size_t>(counts.size(0)), 1);
  at::Tensor come = at::empty(counts.sizes(), counts.options().device(device));
  transport.all_to_all(come, counts.to(device).contiguous(), each, each);
  return come.cpu();
}

void tell_dispatched(Transport& transport, ExpertRows& rows, int members, at::Device device) {
  const at::Tensor leave = counts_of(rows).view({members, -1});
  rows.arrived.counts = tell_counts(transport, leave, device);
  rows.sent = list_of(leave.sum(1));
  rows.received = list_of(rows.arrived.counts.sum(1));
}

void tell_cut(Transport& transport, ExpertRows& rows, int members, at::Device device) {
  const at::Tensor own = rows.arrived.counts.defined() ? rows.arrived.counts : counts_of(rows);
  const at::Tensor all = tell_counts(transport, own.flatten().repeat({members, 1}), device);
  rows.of_cut = list_of(all.sum(1));
  rows.arrived.counts = all.view({-1, own.size(1)});
}

void travel(Transport& transport, Message& message, const RowCounts& received, const RowCounts& sent) {
  std::int64_t rows = 0;
  for (const std::int64_t each : received) rows += each;
  message.output = empty_rows(rows, message.input);
  transport.all_to_all(message.output, message.input, received, sent);
}

// Sends the rows of each member to all members.
void gather_rows(Transport& transport, Message& message, const RowCounts& of_each) {
  const auto members = static_cast<std::int64_t>(of_each.size());
  const RowCounts sent(of_each.size(), message.input.size(0));
  message.input = message.input.repeat({members, 1});
  travel(transport, message, of_each, sent);
}

// Parts of each member's rows go to it, which sums them in the order of members.
void scatter_rows(Transport& transport, Message& message, const RowCounts& of_each, int member) {
  const auto members = static_cast<std::int64_t>(of_each.size());
  const std::int64_t own = of_each[member];
  travel(transport, message, RowCounts(of_each.size(), own), of_each);
  message.output = message.output.view({members, own, message.output.size(1)}).sum(0);
}

// True if the communicate operator brings rows to the experts of its block, false if it brings them back.
bool leads_to_experts(std::span<const Operator> operators, int communicate) {
  for (int i = communicate + 1; i < static_cast<int>(operators.size()); ++i) {
    if (operators[i].block != operators[communicate].block) return false;
    if (runs_experts(operators[i])) return true;
  }
  return false;
}

}  // namespace

ExpertRows& RankModel::State::rows_of(const Task& task, int block) {
  const std::lock_guard lock(rows_mutex);
  return travelling[{task.micro_batch, task.slice, block}];  // a map's elements stay in place
}

void RankModel::State::forget_rows(TaskId task) {
  const Task& t = graph.tasks[task];
  const std::lock_guard lock(rows_mutex);
  for (const Operator& op : graph.operators_run_by(graph.work(task)))
    if (op.kind == OpKind::route) travelling.erase({t.micro_batch, t.slice, op.block});
}

Message RankModel::State::rows_message(TaskId task, at::Tensor input) {
  const Work& work = graph.work(task);
  const auto operators = graph.operators(work);
  const Operator& op = operators[work.first_op];
  const auto& ranks = graph.communicator(task).ranks;
  const auto members = static_cast<int>(ranks.size());
  const auto member = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const bool forward = work.pass == Pass::forward || work.pass == Pass::recompute;
  const bool first_way = leads_to_experts(operators, work.first_op);
  const bool outward = first_way == forward, tell = first_way && forward;
  ExpertRows& rows = rows_of(graph.tasks[task], op.block);
  Message message{input.contiguous(), {}};
  message.exchange = [=, &rows, where = device, axis = op.axis](Transport& transport, Message& moved) {
    if (axis == Axis::expert) {
      if (tell) tell_dispatched(transport, rows, members, where);
      outward ? travel(transport, moved, rows.received, rows.sent) : travel(transport, moved, rows.sent, rows.received);
    } else {
      if (tell) tell_cut(transport, rows, members, where);
      outward ? gather_rows(transport, moved, rows.of_cut) : scatter_rows(transport, moved, rows.of_cut, member);
    }
  };
  return message;
}

}  // namespace slipway::exec
