// Allows one run at a time in a folder. The kernel's lock ends with the process, so a killed run leaves none.
// Guarded by tests/scenarios/run_folder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "models/trace/trace.h"

namespace slipway::scenarios {

class FolderLock {
 public:
  // Throws std::runtime_error where another run holds it. Holds nothing where the folder cannot be opened or its file
  // system has no locks.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;  // -1: no lock
};

// Sets the files of an earlier run in a folder aside while another run starts there. They are kept until the new run
// has done a step, and never mix with its own.
//
//   DIR/{trace.json, losses.csv, rank-*, run.slip, checkpoints} ──► DIR/replaced-0/ ──┬─ first step done: removed
//                                                                                    └─ no step: back where it was,
//                                                                                       after a kill at the next start
// A run that resumes from a checkpoint of the folder keeps the checkpoints up to it and the losses before it. Later
// checkpoints belong to an abandoned course: they become step-00000008.abandoned, which `--resume latest` never takes.
// Ranks that joined a run each set their own files aside (replaced-<rank>); rank 0 also those of all.
// Guarded by tests/scenarios/run_folder_test.cpp and tests/scenarios/resume_command_test.cpp.

// Puts back the files of a start in `folder` that was killed before its first step, so that checks see them. Called by
// the process that starts rank 0, before it looks at the folder. Throws std::runtime_error where another run is at work
// there, which holds a lock on the folder.
void restore_killed_start(const std::string& folder);

class SetAside {
 public:
  // Creates the folder if needed. `goes_on_from`: steps of this folder's checkpoint, if the run resumes from one.
  // Throws std::runtime_error where the folder cannot be used.
  SetAside(std::string folder, int first_rank, int last_rank, std::optional<int> goes_on_from);
  ~SetAside();  // put_back()
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  void drop() noexcept;      // after the new run's first step: the earlier run is history
  bool put_back() noexcept;  // unless dropped; returns true if there were files
  // The later checkpoints under their new names.
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
  std::thread removal_;             // removes dropped files in the background, because checkpoints may be large
};

// The folder of one execution (its files: exec/run/run_files.h). Merges the ranks' plain records into one trace.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/run_folder_test.cpp.

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
