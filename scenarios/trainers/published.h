// The published throughput of arguments that import reads. Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "scenarios/trainers/reading.h"

namespace slipway::scenarios {

// A published throughput of the same arguments.
struct PublishedRun {
  double tflops_per_gpu = 0;  // by Megatron's count (models/model/megatron_flops.h)
  std::string source;
};
// The published run with all of these arguments, if import knows it.
std::optional<PublishedRun> published_run(const Reading& reading);

}  // namespace slipway::scenarios
