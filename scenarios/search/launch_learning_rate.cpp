#include "scenarios/search/launch_learning_rate.h"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/language/settings.h"
#include "scenarios/plan.h"

namespace slipway {
namespace {

std::int64_t planned_steps(const Scenario& s) {
  return static_cast<std::int64_t>(std::ceil(s.tokens / tokens_per_step(s)));
}

// The end of its decay is that of the training unless said, for a constant rate, too.
void refuse_megatron_warmup(const LearningRateSchedule& schedule, std::int64_t train_samples,
                            LaunchArguments& launch) {
  const bool own_end = schedule.decay_samples > 0;
  const std::int64_t end = own_end ? schedule.decay_samples : train_samples;
  if (end == 0 || schedule.warmup_samples < end) return;
  launch.refused_anyway.push_back(fmt::format(
      "the warm-up of {} samples is not shorter than {} {}; lower run.optimizer.lr_warmup_samples",
      schedule.warmup_samples, own_end ? "--lr-decay-samples" : "--train-samples", end));
}

}  // namespace

// Lengths in samples want the training's length in samples, too.
void megatron_learning_rate(const Scenario& s, LaunchArguments& launch) {
  const LearningRateSchedule& schedule = s.run.optimizer.lr_schedule;
  const bool in_samples = !schedule.is_constant();
  const std::string length = in_samples ? "--train-samples" : "--train-iters";
  const std::int64_t planned =
      s.tokens > 0 ? planned_steps(s) * (in_samples ? s.schedule.global_batch : 1) : 0;
  auto& list = launch.arguments;
  if (planned > 0)
    list.push_back(fmt::format("{} {}", length, planned));
  else
    launch.to_add.push_back(length + " (run.tokens says how many)");
  list.push_back(std::string("--lr-decay-style ") + name_of(schedule.decay));
  if (!in_samples) {
    launch.to_add.emplace_back(
        "your own schedule of the learning rate, if any: run.optimizer.lr_decay_style is constant, without "
        "warm-up");
    return;
  }
  list.push_back("--min-lr " + number_text(schedule.least));
  if (schedule.decay_samples > 0)
    list.push_back(fmt::format("--lr-decay-samples {}", schedule.decay_samples));
  if (schedule.warmup_samples == 0) return;
  list.push_back(fmt::format("--lr-warmup-samples {}", schedule.warmup_samples));
  launch.missing.emplace_back(
      "a warm-up that counts the step itself: Megatron-LM's is a step behind, its first step has rate 0");
  refuse_megatron_warmup(schedule, planned, launch);
}

std::int64_t torchtitan_steps(const Scenario& s) { return s.tokens > 0 ? planned_steps(s) : s.run.steps; }

namespace {

// In steps of the trainer's, rounded up.
void torchtitan_warmup(const Scenario& s, LaunchArguments& launch) {
  const std::int64_t samples = s.run.optimizer.lr_schedule.warmup_samples, batch = s.schedule.global_batch;
  const std::int64_t steps = samples / batch + (samples % batch > 0), all = torchtitan_steps(s);
  launch.arguments.push_back(fmt::format("--lr_scheduler.warmup_steps {}", steps));
  if (samples % batch > 0)
    launch.missing.push_back(fmt::format(
        "a warm-up of {} samples (run.optimizer.lr_warmup_samples): rounded up to steps of {}, {} samples",
        samples, batch, steps * batch));
  if (steps > all)
    launch.missing.push_back(fmt::format(
        "a warm-up of {} steps (run.optimizer.lr_warmup_samples): torchtitan cuts it to the training, "
        "--training.steps {} ({})",
        steps, all, s.tokens > 0 ? "of run.tokens" : "run.steps; run.tokens says how long it is"));
}

}  // namespace

// A decay ends with the training; a ratio of 1 makes it begin where the warm-up ends, which torchtitan cuts
// it to.
void torchtitan_learning_rate(const Scenario& s, LaunchArguments& launch) {
  const Optimizer& own = s.run.optimizer;
  const LearningRateSchedule& schedule = own.lr_schedule;
  auto& list = launch.arguments;
  list.push_back("--optimizer.lr " + number_text(own.lr));
  torchtitan_warmup(s, launch);
  if (schedule.decay == DecayStyle::constant) {
    list.emplace_back("--lr_scheduler.decay_ratio 0");
    return;
  }
  list.emplace_back("--lr_scheduler.decay_ratio 1");
  list.push_back(std::string("--lr_scheduler.decay_type ") + name_of(schedule.decay));
  list.push_back("--lr_scheduler.min_lr_factor " + number_text(own.lr > 0 ? schedule.least / own.lr : 0));
  if (schedule.decay_samples > 0)
    launch.missing.emplace_back(
        "the end of the decay (run.optimizer.lr_decay_samples): torchtitan's is that of the training");
}

}  // namespace slipway
