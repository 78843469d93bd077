#include "schedules/step/step.h"

#include <set>
#include <stdexcept>

namespace slipway::schedules {

WorkShape work_shape(const Step& step) {
  return {.micro_batch = step.micro_batch,
          .sequence = step.model->sequence / step.slices,
          .sharding = sharding_of(step.layout),
          .kernels = step.kernels,
          .dtype = step.dtype,
          .narrow = step.narrow,
          .habits = narrow_habits(step),
          .recompute_attention =
              step.recompute == Recompute::selective || step.levers.recomputed.has(RecomputedModule::core_attn),
          .routing = step.routing,
          .levers = step.levers};
}

BlockElements elements_of_block(const Step& step, int block, bool shares_table) {
  const Sharding cut = sharding_of(step.layout);
  BlockElements elements = block_shard_elements(step.model, block, cut, shares_table);
  if (step.levers.lora.rank > 0) add_adapters(elements, blocks_of(step.model)[block], cut, step.levers.lora);
  return elements;
}

NarrowHabits narrow_habits(const Step& step) {
  if (step.narrow == NarrowRecipe::none) return {};
  NarrowHabits habits = step.narrow_habits;
  habits.gathers_weights = habits.gathers_weights && step.layout.zero >= 1;
  habits.casts_each_pass = habits.casts_each_pass || step.layout.zero >= 3;
  return habits;
}

double gathered_bytes(const Step& step, double elements, double linears) {
  return (elements - linears) * bytes_of(step.dtype) +
         linears * message_bytes(step.narrow, narrow_habits(step), NarrowMessage::weights, step.dtype);
}

double weight_cast_bytes(const Step& step, const BlockElements& held) {
  return cast_bytes_of_step(step.narrow, narrow_habits(step), step.dtype) *
         static_cast<double>(held.linears + held.experts);
}

int micro_batches_of(const Step& step) {
  const std::int64_t per_round = step.micro_batch * step.layout.data;
  if (per_round <= 0 || step.global_batch % per_round != 0) {
    throw std::invalid_argument("global batch " + std::to_string(step.global_batch) +
                                " is not a multiple of micro-batch × data parallel = " + std::to_string(per_round));
  }
  return static_cast<int>(step.global_batch / per_round);
}

const Schedule* known_schedule(const Step& step) {
  return step.own_schedule ? step.own_schedule.get() : schedule_named(step.schedule);
}

const Schedule& schedule_of(const Step& step) {
  const Schedule* schedule = known_schedule(step);
  if (schedule == nullptr) throw std::invalid_argument("no schedule is named " + step.schedule);
  return *schedule;
}

void set_schedule(Step& step, const Schedule& schedule) {
  step.schedule = schedule.name;
  if (step.own_schedule.get() != &schedule) step.own_schedule = nullptr;
}

ScheduleShape schedule_shape(const Step& step) {
  return {step.layout.pipeline, step.layout.chunks,       micro_batches_of(step),
          step.slices,          schedule_of(step).copies, step.group};
}

namespace {

// Each backward becomes an input gradient, and a weight gradient behind it.
ActionLists with_split_backwards(const ActionLists& lists) {
  ActionLists split(lists.size());
  for (std::size_t row = 0; row < lists.size(); ++row) {
    for (Action action : lists[row]) {
      const bool is_backward = action.pass == Pass::backward;
      if (is_backward) action.pass = Pass::input_grad;
      split[row].push_back(action);
      if (!is_backward) continue;
      action.pass = Pass::weight_grad, action.with_next = false;
      split[row].push_back(action);
    }
  }
  return split;
}

}  // namespace

ActionLists undelayed_lists(const Step& step) {
  if (step.actions != nullptr) return *step.actions;
  const ScheduleShape shape = schedule_shape(step);
  const Schedule& schedule = schedule_of(step);
  if (const auto reason = schedule.refuse(shape)) throw std::invalid_argument(reason->problem + "; " + reason->remedy);
  return schedule.actions(shape);
}

ActionLists action_lists(const Step& step) {
  ActionLists lists = undelayed_lists(step);
  return step.delay_weight_grads && step.actions == nullptr ? with_split_backwards(lists) : lists;
}

int micro_batches_in(const ActionLists& lists) {
  std::set<int> seen;
  for (const auto& list : lists)
    for (const Action& action : list) seen.insert(action.micro_batch);
  return static_cast<int>(seen.size());
}

bool uses_kfac(const Step& step) { return step.optimizer.name == "kfac"; }

bool has_bubble_work(const Step& step) { return step.fill != Fill::none || uses_kfac(step); }

bool dispatches_tokens(const Step& step) { return has_experts(step.model) && dispatches(sharding_of(step.layout)); }

int balanced_replicas(const Step& step) {
  return has_experts(step.model) ? balanced_replicas(step.routing, step.micro_batch) : 1;
}

bool joins_all_ranks(const Step& step) { return step.clip_norm > 0 || step.worker_norms; }

}  // namespace slipway::schedules
