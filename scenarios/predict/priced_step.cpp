#include "scenarios/predict/priced_step.h"

#include <cmath>

#include "scenarios/predict/simulated_step.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {
namespace {

constexpr int replayed_steps = 3;  // the period between the last two is that of a step

}  // namespace

PricedStep::PricedStep(const PreparedStep& prepared) : scenario_(prepared.scenario) {
  if (prepared.filling) {  // no cluster prices bubble work: the path is that of the step without it
    replay(scenario_);
    return;
  }
  const Timeline replayed = schedules::replay(prepared.graph, prepared.durations, replayed_steps);
  if (!prepared.periodic) {
    keep(prepared, replayed, nullptr);
    return;
  }
  const auto periodic = periodic_timeline(prepared.graph, prepared.durations, *prepared.periodic, replayed);
  if (periodic)
    keep(prepared, replayed, &*periodic);
  else
    replay(scenario_);  // with more periods
}

PricedCluster PricedStep::with(const ConstantsOn& constants) const {
  return priced(scenario_.cluster, scenario_.trainer, constants);
}

double PricedStep::replay(const ConstantsOn& constants) {
  Scenario scenario = scenario_;
  scenario.step_constants = constants;
  return replay(scenario);
}

double PricedStep::replay() { return replay(scenario_); }

double PricedStep::replay(const Scenario& scenario) {
  const SimulatedStep replayed = replayed_step(scenario);
  return keep(replayed.prepared, replayed.simulation.timeline, periodic_of(replayed));
}

double PricedStep::keep(const PreparedStep& prepared, const Timeline& replayed, const PeriodicTimeline* periodic) {
  const TaskGraph& graph = prepared.graph;
  terms_ = critical_path(graph, prepared.cluster, prepared.durations, replayed, periodic);
  works_ = {};
  works_.step = graph.step;
  works_.placement = graph.placement;
  works_.stages = graph.stages;
  works_.works = graph.works;
  works_.communicators = graph.communicators;
  works_.stage_operators = graph.stage_operators;
  return step_time_of(graph, replayed, periodic);
}

double PricedStep::seconds(const ConstantsOn& constants) const { return seconds(with(constants)); }

double PricedStep::seconds(const PricedCluster& cluster) const {
  const std::vector<double> each = term_seconds(works_, cluster, terms_);
  double seconds = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) seconds += terms_[i].count * each[i];
  return seconds;
}

std::vector<double> PricedStep::slopes(const ConstantsOn& constants, const std::string& machine) const {
  constexpr double little = 1e-3;  // of the logarithm
  const double here = seconds(constants);
  std::vector<double> slopes;
  for (const StepConstant& constant : step_constants()) {
    const double moved = seconds([&](const Machine& on) {
      StepConstants values = constants(on);
      if (on.name == machine) values.*constant.value *= std::exp(little);
      return values;
    });
    slopes.push_back(std::log(moved / here) / little);
  }
  return slopes;
}

}  // namespace slipway::scenarios
