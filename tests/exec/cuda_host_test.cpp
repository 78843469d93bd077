// slipway-rank-cuda without a GPU: the CUDA code of PyTorch and of this project over NVIDIA's libraries that do nothing
// (tests/cuda_double/). Kernels leave only their names, so no number is right. The host does what it would do on a GPU:
// it allocates, launches, waits, captures and replays. What tests/cuda_double/state.h lists is refused as by CUDA.
#include <gmock/gmock.h>

#include "tests/support/evaluation_runs.h"
#include "tests/support/on_cuda_double.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<Step> layouts() {
  std::vector<Step> inputs{
      with_layout(tiny_llama(4, true), {}),
      with_layout(tiny_llama(4, true), {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true}),
      with_layout(tiny_llama(4, true), {.tensor = 2, .data = 2, .context = 2, .zero = 3}),
      with_layout(tiny_gpt(4), {.pipeline = 4, .data = 2, .zero = 2}),
      with_layout(tiny_bert(2), {.tensor = 2, .data = 2}),
      ring({.tensor = 2, .context = 4}),
      scheduled("interleaved-1f1b", {.pipeline = 2, .chunks = 2}),
      scheduled("gpipe", {.pipeline = 4}),
      scheduled("chimera", {.pipeline = 4}),
      scheduled("zb-h1", {.pipeline = 4}),
      scheduled("zb-h2", {.pipeline = 2, .data = 2, .zero = 2}),
      scheduled("zb-v", {.pipeline = 4, .chunks = 2}),
      scheduled("dualpipe-v", {.pipeline = 2, .chunks = 2}),
  };
  Step recomputed = with_layout(tiny_llama(4, false), {.pipeline = 2});
  recomputed.recompute = Recompute::full;
  inputs.push_back(recomputed);
  return inputs;
}

TEST(CudaHost, EveryLayoutAndScheduleRunsToItsEndInOneProcess) {
  for (const Step& input : layouts()) {
    for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
      SCOPED_TRACE(input.schedule + " on " + std::to_string(rank_count(input.layout)) + " ranks");
      const OnDouble run = run_on_double(bundle_of(input, 2, dtype), 1);
      expect_success(run);
      EXPECT_GT(run.kernels(), 0);
    }
  }
}

// An operation that CUDA forbids while a stream is captured would end the run.
TEST(CudaHost, EveryLayoutIsRecordedAsGraphsAndReplayed) {
  constexpr int steps = 4;  // two run operator by operator, the third records, and the last replays
  for (const Step& input : layouts()) {
    SCOPED_TRACE(input.schedule + " on " + std::to_string(rank_count(input.layout)) + " ranks");
    const OnDouble one_by_one = run_on_double(bundle_of(input, steps, Dtype::bfloat16), 1);
    const OnDouble replayed = run_on_double(bundle_of(input, steps, Dtype::bfloat16), 1, {"--cuda-graphs"});
    expect_success(one_by_one);
    expect_success(replayed);
    const bool is_recorded = input.layout.zero < 2;  // exec/lanes/recordings.h
    EXPECT_EQ(replayed.calls()["cudaGraphLaunch"] > 0, is_recorded);
    EXPECT_EQ(replayed.kernels() < one_by_one.kernels(), is_recorded);
  }
}

// Streams and transports stay; segments of the next program are recorded anew.
TEST(CudaHost, ABatchThatGrowsRunsToItsEndWithAndWithoutGraphs) {
  BatchSchedule stages = in_stages();
  stages.stages = {{16, 8}, {48, 16}};  // four steps of each of the first: two run normally, one records, one replays
  for (const int processes : {1, 2}) {
    Step input = with_layout(tiny_llama(4, true), {.data = 2, .zero = 1});
    input.dtype = Dtype::bfloat16;
    input.gradient_dtype = Dtype::float32;
    Bundle bundle = growing_bundle(input, stages);
    bundle.run.steps = 10;
    const OnDouble eager = run_on_double(bundle, processes),
                   replayed = run_on_double(bundle, processes, {"--cuda-graphs"});
    expect_success(eager);
    expect_success(replayed);
    EXPECT_GT(replayed.calls()["cudaGraphLaunch"], 0);
    EXPECT_LT(replayed.kernels(), eager.kernels());
    BatchSchedule measured = by_norm_test(0.4);
    measured.test_every = 100;  // norms of gradients that were not computed decide nothing
    Bundle tested = growing_bundle(input, measured);
    tested.run.steps = 6;
    expect_success(run_on_double(tested, processes));
  }
}

// Every program has first steps of its own.
TEST(CudaHost, ABatchThatGrowsRunsToItsEndInAPipelineOfTwoProcesses) {
  Step input = with_layout(tiny_llama(4, true), {.pipeline = 2});
  input.dtype = Dtype::bfloat16;
  input.gradient_dtype = Dtype::float32;
  BatchSchedule stages = in_stages();
  stages.stages = {{16, 8}, {48, 16}};
  Bundle bundle = growing_bundle(input, stages);
  bundle.run.steps = 10;
  bundle.run.checkpoint_steps = 3;
  expect_success(run_on_double(bundle, 2));
  expect_success(run_on_double(bundle, 2, {"--cuda-graphs"}));
}

// Messages inside a process beside messages between processes. A norm of all gradients would join all four ranks.
TEST(CudaHost, TwoProcessesOfTwoRanksRunToTheirEnd) {
  Step input = with_layout(tiny_llama(4, true), {.tensor = 2, .pipeline = 2, .sequence_parallel = true});
  input.dtype = input.gradient_dtype = Dtype::float64;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = 4;
  expect_success(run_on_double(bundle, 2));
}

// In float64 the host would read each expert's number of rows from the device, which has not counted them.
TEST(CudaHost, ExpertsRunToTheirEndInOneProcessAndInTwo) {
  Model model = tiny_mixtral(4);
  model.runs[1].block.ffn = 32;
  Step split = with_layout(model, {.pipeline = 2});
  split.schedule = "zb-h1";
  for (const int processes : {1, 2}) {
    for (const Step& input : {with_layout(model, {.tensor = 2, .sequence_parallel = true}),
                              with_layout(model, {.data = 2, .zero = 3}), split})
      expect_success(run_on_double(bundle_of(input, 3, Dtype::bfloat16), processes));
  }
}

TEST(CudaHost, EvaluationInTheBubblesRunsToItsEndInOneProcessAndInTwo) {
  for (const int processes : {1, 2}) {
    Step input = with_layout(tiny_llama(4, true), {.pipeline = 2});
    input.dtype = Dtype::bfloat16;
    input.gradient_dtype = Dtype::float32;
    Bundle bundle = evaluating(input, 0.3);
    bundle.run.steps = 2 * bundle.graph.window;
    expect_success(run_on_double(bundle, processes));
  }
}

TEST(CudaHost, TwoProcessesRunToTheirEndWithAndWithoutGraphs) {
  for (const Step& input :
       {with_layout(tiny_llama(4, true), {.tensor = 2, .sequence_parallel = true}),
        with_layout(tiny_llama(4, true), {.data = 2, .zero = 1}), scheduled("zb-v", {.pipeline = 2, .chunks = 2})}) {
    for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
      SCOPED_TRACE(input.schedule + ", pipeline " + std::to_string(input.layout.pipeline));
      expect_success(run_on_double(bundle_of(input, 2, dtype), 2));
      const OnDouble replayed = run_on_double(bundle_of(input, 4, dtype), 2, {"--cuda-graphs"});
      expect_success(replayed);
      EXPECT_GT(replayed.calls()["cudaGraphLaunch"], 0);
    }
  }
}

TEST(CudaHost, ACheckpointIsWrittenAndResumed) {
  Bundle bundle = bundle_of(with_layout(tiny_llama(4, true), {.tensor = 2, .data = 2, .zero = 1}), 4, Dtype::bfloat16);
  bundle.run.checkpoint_steps = 2;
  const OnDouble first = run_on_double(bundle, 1, {"--steps", "2"});
  expect_success(first);
  EXPECT_TRUE(std::filesystem::exists(first.folder + "/checkpoints/step-00000002/manifest"));
  const OnDouble second = run_on_double(bundle, 1, {"--resume", first.folder + "/checkpoints/step-00000002"});
  expect_success(second);
  EXPECT_THAT(second.processes.front().output, AllOf(HasSubstr("step 3/4"), Not(HasSubstr("step 2/4"))));
}

// No code of this project would find it: the device would wait for ever.
TEST(CudaHost, AnErrorThatOnlyNcclKnowsOfEndsEveryRankWithItsCommunicator) {
  const OnDouble run = run_on_double(endless_bundle(2, 1), 2, {}, {{"SLIPWAY_DOUBLE_NCCL_BREAKS_AFTER", "20"}});
  for (const Ended& process : run.processes) {
    EXPECT_EQ(process.status, 1) << process.errors;
    EXPECT_THAT(process.errors, HasSubstr("NCCL reports an error"));
    EXPECT_THAT(process.errors, HasSubstr("pp."));
    EXPECT_LT(process.seconds, 30) << "three times what a failure may take";
  }
}

// The double refuses a communicator where NCCL would use another interface.
TEST(CudaHost, NcclOfRanksOnOneMachineUsesItsLoopbackUnlessToldOtherwise) {
  const Bundle bundle = bundle_of(with_layout(tiny_llama(4, true), {.data = 2}), 1);
  expect_success(run_on_double(bundle, 2, {}, {{"SLIPWAY_DOUBLE_NCCL_INTERFACE", "lo"}}));
  expect_success(
      run_on_double(bundle, 2, {}, {{"SLIPWAY_DOUBLE_NCCL_INTERFACE", "eth1"}, {"NCCL_SOCKET_IFNAME", "eth1"}}));
}

TEST(CudaHost, AGpuWithTooLittleMemoryIsToldInOneLine) {
  const OnDouble run = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2), 1, {},
                                     {{"SLIPWAY_DOUBLE_MEMORY", std::to_string(3 << 20)}});
  EXPECT_EQ(run.processes.front().status, 1);
  const std::string& error = run.processes.front().errors;
  EXPECT_THAT(error, AllOf(HasSubstr("rank 0 failed: "), HasSubstr("out of memory"), Not(HasSubstr("frame #"))));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
}

TEST(CudaHost, ANodeWithoutAGpuIsToldInOneLine) {
  const OnDouble run =
      run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2), 1, {}, {{"SLIPWAY_DOUBLE_GPUS", "0"}});
  EXPECT_NE(run.processes.front().status, 0);
  EXPECT_THAT(run.processes.front().errors, AllOf(HasSubstr("this node has 0 usable GPUs"), Not(HasSubstr("frame #"))));
}

}  // namespace
}  // namespace slipway::test
