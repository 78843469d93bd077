// What K-FAC's replicas send each other: sums of factors, and the gradients that each has preconditioned.
#include <ATen/ATen.h>

#include <algorithm>

#include "exec/device.h"
#include "exec/kfac.h"

namespace slipway {

Message Kfac::message(TaskId task, int step) {
  const Work& work = graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)];
  if (work.kind == WorkKind::precondition) return gather_message(task);
  const at::Tensor& sums = sums_of(refresh_of(step), reduces_input_factors(work));
  keep_for_this_lane(sums);
  return {sums, sums};
}

void Kfac::arrived(TaskId task, int step, const Message& message) {
  if (graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)].kind == WorkKind::precondition)
    spread_gathered(task, message.output);
  else
    used(step);
}

// Linears of a part of the model that this member preconditions.
std::vector<const Kfac::Linear*> Kfac::share_of(int member, int part) const {
  const BlockRange& range = graph_.stages[static_cast<std::size_t>(part)];
  std::vector<const Linear*> share;
  for (const Linear& linear : linears_)
    if (linear.owner == member && linear.block >= range.first && linear.block < range.last)
      share.push_back(&linear);
  return share;
}

namespace {

std::int64_t elements_of(const KfacLinear& linear) { return linear.in * linear.out; }

}  // namespace

Message Kfac::gather_message(TaskId task) const {
  const int part = graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)].stage;
  std::int64_t longest = 0;
  const auto members = members_of(graph_, task);
  for (const std::int32_t member : members) {
    std::int64_t elements = 0;
    for (const Linear* linear : share_of(member, part)) elements += elements_of(linear->shape);
    longest = std::max(longest, elements);
  }
  const auto options = linears_.front().weight->gradient.options();
  const at::Tensor all = at::empty({longest * static_cast<std::int64_t>(members.size())}, options);
  const auto me = std::find(members.begin(), members.end(), rank_) - members.begin();
  const at::Tensor mine = all.narrow(0, me * longest, longest).zero_();
  std::int64_t next = 0;
  for (const Linear* linear : share_of(rank_, part)) {
    mine.narrow(0, next, elements_of(linear->shape)).copy_(gradient_of(*linear).flatten());
    next += elements_of(linear->shape);
  }
  return {mine, all};
}

void Kfac::spread_gathered(TaskId task, const at::Tensor& gathered) const {
  const int part = graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)].stage;
  const auto members = members_of(graph_, task);
  const std::int64_t longest = gathered.size(0) / static_cast<std::int64_t>(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::int64_t next = static_cast<std::int64_t>(m) * longest;
    for (const Linear* linear : share_of(members[m], part)) {
      at::Tensor gradient = gradient_of(*linear);
      if (members[m] != rank_)
        gradient.copy_(gathered.narrow(0, next, elements_of(linear->shape)).view_as(gradient));
      next += elements_of(linear->shape);
    }
  }
}

}  // namespace slipway
