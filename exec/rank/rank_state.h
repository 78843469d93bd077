// The state of RankModel, shared by the files that implement it: rank_segments.cpp (forward, backward, weight
// gradients), rank_step_end.cpp (loss, gradient norm, optimizer), rank_model.cpp (dispatch and messages).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "exec/files/data.h"
#include "exec/lanes/segment_replay.h"
#include "exec/operators/operator_context.h"
#include "exec/rank/buckets.h"
#include "exec/rank/evaluation.h"
#include "exec/rank/kfac.h"
#include "exec/rank/rank_model.h"
#include "exec/rank/slots.h"
#include "exec/run/progress.h"
#include "models/model/token_ranges.h"
#include "schedules/graph/bubble_work.h"

namespace slipway::exec {

// The state that stays when another step program begins.
struct RankModel::Training {
  Training(const Bundle& bundle, int rank, at::Device device)
      : buckets(bundle, rank, device), data(bundle.run.data, bundle.graph.step.model, bundle.run.seed) {
    if (uses_kfac(bundle.graph.step)) kfac.emplace(bundle, rank, buckets);
    if (evaluates(bundle.graph)) evaluation.emplace(bundle, rank, buckets, device);
  }
  Buckets buckets;
  std::optional<Kfac> kfac;
  std::optional<Evaluation> evaluation;
  TokenData data;
  int dump_step = none;  // of the training, counted from the beginning of this run
  std::string dump_path;
};

// One step program on this rank.
struct RankModel::State {
  // `entered`: progress before its first step, which is `entered_step` of the run.
  State(const Bundle& bundle, const TaskGraph& graph, int rank, at::Device device, Training& training,
        const Progress& entered, int entered_step);

  // A step of a graph is a window of steps of the training (graph.window); a task belongs to one of them. `step` counts
  // graphs' steps from the beginning of this run; the result counts the training's.
  int training_step(TaskId task, int step) const { return step * graph.window + graph.tasks[task].step; }
  // Progress before the training step that the task belongs to.
  Progress before(TaskId task, int step) const {
    const std::int64_t done = training_step(task, step - entered_step);
    return {entered.steps + done, entered.samples + done * graph.step.global_batch};
  }

  void run_segment(TaskId task, int step);
  void forward(TaskId task, int step);
  SegmentReplay::Tensors compute_forward(TaskId task, Region& region, const SegmentReplay::Tensors& from);
  SegmentReplay::Tensors leave_forward(TaskId task, Region& region, const WireTensors& wires);
  void backward(TaskId task, int step);
  SegmentReplay::Tensors compute_backward(TaskId task, Region& region, const SegmentReplay::Tensors& from);
  void weight_gradients(TaskId task, int step);
  SegmentReplay::Tensors run_or_replay(TaskId task, int step, const SegmentReplay::Tensors& inputs,
                                       const SegmentReplay::Compute& compute);
  // Rounds of ring attention (rank_ring.cpp).
  bool in_ring(TaskId task) const {
    const Work& work = graph.work(task);
    return graph.operators(work)[work.first_op].kind == OpKind::ring_attention;
  }
  void ring_forward(TaskId task, int step);
  void ring_backward(TaskId task, int step);
  Message shift_message(TaskId task, int step) const;
  // Rows that travel to experts (rank_rows.cpp): what is known of those of a micro-batch, slice and block, from its
  // forward (or recompute) to the backward of its router.
  ExpertRows& rows_of(const Task& task, int block);
  void forget_rows(TaskId task);
  Message rows_message(TaskId task, at::Tensor input);
  // `cache`: null unless sequences are cut into slices.
  void run_operators(TaskId task, Region& region, WireTensors& wires, const TokenBatch& batch, KeyValueCache* cache);
  // Runs operators [work.first_op, work.last_op) on `tokens` with weights of(block); losses are / loss_tokens.
  struct OperatorInputs {
    const TokenBatch& batch;
    std::vector<TokenRange> tokens;
    double loss_tokens = 1;
    std::function<const BlockParameters&(int)> of;
    KeyValueCache* cache = nullptr;
    const Task* travels_for = nullptr;  // where rows travel to experts
  };
  void run_operators(const Work& work, const OperatorInputs& inputs, Region& region, WireTensors& wires);
  double balancing_factor(const Block& block) const;
  // Held-out micro-batches (evaluation.cpp).
  void evaluate(TaskId task, int step);
  Message evaluation_message(TaskId task, int step) const;
  // The tokens of a sequence that a task of this rank has, and their places in the sequence.
  std::int64_t own_tokens() const { return graph.shape().sequence / graph.step.layout.context; }
  std::vector<TokenRange> tokens_of(const Task& task) const {
    if (graph.step.slices > 1) return {{task.slice * graph.shape().sequence, graph.shape().sequence}};
    return token_ranges(is_causal(graph.step.model), graph.step.layout.context, at.context, graph.shape().sequence);
  }
  TokenBatch batch_of(TaskId task, int step);
  void count_loss(int step, const at::Tensor& loss);
  void optimizer_step(TaskId task, int step);
  void dump(int stage);
  at::Tensor scalar_inputs(TaskId task, int step) const;
  void worker_norm(TaskId task, int step);
  void grad_norm(TaskId task, int step);
  void keep_norms(int step, const at::Tensor& sums);
  // ZeRO 2, 3.
  void note_taken_buckets();
  std::vector<Buckets::Key> buckets_in(const Work& segment) const;  // each once: blocks, and experts that it runs apart
  void note_late_blocks();
  void prepare_gradients(TaskId task);
  void take_gradients(TaskId task, int step);
  void keep_gathered_weights(const Work& work) const;
  Message bucket_message(TaskId task, int step);
  Message wire_message(TaskId task, int step);
  at::Tensor received_wire(const Work& work) const;
  bool follows_input_gather(const Work& segment) const {
    const auto operators = graph.operators(segment);
    const int gather = gather_before(operators, segment.first_op);
    return gather >= 0 && gathers_input(operators[gather]);
  }
  bool moves_wire(const Work& work) const {
    return work.kind == WorkKind::transfer || work.kind == WorkKind::wire_collective;
  }
  bool is_kfac(const Work& work) const {
    return kfac != nullptr && (work.kind == WorkKind::bubble_work || work.kind == WorkKind::precondition);
  }

  const Bundle& bundle;
  const TaskGraph& graph;
  int rank;
  Coordinates at;
  at::Device device;
  std::vector<Block> blocks;
  Slots slots;
  Training& training;
  Buckets& buckets;
  Kfac* kfac;              // null: another optimizer
  Evaluation* evaluation;  // null: no evaluation in bubbles
  // ZeRO 2, 3: whose gradients a segment puts into this buffer.
  std::unordered_map<BufferId, Buckets::Key> taken_buckets;
  // Blocks whose gradients a weight-gradient pass makes, except norms' and biases': only that pass needs their memory.
  // (An embedding's rows are added at once.)
  std::unordered_set<int> late_blocks;
  Progress entered;
  int entered_step;
  std::unique_ptr<SegmentReplay> replay;  // null: segments always run operator by operator
  RotaryTables rotary;
  bool rows_travel = false;                                      // to ranks of their experts, or across segments
  std::mutex rows_mutex;                                         // of the map; tasks that share an element are in order
  std::map<std::array<std::int32_t, 3>, ExpertRows> travelling;  // by micro-batch, slice, block
  std::mutex loss_mutex;
  std::map<int, at::Tensor> losses;  // float64 scalars by step, until they are taken
  std::map<int, at::Tensor> norms;  // [2] float64 by step: ‖gradient‖², Σ‖part‖²; with the mutex of the losses
  std::map<int, at::Tensor> squares;  // float64 scalars by step, on rank 0: ‖gradient‖²; with the same mutex
};

}  // namespace slipway::exec
