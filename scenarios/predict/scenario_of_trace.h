// The scenario that a trace was made from: as resolved, it is in the trace.
#pragma once

#include <string>

#include "models/trace/trace.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// `beside`: a file in whose folder the scenario's relative paths begin: the trace itself, or the scenario's file. A trace
// of others has no scenario: one error.
LoadResult scenario_of_trace(const Trace& trace, const std::string& beside);

}  // namespace slipway::scenarios
