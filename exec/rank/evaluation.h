// Held-out micro-batches in the bubbles (schedules/fill/evaluation.h), on one rank:
//
//   window begins     weights ─► frozen copy: an item sees the weights of the window's beginning, whenever it runs
//   .eval             residual of the stage before (or tokens) ─► forward on the copy ─► residual, or loss
//   .eval_send        that residual to the rank of the next stage
//
// Micro-batch i of data rank d is samples (d·M + i)·b and the following b − 1 of run.evaluation_data. All windows use
// the same ones, so that their losses can be compared. Guarded by tests/exec/execute_evaluation_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "exec/files/data.h"
#include "exec/rank/buckets.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

class Evaluation {
 public:
  // Both must outlive this. Throws std::runtime_error where the data cannot be read.
  Evaluation(const Bundle& bundle, int rank, const Buckets& buckets, at::Device device);

  // Called before each compute task of the graph's step `window`, on the compute lane.
  void begin(int window);

  // The frozen copy; it holds only weights.
  const BlockParameters& block(int index) const { return frozen_.at(index); }
  TokenBatch batch(int micro_batch);
  // Predicted tokens of all held-out samples of a window, over all ranks.
  double loss_tokens() const;
  // Empty, or a note that the data have fewer samples than a window evaluates, so that some count more than others.
  std::string note() const;

  // The input of a stage for a micro-batch; taken once. A rank may make the next window's before this one is sent.
  struct Place {
    int window = 0, stage = 0, micro_batch = 0;
    auto operator<=>(const Place&) const = default;
  };
  void put_residual(const Place& reader, at::Tensor residual);
  at::Tensor take_residual(const Place& reader);

  void add_loss(int window, const at::Tensor& loss);
  // This rank's part of the loss: mean over the held-out tokens of all ranks. Nothing where the window was cut before
  // all its micro-batches had passed, or where this rank has no head. Called once per window, when it is over.
  std::optional<double> take_loss(int window);

 private:
  struct Sum {
    at::Tensor loss;  // float64
    int micro_batches = 0;
  };
  std::int64_t samples() const;  // of a window, over all ranks
  const TaskGraph& graph_;
  const Buckets& buckets_;
  at::Device device_;
  int data_rank_;
  int micro_batches_ = 0;  // per replica
  TokenData data_;
  int window_ = none;
  std::map<int, BlockParameters> frozen_;
  std::mutex mutex_;                       // guards the members below, which lanes of messages use too
  std::map<Place, at::Tensor> residuals_;  // by reader
  std::map<int, Sum> losses_;              // by window
};

}  // namespace slipway::exec
