// The forward of a held-out micro-batch through one stage, on the frozen copy of the weights; nothing is kept for a backward.
#include <ATen/ATen.h>

#include <cstdio>

#include "exec/rank_state.h"

namespace slipway {

void RankModel::State::evaluate(TaskId task, int step) {
  const Work& work = work_of(task);
  const int micro_batch = graph.tasks[task].micro_batch;
  Region region(false);
  WireTensors wires;
  at::Tensor& residual = wires[index_of(wire_residual)];
  if (!graph.placement.is_first(work.stage)) residual = evaluation->take_residual({step, work.stage, micro_batch});
  const TokenBatch batch = evaluation->batch(micro_batch);
  const auto of = [this](int block) -> const BlockParameters& { return evaluation->block(block); };
  run_operators(work, {batch, tokens_of(graph.tasks[task]), evaluation->loss_tokens(), of}, region, wires);
  if (graph.placement.is_last(work.stage))
    evaluation->add_loss(step, wires[index_of(wire_loss)]);
  else
    evaluation->put_residual({step, work.stage + 1, micro_batch}, residual);
}

// The sender's residual is the one that the next stage would read, were it on the same rank.
Message RankModel::State::evaluation_message(TaskId task, int step) const {
  const Work& work = work_of(task);
  const Task& what = graph.tasks[task];
  if (graph.communicators[static_cast<std::size_t>(what.communicator)].ranks.front() == rank)
    return {evaluation->take_residual({step, work.stage + 1, what.micro_batch}).contiguous(), {}};
  return {{}, at::empty({own_tokens(), graph.shape.micro_batch, blocks.front().hidden},
                        at::TensorOptions().dtype(torch_dtype(graph.shape.dtype)).device(device))};
}

void RankModel::tell_notes() const {
  const std::string note = state_->rank == 0 && state_->evaluation ? state_->evaluation->note() : "";
  if (note.empty()) return;
  std::printf("note: %s\n", note.c_str());
  std::fflush(stdout);
}

}  // namespace slipway
