// K-FAC's tasks on one rank (schedules/fill/kfac.h, schedules/lower/step_end.cpp), in the graph's order.
//
//   F, B of a window's first step   inputs and output gradients are kept (exec/operators/linear.h)
//   curvature                       Σ of the refresh += those of a micro-batch
//   .ar_A, .ar_B                    Σ over replicas, all factors of a kind in one message
//   inversion                       Σ ─► inverse, in its place; both of a Linear together replace the pair in use
//   precondition                    gradient ─► B⁻¹·G·A⁻¹ in place, for the Linears that this rank inverts
//   .ag_precondition                each rank's share, padded to the longest, to all replicas
//
// Until its first pair exists, a Linear's G is unchanged: a plain gradient step. Only the graph's order decides which
// step uses which inverses. Without bubble work, those of one window's first step serve the next window. In bubbles, a
// pair serves from the step of its second inversion on. K-FAC covers only Linears of Transformer blocks; their biases,
// norms, embedding and head are AdamW's (exec/rank/optimizer.h).
//
// Everything runs on the compute lane except messages, which run on a separate lane. Not proven on a GPU. Guarded by
// tests/exec/execute_kfac_test.cpp and tests/exec/execute_kfac_stream_order_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/operators/linear.h"
#include "exec/rank/buckets.h"
#include "exec/run/checkpoint_file.h"
#include "schedules/bundle/bundle.h"
#include "schedules/graph/bubble_work.h"

namespace slipway::exec {

class Kfac {
 public:
  // Both must outlive this. The graph's optimizer is kfac.
  Kfac(const Bundle& bundle, int rank, const Buckets& buckets);

  // The place where the Linears of a segment leave inputs and output gradients for factors; null where no factor needs
  // them.
  LinearCapture* capture_of(const Task& segment);

  // `step`: of the graph, which is a window.
  void run_bubble_work(TaskId task, int step);
  void precondition(int stage) const;
  Message message(TaskId task, int step);
  void arrived(TaskId task, int step, const Message& message);
  // Called when all inversions of `step` are complete. Throws std::runtime_error with the label of one that failed.
  void check(int step);

  // Inverses in use, whole and by name, each from the rank that made it: any layout can read them.
  void save(ShardWriter& out) const;
  // Inverses that the checkpoint does not have start as in a first window.
  void load(const CheckpointReader& checkpoint);

 private:
  struct Linear {
    KfacLinear shape;
    int block = 0, stage = 0;
    int owner = 0;  // rank that inverts its factors
    const ShardedParameter* weight = nullptr;
    std::int64_t a_begin = 0, b_begin = 0;  // in the flat sums of all factors of the rank
    at::Tensor inverse_a, inverse_b;        // in use
    at::Tensor ratio;                       // π, from the pair's first inversion to its second
  };
  // The state of one window.
  struct Refresh {
    at::Tensor a, b;    // flat sums of all factors, from the first curvature of a kind on
    int uses_left = 0;  // inversions and reductions
  };
  struct FactorTask {
    std::size_t linear = 0;  // in linears_
    KfacWork work;
  };
  struct Failure {
    int step = 0;
    std::string label;
    at::Tensor minor;  // float64 scalar; 0: none
  };

  void take_linears(const Buckets& buckets);
  void take_works();
  at::Tensor gradient_of(const Linear& linear) const;
  at::Tensor factor(Refresh& refresh, const Linear& linear, bool of_input) const;
  Refresh& refresh_of(int step);
  at::Tensor& sums_of(Refresh& refresh, bool of_input) const;
  void used(int step);
  void curvature(const FactorTask& bubble_work, const Task& task, int step);
  void invert(const FactorTask& bubble_work, TaskId task, int step);
  void exchange_pair(Linear& linear, Refresh& refresh) const;
  std::string checkpoint_name(const Linear& linear, bool of_input) const;
  at::Tensor stored_inverse(const CheckpointReader& checkpoint, const Linear& linear, bool of_input) const;
  Message gather_message(TaskId task) const;
  void spread_gathered(TaskId task, const at::Tensor& gathered) const;
  std::vector<const Linear*> share_of(int member, int part) const;

  const Bundle& bundle_;
  const TaskGraph& graph_;
  int rank_;
  Dtype dtype_;                  // of factors and inverses
  double tokens_, loss_tokens_;  // of a step, over all ranks: all tokens, and the predicted ones
  std::vector<Linear> linears_;  // by block, then in forward order: equal on all replicas
  std::int64_t a_elements_ = 0, b_elements_ = 0;
  std::unordered_map<std::int32_t, FactorTask> bubble_work_;  // by work
  int uses_ = 0;                                              // of a refresh on this rank
  std::map<std::pair<int, int>, LinearCapture> captures_;     // by micro-batch and slice
  std::mutex mutex_;                                          // of refreshes_, not of the refreshes
  std::map<int, Refresh> refreshes_;                          // by step
  std::vector<Failure> failures_;
};

}  // namespace slipway::exec
