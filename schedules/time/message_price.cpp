#include "schedules/time/message_price.h"

#include <algorithm>

#include "models/machine/cost.h"
#include "models/machine/degradation.h"
#include "models/machine/ring.h"
#include "schedules/time/overlap.h"

namespace slipway::schedules {
namespace {

// StepConstants::whole of the machines under a message.
double whole_of(const LinkPath& path) { return path.measured == nullptr ? 1 : path.measured->constants.whole; }

}  // namespace

double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth) {
  if (work.kind == WorkKind::transfer) return latency + work.bytes / bandwidth;
  return ring_seconds(work.collective, members, work.bytes, latency, bandwidth, reduce_bandwidth);
}

double message_seconds(const SentMessage& sent, int members, const LinkPath& path) {
  if (sent.kind == WorkKind::transfer || sent.kind == WorkKind::host_copy)
    return whole_of(path) * (path.start + path.latency + sent.bytes / path.bandwidth);
  const double messages = messages_for(sent, path);
  return whole_of(path) * messages * collective_seconds(path, sent.collective, members, sent.bytes / messages);
}

double seconds_before(const Work& work, const Communicator& communicator, const PricedCluster& cluster) {
  if (work.collective != Collective::shift || work.elements == 0) return 0;
  double seconds = 0;
  for (const std::int32_t rank : communicator.ranks) {
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    seconds =
        std::max(seconds, machine.constants.whole * adding_seconds(machine, work.elements * bytes_of(work.dtype)) *
                              slowdown_of(cluster, rank));
  }
  return seconds;
}

SentMessage as_sent(const Layout& layout, const Work& work, const LinkPath& path) {
  SentMessage sent{work.kind, work.collective, work.bytes};
  if (path.measured == nullptr) return sent;
  const TrainerFacts& facts = path.measured->trainer;
  if (work.kind == WorkKind::transfer && facts.cuts_transfers && !layout.sequence_parallel) sent.bytes /= layout.tensor;
  if (work.kind == WorkKind::grad_reduce && facts.all_reduces_gradients) sent.collective = Collective::all_reduce;
  return sent;
}

int messages_for(const SentMessage& sent, const LinkPath& path) {
  constexpr int tensors_of_a_layer = 6;  // qkv, output, gate and up, down, two norms
  const bool is_of_data = sent.kind == WorkKind::grad_reduce || sent.kind == WorkKind::parameter_gather;
  return is_of_data && path.measured != nullptr && path.measured->trainer.reduces_each_tensor ? tensors_of_a_layer : 1;
}

double seconds_of_message(const TaskGraph& graph, const Work& work, const Communicator& communicator,
                          const LinkPath& path, const PricedCluster& cluster) {
  const auto members = static_cast<int>(communicator.ranks.size());
  double seconds = message_seconds(as_sent(graph.step.layout, work, path), members, path);
  if (const HidingProduct beside = product_beside(graph, work); beside.product != nullptr) {
    const std::int32_t rank = communicator.ranks.front();
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    const double product_s = machine.constants.whole * operator_seconds(machine, *beside.product, beside.direction);
    seconds = exposed_seconds(seconds, product_s * slowdown_of(cluster, rank), members);
  }
  return seconds + seconds_before(work, communicator, cluster);
}

}  // namespace slipway::schedules
