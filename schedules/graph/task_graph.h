// The task graph as plain data. One node is one *logical* event: a transfer or a collective is one node with a member
// list, never a send node and a receive node. The graph has no durations and no tensors: engines query the cost model
// or run the operators.
//
//   2F0 ──► buffer(residual) ──► 2F0.send ──► buffer(residual) ──► 3F0
//   stage 2, forward, micro-batch 0; the transfer's members are the two ranks
//
// Millions of tasks share few Work entries; a Task is small. Labels are made from fields on demand.
//
// Segments and wires (models/model/operators.h): a forward segment covers operators [a, b) of its stage.
//   touched = all wires its operators read or write
//   in      = touched wires that are live at a (written earlier in the stage; the residual at the entry
//             of any stage but the first)
//   out     = touched wires that are live at b (read later before being overwritten; at the end of the
//             stage: the residual, or the loss in the last stage). A residual that is only read is in
//             `out` too: it is threaded through, so that each wire's gradient is one chain.
// A forward reads the value buffers of `in` and writes those of `out`. It writes one `saved` buffer when its backward
// will need it. Under full recompute a `recompute` segment writes that buffer instead.
// A backward of [a, b) reads that `saved` buffer and the gradient buffers of `out`; it writes gradient buffers of `in`.
// The loss and statistics wires have no gradient: the loss is seeded with 1.
// input_grad is a backward that leaves weight gradients for later. It writes one more `saved` buffer, with each
// product's input and its output's gradient; weight_grad reads it. Tokens and targets are data, not buffers.
// Slices of a sequence (TeraPipe): slice j of a causal model attends to the keys and values of the slices before it. A
// segment with attention reads the value buffer wire_kv of slice j−1 and writes that of slice j. This cache has no
// bytes of its own: the keys and values are in `saved`. The backward reads the gradient buffer wire_kv of slice j+1
// and writes that of slice j−1, so backwards run from the last slice to the first.
// Keys and values gathered over a context group are in `saved`, with those of the other ranks.
// Sequence parallelism (schedules/lower/passes.cpp): the input of a column-parallel projection is kept as the value
// buffer of its shard, not in `saved`. A wire_collective of the backward (or weight_grad) pass reads the shard; the
// segment with the projection reads the gathered value. A recomputed segment gathers its inputs itself and keeps them.
// Ring attention (schedules/lower/ring.cpp): each round is one segment, not a region of autograd. Rounds hand on the
// value wire_attended and, backwards, a gradient wire_attended of the queries. The first and the last round write
// `saved` buffers. Every backward round reads them, starting with the first round's. Where keys and values went around,
// the segment that made them reads two gradients of wire_kv and adds them. A segment is cut at every communicate
// operator, even one without a collective in this pass. So forward and backward segments are the same ranges.
//
// Ids are dense. `order` is the global order: every lane of every rank is a projection of it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/model/operators.h"
#include "models/model/token_copies.h"
#include "schedules/step/indexed.h"
#include "schedules/step/placement.h"
#include "schedules/step/step.h"

namespace slipway::schedules {

using TaskId = std::uint32_t;
using BufferId = std::uint32_t;
constexpr std::int32_t none = -1;

// bubble_work: on a rank's compute lane, which no schedule contains (schedules/fill/fill.h).
enum class TaskKind : std::uint8_t { compute, transfer, collective, optimizer, bubble_work };

// The kind of work of a task.
enum class WorkKind : std::uint8_t {
  segment,           // operators [first_op, last_op) of `stage` in `pass`
  transfer,          // a wire (or its gradient) to the next stage's rank
  wire_collective,   // the communicate operator `first_op` of `stage`, on a wire or its gradient
  norm_grad_reduce,  // tensor-group all-reduce of the gradients of `block` that tensor ranks have in parts
  kv_grad_reduce,    // all-reduce of `block`'s gradients of keys and values over the tensor ranks with the same ones
  tied_grad_reduce,  // all-reduce of the embedding gradient between first and last stage (schedules/step/placement.h)
  grad_reduce,       // data(·context)-group all-reduce (ZeRO 0) or reduce-scatter (1..3) of `block`'s gradient
  worker_norm,  // sum of squares of this rank's part of `block`'s gradient before grad_reduce (training/batch_rules.h)
  grad_norm,    // local sum of squares of this rank's gradient shards
  norm_reduce,  // all-reduce of that scalar over all ranks
  optimizer_step,    // AdamW on this rank's shards of `stage`
  precondition,      // K-FAC: gradients of `stage`'s Linears times the inverses of their factors
  bubble_work,       // Work::bubble_work names its kind, or the collective of one
  parameter_gather,  // all-gather of `block`'s parameters (ZeRO 1, 2: after the step; ZeRO 3: before use)
  host_copy,         // to the host's memory or back: what a segment keeps (passes forward, backward); gradients of
                     // `stage` to optimizer states there, and weights back (pass none)
};

struct Work {
  WorkKind kind = WorkKind::segment;
  Pass pass = Pass::none;
  int stage = none;
  int slice = 0;                  // segment: slice of the sequence; its attention's work depends on it
  int block = none;               // bucket works: index in blocks_of(model)
  bool experts = false;           // bucket works: of the block's experts, which other ranks share than the rest of it
  int first_op = 0, last_op = 0;  // segment: range in TaskGraph::operators(work); wire_collective: first_op only
  Collective collective = Collective::none;
  Wires wire = 0;  // transfer, wire_collective
  Dtype dtype = Dtype::bfloat16;
  double bytes = 0;  // message: whole tensor of a collective, message of a transfer; else 0
  double elements =
      0;  // optimizer_step, grad_norm, worker_norm: parameters of this rank's shards; shift: numbers that each
          // member adds to what it received before it sends it on (all of them or none)
  std::string bubble_work;  // its kind for traces: "curvature", "inversion", "evaluation"
  std::string suffix;       // tail of the label: ".L5.mlp", ".send", ".L5.rs_grad"; may be empty
};

struct Task {
  TaskKind kind = TaskKind::compute;
  std::int32_t rank = none;          // compute and optimizer; none for transfer and collective
  std::int32_t communicator = none;  // transfer (sender first) and collective
  std::int32_t work = 0;             // index in TaskGraph::works
  std::int32_t micro_batch = none;   // none: once per step
  std::int32_t slice = 0;
  std::int32_t step = 0;  // step within the graph's window
};

// Ordered ranks and a purpose. Every communicator is a lane on each of its members and runs one task at a time, in
// global order. name: "tp", "kv2" (two tensor ranks with the same key-value head), "cp", "dp", "ep", "etp", "edp", "pp.forward.2-3", "pp.backward.3-2", "embedding", "world".
struct Communicator {
  std::string name;
  Axis axis = Axis::tensor;
  std::vector<std::int32_t> ranks;
  TokenTraffic tokens = {};  // of an expert group
};

enum class BufferKind : std::uint8_t {
  value,      // a wire's value
  gradient,   // a wire's gradient
  saved,      // what a forward segment keeps for its backward (the executor's autograd region)
  bucket,     // a block's accumulated parameter gradient
  parameter,  // a block's parameters after the step
  scalar,     // gradient-norm parts
  kept,  // what bubble work needs after the pass that would free it, or holds while it runs; also K-FAC's in a step
};

struct Buffer {
  BufferKind kind = BufferKind::value;
  Wires wire = 0;  // value, gradient
  std::int32_t rank = 0;
  double bytes = 0;            // memory it holds from the start of its writer to the end of its last reader
  std::int32_t writer = none;  // task; none: exists before the step
};

// Compressed lists: items of row i are values[begin[i] .. begin[i+1]).
struct Rows {
  std::vector<std::uint32_t> begin{0};
  std::vector<std::uint32_t> values;
  std::span<const std::uint32_t> operator[](std::integral auto id) const {
    const auto row = static_cast<std::size_t>(id);
    return {values.data() + begin[row], values.data() + begin[row + 1]};
  }
  std::size_t size() const { return begin.size() - 1; }
};

// Row i of the result lists, ascending, every j whose row in `rows` contains i. Both have rows.size() rows.
Rows transposed(const Rows& rows);

// Memory that a rank holds throughout the step.
struct StaticBytes {
  double weights = 0, gradients = 0, optimizer = 0;
};

struct TaskGraph {
  // The input of the lowering.
  Step step;
  // Steps that the tasks make up: 1, or the steps between two refreshes of bubble work. Then each task of a step exists
  // once per step of the window (schedules/lower/graph_builder.h), and an engine's step is a window.
  int window = 1;
  int micro_batches = 1;            // per pipeline and step; of a periodic step, those that have tasks
  Representatives representatives;  // the members of each pipeline rank that have tasks
  Placement placement;              // of the stages on pipeline ranks
  Indexed<BlockRange> stages;       // copies of a part have the same blocks
  std::vector<std::vector<Operator>> stage_operators;  // [stage · slices + slice]; slices differ in operator cost only

  // Nodes.
  Indexed<Work> works;
  Indexed<Communicator> communicators;
  Indexed<Task> tasks;
  Indexed<Buffer> buffers;
  Rows inputs;   // per task: buffers read, on any member rank
  Rows outputs;  // per task: buffers written
  // Edges: data dependencies (through buffers) and control dependencies, without lane order.
  Rows predecessors, successors;
  // Dependencies on the previous step: (task of step k, task of step k+1).
  std::vector<std::pair<TaskId, TaskId>> carried;
  // Per rank: its compute and optimizer tasks in the schedule's order, which the global order keeps.
  Rows compute_order;
  // The global order, a permutation of all task ids. Empty until set_global_order.
  std::vector<TaskId> order;
  Indexed<StaticBytes> static_bytes;  // per rank

  // Shape of the work of one micro-batch; of a slice, the first one's.
  WorkShape shape() const { return work_shape(step); }
  const Work& work(const Task& task) const { return works[task.work]; }
  const Work& work(TaskId task) const { return work(tasks[task]); }
  // Requires a task that has a communicator.
  const Communicator& communicator(const Task& task) const { return communicators[task.communicator]; }
  const Communicator& communicator(TaskId task) const { return communicator(tasks[task]); }
  // The task that writes the buffer; nothing when the buffer exists before the step.
  std::optional<TaskId> writer(const Buffer& buffer) const {
    return buffer.writer == none ? std::nullopt : std::optional(static_cast<TaskId>(buffer.writer));
  }
  std::optional<TaskId> writer(BufferId buffer) const { return writer(buffers[buffer]); }
  // The blocks of a stage.
  const BlockRange& stage(int id) const { return stages[id]; }
  // The operators of a stage and slice.
  std::span<const Operator> operators(int stage, int slice = 0) const {
    return stage_operators[static_cast<std::size_t>(stage * step.slices + slice)];
  }
  // The operators of the work's stage and slice; Work::first_op and last_op are indices in them.
  std::span<const Operator> operators(const Work& work) const { return operators(work.stage, work.slice); }
  // The operators that a segment runs.
  std::span<const Operator> operators_run_by(const Work& segment) const {
    return operators(segment).subspan(static_cast<std::size_t>(segment.first_op),
                                      static_cast<std::size_t>(segment.last_op - segment.first_op));
  }
};

// Number of parts of the batch whose gradients are reduced one by one. It counts the workers (data × copies of the
// model). ZeRO 2 and 3 reduce each micro-batch by itself, so there it counts all micro-batches.
std::int64_t gradient_samples(const TaskGraph& graph);

// True for communication from first to second member: a transfer between stages, or a message between bubble works.
bool goes_one_way(const TaskGraph& graph, const Task& task);
// True for the work on a block's own experts (not the shared ones).
bool runs_experts(const Operator& op);
// True if the backward pass makes the block again, with all its gathers.
bool is_recomputed(Recompute recompute, const Block& block);
// True for an all-gather of a projection's input for its weight gradient.
bool gathers_again(const TaskGraph& graph, const Work& work);
// Fills graph.stage_operators from model, shape, stages and slices.
void set_stage_operators(TaskGraph& graph);

// "2F0.L5.mlp"; unique per rank and step (I9). Bubble work: "2.L5.q.A0" (of micro-batch 0), "2.L5.q.invA".
std::string label_of(const TaskGraph& graph, TaskId task);
std::string label_of(const TaskGraph& graph, const Task& task);
// "forward", "backward", "all-gather", "transfer", "optimizer", ...: TraceRecord::kind.
std::string kind_of(const TaskGraph& graph, TaskId task);
// The members of a task: {rank}, or the communicator's ranks.
std::span<const std::int32_t> members_of(const TaskGraph& graph, TaskId task);
// True if the rank has tasks. Other ranks have a representative that does the same.
bool is_lowered(const TaskGraph& graph, std::int32_t rank);
// FLOPs and bytes of a task, per member rank, for traces.
double flops_of(const TaskGraph& graph, TaskId task);

// Lanes of ranks that have tasks: (rank, none) is the rank's compute lane, (rank, c) that of communicator c.
// Lane ids are dense.
struct Lane {
  std::int32_t rank = 0, communicator = none;
  std::vector<TaskId> tasks;  // projection of the global order
};
std::vector<Lane> lanes_of(const TaskGraph& graph);
std::string lane_name(const TaskGraph& graph, const Lane& lane);

}  // namespace slipway::schedules
