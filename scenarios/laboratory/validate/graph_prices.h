// Published runs priced in another way than by a replay with the fitted constants: `simulation` in SimGrid, with
// contention; `book` by constants that were fitted to no run.
//
//   row ──► Scenario (priced_run.h) ──► lower ──► list replay, without contention (replay, book), or SimGrid ──► step_s
//
// A run that the graph cannot hold (a stage without layers) is a row without a price.
// Guarded by tests/scenarios/price_test.cpp: `slipway simulate` gives the same step time.
#pragma once

#include <functional>

#include "models/model/names.h"
#include "scenarios/laboratory/validate/validation.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {

enum class GraphEngine : std::uint8_t { replay, simulation, book };
inline constexpr std::array engine_names{Named{GraphEngine::replay, "replay"},
                                         Named{GraphEngine::simulation, "simulation"},
                                         Named{GraphEngine::book, "book"}};
constexpr const char* name_of(GraphEngine engine) { return name_in(engine_names, engine); }

// Replaces step time and MFU of every readable row; memory verdicts stay. Forked workers, one per core, share the rows.
// `progress` gets the share done.
void price_by_graph(Validation& validation, GraphEngine engine, const std::function<void(double)>& progress);

}  // namespace slipway::scenarios
