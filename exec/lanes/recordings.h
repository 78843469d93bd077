// The segments of a rank that may share one recording of what they start on the device. A recording is replayed instead
// of started anew, operator by operator.
//
//   compute lane, 1F1B      0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3       each step again
//   slot 0                  ├── 0 ────┤├── 2 ───────┤             2 reuses the slot of 0
//   slot 1                      ├── 1 ────────┤├── 3 ─────┤
//
// A recording keeps its addresses: it reads and writes the same memory at every replay. A micro-batch is alive from the
// first segment of its forward to the last of its backward. Two that are alive at the same time need recordings of
// their own: a slot each, as few as possible. Recordings of one slot share a pool of memory. This is sound while they
// are replayed in the order in which they were made. So only micro-batches whose segments run in the same order share
// slots (weight gradients may run in another order in zero-bubble schedules).
//
// Left out, because memory or shapes change: everything under ZeRO 2 and 3 (gradients, and weights, lose their memory
// between uses) and with slices; rounds of ring attention, which hand on tensors that they wrote before.
// Plain C++, no LibTorch. Guarded by tests/exec/recordings_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::exec {

struct Recordings {
  std::vector<std::int32_t> recording;  // per task of the graph: its recording on this rank, or none
  std::vector<std::int32_t> pool;       // per recording; those of a pool are in the order of their replays
  std::string why_none;                 // why there is no recording at all; empty: there are some
};

// Requires graph.order.
Recordings recordings_of(const TaskGraph& graph, int rank);

}  // namespace slipway::exec
