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
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "scenarios/commands/execute/folder_lock.h"

namespace slipway::scenarios {

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

}  // namespace slipway::scenarios
