// Reads a trace that the user named. A file that is no complete trace of Slipway is a mistake of the user (exit status
// 2), not a failure while running.
// Guarded by tests/scenarios/compare_command_test.cpp and tests/scenarios/calibrate_command_test.cpp.
#pragma once

#include <string>

#include "models/trace/trace.h"

namespace slipway::scenarios {

// Throws UsageError with the file, the defect and the remedy.
Trace trace_from(const std::string& path);

}  // namespace slipway::scenarios
