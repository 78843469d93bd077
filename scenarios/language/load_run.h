// A scenario that a table lists in a cell (scenarios/tables/table.h): loaded as any other, without its resolved text.
//
//   cell ──parse_document──► Value ──load_run──► Scenario, or all that the language refuses
//
// Without files, since a cell has no folder, and without the resolved text and summary, which outputs alone need and which
// take half of the time. Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include "scenarios/language/document.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

LoadResult load_run(const Value& document);

}  // namespace slipway::scenarios
