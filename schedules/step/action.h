// A schedule is a pure function from (stages, chunks, micro-batches) to one list per pipeline rank: the compute
// actions in the order in which the rank runs them. The lowering adds communication. Each schedule is one file in
// schedules/catalogue and registers itself with its traits; nothing else changes when one is added. Code elsewhere asks
// for traits, never for a name (tests/repository/schedule_names_test.cpp reads the sources). The rank of a stage follows
// from the lists (schedules/step/placement.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::schedules {

// Forward, full backward, input gradient, weight gradient, recomputation of a forward. none: no pass over a
// micro-batch (optimizer, gradient reduction).
enum class Pass : std::uint8_t { none, forward, backward, input_grad, weight_grad, recompute };
char letter_of(Pass pass);  // F B I W R, '-' for none

struct Action {
  Pass pass = Pass::forward;
  int stage = 0;  // virtual stage
  int micro_batch = 0;
  int slice = 0;  // TeraPipe; 0 otherwise
  // A pair: this action and the next one of the row, a forward and a backward of different micro-batches, are one cell.
  // Both start when the inputs of both are there, and messages of one run while the other computes
  // (schedules/lower/pairs.h).
  bool with_next = false;
  bool operator==(const Action&) const = default;
};

// True if the two may be one: a backward of a micro-batch begins when its last forward has ended.
bool is_pair(const Action& first, const Action& second);

using ActionLists = std::vector<std::vector<Action>>;  // [pipeline rank][step]

struct ScheduleShape {
  int pipeline = 1;  // ranks in the pipeline
  int chunks = 1;    // stages per rank, of each copy of the model
  int micro_batches = 1;
  int slices = 1;
  int copies = 1;  // copies of the model in the pipeline: Schedule::copies
  int group = 0;   // micro-batches that a rank runs through one chunk before the next one; 0: the schedule's own
  int stages() const { return pipeline * chunks * copies; }
};

// The reason why a schedule cannot run a shape, and the remedy.
struct ShapeRefusal {
  std::string problem, remedy;
};

// Refuses slices for the schedule `name`, which passes whole sequences.
std::optional<ShapeRefusal> refuse_slices(const std::string& name, const ScheduleShape& shape);

struct Schedule {
  std::string name;        // "1f1b"
  std::string summary;     // one line for `slipway list schedules`, with the paper
  int default_chunks = 1;  // for an unset layout.chunks
  int default_slices = 1;  // for an unset schedule.slices
  // Copies of the model in one pipeline. With S = pipeline · chunks, stages [c·S, (c+1)·S) are copy c. A micro-batch
  // goes through one copy, and all copies share their gradients.
  int copies = 1;
  bool needs_causal = false;
  bool has_groups = false;  // reads ScheduleShape::group
  // Whole backwards, stage s on rank s mod p: the sharp bounds of schedules/bound/estimate.h hold. So `plan` searches
  // this schedule unless one is given.
  bool searched = false;

  // Traits: what else is known of this order.
  bool is_default = false;       // of scenarios that name none, and without a pipeline, where all are the same
  std::string interleaves = {};  // the schedule whose order this is, with several chunks a rank
  std::string also_called = {};  // a name by which people ask for it
  bool hides_exchanges = false;  // its pairs hide all-to-alls of experts, and may delay weight gradients
  bool has_memory_form = false;  // Fujii et al. 2024 count its memory (models/memory/closed_form.h)
  bool has_filled_form = false;  // Osawa et al. 2023 fill its bubbles (models/training/pipefisher.h)

  // Nothing when the shape is possible.
  std::function<std::optional<ShapeRefusal>(const ScheduleShape&)> refuse;
  std::function<ActionLists(const ScheduleShape&)> actions;
};

// True if any weight gradient is a separate pass.
bool splits_backward(const ActionLists& actions);
// True if any forward and backward are a pair.
bool has_pairs(const ActionLists& actions);

// All schedules, sorted by name; one by name (nullptr when unknown).
const std::vector<Schedule>& all_schedules();
const Schedule* schedule_named(std::string_view name);
// The order of a scenario that names none, with so many chunks a rank.
const Schedule& default_schedule(int chunks = 1);
// Names of those with a trait, as "a, b and c"; `last`: the word before the last one.
std::string schedules_with(const std::function<bool(const Schedule&)>& trait, std::string_view last = " and ");

// Put one static object of this type in each schedule's file.
struct RegisterSchedule {
  explicit RegisterSchedule(Schedule schedule);
};

}  // namespace slipway::schedules
