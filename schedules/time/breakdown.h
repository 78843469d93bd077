// What a step's seconds are spent on, by kinds that a person can act on: products, attention, messages of each axis, the
// host, recomputation, the update, the bubble.
//
//   a GPU's time   mean over ranks, of the timeline:   tasks by what their operators take │ idle by what it waits for
//   the path       critical_path.h, term by term:      tasks, messages and launches of the step's longest chain
//
// Both sum to the step. The bubble exists on a GPU only: the path is never idle.
// Guarded by tests/schedules/breakdown_test.cpp.
#pragma once

#include <array>
#include <cstdint>

#include "models/machine/machine.h"
#include "models/model/names.h"
#include "schedules/time/critical_path.h"
#include "schedules/time/durations.h"
#include "schedules/time/periodic.h"

namespace slipway::schedules {

enum class TimePart : std::uint8_t {
  products,
  expert_products,
  attention,
  element_wise,
  head,  // logits and loss
  blocks,
  recompute,
  optimizer,
  bubble_work,  // K-FAC's or evaluation's, which no schedule contains
  fixed,
  beside,
  slow_gpus,
  tensor,
  context,
  expert,
  pipeline,
  data,
  other_messages,
  host,
  bubble
};
inline constexpr std::array time_part_names{Named{TimePart::products, "matrix products"},
                                            Named{TimePart::expert_products, "experts' products"},
                                            Named{TimePart::attention, "attention"},
                                            Named{TimePart::element_wise, "element-wise kernels"},
                                            Named{TimePart::head, "output head and loss"},
                                            Named{TimePart::blocks, "measured blocks"},
                                            Named{TimePart::recompute, "recomputation"},
                                            Named{TimePart::optimizer, "optimizer"},
                                            Named{TimePart::bubble_work, "bubble work"},
                                            Named{TimePart::fixed, "once per step"},
                                            Named{TimePart::beside, "slowed beside messages"},
                                            Named{TimePart::slow_gpus, "slow GPUs"},
                                            Named{TimePart::tensor, "tensor messages"},
                                            Named{TimePart::context, "context messages"},
                                            Named{TimePart::expert, "expert messages"},
                                            Named{TimePart::pipeline, "pipeline messages"},
                                            Named{TimePart::data, "data messages"},
                                            Named{TimePart::other_messages, "other messages"},
                                            Named{TimePart::host, "launches by the host"},
                                            Named{TimePart::bubble, "bubble"}};
constexpr std::size_t time_part_count = time_part_names.size();

// Seconds of each part.
struct TimeParts {
  std::array<double, time_part_count> seconds{};
  double& operator[](TimePart part) { return seconds[static_cast<std::size_t>(part)]; }
  double operator[](TimePart part) const { return seconds[static_cast<std::size_t>(part)]; }
  double sum() const;
};

TimePart part_of(Axis axis);

// Of one work of a compute lane, in the first pass through its operators and in those that are made again. Both together
// are compute_seconds(). The kinds of `again` are those of its operators, never TimePart::recompute.
struct ComputeParts {
  TimeParts once, again;
};
ComputeParts compute_parts(const TaskGraph& graph, const Work& work, const Machine& machine);

// Of the critical path of a step of `step_s` (graph.window: of one of the window's). What the terms do not have is that of slow GPUs.
TimeParts path_parts(const TaskGraph& graph, const Cluster& cluster, const std::vector<PathTerm>& terms, double step_s);

// Of a step (graph.window: of one of the window's) on a mean rank of the timeline. `durations`: those of the timeline.
TimeParts rank_parts(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                     const Timeline& timeline, const PeriodicTimeline* periodic = nullptr);

}  // namespace slipway::schedules
