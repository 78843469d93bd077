// The price of one work of a compute lane, in parts that a person can act on. Its seconds are the sum of the parts, and
// breakdown, critical path, rates of `explain` and pages show these parts.
//
//   segment           task overhead │ Σ over its operators, by their kind, once and again (recomputation)
//   optimizer step    task overhead │ update and narrow copies │ what a step takes once
//   a block table     measured seconds of whole blocks
//
// Guarded by tests/schedules/breakdown_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/machine/machine.h"
#include "models/model/names.h"
#include "schedules/graph/task_graph.h"

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
  TimeParts& operator*=(double factor);
  double sum() const;
};

TimePart part_of(Axis axis);

// The price of one work: `once` of what is run the first time, `again` of operators that are made again in the backward
// pass. The kinds of `again` are those of its operators, never TimePart::recompute.
struct WorkPrice {
  double seconds = 0;  // the sum of both, task overhead included
  TimeParts once, again;
};
// Throws std::invalid_argument when the machine cannot price an operator.
WorkPrice price_of(const TaskGraph& graph, const Work& work, const Machine& machine);
double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine);
// Of operators alone, before any graph exists: no task overhead. Communicate operators have no compute.
WorkPrice price_of(std::span<const Operator> operators, Pass pass, const Machine& machine);

// Seconds of the update of `elements` parameters: the GPU's share and then the host's.
double update_seconds(const Optimizer& optimizer, double elements, Dtype dtype, const Machine& machine);

}  // namespace slipway::schedules
