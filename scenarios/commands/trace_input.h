// A trace that a command was given: what is no complete trace of Slipway is a mistake of the user (exit status
// 2) and not a failure while running. Guarded by tests/command_compare_test.cpp and
// tests/command_calibrate_test.cpp.
#pragma once

#include <string>

#include "models/trace.h"

namespace slipway {

// Throws UsageError naming the file, what is wrong with it and what to give.
Trace trace_from(const std::string& path);

}  // namespace slipway
