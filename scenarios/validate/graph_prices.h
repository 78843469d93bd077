// Published runs priced by their task graph at their trainer's pace, as `slipway plan` prices a layout. `book` prices
// by the machine profile alone, as without cluster.stack; only its efficiencies were fitted to published step times.
//
//   row ──► Scenario ──► lower ──► list replay, without contention (replay, book), or SimGrid ──► step_s
//
// The layers of a pipeline are split as the trainers do it: evenly, nanotron's by FLOPs including the head.
// A run that the graph cannot hold (a stage without layers) is a row without a price.
// Guarded by tests/scenarios/price_test.cpp: `slipway simulate` gives the same step time.
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

// The run's nodes, as many of a node's GPUs as it has. Throws std::invalid_argument where its GPUs do not fill them.
NodeGroup nodes_of(const PublishedRow& row);
// Throws std::invalid_argument for a row that no scenario can describe.
Scenario scenario_of(const PublishedRow& row);
Step step_of(const PublishedRow& row);

// Replaces step time and MFU of every readable row; memory verdicts stay. Forked workers, one per core, share the rows.
// `progress` gets the share done.
void price_by_graph(Validation& validation, GraphEngine engine, const std::function<void(double)>& progress);

}  // namespace slipway::scenarios
