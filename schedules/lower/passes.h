// Lowers one action of one stage, for all members of its pipeline rank (private to schedules/lower).
//
// Slices hand on the keys and values of the sequence so far, and their gradients (schedules/graph/task_graph.h).
//
//   2F0:  entry ─ seg ─ ag ─ seg ─ rs ─ seg ─► 2F0.send ─► entry of 3F0          passes.cpp
//         seg ─ attn0 ─ attn1 ─ ... ─ seg                    of a ring:          ring.cpp
//   2B0:  the same segments backwards, on gradients, with the dual collectives   passes.cpp
//
// With full recomputation a backward action takes the transformer blocks from last to first. For each it runs the
// forward again (pass R, which keeps what the backward needs) and then the backward. ZeRO 2 and 3 add traffic per
// action; sequence parallelism gathers for the weight gradients. Guarded by tests/schedules/lowering_test.cpp.
#pragma once

#include <array>
#include <bit>
#include <optional>

#include "schedules/lower/lowering_state.h"

namespace slipway::schedules {

constexpr Wires wires_with_gradient = wire_residual | wire_branch | wire_kv | wire_gates | wire_shared;
inline std::size_t wire_index(Wires wire) { return static_cast<std::size_t>(std::countr_zero(wire)); }

template <typename Visit>
void for_each_wire(Wires wires, Visit visit) {
  for (Wires rest = wires; rest != 0; rest = static_cast<Wires>(rest & (rest - 1))) {
    visit(static_cast<Wires>(rest & -rest));
  }
}

class ActionLowering {
 public:
  ActionLowering(LoweringState& state, const Action& action)
      : state_(state),
        action_(action),
        stage_(state.stage_segments(action.stage, action.micro_batch)),
        operators_(state.graph.operators(action.stage, action.slice)),
        passage_(state.passage(action.stage, action.micro_batch, action.slice)),
        members_(state.members()) {
    for (auto& wire : wires_) wire.assign(members_, no_buffer);
  }

  void forward();
  void backward();
  void weight_grad();

 private:
  int segments() const { return static_cast<int>(stage_.segments.size()); }
  const Segment& segment(int i) const { return stage_.segments[i]; }
  std::size_t slot(int i, std::size_t k) const { return static_cast<std::size_t>(i) * members_ + k; }
  BufferId& at(Wires wire, std::size_t k) { return wires_[wire_index(wire)][k]; }
  bool offloads_layers() const { return state_.step.levers.offloaded.has(OffloadedInput::layer_inputs); }
  bool starts_block(int i) const { return i == 0 || segment(i - 1).first_block != segment(i).first_block; }

  void forward_segments(int first, int last, Pass pass);
  void forward_segment(int i, Pass pass, bool emits);
  void backward_segment(int i);
  void recompute_block_ending_at(int last);
  // A trainer recomputes inside the backward (torch.utils.checkpoint), which begins with the gradient from the next
  // stage. The recomputation's own inputs exist since the forward, so it gets a control edge.
  void begin_when_gradient_arrives(int recomputed);
  // The collectives behind segment i: in the order of the list, or from the last to the first in a backward.
  void collectives(int i, Pass pass);
  void collective(int at_op, Pass pass);
  // One of its messages. Each member's result has so many bytes; none: as many as what it replaces.
  void message(int at_op, Pass pass, Collective kind, BufferKind result, std::optional<double> bytes);
  // Bytes that recomputed modules of the segment make again, and bytes that it keeps in the host's memory.
  double bytes_made_again(const Segment& s) const;
  double bytes_offloaded(const Segment& s) const;
  Work host_work(const Segment& s, Pass pass, double bytes) const;
  // Copies a buffer of member k to the host, or back: what the host holds has no bytes here.
  BufferId copy_to_host(const Segment& s, std::size_t k, BufferId from, double bytes);
  BufferId copy_from_host(const Segment& s, std::size_t k, BufferId held, double bytes);
  // Ring attention whose first round is segment `first` (ring.cpp).
  bool in_ring(int i) const { return operators_[segment(i).first_op].kind == OpKind::ring_attention; }
  int rounds() const { return state_.graph.shape().sharding.context; }
  void ring_forward(int first, Pass pass);
  void ring_backward(int first);
  struct RingMessage;
  void shift(const RingMessage& message, std::vector<BufferId>& arrives);
  TaskId round_forward(int i, Pass pass, std::span<const BufferId> keys_values, std::vector<BufferId>& attended);
  TaskId round_backward(int i, std::span<const BufferId> keys_values, std::span<const BufferId> out_gradient,
                        std::vector<BufferId>& query_gradient);
  void transfer(int to_stage, std::vector<BufferId>& arrivals, BufferKind kind);
  void gather_weights(int i, Pass pass, std::vector<std::vector<BufferId>>& gathered);
  // Sequence parallelism: a gathered input is gathered again for its weight gradient.
  bool comes_again(int i) const {
    const Segment& s = segment(i);
    return s.gather >= 0 && !s.recomputed && gathers_input(operators_[s.gather]);
  }
  void keep_shards(int i);
  void gather_again(int i);
  // The buckets of the blocks of segment i, as far as it uses them: where experts are apart, theirs too if it runs them.
  std::vector<int> buckets_of(int i) const;
  bool runs_experts_apart(int i) const;
  // Those of them whose weights ZeRO 3 gathers.
  std::vector<int> gathered_buckets(int i) const;
  // `first_writer`: segment i's task of member 0.
  void reduce_finished_buckets(int i, TaskId first_writer);
  void reduce_if_finished(int bucket, int i, TaskId first_writer);
  // With hybrid shards, of a block that `reduction` has reduced.
  void sum_over_copies(int block, const Work& reduction);
  void measure_workers(int block, const std::vector<int>& members, const std::vector<BufferId>& unreduced);
  int segment_work(int i, Pass pass);
  double saved_bytes(const Segment& segment) const;
  // Bytes that the input gradients of segment i leave for its weight gradients.
  double bytes_left_by(int i) const;
  bool has_weight_grad(const Segment& segment) const;
  // Bytes of the keys and values that the segment's layers have from the slices before this one; 0 without attention.
  double bytes_of_cache(const Segment& segment) const;
  bool has_attention(const Segment& segment) const;
  std::string label_tail(const std::string& name) const { return name.empty() ? "" : "." + name; }

  LoweringState& state_;
  Action action_;
  const StageSegments& stage_;
  std::span<const Operator> operators_;
  Passage& passage_;
  std::size_t members_;
  WireBuffers wires_;                // values in a forward, gradients in a backward
  std::vector<BufferId> came_home_;  // [k] gradient of own keys and values, from the other ranks
  std::vector<BufferId> again_;      // [k] input of the segment at hand, gathered again; empty: none
  // ZeRO 2, 3: the buckets whose gradients are being made, a block and its experts; the first task of member 0.
  struct Begun {
    int bucket = none;
    TaskId task = 0;
  };
  std::array<Begun, 2> begun_;
  std::vector<std::vector<BufferId>> weights_;  // ZeRO 3: gathered parameters per [bucket], per member
};

// ZeRO 3: a gather waits for the compute task two before its first reader; control edges only.
void limit_weight_prefetch(LoweringState& state);
// The same of copies back from the host.
void limit_host_copies(LoweringState& state);
// ZeRO 2, 3: a block's gradient begins when the reduction of the one two before it is done; control edges only.
void limit_unreduced_gradients(LoweringState& state);
// Sequence parallelism: a gathered input arrives in time for its projection and not long before; control edges only.
void limit_gather_prefetch(LoweringState& state);

}  // namespace slipway::schedules
