#include "scenarios/predict/step_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "models/machine/priced_cluster.h"
#include "models/trace/statistics.h"
#include "scenarios/language/keys.h"
#include "scenarios/predict/priced_step.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

// A width, a number of GPUs or a tensor degree that no fitted run of a table has: by how much more such rows err than
// fitted ones (`slipway validate --pooled`, groups left out against in sample, docs/accuracy.md).
constexpr double spread_of_a_setting = 0.055;

// Kernels of another GPU, in shares of the data sheet. Products in bfloat16 by those of H100 and B200 took 1.05 times as
// long on H200, 1.08 on B300, 1.01 on GB200 and 1.12 on GB300 as the fit says (scenarios/studies/kernels, 2026-11-27).
constexpr double spread_of_other_kernels = 0.07;

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// d ln step / d ln value of every fitted number of the machine, in all groups that have it, by the path of the replay.
void add_slopes(const PricedCluster& cluster, const Machine& machine, const PricedStep& step, StepInterval& interval) {
  constexpr double little = 1e-3;  // of the logarithm
  const double here = step.seconds(cluster);
  for (const FittedDeviation& each : machine.deviations) {
    std::vector<Machine> moved;
    for (const NodeGroup& group : cluster.groups) {
      moved.push_back(group.machine);
      if (group.machine.name == machine.name) *fitted_number(moved.back(), each.name) *= std::exp(little);
    }
    const double slope = std::log(step.seconds(PricedCluster(with_machines(cluster, moved))) / here) / little;
    const std::size_t first = interval.directions.size() - each.parts.size();
    for (std::size_t d = 0; d < each.parts.size(); ++d) interval.directions[first + d] += slope * each.parts[d];
    interval.numbers.push_back(
        {each.name, machine.name, std::string(key_of(machine_keys(), each.name)->meaning), slope});
  }
}

// By a profile that `slipway calibrate` has fitted. What is unsure of one kind of work beyond the fit's numbers is so in
// every task of it, so a step is as unsure as a task. Several kinds err apart from each other, which makes this wide
// rather than narrow.
std::optional<StepInterval> interval_of_profile(const PreparedStep& prepared, double step_s) {
  constexpr double ninety = 1.6449;  // a normal distribution has 90 % within as many standard deviations
  const PricedCluster& cluster = prepared.cluster;
  StepInterval interval;
  for (const NodeGroup& group : cluster.groups) {
    if (!(group.machine.spread > 0)) return std::nullopt;
    interval.runs = std::max(interval.runs, group.machine.spread);
  }
  const auto has_deviations = [](const NodeGroup& group) { return !group.machine.deviations.empty(); };
  std::optional<PricedStep> step;
  if (std::any_of(cluster.groups.begin(), cluster.groups.end(), has_deviations)) step.emplace(prepared);
  std::set<std::string> seen;
  for (const NodeGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    if (!has_deviations(group) || !seen.insert(machine.name).second) continue;
    interval.directions.resize(interval.directions.size() + machine.deviations.front().parts.size());
    add_slopes(cluster, machine, *step, interval);
  }
  interval.constants = norm_of(interval.directions);
  const double width = std::exp(ninety * std::hypot(interval.constants, interval.runs));
  interval.low_s = step_s / width, interval.high_s = step_s * width;
  return interval;
}

// Runs on this machine, published or the user's own, have corrected its products; the covariance says how well.
bool has_fitted_products(const PooledConstants& pooled, const std::string& machine) {
  const std::string_view products = "gemm";
  return std::ranges::any_of(pooled.coordinates, [&](const models::PooledCoordinate& each) {
    return each.machine == machine && step_constants()[each.constant].name == products;
  });
}

}  // namespace

double StepInterval::half_width() const { return 0.5 * std::log(high_s / low_s); }

std::optional<StepInterval> step_interval(const PreparedStep& prepared, double step_s, std::size_t outside) {
  const Scenario& scenario = prepared.scenario;
  if (!is_priced_by_trainer(scenario.cluster)) return interval_of_profile(prepared, step_s);
  const ConstantsOn fitted = [&](const Machine& machine) { return constants_on(scenario, machine); };
  const PricedStep step(prepared);
  StepInterval interval;
  std::set<std::string> machines;
  for (const NodeGroup& group : scenario.cluster.groups) machines.insert(group.machine.name);
  for (const std::string& machine : machines) interval.slopes.push_back({machine, step.slopes(fitted, machine)});
  const PooledConstants& pooled = constants_of(scenario);
  interval.constants = spread_of(pooled, scenario.trainer.name, interval.slopes);
  interval.runs = pooled.row_spread;
  interval.outside = spread_of_a_setting * std::sqrt(static_cast<double>(outside));
  const auto is_known = [&](const NodeGroup& group) {
    return group.machine.kernels.measured || has_fitted_products(pooled, group.machine.name);
  };
  if (!std::ranges::all_of(scenario.cluster.groups, is_known)) interval.kernels = spread_of_other_kernels;
  const double width =
      std::exp(models::half_width(pooled, std::hypot(interval.constants, interval.outside, interval.kernels)));
  interval.low_s = step_s / width, interval.high_s = step_s * width;
  return interval;
}

std::vector<Sensitivity> sensitivities(const StepInterval& interval) {
  constexpr double shown = 0.01;
  std::vector<Sensitivity> list;
  const auto table = step_constants();
  for (const MachineSlopes& each : interval.slopes)
    for (std::size_t j = 0; j < table.size(); ++j)
      if (std::abs(each.slopes[j]) >= shown)
        list.push_back({table[j].name, each.machine, table[j].meaning, each.slopes[j]});
  for (const Sensitivity& each : interval.numbers)
    if (std::abs(each.slope) >= shown) list.push_back(each);
  std::stable_sort(list.begin(), list.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return std::abs(a.slope) > std::abs(b.slope); });
  return list;
}

double probability_faster(const Scenario& scenario, double step_s, const StepInterval& interval, double other_s,
                          const StepInterval& other) {
  if (!is_priced_by_trainer(scenario.cluster)) {
    std::vector<double> apart = interval.directions;  // errors that both layouts share cancel
    for (std::size_t d = 0; d < apart.size(); ++d) apart[d] -= other.directions[d];
    const double spread = std::hypot(norm_of(apart), interval.runs, other.runs);
    return normal_share(std::log(other_s / step_s) / spread);
  }
  std::vector<MachineSlopes> apart = interval.slopes;
  for (std::size_t m = 0; m < apart.size(); ++m)
    for (std::size_t j = 0; j < apart[m].slopes.size(); ++j) apart[m].slopes[j] -= other.slopes[m].slopes[j];
  const double constants = spread_of(constants_of(scenario), scenario.trainer.name, apart);
  const double spread =
      std::hypot(constants, std::hypot(interval.runs, interval.outside), std::hypot(other.runs, other.outside));
  return normal_share(std::log(other_s / step_s) / spread);
}

std::string interval_text(const StepInterval& interval) {
  return readable_seconds(interval.low_s) + " to " + readable_seconds(interval.high_s);
}

std::string interval_note(const std::optional<StepInterval>& interval) {
  return interval ? "90 % interval: " + interval_text(*interval) : no_interval;
}

const Description<StepInterval>& interval_keys() {
  static const Description<StepInterval> description =
      Description<StepInterval>()
          .key("step_time_low_s", "s",
               "90 of 100 measured runs are expected between it and step_time_high_s; present where fitted constants "
               "or a calibrated profile price the step, like the next keys",
               &StepInterval::low_s)
          .key("step_time_high_s", "s", "the other end", &StepInterval::high_s)
          .key("spread_of_constants", "-", "standard deviation of ln(step) from what the fitted constants leave open",
               &StepInterval::constants)
          .key("spread_of_runs", "-", "the same of what runs differ in beyond the constants", &StepInterval::runs)
          .key("spread_outside", "-", "the same of settings outside the fitted runs", &StepInterval::outside)
          .key("spread_of_kernels", "-",
               "the same of kernels taken from another GPU, where nobody has measured this one's",
               &StepInterval::kernels)
          .list("sensitivities", "constants of which one percent moves the step by 0.01 % and more, the largest first",
                sensitivities,
                Description<Sensitivity>()
                    .key("constant", "text", "name (slipway list constants)", &Sensitivity::constant)
                    .key("machine", "text", "on which", &Sensitivity::machine)
                    .key("percent", "%", "by which the step grows for one percent more of it", &Sensitivity::slope))
          .listed_elsewhere();
  return description;
}

}  // namespace slipway::scenarios
