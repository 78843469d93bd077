#include "scenarios/explain/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/language/quantity.h"
#include "scenarios/language/usage_error.h"
#include "scenarios/simulate/prediction.h"

namespace slipway::scenarios {
namespace {

void add(const std::string& name, const std::string& id, double spread, const std::optional<double>& speed,
         MeasuredStep& measured) {
  if (!speed)
    measured.no_causes.push_back(name);
  else
    measured.causes.push_back({name, id, *speed, std::abs(std::log(*speed)) / spread});
}

// The part of `text` before a unit, without the commas of thousands.
std::optional<double> number_before(std::string text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.resize(text.size() - unit.size());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  std::erase(text, ',');
  return quantity(text, Unit::pure);
}

}  // namespace

std::string speed_text(double speed) {
  if (speed > 1) return fmt::format("{:.3g} times as fast as predicted", speed);
  return fmt::format("at {:.2g} of the predicted speed", speed);
}

MeasuredStep measured_step(MovedStep& step, double predicted_s, double measured_s,
                           const std::optional<std::pair<double, double>>& interval) {
  MeasuredStep measured;
  measured.step_s = measured_s;
  measured.has_interval = interval.has_value();
  measured.inside = interval && interval->first <= measured_s && measured_s <= interval->second;
  const double target_s = step.seconds() * measured_s / predicted_s;
  for (const Rate& rate : rates_of(step.scenario()))
    add(rate.name, rate.id, rate.spread, step.speed_for(rate, target_s), measured);
  const Layout& layout = step.scenario().step.layout;
  // The stage that needs the least. Equal stages need the same: a stage that is not slower at the best one's speed is none.
  constexpr double same = 1 + 1e-4;
  std::optional<double> best;
  int of = 0;
  for (int rank = 0; rank < layout.pipeline && measured_s > predicted_s; ++rank) {
    if (best && step.seconds_with_stage(rank, *best) <= same * target_s) continue;
    const std::optional<double> speed = step.speed_of_stage_for(rank, target_s);
    if (speed && (!best || *speed > *best)) best = speed, of = rank;
  }
  if (measured_s > predicted_s)
    add(layout.pipeline > 1 ? fmt::format("a GPU of pipeline rank {}", of) : "one GPU", "gpu", spread_of_gpus(), best,
        measured);
  std::stable_sort(measured.causes.begin(), measured.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.deviation < b.deviation; });
  return measured;
}

double seconds_of_measurement(const std::string& text, const Scenario& scenario) {
  const std::optional<double> seconds = quantity(text, Unit::seconds);
  if (seconds && *seconds > 0) return *seconds;
  for (const char* unit : {"tokens/s", "tok/s"})
    if (const auto rate = number_before(text, unit); rate && *rate > 0) return tokens_per_step(scenario) / *rate;
  for (const char* unit : {"TFLOP/s", "TFLOPs", "TFLOPS", "TFLOPs/s"})
    if (const auto rate = number_before(text, unit); rate && *rate > 0) return megatron_tflops(scenario, 1) / *rate;
  throw UsageError("--measured " + text +
                   " is no step time; allowed: seconds as '2.31 s', tokens of all GPUs as '12000 tokens/s', or TFLOP/s "
                   "of a GPU as '410 TFLOP/s'");
}

}  // namespace slipway::scenarios
