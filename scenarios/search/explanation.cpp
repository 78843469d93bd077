#include "scenarios/search/explanation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/files/usage_error.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/prediction.h"
#include "schedules/time/breakdown.h"

namespace slipway::scenarios {
namespace {

constexpr double before_levers = 0.4;  // of the whole work, roughly

std::vector<SpentOn> spent_on(const TimeParts& ranks, const TimeParts& path) {
  std::vector<SpentOn> spent;
  for (const auto& part : time_part_names)
    if (ranks[part.value] != 0 || path[part.value] != 0)
      spent.push_back({part.name, ranks[part.value], path[part.value]});
  return spent;
}

std::vector<FasterRate> each_twice_as_fast(MovedStep& step, const std::function<bool()>& interrupted) {
  std::vector<FasterRate> faster;
  for (const Rate& rate : rates_of(step.scenario(), step.cluster())) {
    if (rate.of_all) continue;
    if (interrupted && interrupted()) break;
    Moved moved(step.cluster());
    rate.move(moved, 2);
    const double step_s = step.seconds(moved);
    faster.push_back({rate.name, rate.id, step_s, step_s / step.seconds() - 1});
  }
  std::stable_sort(faster.begin(), faster.end(),
                   [](const FasterRate& a, const FasterRate& b) { return a.change < b.change; });
  return faster;
}

// A trace is compared with a simulation of every micro-batch.
TraceFindings findings_of(const Scenario& scenario, const Trace& trace, const StepWorkers& workers) {
  StepOptions options;
  options.makespan = options.periodic = false;
  try {
    return trace_findings(simulated_step(scenario, options, workers), trace);
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--run: ") + error.what());
  }
}

}  // namespace

Explanation explanation_of(const Scenario& scenario, const ExplainOptions& options) {
  const auto begin = [&](const char* doing, double share) {
    if (options.progress) options.progress(doing, share);
  };
  if (options.trace != nullptr && has_bubble_work(scenario))
    throw UsageError(scenario.path +
                     ": --run cannot compare bubble work, whose tasks come once in several steps; leave out --run, or "
                     "give the measured step with --measured");
  Explanation answer;
  begin("simulating", 0);
  StepOptions how;
  how.makespan = false;
  const StepWorkers workers = plain_workers(nullptr, options.levers.interrupted);
  const SimulatedStep simulated = simulated_step(scenario, how, workers);
  const PreparedStep& prepared = simulated.prepared;
  const Prediction prediction = prediction_of(simulated);
  answer.scenario = scenario.name;
  answer.headline = headline(prepared);
  answer.step_s = prediction.step.step_time_s;
  answer.tokens_per_s = prediction.tokens_per_s, answer.mfu = prediction.step.mfu;
  answer.verdict = prediction.verdict;
  answer.basis = basis_of(scenario);
  answer.interval = step_interval(prepared, answer.step_s, answer.basis.outside.size());
  begin("replaying", 0.05);
  MovedStep step(scenario);
  answer.replayed_s = step.seconds();
  const TimeParts ranks = rank_parts(prepared.graph, prepared.cluster, prepared.durations,
                                     simulated.simulation.timeline, periodic_of(simulated));
  answer.spent = spent_on(ranks, step.path());
  answer.faster = each_twice_as_fast(step, options.levers.interrupted);
  if (options.trace != nullptr) {
    begin("comparing the trace", 0.15);
    answer.trace = findings_of(scenario, *options.trace, workers);
  }
  if (options.measured_s) {
    begin("looking for causes", 0.3);
    std::optional<std::pair<double, double>> interval;
    if (answer.interval) interval.emplace(answer.interval->low_s, answer.interval->high_s);
    answer.measured = measured_step(step, answer.step_s, *options.measured_s, interval, options.levers.interrupted);
  }
  begin("trying levers", before_levers);
  LeverOptions levers = options.levers;
  levers.progress = [&](int done, int left) {
    begin("trying levers", before_levers + (1 - before_levers) * done / std::max(1, done + left));
  };
  answer.levers = lever_trials(scenario, answer.step_s, all_levers(), levers);
  answer.all_levers_tried = !(options.levers.interrupted && options.levers.interrupted());
  return answer;
}

}  // namespace slipway::scenarios
