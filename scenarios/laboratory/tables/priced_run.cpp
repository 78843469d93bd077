#include "scenarios/laboratory/tables/priced_run.h"

#include <stdexcept>

namespace slipway::scenarios {

Scenario scenario_of(const PublishedRow& row) {
  if (!row.scenario) throw std::invalid_argument(row.unpriceable);
  Scenario scenario = *row.scenario;
  scenario.name = in_words(row);
  return scenario;
}

PricedRun::PricedRun(const PublishedRow& row)
    : PricedStep(scenario_of(row)), row_{row.trainer, row.machine, row.step_s, 1} {}

}  // namespace slipway::scenarios
