// The bundle: what the ranks run, as versioned, checksummed text that a rank program reads with nothing
// but the standard library. The writer and the reader are in this one place; write(read(x)) == x.
//
//   slipway-bundle ...   the version
//   model ...            header: model blocks, layout, shape, optimizer, data, seed
//   communicator ...     buffers, works
//   task ...             the step program of the first batch: all tasks, their global order
//   batches ...          how the batch grows, and a step program for each further batch
//   checksum <fnv1a-64 of everything above>
//
// Guarded by tests/schedules/bundle_test.cpp (round trip; a flipped byte, a newer version and a cut file are refused).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "models/training/batch_rules.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct Run {
  int steps = 1;
  std::uint64_t seed = 0;
  std::string data;             // path of a text file or of token files, absolute
  std::string evaluation_data;  // the same, held out; for evaluation in the bubbles
  int checkpoint_steps = 0;     // between two checkpoints; 0 = none
  int checkpoints_kept = 2;     // the newest ones
};

// A bundle is the graph and the run; `execute` = lower, start, merge. Durations are not part of it.
// Where the batch grows there is a step program for each batch of the ladder. They are of one model, layout and schedule,
// with the same stages and communicators: what a rank holds, and its lanes, stay.
struct Bundle {
  std::string scenario;  // name, for traces
  TaskGraph graph;       // of the first batch
  Run run;
  BatchPlan batches = {};              // its rungs: those of graph and `larger`; without rungs the batch stays
  std::vector<TaskGraph> larger = {};  // by global_batch, ascending
};

inline bool grows(const Bundle& bundle) { return !bundle.batches.rungs.empty(); }
// graph, then `larger`.
std::vector<const TaskGraph*> programs_of(const Bundle& bundle);
// Index in programs_of. Throws std::out_of_range for a batch that is no rung.
int program_of(const Bundle& bundle, std::int64_t batch);
// What keeps the step programs from following each other in one run; empty: nothing.
std::string ladder_defect(const BatchPlan& plan, const std::vector<const TaskGraph*>& programs);

// Throws std::runtime_error on a stream failure.
void write_bundle(std::ostream& out, const Bundle& bundle);
// Throws std::runtime_error naming file position and reason: version, checksum, truncation, bad token.
Bundle read_bundle(std::istream& in, const std::string& name_for_errors);

}  // namespace slipway::schedules
