// The bundle: what the ranks run, as versioned, checksummed text that a rank program reads with nothing
// but the standard library. The writer and the reader are in this one place; write(read(x)) == x.
//
//   slipway-bundle ...   the version
//   model ...            header: model blocks, layout, shape, optimizer, data, seed
//   communicator ...     buffers, works
//   rank 0 / lane compute / task ...    one step program per rank: each lane's tasks in global order
//   checksum <fnv1a-64 of everything above>
//
// Guarded by tests/bundle_test.cpp (round trip; a flipped byte, a newer version and a cut file are refused).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "models/learning_rate.h"
#include "schedules/program.h"

namespace slipway {

struct Optimizer {
  std::string name = "adamw";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  LearningRateSchedule lr_schedule = {};  // lr is its highest rate
  int refresh_steps = 1;  // kfac, where bubbles are not filled
};

struct Run {
  int steps = 1;
  std::uint64_t seed = 0;
  std::string data;          // path of a text file or of token files, absolute
  int checkpoint_steps = 0;  // between two checkpoints; 0 = none
  int checkpoints_kept = 2;  // the newest ones
  Optimizer optimizer;
  double clip_norm = 0;      // 0 = off
};

// A bundle is the graph and the run; `execute` = lower, start, merge. Durations are not part of it.
struct Bundle {
  std::string scenario;      // name, for traces
  TaskGraph graph;
  Run run;
};

// Throws std::runtime_error on a stream failure.
void write_bundle(std::ostream& out, const Bundle& bundle);
// Throws std::runtime_error naming file position and reason: version, checksum, truncation, bad token.
Bundle read_bundle(std::istream& in, const std::string& name_for_errors);

}  // namespace slipway
