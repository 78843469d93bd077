// The readers without prices: what a scenario's loader asks of scenarios/plan is left out here.
#include "scenarios/language/check_scenario.h"

namespace slipway::scenarios {

// A balanced split is searched with prices, from what the loader has read and checked before.
void derive_split(Settings& /*settings*/, Scenario& /*scenario*/) {}

}  // namespace slipway::scenarios
