// PyTorch's own schedule files with pairs, and schedules with pairs or uneven groups, train like one process: losses of 20
// steps to 1e-9 relative, gradients of the first step to 1e-12 of the global gradient norm.
#include <fstream>

#include "schedules/catalogue/schedule_csv.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

Step of_file(const std::string& name, Degrees degrees, int micro_batches, bool tied = true) {
  degrees.chunks = 2;
  Step step = with_layout(llama_for(2 * degrees.pipeline, tied), degrees);
  std::ifstream in(SLIPWAY_SOURCE_DIR "/tests/data/pytorch_schedules/" + name);
  step.actions = std::make_shared<const ActionLists>(read_schedule_csv(in, name));
  step.global_batch = std::max<std::int64_t>(step.global_batch, micro_batches * degrees.data);
  step.micro_batch = step.global_batch / (micro_batches * degrees.data);
  step.clip_norm = 0.5;
  return step;
}

TEST(PyTorchSchedules, WithPairsAndCommunicationTrainLikeOneProcess) {
  expect_layouts_equal_one_process(
      {of_file("DualPipeV_2p2v_4m.csv", {.pipeline = 2}, 4),
       of_file("DualPipeV_2p2v_4m.csv", {.tensor = 2, .pipeline = 2, .sequence_parallel = true}, 4),
       of_file("DualPipeV_2p2v_4m_comms.csv", {.pipeline = 2, .data = 2, .zero = 2}, 4),
       of_file("LoopedBFS_2p2v_4m_comms.csv", {.pipeline = 2, .data = 2, .zero = 3}, 4)});
}

// Their own tests' and torchtitan's files: I and W cells, SEND and RECV, pairs on four ranks.
TEST(PyTorchSchedules, OfTheirOwnTestsTrainLikeOneProcess) {
  expect_layouts_equal_one_process({of_file("pytorch_zb1p_2rank_2stagep_compute.csv", {.pipeline = 2}, 8),
                                    of_file("pytorch_zb1p_2rank_2stagep_comms.csv", {.pipeline = 2}, 8, false),
                                    of_file("torchtitan_custom_schedule.csv", {.tensor = 2, .pipeline = 2}, 8),
                                    of_file("torchtitan_custom_schedule.csv", {.pipeline = 2, .data = 2, .zero = 3}, 8),
                                    of_file("pytorch_dualpipev_4rank_10mb.csv", {.pipeline = 4}, 10)});
}

TEST(PyTorchSchedules, OfZeroBubblesTrainLikeOneProcess) {
  expect_layouts_equal_one_process(
      {of_file("InterleavedZeroBubble_2p2v_8m.csv", {.pipeline = 2}, 8),
       of_file("InterleavedZeroBubble_2p2v_4m_comms.csv", {.pipeline = 2, .data = 2, .zero = 2}, 4),
       of_file("InterleavedZeroBubble_4p2v_10m.csv", {.pipeline = 4}, 10),
       of_file("ZBVZeroBubble_2p2v_8m.csv", {.pipeline = 2}, 8)});
}

Step with_pairs(const std::string& schedule, Degrees degrees, Recompute recompute = Recompute::none) {
  Step step = with_layout(llama_for(4, true), degrees);
  step.schedule = schedule;
  step.recompute = recompute;
  step.clip_norm = 0.5;
  return step;
}

TEST(Pairs, TrainLikeOneProcess) {
  expect_layouts_equal_one_process(
      {with_pairs("1f1b-merged", {.tensor = 2, .sequence_parallel = true}),
       with_pairs("1f1b-merged", {.tensor = 2, .pipeline = 2, .chunks = 2}),
       with_pairs("1f1b-merged", {.tensor = 2, .pipeline = 2, .data = 2, .zero = 3}, Recompute::full),
       with_pairs("1f1b-merged", {.pipeline = 2, .data = 2, .zero = 2, .chunks = 2}),
       with_pairs("dualpipe", {.tensor = 2, .pipeline = 2, .sequence_parallel = true}, Recompute::full),
       with_pairs("dualpipe-v", {.tensor = 2, .pipeline = 2, .context = 2, .chunks = 2, .sequence_parallel = true})});
}

// Four micro-batches on three ranks: one group of four.
TEST(Interleaved, OfMicroBatchesThatAreNoMultipleOfThePipelineTrainsLikeOneProcess) {
  expect_layouts_equal_one_process({with_pairs("interleaved-1f1b", {.pipeline = 3, .chunks = 2}),
                                    with_pairs("1f1b-merged", {.pipeline = 3, .chunks = 2}),
                                    with_pairs("looped-bfs", {.pipeline = 3, .chunks = 2})});
}

}  // namespace
}  // namespace slipway::test
