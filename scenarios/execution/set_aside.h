// What an earlier run left in a folder, while another one starts there: nothing of it is lost until the new run has done
// a step, and nothing of it is taken for the new run's afterwards.
//
//   DIR/{trace.json, losses.csv, rank-*, run.slip, checkpoints} ──► DIR/replaced-0/ ──┬─ first step done: removed
//                                                                                    └─ no step: back where it was,
//                                                                                       after a kill at the next start
// A run that goes on from a checkpoint of the folder keeps those up to it, and the losses before it. Later checkpoints are
// of a course that was left: they become step-00000008.abandoned, which no `--resume latest` takes.
// Ranks that joined a run each set their own files aside (replaced-<rank>); rank 0 also those of all.
// Guarded by tests/set_aside_test.cpp and tests/command_resume_folder_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "scenarios/execution/folder_lock.h"

namespace slipway {

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
  std::thread removal_;  // of what was dropped: checkpoints may be large, and nobody waits for it
};

}  // namespace slipway
