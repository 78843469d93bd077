// Checkpoints of a running training: every run.checkpoint_steps steps, and at the end. Each rank writes what no other
// rank holds: its tensor-parallel shard, its ZeRO slice; of replicas only the first writes. The last rank to finish
// makes it a checkpoint (exec/run/checkpoint_folder.h). The compute lane waits meanwhile, so the state is that of one
// moment: after the rank's own update of that step. Resuming combines whole parameters from any layout's shards.
//
// It is bit-exact on one machine and layout: weights, moments, the number of updates and the place in the data are all
// that one step hands to the next.
// Guarded by tests/exec/checkpoint_file_test.cpp and tests/scenarios/resume_command_test.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "exec/process/store.h"
#include "exec/rank/losses.h"
#include "exec/rank/rank_model.h"
#include "exec/run/checkpoint_folder.h"

namespace slipway::exec {

struct CheckpointOptions {
  std::string folder;  // of the run
  int every = 0;       // steps; 0: never
  int keep = 2;        // number of newest ones
  int rank = 0, world = 1;
  std::int64_t last_step = 0;  // of the run, which is saved too
  int window = 1;              // steps that end together; a save due within them is made at their end
  Manifest training;           // identity of the training (exec/run/training_identity.h)
};

class Checkpointer {
 public:
  // `store`: a separate connection. Every rank makes a Checkpointer, and where checkpoints are due they wait here for
  // each other. Throws std::runtime_error where the folder is not that of rank 0: shards in several folders cannot be
  // resumed.
  Checkpointer(CheckpointOptions options, const RankModel& model, std::unique_ptr<Store> store);
  // Called on the compute lane, when this rank has updated its parameters and the training has come to `done`. Throws
  // std::runtime_error with the file that could not be written, or the parameter that is not finite. Such a step makes
  // no checkpoint and replaces none.
  void step_ended(const Progress& done);
  // True if step_ended saves after this many steps of the training, the end of a window.
  bool is_due(std::int64_t steps) const;
  // After a save that failed on this rank, so that the checkpoint cannot be completed: removes all parts of it, by any
  // rank. From any thread.
  void make_room() const;

 private:
  void require_one_folder();
  void save(const Progress& done);
  void commit(const Progress& done);
  void remove_old(std::int64_t newest) const;

  CheckpointOptions options_;
  const RankModel& model_;
  std::unique_ptr<Store> store_;
  std::atomic<std::int64_t> failed_step_{0};  // 0: none, since a checkpoint follows a step
};

}  // namespace slipway::exec
