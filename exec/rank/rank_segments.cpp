#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "exec/operators/operators.h"
#include "exec/rank/rank_state.h"

namespace slipway::exec {

TokenBatch RankModel::State::batch_of(TaskId task, int step) {
  const Task& t = graph.tasks[task];
  const std::int64_t n = balanced_replicas(graph.step), group = at.data / n * graph.micro_batches + t.micro_batch;
  const std::int64_t of_step = (group * n + at.data % n) * graph.step.micro_batch;
  TokenBatch batch = training.data.batch(before(task, step).samples + of_step, graph.step.micro_batch, device);
  if (own_tokens() == graph.step.model->sequence) return batch;
  for (at::Tensor* whole : {&batch.tokens, &batch.targets, &batch.counted})
    if (whole->defined()) *whole = rows_in(*whole, tokens_of(t)).contiguous();
  return batch;
}

void RankModel::State::run_operators(const Work& work, const OperatorInputs& inputs, Region& region,
                                     WireTensors& wires) {
  const auto operators = graph.operators(work);
  ExpertRows here;  // of rows that stay in the segment
  for (int i = work.first_op; i < work.last_op; ++i) {
    const Operator& op = operators[i];
    const bool travels = inputs.travels_for != nullptr && blocks[op.block].experts > 0;
    ExpertRows& rows = travels ? rows_of(*inputs.travels_for, op.block) : here;
    OperatorContext context{op,
                            blocks[op.block],
                            inputs.of(op.block),
                            region,
                            wires,
                            inputs.batch,
                            inputs.tokens,
                            rotary,
                            rows,
                            at.tensor,
                            graph.step.layout.tensor,
                            graph.step.layout.sequence_parallel,
                            inputs.loss_tokens,
                            inputs.cache,
                            graph.step.layout.context,
                            graph.step.routing,
                            balanced_parts(graph.step.routing, graph.step.micro_batch),
                            balancing_factor(blocks[op.block])};
    run_operator(context);
  }
}

double RankModel::State::balancing_factor(const Block& block) const {
  const Step& step = graph.step;
  const auto together = static_cast<double>(balanced_sequences(step.routing, step.micro_batch));
  const double tokens = together * static_cast<double>(step.model->sequence);
  const double parts = static_cast<double>(step.global_batch) / together;
  const int alike = dispatches_tokens(step) ? 1 : step.layout.tensor;
  return step.routing.balancing_loss * static_cast<double>(block.experts) / (tokens * tokens * parts * alike);
}

void RankModel::State::run_operators(TaskId task, Region& region, WireTensors& wires, const TokenBatch& batch,
                                     KeyValueCache* cache) {
  const double loss_tokens = static_cast<double>(graph.step.global_batch * predicted_tokens(graph.step.model));
  const auto of = [this](int block) -> const BlockParameters& { return buckets.block(block); };
  const Task* const travels_for = rows_travel ? &graph.tasks[task] : nullptr;
  run_operators(graph.work(task), {batch, tokens_of(graph.tasks[task]), loss_tokens, of, cache, travels_for}, region,
                wires);
}

namespace {

bool reads_tokens(const Operator& op) {
  return op.kind == OpKind::embed || op.kind == OpKind::logits || op.kind == OpKind::loss;
}

// A wire has one gradient, except for keys and values that went around a ring.
void add_to(at::Tensor& sum, const at::Tensor& gradient) { sum = sum.defined() ? sum + gradient : gradient; }

}  // namespace

void RankModel::State::forward(TaskId task, int step) {
  const Work& work = graph.work(task);
  const auto operators = graph.operators(work);
  const auto region = std::make_shared<Region>(!slots.outputs(task, BufferKind::saved).empty());
  if (kfac) region->weight_gradients.capture = kfac->capture_of(graph.tasks[task]);
  region->weight_gradients.first_input_comes_again =
      work.pass == Pass::forward && region->recording() && follows_input_gather(work);
  SegmentReplay::Tensors inputs;
  for (const BufferId buffer : slots.inputs(task, BufferKind::value)) inputs.push_back(slots.tensor(buffer, step));
  if (std::any_of(operators.begin() + work.first_op, operators.begin() + work.last_op, reads_tokens)) {
    TokenBatch batch = batch_of(task, step);
    for (at::Tensor* tokens : {&batch.tokens, &batch.targets, &batch.counted}) inputs.push_back(std::move(*tokens));
  }
  const SegmentReplay::Tensors made = run_or_replay(
      task, step, inputs, [&](const SegmentReplay::Tensors& from) { return compute_forward(task, *region, from); });
  if (made.front().defined() && work.pass == Pass::forward) count_loss(training_step(task, step), made.front());
  const std::vector<BufferId> values = slots.outputs(task, BufferKind::value);
  for (std::size_t i = 0; i < values.size(); ++i) slots.put(values[i], step, made[i + 1]);
  for (const BufferId buffer : slots.outputs(task, BufferKind::saved)) slots.put(buffer, step, region);
}

// Inputs: the value buffers that the task reads, then tokens, targets and the counted mask where it needs them.
// Outputs: the loss (undefined but in the last stage) and the value buffers that it writes. May be recorded.
SegmentReplay::Tensors RankModel::State::compute_forward(TaskId task, Region& region,
                                                         const SegmentReplay::Tensors& from) {
  at::AutoGradMode grad_mode(region.recording());
  WireTensors wires;
  KeyValueCache cache;
  const std::vector<BufferId> values = slots.inputs(task, BufferKind::value);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Wires wire = graph.buffers[values[i]].wire;
    wires[index_of(wire)] = wire == wire_statistics ? from[i] : region.enter(wire, from[i]);
  }
  TokenBatch batch;
  if (from.size() > values.size()) batch = {from[values.size()], from[values.size() + 1], from[values.size() + 2]};
  if (graph.step.slices > 1) std::swap(cache.past, wires[index_of(wire_kv)]);
  run_operators(task, region, wires, batch, graph.step.slices > 1 ? &cache : nullptr);
  if (!cache.whole.empty()) wires[index_of(wire_kv)] = at::stack(cache.whole);
  return leave_forward(task, region, wires);
}

SegmentReplay::Tensors RankModel::State::leave_forward(TaskId task, Region& region, const WireTensors& wires) {
  SegmentReplay::Tensors made(1);
  const at::Tensor loss = wires[index_of(wire_loss)];
  if (loss.defined()) made.front() = region.leave(wire_loss, loss, true);
  Wires written = 0;
  for (const BufferId buffer : slots.outputs(task, BufferKind::value)) {
    const Wires wire = graph.buffers[buffer].wire;
    written |= wire;
    const at::Tensor& value = wires[index_of(wire)];
    if (!value.defined())
      throw std::runtime_error(label_of(graph, task) + " writes a wire that its operators did not make");
    made.push_back(wire == wire_loss ? value.detach() : region.leave(wire, value, true).contiguous());
  }
  if (graph.work(task).pass == Pass::recompute)  // what the forward has handed on already is not written again
    for (const Wires wire : {wire_residual, wire_branch, wire_kv})
      if (wires[index_of(wire)].defined() && (written & wire) == 0) region.leave(wire, wires[index_of(wire)], false);
  return made;
}

SegmentReplay::Tensors RankModel::State::run_or_replay(TaskId task, int step, const SegmentReplay::Tensors& inputs,
                                                       const SegmentReplay::Compute& compute) {
  return replay ? replay->run(task, step - entered_step, inputs, compute) : compute(inputs);
}

// Operators of a block are consecutive.
std::vector<Buckets::Key> RankModel::State::buckets_in(const Work& segment) const {
  const auto operators = graph.operators(segment);
  std::vector<Buckets::Key> keys;
  const auto note = [&](const Buckets::Key& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  for (int i = segment.first_op; i < segment.last_op; ++i) {
    note({operators[i].block, false});
    if (dispatches_tokens(graph.step) && runs_experts(operators[i])) note({operators[i].block, true});
  }
  return keys;
}

void RankModel::State::note_late_blocks() {
  std::unordered_set<int> embedding;
  for (const Work& work : graph.works) {
    if (work.kind != WorkKind::segment) continue;
    const auto operators = graph.operators(work);
    for (int i = work.first_op; i < work.last_op; ++i)
      if (const Operator& op = operators[i]; op.kind == OpKind::embed) embedding.insert(op.block);
    if (work.pass != Pass::weight_grad) continue;
    for (const Buckets::Key key : buckets_in(work)) late_blocks.insert(key.block);
  }
  for (const int block : embedding) late_blocks.erase(block);
}

void RankModel::State::prepare_gradients(TaskId task) {
  const Work& work = graph.work(task);
  for (const Buckets::Key key : buckets_in(work))
    if (work.pass != Pass::input_grad || !late_blocks.contains(key.block)) buckets.prepare(key);
}

void RankModel::State::backward(TaskId task, int step) {
  const bool split = graph.work(task).pass == Pass::input_grad;
  const std::vector<BufferId> saved = slots.inputs(task, BufferKind::saved);
  if (saved.size() != 1)
    throw std::runtime_error(label_of(graph, task) + " reads " + std::to_string(saved.size()) +
                             " saved buffers instead of one");
  const auto region = slots.region(saved.front(), step);
  region->weight_gradients.deferred = split;
  prepare_gradients(task);
  SegmentReplay::Tensors inputs;
  for (const BufferKind kind : {BufferKind::gradient, BufferKind::value})  // a value: gathered again
    for (const BufferId buffer : slots.inputs(task, kind)) inputs.push_back(slots.tensor(buffer, step));
  const SegmentReplay::Tensors made = run_or_replay(
      task, step, inputs, [&](const SegmentReplay::Tensors& from) { return compute_backward(task, *region, from); });
  buckets.add_when_prepared(region->weight_gradients.take_waiting());
  const std::vector<BufferId> gradients = slots.outputs(task, BufferKind::gradient);
  for (std::size_t i = 0; i < gradients.size(); ++i) slots.put(gradients[i], step, made[i]);
  for (const BufferId buffer : slots.outputs(task, BufferKind::saved)) slots.put(buffer, step, region);
  if (rows_travel) forget_rows(task);
}

// Inputs: the gradient buffers that the task reads, and its first Linear's input where that was gathered again.
// Outputs: the gradient buffers that it writes. May be recorded.
SegmentReplay::Tensors RankModel::State::compute_backward(TaskId task, Region& region,
                                                          const SegmentReplay::Tensors& from) {
  WireTensors out_gradients;
  const std::vector<BufferId> read = slots.inputs(task, BufferKind::gradient);
  for (std::size_t i = 0; i < read.size(); ++i) add_to(out_gradients[index_of(graph.buffers[read[i]].wire)], from[i]);
  if (from.size() > read.size()) region.weight_gradients.again = from.back();
  const WireTensors in_gradients = region.backward(out_gradients);
  SegmentReplay::Tensors made;
  for (const BufferId buffer : slots.outputs(task, BufferKind::gradient)) {
    const at::Tensor& gradient = in_gradients[index_of(graph.buffers[buffer].wire)];
    if (!gradient.defined())
      throw std::runtime_error(label_of(graph, task) + " makes no gradient for one of the wires it writes");
    made.push_back(gradient.contiguous());
  }
  return made;
}

void RankModel::State::weight_gradients(TaskId task, int step) {
  prepare_gradients(task);
  SegmentReplay::Tensors inputs;
  for (const BufferId buffer : slots.inputs(task, BufferKind::value)) inputs.push_back(slots.tensor(buffer, step));
  run_or_replay(task, step, inputs, [&](const SegmentReplay::Tensors& from) {
    for (const BufferId buffer : slots.inputs(task, BufferKind::saved)) {
      WeightGradientQueue& queue = slots.region(buffer, step)->weight_gradients;
      if (!from.empty()) queue.again = from.back();
      queue.run();
    }
    return SegmentReplay::Tensors();
  });
}

void RankModel::State::run_segment(TaskId task, int step) {
  const Pass pass = graph.work(task).pass;
  if (in_ring(task))
    return pass == Pass::forward || pass == Pass::recompute ? ring_forward(task, step) : ring_backward(task, step);
  switch (pass) {
    case Pass::forward:
    case Pass::recompute:
      return forward(task, step);
    case Pass::backward:
    case Pass::input_grad:
      return backward(task, step);
    case Pass::weight_grad:
      return weight_gradients(task, step);
    case Pass::none:
      break;
  }
  throw std::runtime_error(label_of(graph, task) + ": a segment needs a pass");
}

}  // namespace slipway::exec
