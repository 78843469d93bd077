// The folder of one execution (its files: exec/run/run_files.h). Merges the ranks' plain records into one trace.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/run_folder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/trace/trace.h"

namespace slipway::scenarios {

// Throws UsageError where the folder has the trace or the losses of an earlier run, which this one would replace. A run
// that was killed on its way leaves neither.
void refuse_finished_run(const std::string& folder);

// True if the folder's last run has no trace and did not reach the end of `steps` steps, or left the cause of a failure.
bool is_unfinished(const std::string& folder, int steps);

// True if the losses show that a run which began after `done` steps has completed a step.
bool has_done_a_step(const std::string& folder, int done);

// The same for a rank without losses: true if it has begun another step.
bool has_records_of_two_steps(const std::string& folder, int rank);

// The step (from 0) with which the records begin, for a run whose ranks all reached the end of `steps` steps but which
// has no trace (merging was interrupted, or the disk was full). Unset for any other folder.
std::optional<int> unmerged_from(const std::string& folder, int ranks, int steps);

struct MergedRun {
  Trace trace;
  std::vector<std::string> notes;  // omissions, with reasons
};
// Records and losses of all ranks, with waiting split off. A last line without its end is left out with a note. Throws
// std::runtime_error with the missing file or the wrong line.
MergedRun merged_run(const std::string& folder, int ranks, int steps);

// Writes losses.csv from rank 0's losses. Throws std::runtime_error as merged_run does.
void write_losses_csv(const std::string& folder);

// Writes a line per step, counted from 1. The learning rate is empty where it is unknown. Further columns: the batch
// where it grows; with the norm test the squared norm of the gradient and the variance of that mean; and with
// evaluation in bubbles the held-out loss, in the last step of each window.
void write_losses_csv(const std::string& path, const std::vector<LossPoint>& losses);

// One sentence for the user about the files that an unfinished run has left of these ranks. Writes losses.csv from rank
// 0's losses.
std::string kept_text(const std::string& folder, int first_rank, int last_rank);

// mark_done writes a rank's .done file. wait_for_done waits for those of all ranks. It throws std::runtime_error with a
// rank that has none within `seconds`, or with the ranks that failed.
void mark_done(const std::string& folder, int rank, int status);
void wait_for_done(const std::string& folder, int ranks, double seconds);

}  // namespace slipway::scenarios
