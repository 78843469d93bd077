#include "scenarios/language/load_optimizer.h"

#include <algorithm>
#include <utility>

#include "scenarios/language/quantity.h"

namespace slipway {
namespace {

constexpr const char* style = "run.optimizer.lr_decay_style";
constexpr const char* warmup = "run.optimizer.lr_warmup_samples";
constexpr const char* end = "run.optimizer.lr_decay_samples";
constexpr const char* least = "run.optimizer.min_lr";

double read_rate(Settings& settings) {
  const bool outside = settings.given("run.lr"), inside = settings.given("run.optimizer.lr");
  const double rate = outside  ? settings.number("run.lr")
                      : inside ? settings.number("run.optimizer.lr")
                               : Optimizer{}.lr;
  if (outside && inside && settings.number("run.optimizer.lr") != rate)
    settings.refuse("run.optimizer.lr",
                    "run.lr = " + settings.text("run.lr") + " says otherwise; allowed: one learning rate",
                    "remove one of the two");
  return rate;
}

void refuse_without_decay(Settings& settings, const char* key, const std::string& value) {
  settings.refuse(key,
                  value +
                      " is for a learning rate that decays, but lr_decay_style is constant; allowed: with "
                      "linear, cosine",
                  std::string("remove it, or set ") + style + " to linear or cosine");
}

// Where the decay ends with the training, `execute` knows when that is (scenarios/execution/learning_rate.h).
void check_warmup(Settings& settings, const LearningRateSchedule& schedule) {
  if (!settings.given(end) || !settings.good({warmup})) return;
  if (schedule.warmup_samples <= schedule.decay_samples) return;
  const std::string samples = std::to_string(schedule.decay_samples);
  settings.refuse(warmup,
                  "the warm-up of " + std::to_string(schedule.warmup_samples) +
                      " sequences is longer than the decay, which ends after " + samples +
                      " (lr_decay_samples); allowed: up to " + samples,
                  std::string("lower it, or raise ") + end);
}

LearningRateSchedule read_schedule(Settings& settings, double rate) {
  LearningRateSchedule schedule;
  schedule.warmup_samples = settings.integer(warmup);
  schedule.decay = static_cast<DecayStyle>(std::max(0, settings.choice(style)));
  if (settings.given(end)) schedule.decay_samples = settings.integer(end);
  schedule.least = settings.number(least);
  if (!settings.good({style})) return schedule;
  if (schedule.decay != DecayStyle::constant) {
    check_warmup(settings, schedule);
    if (settings.good({least, "run.lr", "run.optimizer.lr"}) && schedule.least > rate)
      settings.refuse(least,
                      number_text(schedule.least) + " is above the learning rate, " + number_text(rate) +
                          "; allowed: up to it",
                      "lower it, or raise run.lr");
    return schedule;
  }
  if (settings.given(end)) refuse_without_decay(settings, end, settings.text(end));
  if (schedule.least > 0) refuse_without_decay(settings, least, number_text(schedule.least));
  return schedule;
}

void refuse_kfac_keys(Settings& settings, const std::string& optimizer) {
  if (optimizer == "kfac" || !settings.good({"run.optimizer.name"})) return;
  // The default damping is what the resolved scenario of any optimizer has.
  const bool damped = settings.number("run.optimizer.damping") != Optimizer{}.damping;
  for (const auto& [key, is_asked] : {std::pair{"run.optimizer.refresh_steps", true}, std::pair{"run.optimizer.damping", damped}})
    if (is_asked && settings.given(key))
      settings.refuse(key, "this is of K-FAC's inverses, but run.optimizer is " + optimizer + "; allowed: with kfac",
                      "remove it, or set run.optimizer.name to kfac");
}

}  // namespace

Optimizer load_optimizer(Settings& settings) {
  Optimizer optimizer;
  optimizer.name = settings.text("run.optimizer.name");
  refuse_kfac_keys(settings, optimizer.name);
  if (settings.given("run.optimizer.refresh_steps"))
    optimizer.refresh_steps = settings.small_integer("run.optimizer.refresh_steps");
  optimizer.damping = settings.number("run.optimizer.damping");
  optimizer.beta1 = settings.number("run.optimizer.beta1");
  optimizer.beta2 = settings.number("run.optimizer.beta2");
  optimizer.epsilon = settings.number("run.optimizer.epsilon");
  optimizer.weight_decay = settings.number("run.optimizer.weight_decay");
  optimizer.lr = read_rate(settings);
  optimizer.lr_schedule = read_schedule(settings, optimizer.lr);
  return optimizer;
}

}  // namespace slipway
