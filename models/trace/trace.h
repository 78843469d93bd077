// The trace, measured or predicted: one record per (step, rank, task). Both engines write this and nothing else, so a
// prediction and a measurement join on (step, rank, label).
//
// work = end − latest start over the members of a transfer or collective; the rest of that rank's interval is waiting.
// For compute, work = end − start.
// Guarded by tests/models/trace_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct TraceRecord {
  int step = 0;
  int rank = 0;
  std::string lane;               // "compute", "tp", "dp", "pp.forward.2-3"
  std::string label;              // "2F0", "2F0.L5.mlp", "2F0.L5.ag1"; unique within (step, rank)
  std::string kind;               // "forward", "backward", "recompute", "transfer", "all-reduce", "optimizer", ...
  double start_s = 0, end_s = 0;  // from the start of step 0 of the run
  double wait_s = 0;              // part of [start, end] spent waiting for other members
  double flops = 0, bytes = 0;    // what the task computes and moves, per rank; 0 when it does none
  // Number of the communicator in the task graph, equal on all its members; −1 on a compute lane. It distinguishes
  // groups that run the same label on lanes of the same name (two "tp" groups).
  int group = -1;
  // Bytes of the rank's tensors at the task's end, and the most meanwhile (exec/rank/memory_meter.h); 0: unknown.
  double memory_bytes = 0, memory_peak_bytes = 0;
};

inline double work_seconds(const TraceRecord& record) { return record.end_s - record.start_s - record.wait_s; }

struct LossPoint {
  int step = 0;
  std::int64_t samples = 0;                  // sequences seen up to and with this step
  double loss = 0;                           // mean over all tokens of the step
  std::optional<double> learning_rate = {};  // of the step; missing in runs of earlier versions
  std::optional<std::int64_t> batch = {};    // sequences of the step; where the batch grows
  // For the norm test (models/training/norm_test.h): squared norm and variance of the step's mean gradient.
  std::optional<double> gradient_square = {}, gradient_variance = {};
  // On held-out micro-batches in the bubbles, with the weights of the window's beginning; at its last step.
  std::optional<double> evaluation_loss = {};
};

struct Trace {
  std::string engine;    // "simgrid" or "libtorch"
  std::string scenario;  // name of the scenario
  std::string summary;   // the scenario as overridden, one line of text, for provenance
  int ranks = 0, steps = 0;
  std::vector<TraceRecord> records;
  std::vector<LossPoint> losses;        // measured runs only
  std::vector<double> peak_bytes = {};  // predicted, per rank, of a periodic step; measured peaks are in the records
  // Steps after which the tasks repeat: more than 1 where bubble work spans several steps. Such a task has the window's
  // first step, whenever it ran. `steps` is a multiple of it.
  int window = 1;
  // Predicted: 90 of 100 measured steps take from low to high seconds. 0: nothing says so.
  double step_low_s = 0, step_high_s = 0;
};

// Sets wait_s of every record that is a transfer or collective; members share (step, group, lane, label).
// wait = latest start over the members − own start, and at most the record's duration: a send that was over before the
// receiver came has waited all the time. Whoever merges the ranks calls it once.
// is_communication(kind) is true for "transfer" and the names of the collectives.
bool is_communication(std::string_view kind);
void split_waiting(Trace& trace);

// Seconds of work of each record. A transfer has those of its receiver on both ranks: its sender is done as soon as the
// system has taken the bytes, which may be long before they arrive.
std::vector<double> work_times(const Trace& trace);

// The plain text that a rank writes: one line per record, fields separated by tabs, floats with 17 digits, so that
// reading gives equal bits. to_text throws std::invalid_argument when a name is empty or holds a tab or line end.
// Reading throws std::runtime_error with the bad field and line.
std::string to_text(const TraceRecord& record);
TraceRecord record_from_text(std::string_view line);

}  // namespace slipway::models
