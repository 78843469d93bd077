#include "scenarios/commands/execute/learning_rate_end.h"

#include <fmt/format.h>

#include <cstdint>

#include "exec/run/progress.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

namespace {

bool decays_to_the_end(const LearningRateSchedule& schedule) {
  return schedule.decay != DecayStyle::constant && schedule.decay_samples == 0;
}

// All digits, because compared counts may differ in the last one.
std::string exactly(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

void refuse_warmup_beyond_end(const Scenario& scenario, const Resumption& from) {
  const LearningRateSchedule& schedule = scenario.step.optimizer.lr_schedule;
  if (!decays_to_the_end(schedule)) return;
  const std::int64_t left = scenario.run.steps - from.done, batch = scenario.step.global_batch;
  const std::int64_t samples = samples_at_end({from.done, from.samples}, scenario.run.steps, batch);
  if (schedule.warmup_samples <= samples) return;
  throw UsageError(fmt::format(
      "{}: run.optimizer.lr_warmup_samples: the warm-up of {} is longer than the training, with which the "
      "decay ends: {} "
      "({}{} x schedule.global_batch {}); lower it, raise run.steps, or set run.optimizer.lr_decay_samples",
      scenario.path, exactly(schedule.warmup_samples, "sequence"), samples,
      from.samples > 0 ? fmt::format("{} of the checkpoint + ", from.samples) : "", exactly(left, "step"), batch));
}

std::string rate_text(const Optimizer& optimizer) {
  const LearningRateSchedule& schedule = optimizer.lr_schedule;
  std::string text = fmt::format("learning rate: {}", optimizer.lr);
  if (schedule.warmup_samples > 0) text += " after a warm-up of " + counted(schedule.warmup_samples, "sequence");
  if (schedule.decay == DecayStyle::constant) return text;
  return text + fmt::format(", {} decay to {} {}", name_of(schedule.decay), schedule.least,
                            schedule.decay_samples > 0 ? "after " + counted(schedule.decay_samples, "sequence")
                                                       : "over the training");
}

std::vector<std::string> rate_notes(const Scenario& scenario, const Resumption& from) {
  if (from.checkpoint.empty() || !decays_to_the_end(scenario.step.optimizer.lr_schedule)) return {};
  return {
      fmt::format("the learning rate decays to the end of this start, step {}, whatever end the run of the "
                  "checkpoint had; "
                  "give run.optimizer.lr_decay_samples for the same curve",
                  scenario.run.steps)};
}

}  // namespace slipway::scenarios
