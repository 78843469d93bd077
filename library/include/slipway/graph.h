// The task graph that both engines run: what predict simulates and `slipway execute` executes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "slipway/scenario.h"

namespace slipway {

struct Task {
  std::string label;               // "2F0.L5.mlp": stage, pass, micro-batch, part
  std::string kind;                // "forward", "backward", "all-gather", "transfer", "optimizer", ...
  std::int32_t rank = -1;          // of compute; -1: a communication
  std::int32_t communicator = -1;  // of a communication, a number in TaskGraph::communicators
  std::int32_t stage = -1;         // -1: of no stage
  std::int32_t micro_batch = -1;   // -1: once a step
  double flops = 0;                // of each member
  double bytes = 0;                // of a collective's whole tensor, or a transfer's message
  double seconds = 0;              // without contention
};

struct Communicator {
  std::string name;  // "tp", "dp", "pp.forward.2-3"
  std::vector<std::int32_t> ranks;
};

// A rank's queue: it runs one task at a time, in this order.
struct Lane {
  std::int32_t rank = 0, communicator = -1;  // -1: the rank's compute
  std::vector<std::uint32_t> tasks;
};

struct TaskGraph {
  std::vector<Task> tasks;
  std::vector<Communicator> communicators;
  std::vector<Lane> lanes;                               // of the ranks that have tasks
  std::vector<std::uint32_t> order;                      // the global order, which every lane keeps
  std::vector<std::vector<std::uint32_t>> predecessors;  // by task, beside the order of lanes
};

// `all_ranks` as in PredictOptions; whole steps, with all micro-batches. Throws Refusal.
TaskGraph task_graph(const Scenario& scenario, bool all_ranks = false);

}  // namespace slipway
