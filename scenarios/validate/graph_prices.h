// Published runs priced by their task graph, as `slipway plan` prices a layout, at the pace of their trainer; `book`:
// as without cluster.stack, by the machine profile alone, of which only efficiencies have seen a published step time.
//
//   row ──► Scenario ──► lower ──► list replay, without contention (replay, book), or SimGrid ──► step_s
//
// The layers of a pipeline are split evenly, nanotron's by FLOPs with the head counted, as the trainers do.
// What the graph cannot hold (a stage without layers) is a row without a price.
// Guarded by tests/scenarios/price_test.cpp: the same step time as `slipway simulate` gives.
#pragma once

#include <functional>

#include "models/model/names.h"
#include "scenarios/plan/search.h"
#include "scenarios/validate/validation.h"

namespace slipway::scenarios {

enum class GraphEngine : std::uint8_t { replay, simulation, book };
inline constexpr std::array engine_names{Named{GraphEngine::replay, "replay"},
                                         Named{GraphEngine::simulation, "simulation"},
                                         Named{GraphEngine::book, "book"}};
constexpr const char* name_of(GraphEngine engine) { return name_in(engine_names, engine); }

// Throws std::invalid_argument for a row that no scenario can describe.
Scenario scenario_of(const PublishedRow& row);
LayoutChoice choice_of(const PublishedRow& row);

// Replaces step time and MFU of every row that could be read; memory verdicts stay. Rows are shared out
// among forked workers, one a core; `progress` gets the share that is done.
void price_by_graph(Validation& validation, GraphEngine engine, const std::function<void(double)>& progress);

}  // namespace slipway::scenarios
