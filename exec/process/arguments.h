// The command line of slipway-rank. Guarded by tests/exec/arguments_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/model/dtype.h"

namespace slipway::exec {

struct Arguments {
  enum class Mode : std::uint8_t { run, measure, help, version };
  Mode mode = Mode::run;
  std::string bundle;            // run
  std::string out;               // run: folder; measure: file
  int steps = 0;                 // 0: the bundle's
  int dump_step = 0;             // of the training, from 1; 0: no gradients are written
  std::string resume;            // run: "latest", "if-any", a run's folder or a checkpoint; empty: from the start
  int threads = 1;               // of one operator
  std::string data;              // run: instead of the bundle's; empty: the bundle's
  std::string evaluation_data;   // run: likewise
  std::string weights;           // run: list of the weights to start from (exec/run/weight_files.h); empty: drawn
  int ranks_per_process = 1;     // run: ranks that share this process and its device
  bool cuda_graphs = false;      // run: segments are recorded and replayed
  double connect_seconds = 0;    // time to wait for the other ranks at the start; 0: connect_seconds_for
  Dtype dtype = Dtype::float32;  // measure
};

extern const char* const usage;

// Seconds that a process, ready `age_s` seconds after its start, waits for `world` ranks that a launcher starts at
// about the same time. It waits until 8 s, and 50 ms more per rank, are over since its start, but at least 5 s. With
// the time before and after, a missing rank is an error of all others within ten seconds.
double connect_seconds_for(int world, double age_s);

// Throws std::invalid_argument with the error and the allowed values.
Arguments arguments_from(const std::vector<std::string>& words);

}  // namespace slipway::exec
