#include <ATen/ATen.h>

#include <fstream>
#include <stdexcept>

#include "exec/rank/rank_state.h"

namespace slipway::exec {

void RankModel::State::count_loss(int step, const at::Tensor& loss) {
  if (at.tensor > 0) return;  // the number is equal on every rank of the group
  const std::lock_guard lock(loss_mutex);
  at::Tensor& sum = losses[step];
  const at::Tensor value = loss.to(at::kDouble);
  sum = sum.defined() ? sum + value : value;
}

at::Tensor RankModel::State::scalar_inputs(TaskId task, int step) const {
  const std::vector<BufferId> scalars = slots.inputs(task, BufferKind::scalar);
  if (scalars.empty()) throw std::runtime_error(label_of(graph, task) + " needs the gradient norm, but reads none");
  at::Tensor sum = slots.tensor(scalars.front(), step).clone();
  for (std::size_t i = 1; i < scalars.size(); ++i) sum.add_(slots.tensor(scalars[i], step));
  return sum;
}

// Norm of this rank's part of one block's gradient, before it is added to those of others.
void RankModel::State::worker_norm(TaskId task, int step) {
  const int block = graph.work(task).block;
  const std::vector<BufferId> taken = slots.inputs(task, BufferKind::bucket);
  const bool of_micro_batch = graph.tasks[task].micro_batch != none;
  const at::Tensor sum = of_micro_batch ? buckets.whole_square_sum(block, slots.tensor(taken.front(), step))
                                        : buckets.whole_square_sum(block, buckets.block(block).gradients);
  for (const BufferId buffer : slots.outputs(task, BufferKind::scalar)) slots.put(buffer, step, sum);
}

// [1]: the sum of squares. With the workers' norms [2]: their sum follows.
void RankModel::State::grad_norm(TaskId task, int step) {
  at::Tensor sum = buckets.square_sum(graph.work(task).stage);
  if (graph.step.worker_norms) sum = at::cat({sum, scalar_inputs(task, step)});
  for (const BufferId buffer : slots.outputs(task, BufferKind::scalar)) slots.put(buffer, step, sum);
}

void RankModel::State::keep_norms(int step, const at::Tensor& sums) {
  const std::lock_guard lock(loss_mutex);
  norms[step] = sums;
}

// Clips to the global norm as torch.nn.utils.clip_grad_norm_ does.
void RankModel::State::optimizer_step(TaskId task, int step) {
  at::Tensor scale;
  if (graph.step.clip_norm > 0) {
    const at::Tensor square = scalar_inputs(task, step)[0];
    scale = (graph.step.clip_norm / (square.sqrt() + 1e-6)).clamp_max(1.0);
    if (rank == 0) {
      const std::lock_guard lock(loss_mutex);
      squares[training_step(task, step)] = square;
    }
  }
  const int stage = graph.work(task).stage;
  if (training_step(task, step) == training.dump_step) dump(stage);
  buckets.step(stage, learning_rate_of(bundle, before(task, step), graph.step.global_batch), scale);
}

void RankModel::State::dump(int stage) {
  std::ofstream out(training.dump_path, std::ios::app);
  buckets.dump(stage, out);
  out.flush();
  if (!out) throw std::runtime_error("cannot write the gradients to " + training.dump_path);
}

}  // namespace slipway::exec
