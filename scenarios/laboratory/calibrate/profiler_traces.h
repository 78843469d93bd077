// Traces of PyTorch's profiler for `slipway calibrate --kineto`: read, and the machine that they are of.
// Guarded by tests/scenarios/kineto_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "scenarios/commands/kineto/kineto_measurements.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Reads them, one of each rank; prints progress on `err`. Throws UsageError for a file that is none.
std::vector<KinetoTrace> profiler_traces(const std::vector<std::string>& paths, std::ostream& err);

// The built-in machine whose chip the traces' GPU is named after, of several that with the nearest memory:
// "NVIDIA A100-PG509-200" with 42 GB is a100-40gb. Throws UsageError where there is none, or the traces name none.
Machine machine_of(const std::vector<KinetoTrace>& traces);

// Throws UsageError where the traces say nothing that a machine is fitted to, with the way to record it.
void refuse_without_measurements(const std::vector<KinetoTrace>& traces, const KinetoEvidence& evidence);

// The format of most products; bfloat16 without products.
Dtype dtype_of(const KinetoEvidence& evidence);

}  // namespace slipway::scenarios
