#include "exec/rank/rank_model.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "exec/rank/batches.h"
#include "exec/rank/evaluation.h"
#include "exec/rank/initial_weights.h"
#include "exec/rank/parameter_state.h"
#include "exec/rank/rank_state.h"
#include "exec/run/checkpoint_folder.h"
#include "exec/transport/device.h"

namespace slipway::exec {

RankModel::State::State(const Bundle& b, const TaskGraph& g, int r, at::Device d, Training& t, const Progress& e, int s)
    : bundle(b),
      graph(g),
      rank(r),
      at(coordinates_of(graph.step.layout, r)),
      device(d),
      blocks(blocks_of(graph.step.model)),
      slots(graph, r),
      training(t),
      buckets(t.buckets),
      kfac(t.kfac ? &*t.kfac : nullptr),
      evaluation(t.evaluation ? &*t.evaluation : nullptr),
      entered(e),
      entered_step(s),
      rows_travel(dispatches_tokens(graph.step) ||
                  (graph.step.routing.balancing_loss > 0 && graph.step.layout.context > 1) ||
                  balanced_replicas(graph.step) > 1) {
  note_taken_buckets();
  note_late_blocks();
}

// Notes the bucket of each buffer that a per-micro-batch reduction reads.
void RankModel::State::note_taken_buckets() {
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    const Work& work = graph.work(task);
    if (work.kind != WorkKind::grad_reduce || graph.tasks[task].micro_batch == none) continue;
    // The first is the one of the segment that finishes the gradient (schedules/lower/passes.cpp).
    if (const auto read = slots.inputs(task, BufferKind::bucket); !read.empty())
      taken_buckets[read.front()] = Buckets::key_of(work);
  }
}

// Under ZeRO 3 another lane has made their memory, which is freed with the last reader's start.
void RankModel::State::keep_gathered_weights(const Work& work) const {
  if (graph.step.layout.zero < 3) return;
  for (const Buckets::Key key : buckets_in(work))
    if (const at::Tensor weights = buckets.gathered_weights(key); weights.defined()) keep_for_this_lane(weights);
}

void RankModel::State::take_gradients(TaskId task, int step) {
  for (const BufferId buffer : slots.outputs(task, BufferKind::bucket))
    if (const auto found = taken_buckets.find(buffer); found != taken_buckets.end())
      slots.put(buffer, step, buckets.take(found->second));
}

Message RankModel::State::bucket_message(TaskId task, int step) {
  const Work& work = graph.work(task);
  const bool of_micro_batch = graph.tasks[task].micro_batch != none;
  if (of_micro_batch && work.kind == WorkKind::grad_reduce)
    return {slots.tensor(slots.inputs(task, BufferKind::bucket).front(), step),
            buckets.empty_slice(Buckets::key_of(work))};
  if (!of_micro_batch || work.kind != WorkKind::parameter_gather) return buckets.message(work);
  std::shared_ptr<void> hold;
  Message message = buckets.gather(Buckets::key_of(work), hold);
  for (const BufferId buffer : slots.outputs(task, BufferKind::parameter)) slots.hold(buffer, step, hold);
  return message;
}

// This rank's part of the residual at a stage boundary.
at::Tensor RankModel::State::received_wire(const Work& work) const {
  if (work.wire != wire_residual) throw std::runtime_error("only the residual crosses a stage boundary");
  std::int64_t rows = own_tokens();
  if (graph.step.layout.sequence_parallel) rows /= graph.step.layout.tensor;
  return at::empty({rows, graph.step.micro_batch, blocks.front().hidden},
                   at::TensorOptions().dtype(torch_dtype(graph.step.dtype)).device(device));
}

Message RankModel::State::wire_message(TaskId task, int step) {
  const Work& work = graph.work(task);
  const auto& members = graph.communicator(task).ranks;
  if (work.kind == WorkKind::transfer && members.front() != rank) return {{}, received_wire(work)};
  if (work.collective == Collective::shift) return shift_message(task, step);
  at::Tensor input;
  for (const BufferKind kind : {BufferKind::value, BufferKind::gradient})
    for (const BufferId buffer : slots.inputs(task, kind)) input = slots.tensor(buffer, step);
  if (!input.defined()) throw std::runtime_error(label_of(graph, task) + " reads no wire");
  if (work.kind == WorkKind::transfer) return {input, {}};
  const Axis axis = graph.communicator(task).axis;
  if (axis == Axis::expert || axis == Axis::expert_tensor) return rows_message(task, std::move(input));
  const auto degree = static_cast<std::int64_t>(members.size());
  std::vector<std::int64_t> shape = input.sizes().vec();
  switch (work.collective) {
    case Collective::all_reduce:
      return {input, input.clone()};
    case Collective::all_gather:
      shape[0] *= degree;
      break;
    case Collective::reduce_scatter:
      shape[0] /= degree;
      break;
    default:
      throw std::runtime_error(label_of(graph, task) + ": no such collective on a wire");
  }
  return {input, at::empty(shape, input.options())};
}

RankModel::RankModel(const Bundle& bundle, int rank, at::Device device)
    : training_(std::make_unique<Training>(bundle, rank, device)),
      state_(std::make_unique<State>(bundle, bundle.graph, rank, device, *training_, Progress{}, 0)) {}
RankModel::~RankModel() = default;

void RankModel::enter(const TaskGraph& graph, const Progress& before, int step) {
  const State& s = *state_;
  auto next = std::make_unique<State>(s.bundle, graph, s.rank, s.device, *training_, before, step);
  state_ = std::move(next);
  if (!capture_) return;
  capture_->begin_program();
  replay_segments(*capture_);
}

std::string RankModel::replay_segments(SegmentCapture& capture) {
  capture_ = &capture;
  state_->replay = std::make_unique<SegmentReplay>(state_->graph, state_->rank, capture);
  return state_->replay->recordings().why_none;
}

void RankModel::run(TaskId task, int step) {
  at::NoGradGuard no_grad;
  State& s = *state_;
  const Work& work = s.graph.work(task);
  if (s.evaluation) s.evaluation->begin(step);
  switch (work.kind) {
    case WorkKind::segment:
      if (!s.in_ring(task)) s.keep_gathered_weights(work);
      s.run_segment(task, step);
      s.take_gradients(task, step);
      break;
    case WorkKind::worker_norm:
      s.worker_norm(task, step);
      break;
    case WorkKind::grad_norm:
      s.grad_norm(task, step);
      break;
    case WorkKind::precondition:
      s.kfac->precondition(work.stage);
      break;
    case WorkKind::bubble_work:
      if (s.evaluation)
        s.evaluate(task, step);
      else
        s.kfac->run_bubble_work(task, step);
      break;
    case WorkKind::optimizer_step:
      s.optimizer_step(task, step);
      break;
    default:
      throw std::runtime_error(label_of(s.graph, task) + " is no work of a compute lane");
  }
  s.slots.release_inputs(task, step);
}

Message RankModel::message(TaskId task, int step) {
  at::NoGradGuard no_grad;
  State& s = *state_;
  const Work& work = s.graph.work(task);
  if (s.moves_wire(work)) return s.wire_message(task, step);
  if (s.is_kfac(work)) return s.kfac->message(task, step);
  if (sends_evaluated(work)) return s.evaluation_message(task, step);
  if (work.kind == WorkKind::norm_reduce) {
    const at::Tensor sum = s.scalar_inputs(task, step);
    return {sum, sum};
  }
  return s.bucket_message(task, step);
}

void RankModel::arrived(TaskId task, int step, Message message) {
  State& s = *state_;
  const Work& work = s.graph.work(task);
  if (s.is_kfac(work)) s.kfac->arrived(task, step, message);
  if (sends_evaluated(work) && message.output.defined())
    s.evaluation->put_residual({step, work.stage + 1, s.graph.tasks[task].micro_batch}, message.output);
  if (work.kind == WorkKind::grad_reduce && s.graph.tasks[task].micro_batch != none)
    s.buckets.add_to_slice(Buckets::key_of(work), message.output);
  if (work.kind == WorkKind::tied_grad_reduce && s.graph.step.layout.zero >= 2) s.buckets.keep_tied(message.output);
  if (work.kind == WorkKind::kv_grad_reduce) s.buckets.keep_copied(work.block, message.output);
  if (s.moves_wire(work))
    for (const BufferKind kind : {BufferKind::value, BufferKind::gradient})
      for (const BufferId buffer : s.slots.outputs(task, kind)) s.slots.put(buffer, step, message.output);
  for (const BufferId buffer : s.slots.outputs(task, BufferKind::scalar)) s.slots.put(buffer, step, message.output);
  if (work.kind == WorkKind::norm_reduce && s.graph.step.worker_norms)
    s.keep_norms(s.training_step(task, step), message.output);
  s.slots.release_inputs(task, step);
}

void RankModel::check(int step) {
  if (state_->kfac) state_->kfac->check(step);
}

double RankModel::take_loss(int step) {
  const std::lock_guard lock(state_->loss_mutex);
  const auto found = state_->losses.extract(step);
  return found.empty() ? 0.0 : number_of(found.mapped());
}

std::optional<double> RankModel::take_evaluation(int step) {
  return state_->evaluation ? state_->evaluation->take_loss(step) : std::nullopt;
}

std::optional<GradientNorms> RankModel::take_norms(int step) {
  const std::lock_guard lock(state_->loss_mutex);
  const auto found = state_->norms.extract(step);
  if (found.empty()) return std::nullopt;
  return norms_of(state_->graph, number_of(found.mapped()[1]), number_of(found.mapped()[0]));
}

std::optional<double> RankModel::take_gradient_square(int step) {
  const std::lock_guard lock(state_->loss_mutex);
  const auto found = state_->squares.extract(step);
  return found.empty() ? std::nullopt : std::optional(number_of(found.mapped()));
}

void RankModel::save(ShardWriter& out) const {
  state_->buckets.save(out);
  if (state_->kfac) state_->kfac->save(out);
}

void RankModel::load(const CheckpointReader& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  refuse_other_parameters(checkpoint, state_->bundle.graph.step.model);
  state_->buckets.load([&](const Parameter& parameter) { return state_of(checkpoint, parameter); });
  if (state_->kfac) state_->kfac->load(checkpoint);
  state_->entered = {manifest.step, manifest.samples};
}

void RankModel::load(const WeightFiles& weights) {
  check_weight_files(weights);
  state_->buckets.load([&](const Parameter& parameter) { return initial_state(weights, parameter); });
}

void RankModel::dump_gradients_of_step(int step, const std::string& directory) {
  std::filesystem::create_directories(directory);
  training_->dump_step = step;
  training_->dump_path = directory + "/gradients." + std::to_string(state_->rank);
  std::filesystem::remove(training_->dump_path);
}

void RankModel::print_notes() const {
  const std::string note = state_->rank == 0 && state_->evaluation ? state_->evaluation->note() : "";
  if (note.empty()) return;
  std::printf("note: %s\n", note.c_str());
  std::fflush(stdout);
}

}  // namespace slipway::exec
