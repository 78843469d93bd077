// slipway-rank-cuda where there is no GPU: PyTorch's CUDA code and ours over NVIDIA's libraries that do nothing
// (tests/cuda_double/). Kernels leave only their names, so no number is right; what the host does is what it would do on an
// H100: it allocates, launches, waits, captures and replays, and everything that CUDA refuses there is refused here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/rank_processes.h"
#include "tests/tiny_runs.h"

namespace slipway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string preloaded() {
  std::string paths;
  for (const auto& entry : std::filesystem::directory_iterator(SLIPWAY_CUDA_DOUBLE)) {
    const std::string name = entry.path().filename();
    const std::size_t version = name.find(".so.");
    if (version != std::string::npos && name.find_first_not_of("0123456789", version + 4) == std::string::npos)
      paths += entry.path().string() + " ";
  }
  return paths;
}

struct OnDouble {
  std::string folder;
  std::vector<Ended> processes;

  std::vector<std::string> files(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/calls")) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix)) found.push_back(name);
    }
    return found;
  }
  // How often each kernel was launched and each call that is counted was made, over all processes.
  std::map<std::string, long> calls() const {
    std::map<std::string, long> counts;
    for (const std::string& name : files("launches.")) {
      std::ifstream file(folder + "/calls/" + name);
      long count = 0;
      for (std::string what; file >> count && file.ignore() && std::getline(file, what);) counts[what] += count;
    }
    return counts;
  }
  long calls_of(const std::string& part) const {
    long sum = 0;
    for (const auto& [name, count] : calls())
      if (name.find(part) != std::string::npos) sum += count;
    return sum;
  }
  // Kernels that were launched one by one: mangled names begin so, those of functions in C do not.
  long kernels() const {
    long sum = 0;
    for (const auto& [name, count] : calls())
      if (name.starts_with("_Z") || name.starts_with("cublas")) sum += count;
    return sum;
  }
};

OnDouble run_on_double(const Bundle& bundle, int processes, std::vector<std::string> more = {},
                  std::map<std::string, std::string> environment = {}) {
  static int count = 0;
  const std::string folder = temporary_folder().path("cuda" + std::to_string(count++));
  std::filesystem::create_directories(folder + "/calls");
  write_bundle_file(folder + "/run.slip", bundle);
  std::vector<std::string> words{folder + "/run.slip", "--out", folder, "--threads", "1", "--connect-timeout", "60",
                                 "--ranks-per-process", std::to_string(rank_count(bundle.graph.layout) / processes)};
  words.insert(words.end(), more.begin(), more.end());
  environment.insert({{"LD_PRELOAD", preloaded()},
                      {"SLIPWAY_DOUBLE_LAUNCHES", folder + "/calls"},
                      {"SLIPWAY_DOUBLE_GPUS", std::to_string(processes)}});
  RankProcesses ranks(SLIPWAY_CUDA_RANK_PROGRAM, words, processes, folder, environment);
  return {folder, ranks.wait(240)};
}

void expect_success(const OnDouble& run) {
  for (const Ended& process : run.processes) {
    EXPECT_EQ(process.status, 0) << process.errors;
    EXPECT_EQ(process.errors, "");
  }
}

Bundle bundle_of(LoweringInput input, int steps, Dtype dtype = Dtype::float64) {
  input.shape.dtype = dtype;
  input.gradient_dtype = dtype == Dtype::float64 ? dtype : Dtype::float32;
  input.clip_norm = 1;
  input.shape.sharding = sharding_of(input.layout);
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

LoweringInput ring(const Degrees& degrees) {
  LoweringInput input = with_layout(tiny_llama(4, true), degrees);
  input.layout.context_exchange = ContextExchange::ring;
  input.shape.sharding = sharding_of(input.layout);
  return input;
}

LoweringInput scheduled(const std::string& schedule, const Degrees& degrees) {
  LoweringInput input = with_layout(tiny_llama(8, false), degrees);
  input.schedule = schedule;
  return input;
}

std::vector<LoweringInput> layouts() {
  std::vector<LoweringInput> inputs{
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
  LoweringInput recomputed = with_layout(tiny_llama(4, false), {.pipeline = 2});
  recomputed.recompute = Recompute::full;
  inputs.push_back(recomputed);
  return inputs;
}

TEST(CudaHost, EveryLayoutAndScheduleRunsToItsEndInOneProcess) {
  for (const LoweringInput& input : layouts()) {
    for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
      SCOPED_TRACE(input.schedule + " on " + std::to_string(rank_count(input.layout)) + " ranks");
      const OnDouble run = run_on_double(bundle_of(input, 2, dtype), 1);
      expect_success(run);
      EXPECT_GT(run.kernels(), 0);
    }
  }
}

// Whatever CUDA does not allow while a stream is captured would end the run.
TEST(CudaHost, EveryLayoutIsRecordedAsGraphsAndReplayed) {
  constexpr int steps = 4;  // the first records nothing, and what a later one records is launched from then on
  for (const LoweringInput& input : layouts()) {
    SCOPED_TRACE(input.schedule + " on " + std::to_string(rank_count(input.layout)) + " ranks");
    const OnDouble one_by_one = run_on_double(bundle_of(input, steps, Dtype::bfloat16), 1);
    const OnDouble replayed = run_on_double(bundle_of(input, steps, Dtype::bfloat16), 1, {"--cuda-graphs"});
    expect_success(one_by_one);
    expect_success(replayed);
    if (replayed.processes.front().output.find("no segment is recorded") != std::string::npos) continue;
    EXPECT_GT(replayed.calls_of("cudaGraphLaunch"), 0);
    EXPECT_LT(replayed.kernels(), one_by_one.kernels());
  }
}

// What each member of a communicator asked for, a line a message.
using Told = std::map<std::string, std::map<int, std::vector<std::string>>>;

Told told_to_nccl(const OnDouble& run) {
  Told told;
  for (const std::string& name : run.files("nccl.")) {
    const std::size_t dot = name.rfind('.');
    std::ifstream file(run.folder + "/calls/" + name);
    std::vector<std::string>& lines = told[name.substr(0, dot)][std::stoi(name.substr(dot + 1))];
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  return told;
}

// How much and of which type, of the lines that begin with `what` and end with `peer`.
std::vector<std::string> only(const std::vector<std::string>& lines, const std::string& what, const std::string& peer = "") {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (!line.starts_with(what) || !line.ends_with(peer)) continue;
    found.push_back(line.substr(what.size(), line.find(" peer") - what.size()));
  }
  return found;
}

TEST(CudaHost, MembersAskNcclForTheSameMessagesInTheSameOrder) {
  for (const LoweringInput& input :
       {with_layout(tiny_llama(4, true), {.tensor = 2, .sequence_parallel = true}),
        with_layout(tiny_llama(4, true), {.pipeline = 2}), scheduled("interleaved-1f1b", {.pipeline = 2, .chunks = 2}),
        scheduled("zb-v", {.pipeline = 2, .chunks = 2}), with_layout(tiny_llama(4, true), {.data = 2, .zero = 1}),
        with_layout(tiny_llama(4, true), {.data = 2, .zero = 3}), ring({.context = 2})}) {
    SCOPED_TRACE(input.schedule + ", pipeline " + std::to_string(input.layout.pipeline));
    const OnDouble run = run_on_double(bundle_of(input, 2, Dtype::bfloat16), 2);
    expect_success(run);
    const Told told = told_to_nccl(run);
    EXPECT_THAT(told, Not(IsEmpty()));
    for (const auto& [communicator, members] : told) {
      ASSERT_EQ(members.size(), 2u) << communicator;
      for (const char* collective : {"all-reduce", "all-gather", "reduce-scatter"})
        EXPECT_EQ(only(members.at(0), collective), only(members.at(1), collective)) << communicator;
      for (const int sender : {0, 1}) {
        const int receiver = 1 - sender;
        EXPECT_EQ(only(members.at(sender), "send", std::to_string(receiver)),
                  only(members.at(receiver), "receive", std::to_string(sender)))
            << communicator;
      }
    }
  }
}

// Each lane waits for the end of the step, and one for its loss: nothing inside a step, whatever it holds.
TEST(CudaHost, TheHostWaitsForTheDeviceOnceAStepAndLane) {
  for (const std::int64_t batch : {8, 16}) {
    LoweringInput input = with_layout(tiny_llama(4, true), {.pipeline = 2});
    input.global_batch = batch;
    const auto waits = [&](const Bundle& bundle) {
      const OnDouble run = run_on_double(bundle, 1);
      expect_success(run);
      long sum = 0;
      for (const char* call : {"cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy",
                               "cudaMemcpyAsync, pageable", "cudaMalloc"})
        sum += run.calls()[call];
      return sum;
    };
    const Bundle few = bundle_of(input, 4, Dtype::bfloat16), more = bundle_of(input, 8, Dtype::bfloat16);
    EXPECT_EQ(waits(more) - waits(few), 4 * static_cast<long>(lanes_of(more.graph).size() + 1)) << "batch " << batch;
  }
}

TEST(CudaHost, InBfloat16AttentionNormsAndOptimizerAreTheFusedKernels) {
  const OnDouble run = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2, Dtype::bfloat16), 1);
  expect_success(run);
  const int forwards = 2 * 8 * 4;  // steps, micro-batches, layers
  EXPECT_EQ(run.calls_of("flash_fwd_kernel"), forwards);
  EXPECT_EQ(run.calls_of("flash_bwd_dq_dk_dv"), forwards);
  EXPECT_EQ(run.calls_of("softmax_warp"), 0) << "of the whole score matrix";
  EXPECT_GT(run.calls_of("FusedAdam"), 0);
  EXPECT_GT(run.calls_of("layer_norm_kernel"), 0);
  EXPECT_EQ(run.calls_of("Dgemm"), 0) << "nothing is multiplied in float64";
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

TEST(CudaHost, AGpuWithTooLittleMemoryIsToldInOneLine) {
  const OnDouble run = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2), 1, {},
                                {{"SLIPWAY_DOUBLE_MEMORY", std::to_string(3 << 20)}});
  EXPECT_EQ(run.processes.front().status, 1);
  const std::string& error = run.processes.front().errors;
  EXPECT_THAT(error, AllOf(HasSubstr("rank 0 failed: "), HasSubstr("out of memory"), Not(HasSubstr("frame #"))));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
}

TEST(CudaHost, ANodeWithoutAGpuIsToldInOneLine) {
  const OnDouble run = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2), 1, {}, {{"SLIPWAY_DOUBLE_GPUS", "0"}});
  EXPECT_NE(run.processes.front().status, 0);
  EXPECT_THAT(run.processes.front().errors, AllOf(HasSubstr("this node has 0 usable GPUs"), Not(HasSubstr("frame #"))));
}

}  // namespace
}  // namespace slipway
