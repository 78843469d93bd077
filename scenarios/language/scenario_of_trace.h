// The scenario that a trace was made from: as resolved, it is in the trace.
#pragma once

#include <string>

#include "models/trace/trace.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// `path`: of the trace; paths in the scenario start from its folder. A trace of others has no scenario: one error.
LoadResult scenario_of_trace(const Trace& trace, const std::string& path);

}  // namespace slipway::scenarios
