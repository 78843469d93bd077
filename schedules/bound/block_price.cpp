#include "schedules/bound/block_price.h"

#include <algorithm>

#include "models/machine/cost.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/message_price.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {
namespace {

// Messages of a communicate operator in both passes of one micro-batch, those of recomputation and of the gather for
// the weight gradient included.
int messages_of(const Operator& op, bool again) {
  const int forward = op.forward == Collective::none ? 0 : 1;
  return (again ? 2 : 1) * forward + (op.backward == Collective::none ? 0 : op.backward_messages) +
         (gathers_input(op) && !again ? 1 : 0);
}

// The products of the experts that every token goes through, where others are on separate ranks.
bool is_shared_experts(const Operator& op) {
  return op.kind != OpKind::share && op.kind != OpKind::combine && op.kind != OpKind::communicate &&
         (op.reads & wire_shared) != 0;
}

// True for the first message of the shared experts: the one of what they read.
bool before_shared(std::span<const Operator> operators, const Operator& message) {
  return std::none_of(operators.data(), &message, is_shared_experts);
}

void add_token_message(const Operator& op, int members, bool is_gather, bool at_experts, BlockPrice& price) {
  const auto add = [&](LayerMessages TokenMessages::*list) {
    (price.tokens_forward.*list).add(op.forward, members, op.message_bytes * op.forward_sent);
    (price.tokens_backward.*list).add(op.backward, members, op.message_bytes * op.backward_sent);
  };
  if (op.axis == Axis::expert) return add(at_experts ? &TokenMessages::back : &TokenMessages::out);
  if (op.axis == Axis::expert_tensor) return add(at_experts ? &TokenMessages::back_cut : &TokenMessages::out_cut);
  if (is_gather) add(&TokenMessages::gather);
}

}  // namespace

void LayerMessages::add(Collective collective, int members, double bytes) {
  if (collective == Collective::none || members < 2) return;
  for (Alike& each : list)
    if (each.collective == collective && each.members == members && each.bytes == bytes) {
      ++each.count;
      return;
    }
  list.push_back({collective, members, bytes, 1});
}

double seconds_over(const LinkPath& path, const LayerMessages& messages) {
  double seconds = 0;
  for (const LayerMessages::Alike& each : messages.list)
    seconds += each.count *
               message_seconds(message(WorkKind::wire_collective, each.collective, each.bytes), each.members, path);
  return seconds;
}

Work message(WorkKind kind, Collective collective, double bytes) {
  Work work;
  work.kind = kind, work.collective = collective, work.bytes = bytes;
  return work;
}

double sent_seconds(const Layout& layout, const Work& work, int members, const LinkPath& path) {
  return message_seconds(as_sent(layout, work, path), members, path);
}

BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine, bool hides_tensor) {
  const std::vector<Operator> operators = operators_of(model, block, block + 1, shape);
  const Block here = blocks_of(model)[block];
  const bool again = is_recomputed(recompute, here);
  const double whole = machine.constants.whole;
  BlockPrice price;
  if (again) price.host_backward_s = host_seconds_of_checkpoint(machine);
  const Operator* before = nullptr;
  bool at_experts = false;  // behind the first product of the experts
  for (const Operator& op : operators) {
    if (op.kind != OpKind::communicate) {
      before = &op;
      at_experts = at_experts || runs_experts(op);
      const auto seconds_of = [&](Pass pass) { return price_of({&op, 1}, pass, machine).seconds; };
      const double forward = seconds_of(Pass::forward), backward = seconds_of(Pass::backward);
      price.forward_s += forward;
      price.backward_s += backward + (again ? forward : 0);
      price.weight_s += seconds_of(Pass::weight_grad);
      if (is_shared_experts(op)) {
        price.tokens_forward.shared_s += forward;
        price.tokens_backward.shared_s += backward;
      }
      if (has_host(machine)) {
        const double launches = whole * host_seconds(machine, op, Direction::forward);
        price.host_forward_s += launches;
        price.host_backward_s += whole * host_seconds(machine, op, Direction::backward) + (again ? launches : 0);
      }
      // A trainer's estimate counts what the embedding keeps in its own way.
      if (op.kind != OpKind::embed && op.kind != OpKind::add_positions) {
        price.kept_bytes += op.saved_bytes;
        price.optional += optional_kept(op, here);
      }
      continue;
    }
    if (before != nullptr && before->kind != OpKind::communicate) ++price.cuts;
    before = &op;
    const bool context = op.axis == Axis::context;
    const int members = op.axis == Axis::expert          ? shape.sharding.expert
                        : op.axis == Axis::expert_tensor ? expert_tensor_of(shape.sharding)
                        : context                        ? shape.sharding.context
                        : op.axis == Axis::data          ? balanced_replicas(shape.routing, shape.micro_batch)
                                                         : shape.sharding.tensor;
    const double launch = op.in_graph > 0 ? 0 : host_seconds(WorkKind::wire_collective, members, op.axis, machine);
    const int first = op.forward == Collective::none ? 0 : 1;
    price.host_forward_s += first * launch;
    price.host_backward_s += (messages_of(op, again) - first) * launch;
    if (op.wire == wire_statistics) continue;       // a few numbers, which may be sent beside the experts' products
    if (op.forward == Collective::shift) continue;  // runs beside the attention, and may be hidden by it
    if (op.axis == Axis::expert || op.axis == Axis::expert_tensor || op.wire == wire_shared) {
      const bool is_gather = op.axis == Axis::tensor && before_shared(operators, op) && !hides_tensor;
      add_token_message(op, members, is_gather, at_experts, price);
      continue;
    }
    if (hides_tensor && !context && (op.forward == Collective::all_gather || op.forward == Collective::reduce_scatter))
      continue;
    LayerMessages& forward = context ? price.context_forward : price.tensor_forward;
    LayerMessages& backward = context ? price.context_backward : price.tensor_backward;
    forward.add(op.forward, members, op.message_bytes * op.forward_sent);
    if (again) backward.add(op.forward, members, op.message_bytes * op.forward_sent);
    backward.add(op.backward, members, op.message_bytes * op.backward_sent);
  }
  if (!again) return price;
  price.again_s = price.forward_s;
  price.tensor_again = price.tensor_forward;
  price.context_again = price.context_forward;
  price.kept_bytes = boundary_bytes(model, shape);  // the block's input
  price.optional = {};
  return price;
}

}  // namespace slipway::schedules
