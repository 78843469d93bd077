#include "scenarios/search/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/quantity.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/search/workers.h"

namespace slipway::scenarios {
namespace {

// The part of `text` before a unit, without the commas of thousands.
std::optional<double> number_before(std::string text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.resize(text.size() - unit.size());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  std::erase(text, ',');
  return quantity(text, Unit::pure);
}

// The speed at which one thing alone makes the step take so long, if there is one.
struct Found {
  bool is_any = false;
  double speed = 0;
  int of_stage = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Found, is_any, speed, of_stage)

void add(const std::string& name, const std::string& id, double spread, const Found& found, MeasuredStep& measured) {
  if (!found.is_any)
    measured.no_causes.push_back(name);
  else
    measured.causes.push_back({name, id, found.speed, std::abs(std::log(found.speed)) / spread});
}

Found found_in(const std::optional<double>& speed, int of_stage = 0) {
  return speed ? Found{true, *speed, of_stage} : Found{};
}

// The stage that needs the least. Equal stages need the same: a stage that is not slower at the best one's speed is none.
Found stage_that_needs_least(MovedStep& step, double target_s) {
  constexpr double same = 1 + 1e-4;
  std::optional<double> best;
  int of = 0;
  for (int rank = 0; rank < step.scenario().step.layout.pipeline; ++rank) {
    if (best && step.seconds_with_stage(rank, *best) <= same * target_s) continue;
    const std::optional<double> speed = step.speed_of_stage_for(rank, target_s);
    if (speed && (!best || *speed > *best)) best = speed, of = rank;
  }
  return found_in(best, of);
}

// Job 0: the stages, which take longest; job i > 0: rates[i - 1]. On all cores. Unset when interrupted.
std::optional<std::vector<Found>> found_for(MovedStep& step, const std::vector<Rate>& rates, double target_s,
                                            bool slower, const std::function<bool()>& interrupted) {
  std::vector<Found> all(rates.size() + 1);
  std::vector<int> jobs(all.size());
  std::iota(jobs.begin(), jobs.end(), 0);
  Workers workers(std::min(core_count(), static_cast<int>(jobs.size())), [&](int job, double) {
    return job > 0  ? found_in(step.speed_for(rates[static_cast<std::size_t>(job) - 1], target_s))
           : slower ? stage_that_needs_least(step, target_s)
                    : Found{};
  });
  std::size_t done = 0;
  const auto note = [&](const Workers::Outcome& outcome) {
    if (outcome.failure) throw std::runtime_error("looking for causes: " + *outcome.failure);
    all[static_cast<std::size_t>(outcome.job)] = outcome.answer.get<Found>();
    ++done;
  };
  Dealing how;
  how.go_on = [&](int) { return !(interrupted && interrupted()); };
  deal(workers, jobs, note, how);
  if (done < jobs.size()) return std::nullopt;
  return all;
}

}  // namespace

std::string speed_text(double speed) {
  if (speed > 1) return fmt::format("{:.3g} times as fast as predicted", speed);
  return fmt::format("at {:.2g} of the predicted speed", speed);
}

MeasuredStep measured_step(MovedStep& step, double predicted_s, double measured_s,
                           const std::optional<std::pair<double, double>>& interval,
                           const std::function<bool()>& interrupted) {
  MeasuredStep measured;
  measured.step_s = measured_s;
  measured.has_interval = interval.has_value();
  measured.inside = interval && interval->first <= measured_s && measured_s <= interval->second;
  const double target_s = step.seconds() * measured_s / predicted_s;
  const std::vector<Rate> rates = rates_of(step.scenario(), step.cluster());
  const bool slower = measured_s > predicted_s;
  const auto found = found_for(step, rates, target_s, slower, interrupted);
  measured.causes_sought = found.has_value();
  if (!found) return measured;
  for (std::size_t i = 0; i < rates.size(); ++i)
    add(rates[i].name, rates[i].id, rates[i].spread, (*found)[i + 1], measured);
  if (slower)
    add(step.scenario().step.layout.pipeline > 1 ? fmt::format("a GPU of pipeline rank {}", found->front().of_stage)
                                                 : "one GPU",
        "gpu", spread_of_gpus(), found->front(), measured);
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
