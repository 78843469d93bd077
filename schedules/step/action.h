// A schedule is a pure function: (stages, chunks, micro-batches) → for each pipeline rank the list of
// compute actions in the order in which it runs them. Communication is not its business; the lowering
// adds it. Each schedule is one file in schedules/catalogue and registers itself; nothing else changes
// when one is added. Which rank a stage lives on follows from the lists (schedules/step/placement.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::schedules {

// forward, full backward, input gradient, weight gradient, recomputation of a forward; none: not a pass
// over a micro-batch (optimizer, gradient reduction).
enum class Pass : std::uint8_t { none, forward, backward, input_grad, weight_grad, recompute };
char letter_of(Pass pass);  // F B I W R, '-' for none

struct Action {
  Pass pass = Pass::forward;
  int stage = 0;  // virtual stage
  int micro_batch = 0;
  int slice = 0;  // TeraPipe; 0 otherwise
  bool operator==(const Action&) const = default;
};

using ActionLists = std::vector<std::vector<Action>>;  // [pipeline rank][step]

struct ScheduleShape {
  int pipeline = 1;  // ranks in the pipeline
  int chunks = 1;    // stages per rank, of each copy of the model
  int micro_batches = 1;
  int slices = 1;
  int copies = 1;  // of the model in the pipeline: Schedule::copies
  int stages() const { return pipeline * chunks * copies; }
};

struct Schedule {
  std::string name;        // "1f1b"
  std::string summary;     // one line for `slipway list schedules`, with the paper
  int default_chunks = 1;  // what an unset layout.chunks means
  int default_slices = 1;  // what an unset schedule.slices means
  // Copies of the model in one pipeline. With S = pipeline · chunks, stages [c·S, (c+1)·S) are copy c; a
  // micro-batch goes through one copy, and all copies share their gradients.
  int copies = 1;
  bool needs_causal = false;
  // Whole backwards, stage s on rank s mod p: the sharp bounds of schedules/bound/estimate.h hold, so `plan`
  // searches it unless told which schedule to keep.
  bool searched = false;
  // Empty when the shape is possible; otherwise the reason and what to change.
  std::string (*refuse)(const ScheduleShape&) = nullptr;
  ActionLists (*actions)(const ScheduleShape&) = nullptr;
};

// Is a weight gradient ever a pass of its own?
bool splits_backward(const ActionLists& actions);

// All schedules, sorted by name; and one by name (nullptr when unknown).
const std::vector<Schedule>& all_schedules();
const Schedule* schedule_named(std::string_view name);

// Put one static object of this type in each schedule's file.
struct RegisterSchedule {
  explicit RegisterSchedule(Schedule schedule);
};

}  // namespace slipway::schedules
