// The folder of one execution (its files: exec/run_files.h), and how the ranks' plain records in it become one
// trace.
// Guarded by tests/command_execute_test.cpp and tests/run_folder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/trace.h"

namespace slipway {

// Throws UsageError where an earlier run of the folder left its trace or its losses, which this one would replace. A run
// that was killed on its way has left neither.
void refuse_finished_run(const std::string& folder);

// Has a run that began after `done` steps completed one, by the losses that it wrote?
bool has_done_a_step(const std::string& folder, int done);

// The same of a rank that knows no losses: it has begun another step.
bool has_records_of_two_steps(const std::string& folder, int rank);

// A run of which all ranks came to the end of `steps` steps, and of which no trace was made (interrupted while it was
// merged, or no room): the step of the training, from 0, with which its records begin. Nothing for any other folder.
std::optional<int> unmerged_from(const std::string& folder, int ranks, int steps);

struct MergedRun {
  Trace trace;
  std::vector<std::string> notes;  // what was left out, and why
};
// Records and losses of all ranks, waiting split off. A last line without its end is left out with a note;
// throws std::runtime_error naming the file that is missing or the line that is wrong.
MergedRun merged_run(const std::string& folder, int ranks, int steps);

// Makes losses.csv of rank 0's losses. Throws std::runtime_error as merged_run.
void write_losses_csv(const std::string& folder);

// A line for each step, counted from 1; the learning rate is empty where it is not known. Where the batch grows its size is a
// column, where the norm test asks the gradient's squared norm and the variance of that mean, and where the bubbles
// evaluate the held-out loss, of the last step of each window.
void write_losses_csv(const std::string& path, const std::vector<LossPoint>& losses);

// What a run that did not get to its end has left of these ranks, as one sentence for its user. Makes losses.csv
// of rank 0's losses.
std::string kept_text(const std::string& folder, int first_rank, int last_rank);

// Waits until every other rank has left its .done file; throws std::runtime_error naming those that have
// not within `seconds`, or those that failed.
void mark_done(const std::string& folder, int rank, int status);
void wait_for_done(const std::string& folder, int ranks, double seconds);

}  // namespace slipway
