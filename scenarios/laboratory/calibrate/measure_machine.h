// Runs the micro-benchmarks on this machine: one `slipway-rank --measure` per rank, all at once. Training keeps all
// cores busy, and a core with a busy neighbour is slower than a core alone.
// Guarded by tests/scenarios/calibrate_command_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "models/fit/measurement.h"
#include "models/model/dtype.h"

namespace slipway::scenarios {

struct MeasureOptions {
  std::string rank_program;  // path of slipway-rank
  int ranks = 1;
  Dtype dtype = Dtype::float32;  // float32 or float64; bfloat16 on GPUs
};

// Merges equal measurements of the ranks. The ranks' output goes to `err`. Throws std::runtime_error with the first
// rank that failed and its message.
std::vector<Measurement> measure_machine(const MeasureOptions& options, std::ostream& err);

// This host: "AMD EPYC 7763 64-Core Processor, 2 cores".
std::string host_description();

}  // namespace slipway::scenarios
