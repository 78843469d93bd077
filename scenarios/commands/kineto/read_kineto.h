// Reads a trace of PyTorch's profiler. Guarded by tests/scenarios/kineto_test.cpp.
#pragma once

#include <functional>
#include <string>

#include "scenarios/commands/kineto/kineto_trace.h"

namespace slipway::scenarios {

// True for a regular file that is compressed by gzip, or begins as the profiler's JSON does and not as Slipway's.
bool may_be_kineto(const std::string& path);

// Throws UsageError with the file, the defect and the remedy: unreadable, cut, no JSON, another schema, no kernels.
KinetoTrace read_kineto(const std::string& path, const std::function<void(double share)>& progress = {});

}  // namespace slipway::scenarios
