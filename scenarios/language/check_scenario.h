// Which batches a layout and schedule can run: whole micro-batches on every replica, in numbers that the
// schedule accepts.
//
//   micro_batch 1 x data 8, 1F1B                    every multiple of 8
//   the same, interleaved over 4 pipeline ranks     whole rounds: every multiple of 32
//
// Guarded by tests/scenarios/growth_ladder_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

constexpr std::int64_t most_micro_batches = 1'000'000;  // per pipeline and step

// How a step is cut up, whatever its batch.
struct StepCut {
  const Schedule* schedule = nullptr;
  const Model& model;
  const Layout& layout;
  std::int64_t micro_batch = 1;
  int slices = 1;
  // Sequences that one micro-batch of every pipeline takes.
  std::int64_t unit() const { return micro_batch * layout.data; }
};
// The scenario must outlive it; schedule.csv, which is of one batch, is not asked.
StepCut step_cut(const Scenario& scenario);

// Why the norm test has nothing to compare; empty: it has.
std::string why_no_norm_test(const StepCut& cut);
bool is_rung(const StepCut& cut, std::int64_t batch);
// From `first` to `largest`, ascending.
std::vector<std::int64_t> rungs_between(const StepCut& cut, std::int64_t first, std::int64_t largest);

// Can every batch that `training.growth` names be run, and its rule? True without training.growth. For
// searches of layouts; of a scenario check_growth says it with the key.
bool runs_every_batch(const GrowthChoice& growth, const StepCut& cut);

// What no single key can tell: combinations of keys that cannot work together. Each check asks first
// whether the keys it builds on are good, so that one mistake gives one error, and all of them are
// reported together.
// Guarded by tests/scenarios/scenario_errors_test.cpp, a test per check.

// Sets layout.data, layout.chunks, schedule.slices and run.dtype where the scenario leaves them to be derived, then checks
// everything. `has_model` and `has_cluster` say whether those parts of `scenario` could be read.
void derive_and_check(Settings& settings, bool has_model, bool has_cluster, Scenario& scenario);

// Every group of the layout must be connected: one error for the first pair of neighbours that is not.
void check_fabrics(Settings& settings, const Scenario& scenario);

// check_fill.cpp: schedule.fill where it is unset; what K-FAC, filling and block tables cannot be combined with.
void derive_fill(Settings& settings, Scenario& scenario);
void check_block_times(Settings& settings, const Scenario& scenario);

// balance_stages.cpp: layout.split balanced, over pipeline ranks whose machines differ or that hold several chunks,
// becomes the split by time (schedules/bound/balanced_split.h), written into layout.split_list. Again after a change of
// layout or schedule. Throws std::invalid_argument where blocks cannot be priced. derive_split: the same as an error of
// the file; on machines that await their calibration nothing can be balanced by time yet.
void balance_stages(Scenario& scenario);
// Layers per stage for a scenario at its pace: of the splits in which each pipeline rank needs at most this share of its
// memory by the verdict (scenarios/memory/report.h), the one with the fastest slowest rank; where none fits, of all splits. A rank
// that needs more gets a layer less, and so on, so what is left out does not fit, unless other chunks of the rank had
// held its layers. Guarded by tests/scenarios/refine_test.cpp.
std::vector<int> balanced_by_time(const Scenario& scenario, double memory_share);
void derive_split(Settings& settings, Scenario& scenario);

// check_placement.cpp: layout.placement must be an order of all nodes; the cluster's ranks fill them so.
void derive_placement(Settings& settings, Scenario& scenario);

// check_schedule.cpp. `has_data`: layout.data is known.
void check_schedule(Settings& settings, const Scenario& scenario, bool has_model, bool has_data);

// check_growth.cpp: `training`, after everything else. `schedule_is_sound`: the step of the first batch can be lowered.
void check_growth(Settings& settings, const Scenario& scenario, bool schedule_is_sound);

// The first block of a kind; nullptr without one.
const Block* first_block(const Model& model, BlockKind kind);
// Refuses a degree that does not divide `size`, which is called `name`.
void check_divides(Settings& settings, const std::string& degree_key, std::int64_t degree, const std::string& name,
                   std::int64_t size);

// check_csv.cpp: is scenario.step.actions a whole step of this shape? Each defect is an error with its
// grid; the first few, because one slip of the pen makes many.
void check_csv(Settings& settings, const Scenario& scenario, const ScheduleShape& shape);
// Stages per row of the lists and copy of the model, rounded up: what an unset layout.chunks means beside a
// CSV. Stages count from 0 to the first that no row has, so that a slip of the pen (99F3) makes no stages.
int chunks_of(const ActionLists& lists, int copies);

}  // namespace slipway::scenarios
