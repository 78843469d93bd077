// The bundle: what the ranks run, as versioned, checksummed text. A rank program reads it with the standard library
// alone. Writer and reader are both here; write(read(x)) == x.
//
//   slipway-bundle ...   the version
//   model ...            header: model blocks, layout, shape, optimizer, data, seed
//   communicator ...     buffers, works
//   task ...             the step program of the first batch: all tasks, their global order
//   batches ...          how the batch grows, and a step program for each further batch
//   checksum <fnv1a-64 of everything above>
//
// Guarded by tests/schedules/bundle_test.cpp: round trip; a flipped byte, a newer version and a cut file are refused.
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
  std::string evaluation_data;  // the same for held-out data, evaluated in the bubbles
  int checkpoint_steps = 0;     // between two checkpoints; 0: no checkpoints
  int checkpoints_kept = 2;     // the newest ones are kept
  double heartbeat_s = 10;      // seconds that a rank may be stopped (SIGSTOP) before the run ends
};

// A bundle is the graph and the run, without durations. `execute` lowers, starts the ranks and merges their records.
// A growing batch has one step program for each batch of the ladder. All have one model, layout and schedule, the same
// stages and communicators. So what a rank holds, and its lanes, stay the same.
struct Bundle {
  std::string scenario;  // name, for traces
  TaskGraph graph;       // of the first batch
  Run run;
  BatchSchedule batches = {};          // its rungs are those of graph and `larger`; without rungs the batch is fixed
  std::vector<TaskGraph> larger = {};  // ascending global_batch
};

inline bool grows(const Bundle& bundle) { return !bundle.batches.rungs.empty(); }
// graph, then `larger`.
std::vector<const TaskGraph*> programs_of(const Bundle& bundle);
// Index in programs_of. Throws std::out_of_range for a batch that is no rung.
int program_of(const Bundle& bundle, std::int64_t batch);
// Returns why the step programs cannot follow each other in one run; empty if they can.
std::string ladder_defect(const BatchSchedule& schedule, const std::vector<const TaskGraph*>& programs);

// Throws std::runtime_error on a stream failure.
void write_bundle(std::ostream& out, const Bundle& bundle);
// Throws std::runtime_error with file position and reason: version, checksum, truncation, bad token.
Bundle read_bundle(std::istream& in, const std::string& name_for_errors);

}  // namespace slipway::schedules
