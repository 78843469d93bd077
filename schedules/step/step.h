// One training step: everything that decides which tasks it has. A scenario, a task graph, a bundle and a layout of a
// search each hold one Step. What follows from it is a function below, never a second field.
// Guarded by tests/schedules/step_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/model/model.h"
#include "models/model/operators.h"
#include "models/model/parameters.h"
#include "models/model/sharding.h"
#include "models/training/learning_rate.h"
#include "schedules/step/action.h"
#include "schedules/step/layout.h"

namespace slipway::schedules {

// A Model that never changes, shared by all steps that train it. It reads like a Model, and copying it is cheap.
class SharedModel {
 public:
  SharedModel() : model_(none()) {}
  SharedModel(Model model) : model_(std::make_shared<const Model>(std::move(model))) {}
  const Model& operator*() const { return *model_; }
  const Model* operator->() const { return model_.get(); }
  operator const Model&() const { return *model_; }
  bool operator==(const SharedModel& other) const { return model_ == other.model_ || *model_ == *other.model_; }

 private:
  // Shared by all that have no model yet: searches make rows by the ten thousand.
  static const std::shared_ptr<const Model>& none() {
    static const auto empty = std::make_shared<const Model>();
    return empty;
  }
  std::shared_ptr<const Model> model_;
};

struct Optimizer {
  std::string name = "adamw";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  LearningRateSchedule lr_schedule = {};  // lr is its highest rate
  int refresh_steps = 1;                  // kfac without bubble work: steps between two refreshes
  double damping = 1e-3;                  // kfac: γ (exec/rank/kfac.h)
  Dtype moment_dtype = Dtype::float32;    // of adamw's moments, where weights have fewer bytes than float32
  double offload_fraction = 0;            // of adamw's states and updates, those in the host's memory and on its cores
  double router_bias_speed = 0;           // γ of DeepSeek-V3, section 2.1.2: how far a router's bias moves in a step
};

// Work in the bubbles (schedules/fill).
enum class Fill : std::uint8_t { none, kfac, evaluation };
inline constexpr std::array fill_names{Named{Fill::none, "none"}, Named{Fill::kfac, "kfac"},
                                       Named{Fill::evaluation, "evaluation"}};

struct Step {
  SharedModel model;
  Layout layout;

  // Order of the passes.
  std::string schedule = default_schedule().name;  // a name of all_schedules()
  int slices = 1;                                  // of a sequence (TeraPipe)
  int group = 0;                                   // ScheduleShape::group
  std::shared_ptr<const ActionLists> actions;      // an imported CSV's, instead of the named schedule's
  std::shared_ptr<const Schedule> own_schedule;    // a caller's, of that name, which is in no catalogue

  // Data and numbers.
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t global_batch = 1;  // sequences per step
  Dtype dtype = Dtype::bfloat16;
  Dtype gradient_dtype = Dtype::float32;
  NarrowRecipe narrow = NarrowRecipe::none;  // of the products of layers
  NarrowHabits narrow_habits = {};           // narrow_habits(step) has what of them holds for a layout
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::flash2_rmsnorm;

  // The update.
  Optimizer optimizer;
  double clip_norm = 0;       // 0: no clipping
  bool worker_norms = false;  // measures the norms for the norm test (models/training/batch_rules.h)

  // Work in the bubbles.
  Fill fill = Fill::none;
  int evaluation_micro_batches = 8;  // held-out, per window

  // Habits of the trainer.
  bool overlap_grad_reduce = true;  // reduce each block's gradient as soon as its last backward is done
  // ZeRO 1, 2: a block's weights may arrive when its first forward pass of the next step needs them; else the next step
  // waits for all of its rank's.
  bool overlap_param_gather = true;
  // Gathers and scatters of sequence parallelism are cut into as many pieces as there are tensor ranks, and each piece
  // is sent while the product works on another (schedules/time/overlap.h). Only priced.
  bool overlap_tensor = false;
  Routing routing = {};  // of tokens to experts
  Levers levers = {};    // modules recomputed or launched by graphs; LoRA
  // For schedules in pairs: backwards are split, and a segment's weight gradient runs after its input gradient, beside
  // that gradient's message (schedules/lower/pairs.h).
  bool delay_weight_grads = false;
  bool blocking_transfers = false;  // a rank goes on only after its message to another stage is sent
};

// Shape of the work of one micro-batch; with slices, of the first slice.
WorkShape work_shape(const Step& step);
// Elements of a block on one rank, and which of them are frozen. `shares_table`: parameters.h.
BlockElements elements_of_block(const Step& step, int block, bool shares_table = false);
// Habits with narrow formats under this layout: weights are gathered with ZeRO alone, and ZeRO 3 keeps no cast.
NarrowHabits narrow_habits(const Step& step);
// Bytes of a gather of `elements` parameters, of which `linears` are those of Linears in layers.
double gathered_bytes(const Step& step, double elements, double linears);
// Memory traffic of the casts of weights that a rank makes once a step, of what it holds.
double weight_cast_bytes(const Step& step, const BlockElements& held);
// Micro-batches per pipeline and step. Throws std::invalid_argument when the batch does not divide.
int micro_batches_of(const Step& step);
// `own_schedule`, or the named one; null where there is none of that name.
const Schedule* known_schedule(const Step& step);
// The same. Throws std::invalid_argument when there is none of that name.
const Schedule& schedule_of(const Step& step);
// Gives the step a schedule of the catalogue, or its own one again.
void set_schedule(Step& step, const Schedule& schedule);
// Shape of the step for its schedule. Throws as the two above.
ScheduleShape schedule_shape(const Step& step);
// The order of passes on each pipeline rank: `actions`, or those of the named schedule. Throws std::invalid_argument
// where the schedule refuses the shape.
ActionLists action_lists(const Step& step);
ActionLists undelayed_lists(
    const Step& step);  // the same with the whole backwards of a step that delays weight gradients
// Micro-batches of these lists.
int micro_batches_in(const ActionLists& lists);
// K-FAC preconditions gradients before the update: a task per stage, and inverses that stay in memory.
bool uses_kfac(const Step& step);
// Work in the bubbles, or behind every window where K-FAC's is not put into them.
bool has_bubble_work(const Step& step);
// Tokens travel to the ranks of their experts.
bool dispatches_tokens(const Step& step);
// Data ranks whose experts a loss balances together (models/model/routing.h).
int balanced_replicas(const Step& step);
// The step sums a number over all ranks before it updates anything.
bool joins_all_ranks(const Step& step);

}  // namespace slipway::schedules
