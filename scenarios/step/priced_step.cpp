#include "scenarios/step/priced_step.h"

#include <cmath>

#include "scenarios/step/simulated_step.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {

Scenario PricedStep::with(const ConstantsOn& constants) const {
  Scenario scenario = scenario_;
  scenario.step_constants = constants;
  set_prices(scenario);
  return scenario;
}

double PricedStep::replay(const ConstantsOn& constants) { return replay(with(constants)); }
double PricedStep::replay() { return replay(scenario_); }

double PricedStep::replay(Scenario scenario) {
  const SimulatedStep replayed = replayed_step(std::move(scenario));
  const TaskGraph& graph = replayed.prepared.graph;
  terms_ = critical_path(graph, replayed.prepared.scenario.cluster, replayed.prepared.durations,
                         replayed.simulation.timeline, periodic_of(replayed));
  works_ = {};
  works_.step = graph.step;
  works_.placement = graph.placement;
  works_.stages = graph.stages;
  works_.works = graph.works;
  works_.communicators = graph.communicators;
  works_.stage_operators = graph.stage_operators;
  return step_time_of(graph, replayed.simulation.timeline, periodic_of(replayed));
}

double PricedStep::seconds(const ConstantsOn& constants) const { return seconds(with(constants).cluster); }

double PricedStep::seconds(const Cluster& cluster) const {
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
