// The bundle: what the ranks run, as versioned, checksummed text. A rank program reads it with the standard library
// alone. The reader lowers the step. So the text has the step and what follows from prices, which a rank does not have:
//
//   slipway-bundle ...   the version
//   run ...              steps, data, seed, checkpoints
//   model ...            the step of the first batch: blocks, layout, optimizer, an imported schedule's actions
//   window ...           steps that bubble work makes up, a fingerprint of the graph
//   bubble_work ...      what it is and where it went (schedules/lower/filled_window.h)
//   order ...            the global order of all tasks
//   batches ...          how the batch grows, and the same for each further batch
//   checksum <fnv1a-64 of everything above>
//
// read(write(x)) == x. Guarded by tests/schedules/bundle_test.cpp: every list of the graph comes back; a flipped byte,
// another version, a cut file and what the lowering does not make are refused.
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

// Requires graphs that are lowered from their step, with all ranks and micro-batches, and ordered. Throws
// std::runtime_error on a stream failure.
void write_bundle(std::ostream& out, const Bundle& bundle);
// Throws std::runtime_error with file, line and reason: version, checksum, truncation, bad token, a step that cannot be
// lowered, an order or bubble work that does not go with it.
Bundle read_bundle(std::istream& in, const std::string& name_for_errors);

}  // namespace slipway::schedules
