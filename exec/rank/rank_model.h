// The tensors of one rank and what each task does to them: parameters, buckets, buffers, autograd regions. The lane
// runtime (exec/lanes/lanes.h) decides when a task runs and on which thread; RankModel only does it. It is
// device-agnostic ATen.
//
// Tensors on wires are sequence-first: [s', b, h], so that gathers and scatters over the sequence are contiguous along
// dimension 0.
// Guarded by tests/exec/execute_layouts_test.cpp: any layout gives the losses and gradients of one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exec/run/checkpoint_file.h"
#include "exec/run/progress.h"
#include "exec/run/weight_files.h"
#include "models/training/norm_test.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

class Transport;

// The tensors that a communication task moves on this rank. A transfer uses `input` on the sender and `output` on the
// receiver. all_reduce: output starts as a copy of (or aliases) input and is reduced in place.
struct Message {
  at::Tensor input, output;
  // Used where one call is not enough: makes `output` of `input`. It sends rows for experts, whose number must be known
  // first.
  std::function<void(Transport&, Message&)> exchange = nullptr;
};

class SegmentCapture;

class RankModel {
 public:
  // Draws parameters from (seed, name), cuts the shards of `rank`, opens the data. `bundle` must outlive this. Throws
  // std::runtime_error with file or parameter.
  RankModel(const Bundle& bundle, int rank, at::Device device);
  ~RankModel();

  // From step `step` of the run on, tasks are those of `graph`, a step program of the bundle. The first one is entered
  // already, at step 0. `before`: the training's progress. No task may be under way. CUDA graphs are recorded anew.
  void enter(const TaskGraph& graph, const Progress& before, int step);

  // Records and replays segments (exec/lanes/segment_replay.h) where possible. Returns why that is nowhere possible, or
  // empty. `capture` must outlive this.
  std::string replay_segments(SegmentCapture& capture);

  // Runs a compute or optimizer task of this rank. Called from the compute lane's thread only.
  void run(TaskId task, int step);

  // A communication task: call `message` before the transport acts, `arrived` after it, both on the communicator's lane
  // thread. The lane runtime orders it with other tasks.
  Message message(TaskId task, int step);
  void arrived(TaskId task, int step, Message message);

  // Called when all tasks of `step` are complete. Throws std::runtime_error for a task whose error is known only now.
  void check(int step);

  // Sum over this rank's tokens of (token loss / global tokens) in a step of the training. `step` counts from the
  // beginning of this run; a graph may be a window of several. 0 unless this rank holds the head and is the first of
  // its tensor group. Called once per step, after its compute; then it is forgotten.
  double take_loss(int step);

  // For evaluation in bubbles of the graph's step `step`, a window: this rank's part of the held-out micro-batches'
  // loss (exec/rank/evaluation.h); nothing where there is none. Forgotten like take_loss.
  std::optional<double> take_evaluation(int step);
  // Rank 0 prints notes on the held-out data, if any.
  void print_notes() const;

  // Norms of the step's gradient, where its graph measures them for the workers. Forgotten like take_loss.
  std::optional<GradientNorms> take_norms(int step);

  // ‖gradient‖² of the step where it is clipped, on rank 0, which prints it. Forgotten like take_loss.
  std::optional<double> take_gradient_square(int step);

  // Called before `step` of the training runs. Its optimizer tasks then write this rank's reduced, unclipped gradient
  // shards to "<directory>/gradients.<rank>" (exec/rank/gradient_dump.h); K-FAC's matrices are preconditioned.
  void dump_gradients_of_step(int step, const std::string& directory);

  // Saves what one step hands to the next (exec/rank/checkpoint.h). On the compute lane's thread.
  void save(ShardWriter& out) const;
  // Called before step 0, which then follows the checkpoint, one of this training (exec/run/training_identity.h). Throws
  // std::runtime_error with what does not fit.
  void load(const CheckpointReader& checkpoint);
  // The same for a training that begins with these weights. Throws as exec/rank/initial_weights.h.
  void load(const WeightFiles& weights);

 private:
  struct Training;
  struct State;
  std::unique_ptr<Training> training_;
  SegmentCapture* capture_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
