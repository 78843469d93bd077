// The micro-benchmark lines of `slipway-rank --measure`, and the observations that they give.
//
//   measure gemm pass=forward m=512 n=512 k=512 dtype=float32 seconds=0.0012
//   measure transfer bytes=1024 members=2 dtype=float32 seconds=4.1e-05
//   measure host-to-device bytes=1048576 dtype=float32 seconds=2.6e-05
//
// Kinds: gemm, attention, elementwise, launch, optimizer, task_overhead, transfer, all-reduce, all-gather,
// reduce-scatter, all-to-all, host-to-device, device-to-host (fields: exec/rank/measure.h). Every rank of the machine measures at
// the same time and writes its own file. Equal measurements of several ranks count once, with the median. Traces of
// PyTorch's profiler give the same kinds (scenarios/commands/kineto/kineto_measurements.h); messages between nodes then have
// link=network. Those of ranks on processors also have per_node, the ranks of a node, which share its port.
// Guarded by tests/models/measurement_test.cpp.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "models/fit/calibration.h"
#include "models/fit/kernel_fit.h"

namespace slipway::models {

struct Measurement {
  std::string what;                           // "gemm"
  std::map<std::string, std::string> fields;  // all but seconds
  double seconds = 0;
};

// Throws std::runtime_error with file and line for: no measurement, an unknown kind, a missing field, no number, or one
// that no machine measures (no time at all, half a member).
std::vector<Measurement> read_measurements(std::istream& in, const std::string& name_for_errors);

// Ranks that exchange this message; 0: it is none.
int members_of(const Measurement& measurement);

// The links of exchanges between all pairs of members (Algorithm::gloo), in the form of a ring's links. Members on a
// node share its port.
Links links_of_pairs(const Machine& machine, int nodes, int per_node);

// Medians over equal measurements, sorted by kind and fields.
std::vector<Measurement> merged(std::vector<Measurement> measurements);

// Returns one observation each. For task_overhead only the row with the most lanes counts: in a parallel run nearly
// every task waits for another lane.
std::vector<Observation> observations_of(const std::vector<Measurement>& measurements);

// The same as tables of the kernels of a GPU, for the constants by which trained steps are priced (kernels.h): products
// of each pass, attention forward, and collectives of 1 MiB and more. `machine` has peaks and ports, and constants around
// which the fit looks. Formats for which it has no peak are left out.
std::map<KernelKey, KernelTable> kernel_tables(const std::vector<Measurement>& measurements, const Machine& machine);

// FLOP/s of the fastest GEMM of each dtype; 0 where none was measured.
std::array<double, formats> best_gemm_rates(const std::vector<Measurement>& measurements);

}  // namespace slipway::models
