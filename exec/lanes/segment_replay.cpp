#include "exec/lanes/segment_replay.h"

#include <ATen/ATen.h>

#include <stdexcept>

namespace slipway::exec {
namespace {

bool is_like(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type());
}

bool are_alike(const SegmentReplay::Tensors& a, const SegmentReplay::Tensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!is_like(a[i], b[i])) return false;
  return true;
}

}  // namespace

SegmentReplay::SegmentReplay(const TaskGraph& graph, int rank, SegmentCapture& capture)
    : recordings_(recordings_of(graph, rank)), capture_(capture), recorded_(recordings_.pool.size()) {
  for (const std::int32_t pool : recordings_.pool)
    while (static_cast<std::size_t>(pool) >= pools_.size()) pools_.push_back(capture_.new_pool());
}

void SegmentReplay::take_inputs(std::size_t recording, const Tensors& inputs) {
  Tensors& own = recorded_[recording].inputs;
  own.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (!own[i].defined()) own[i] = at::empty(inputs[i].sizes(), inputs[i].options());
    own[i].copy_(inputs[i]);
  }
}

SegmentReplay::Tensors SegmentReplay::run(TaskId task, int step, const Tensors& inputs, const Compute& compute) {
  if (recordings_.recording[task] == none || step < eager_steps) return compute(inputs);
  const auto at = static_cast<std::size_t>(recordings_.recording[task]);
  Recorded& mine = recorded_[at];
  if (mine.recording && !are_alike(mine.inputs, inputs))
    throw std::runtime_error("a recorded segment got inputs of another shape than it was recorded with");
  take_inputs(at, inputs);
  if (!mine.recording)
    mine.recording = capture_.record(pools_[recordings_.pool[at]], [&] { mine.outputs = compute(mine.inputs); });
  mine.recording->replay();
  Tensors outputs;
  for (const at::Tensor& output : mine.outputs) outputs.push_back(output.defined() ? output.clone() : at::Tensor());
  return outputs;
}

}  // namespace slipway::exec
