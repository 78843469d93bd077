#include <ATen/ATen.h>

#include "exec/rank/evaluation.h"
#include "exec/rank/rank_state.h"
#include "exec/transport/device.h"

namespace slipway::exec {

// The forward of a held-out micro-batch through one stage, on the frozen weights; nothing is kept for a backward.
void RankModel::State::evaluate(TaskId task, int step) {
  const Work& work = graph.work(task);
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

// The sender's residual is the one that the next stage would read if it were on the same rank.
Message RankModel::State::evaluation_message(TaskId task, int step) const {
  const Work& work = graph.work(task);
  const Task& what = graph.tasks[task];
  if (graph.communicator(what).ranks.front() == rank)
    return {evaluation->take_residual({step, work.stage + 1, what.micro_batch}).contiguous(), {}};
  return {{},
          at::empty({own_tokens(), graph.step.micro_batch, blocks.front().hidden},
                    at::TensorOptions().dtype(torch_dtype(graph.step.dtype)).device(device))};
}

}  // namespace slipway::exec
