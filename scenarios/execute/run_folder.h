// One run at a time in a folder. The lock is the kernel's and ends with the process, so a run that was
// killed leaves none. Guarded by tests/scenarios/run_folder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "models/trace/trace.h"

namespace slipway::scenarios {

class FolderLock {
 public:
  // Throws std::runtime_error where another run holds it. Of a folder that cannot be opened, or whose file
  // system has no locks, nothing is held.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;  // -1: nothing is held
};

// What an earlier run left in a folder, while another one starts there: nothing of it is lost until the new run has done
// a step, and nothing of it is taken for the new run's afterwards.
//
//   DIR/{trace.json, losses.csv, rank-*, run.slip, checkpoints} ──► DIR/replaced-0/ ──┬─ first step done: removed
//                                                                                    └─ no step: back where it was,
//                                                                                       after a kill at the next start
// A run that goes on from a checkpoint of the folder keeps those up to it, and the losses before it. Later checkpoints are
// of a course that was left: they become step-00000008.abandoned, which no `--resume latest` takes.
// Ranks that joined a run each set their own files aside (replaced-<rank>); rank 0 also those of all.
// Guarded by tests/scenarios/run_folder_test.cpp and tests/scenarios/resume_command_test.cpp.

// Puts back what a start in `folder` had set aside and that was killed before its first step, so that checks see it. To be
// called by the one that starts rank 0, before it looks at the folder. Throws std::runtime_error where another run is at
// work there (between its start and its end it holds a lock on the folder).
void restore_killed_start(const std::string& folder);

class SetAside {
 public:
  // Creates the folder if need be. `goes_on_from`: the steps of this folder's checkpoint, where the run goes on from one.
  // Throws std::runtime_error where the folder cannot be used.
  SetAside(std::string folder, int first_rank, int last_rank, std::optional<int> goes_on_from);
  ~SetAside();  // put_back()
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  void drop() noexcept;      // the new run has done a step: the earlier one is history
  bool put_back() noexcept;  // unless dropped; true where there was something
  // The later checkpoints, as they will be called.
  const std::vector<std::string>& abandoned() const { return abandoned_; }

 private:
  void take_files();
  void take_later_checkpoints(int from);
  void keep_losses_before(int from) const;
  std::string folder_, aside_;
  int first_rank_, last_rank_;
  bool goes_on_, dropped_ = false;
  std::vector<std::string> abandoned_;
  std::optional<FolderLock> lock_;  // rank 0 holds it for all
  std::thread removal_;             // of what was dropped: checkpoints may be large, and nobody waits for it
};

// The folder of one execution (its files: exec/run/run_files.h), and how the ranks' plain records in it become one
// trace.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/run_folder_test.cpp.

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

}  // namespace slipway::scenarios
