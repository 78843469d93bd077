// Runs the micro-benchmarks on this machine: one `slipway-rank --measure` per rank, all at once, because a
// core whose neighbour is busy is slower than a core alone, and training keeps them all busy. Guarded by
// tests/scenarios/calibrate_command_test.cpp.
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

// Equal measurements of the ranks merged. Output of the ranks goes to `err`. Throws std::runtime_error with
// the first rank that failed and its message.
std::vector<Measurement> measure_machine(const MeasureOptions& options, std::ostream& err);

// "AMD EPYC 7763 64-Core Processor, 2 cores" of this host.
std::string host_description();

}  // namespace slipway::scenarios
