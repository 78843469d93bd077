#include "exec/rank/slots.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "exec/transport/device.h"

namespace slipway::exec {

Slots::Slots(const TaskGraph& graph, int rank) : graph_(graph), rank_(rank), local_(graph.buffers.size(), none) {
  for (std::size_t buffer = 0; buffer < graph.buffers.size(); ++buffer) {
    if (graph.buffers[buffer].rank != rank) continue;
    local_[buffer] = static_cast<std::int32_t>(readers_.size());
    readers_.push_back(0);
  }
  for (const std::uint32_t buffer : graph.inputs.values)
    if (local_[buffer] != none) ++readers_[local_[buffer]];
  for (auto& slots : slots_) slots = std::vector<Slot>(readers_.size());
}

Slots::Slot& Slots::slot(BufferId buffer, int step) const {
  const std::int32_t at = local_[buffer];
  if (at == none)
    throw std::runtime_error("buffer " + std::to_string(buffer) + " is not a slot of rank " + std::to_string(rank_));
  return slots_[step & 1][at];
}

at::Tensor Slots::tensor(BufferId buffer, int step) const {
  const at::Tensor& tensor = slot(buffer, step).tensor;
  if (!tensor.defined())
    throw std::runtime_error("buffer " + std::to_string(buffer) + " was read before it was written");
  keep_for_this_lane(tensor);
  return tensor;
}

std::shared_ptr<Region> Slots::region(BufferId buffer, int step) const {
  auto region = slot(buffer, step).region;
  if (!region) throw std::runtime_error("buffer " + std::to_string(buffer) + " holds no saved region");
  return region;
}

void Slots::start_counting(Slot& slot, BufferId buffer) { slot.readers_left = readers_[local_[buffer]]; }

void Slots::put(BufferId buffer, int step, at::Tensor tensor) {
  Slot& target = slot(buffer, step);
  start_counting(target, buffer);
  if (target.readers_left > 0) target.tensor = std::move(tensor);
}

void Slots::put(BufferId buffer, int step, std::shared_ptr<Region> region) {
  Slot& target = slot(buffer, step);
  start_counting(target, buffer);
  if (target.readers_left > 0) target.region = std::move(region);
}

void Slots::hold(BufferId buffer, int step, std::shared_ptr<void> memory) {
  Slot& target = slot(buffer, step);
  start_counting(target, buffer);
  if (target.readers_left > 0) target.memory = std::move(memory);
}

void Slots::release_inputs(TaskId task, int step) {
  for (const std::uint32_t buffer : graph_.inputs[task]) {
    if (local_[buffer] == none) continue;
    Slot& done = slot(buffer, step);
    if (--done.readers_left != 0) continue;  // below 0: never put, a bucket that is read in place
    done.tensor.reset();
    done.region.reset();
    done.memory.reset();
  }
}

std::vector<BufferId> Slots::of_kind(std::span<const std::uint32_t> buffers, BufferKind kind) const {
  std::vector<BufferId> found;
  for (const std::uint32_t buffer : buffers)
    if (local_[buffer] != none && graph_.buffers[buffer].kind == kind) found.push_back(buffer);
  return found;
}

std::vector<BufferId> Slots::inputs(TaskId task, BufferKind kind) const { return of_kind(graph_.inputs[task], kind); }
std::vector<BufferId> Slots::outputs(TaskId task, BufferKind kind) const { return of_kind(graph_.outputs[task], kind); }

}  // namespace slipway::exec
