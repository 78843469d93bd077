// The tensors of one rank and what each task does to them: parameters, buckets, buffers, autograd
// regions. The lane runtime (exec/lanes/lanes.h) decides when a task runs and on which thread; RankModel only
// says what. It is device-agnostic ATen.
//
// Tensors on wires are sequence-first: [s', b, h], so that gathers and scatters over the sequence are
// contiguous along dimension 0.
// Guarded by tests/exec/execute_layouts_test.cpp: any layout gives the losses and gradients of one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "exec/files/checkpoint_file.h"
#include "exec/run/progress.h"
#include "models/training/batch_rules.h"
#include "schedules/graph/bundle.h"

namespace slipway::exec {

// What a communication task moves on this rank. A transfer uses `input` on the sender and `output` on
// the receiver. all_reduce: output starts as a copy of (or aliases) input and is reduced in place.
struct Message {
  at::Tensor input, output;
};

class SegmentCapture;

class RankModel {
 public:
  // Draws parameters from (seed, name), cuts the shards of `rank`, opens the data. `bundle` must outlive
  // this. Throws std::runtime_error naming file or parameter.
  RankModel(const Bundle& bundle, int rank, at::Device device);
  ~RankModel();

  // From step `step` of the run on, tasks are those of `graph`, a step program of the bundle; the first one is entered
  // already, at step 0. `before`: how far the training has come. No task may be under way; what was saved for CUDA graphs is
  // recorded anew.
  void enter(const TaskGraph& graph, const Progress& before, int step);

  // Segments are recorded and replayed (exec/lanes/segment_replay.h) where that is possible; returns why nowhere, or nothing.
  // `capture` must outlive this.
  std::string replay_segments(SegmentCapture& capture);

  // Runs a compute or optimizer task of this rank. Called from the compute lane's thread only.
  void run(TaskId task, int step);

  // A communication task: `message` before the transport acts, `arrived` after it. Called from the
  // communicator's lane thread; ordering with other tasks is the lane runtime's business.
  Message message(TaskId task, int step);
  void arrived(TaskId task, int step, Message message);

  // When all tasks of `step` are complete: throws std::runtime_error for one that could not be done and could not tell then.
  void check(int step);

  // Sum over this rank's tokens of (token loss / global tokens) in the given step of the training, counted from the
  // beginning of this run (a graph may be a window of several); 0 unless this rank holds the head and is the first of
  // its tensor group. To be called
  // once per step, after its compute: it is forgotten then.
  double take_loss(int step);

  // Of work in the bubbles of the graph's step `step`, a window: this rank's part of the loss of the held-out micro-batches
  // (exec/rank/evaluation.h); nothing where there is none. As take_loss.
  std::optional<double> take_evaluation(int step);
  // Rank 0 prints what a user should know of the held-out data; mostly nothing.
  void tell_notes() const;

  // Of the step's gradient, where its graph measures how far the workers' gradients lie apart; as take_loss.
  std::optional<GradientNorms> take_norms(int step);

  // ‖gradient‖² of the step where it is clipped, on rank 0, which tells it; as take_loss.
  std::optional<double> take_gradient_square(int step);

  // To be called before `step` of the training runs: its optimizer tasks then write this rank's reduced, unclipped
  // gradient shards, of K-FAC's matrices the preconditioned ones, to "<directory>/gradients.<rank>", text that plain programs can read (exec/rank/gradient_dump.h).
  void dump_gradients_of_step(int step, const std::string& directory);

  // What one step hands to the next, for a checkpoint (exec/rank/checkpoint.h). On the compute lane's thread.
  void save(ShardWriter& out) const;
  // Before step 0, which is then the one after it. Throws std::runtime_error naming what does not fit.
  void load(const CheckpointReader& checkpoint);

 private:
  struct Training;
  struct State;
  std::unique_ptr<Training> training_;
  SegmentCapture* capture_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
