// Seconds of a message of the graph: a transfer or a collective between the members of a communicator.
//
//   as the trainer sends it ──► by its algorithm on its path ──► less what a product hides ──► behind what members do first
//       as_sent                    message_seconds                  overlap.h                     seconds_before
//
// Guarded by tests/schedules/overlap_test.cpp and tests/models/collectives_test.cpp.
#pragma once

#include "models/machine/priced_cluster.h"
#include "schedules/graph/task_graph.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

// Seconds of one transfer or collective over links of this latency (s) and bandwidth (bytes/s).
double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth);
// What a trainer sends of a message, without the names that a Work has.
struct SentMessage {
  WorkKind kind = WorkKind::transfer;
  Collective collective = Collective::none;
  double bytes = 0;
};
// The same, by the algorithm that the message takes on this path.
double message_seconds(const SentMessage& sent, int members, const LinkPath& path);
inline double message_seconds(const Work& work, int members, const LinkPath& path) {
  return message_seconds({work.kind, work.collective, work.bytes}, members, path);
}

// Seconds that members work on a message before they send it: around a ring, they add their own gradient to it. The
// slowest member counts.
double seconds_before(const Work& work, const Communicator& communicator, const PricedCluster& cluster);

// The part of a message that a trainer sends: Megatron cuts one between stages by tensor rank and joins it in the node;
// some trainers all-reduce gradients of which they need a part.
SentMessage as_sent(const Layout& layout, const Work& work, const LinkPath& path);
// Messages for one of the graph's: a trainer that reduces each tensor by itself has one for each of a layer's.
int messages_for(const SentMessage& sent, const LinkPath& path);

// Seconds of a message between these members: of what the trainer sends of it, but for what a product hides, behind what
// members do before they send. The only price of a message in a graph.
double seconds_of_message(const TaskGraph& graph, const Work& work, const Communicator& communicator,
                          const LinkPath& path, const PricedCluster& cluster);

}  // namespace slipway::schedules
