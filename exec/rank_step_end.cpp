#include <ATen/ATen.h>

#include <fstream>
#include <stdexcept>

#include "exec/rank_state.h"

namespace slipway {

void RankModel::State::count_loss(int step, const at::Tensor& loss) {
  if (at.tensor > 0) return;  // the same number on every rank of the group
  const std::lock_guard lock(loss_mutex);
  at::Tensor& sum = losses[step];
  const at::Tensor value = loss.to(at::kDouble);
  sum = sum.defined() ? sum + value : value;
}

at::Tensor RankModel::State::scalar_inputs(TaskId task, int step) const {
  const std::vector<BufferId> scalars = slots.inputs(task, BufferKind::scalar);
  if (scalars.empty())
    throw std::runtime_error(label_of(graph, task) + " needs the gradient norm, but reads none");
  at::Tensor sum = slots.tensor(scalars.front(), step).clone();
  for (std::size_t i = 1; i < scalars.size(); ++i) sum.add_(slots.tensor(scalars[i], step));
  return sum;
}

// Clipping to the global norm as torch.nn.utils.clip_grad_norm_ does it.
void RankModel::State::optimizer_step(TaskId task, int step) {
  at::Tensor scale;
  if (graph.clip_norm > 0) {
    const at::Tensor norm = scalar_inputs(task, step).sqrt().squeeze(0);
    scale = (graph.clip_norm / (norm + 1e-6)).clamp_max(1.0);
  }
  const int stage = work_of(task).stage;
  if (step == dump_step) dump(stage);
  buckets.step(stage, learning_rate_of(bundle, first, step), scale);
}

void RankModel::State::dump(int stage) {
  std::ofstream out(dump_path, std::ios::app);
  buckets.dump(stage, out);
  out.flush();
  if (!out) throw std::runtime_error("cannot write the gradients to " + dump_path);
}

}  // namespace slipway
