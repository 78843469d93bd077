// The calls of slipway-rank-cuda to NVIDIA's libraries, which tests/cuda_double/ records: NCCL's messages and their
// order, the waits of the host, and the launched kernels.
#include <gmock/gmock.h>

#include <algorithm>

#include "exec/lanes/lanes.h"
#include "models/trace/trace.h"
#include "tests/support/on_cuda_double.h"

namespace slipway::test {
namespace {

using testing::IsEmpty;
using testing::Not;

struct Asked {
  std::string what;
  long elements = 0;
  int type = 0, peer = 0;
  long group = 0;  // of NCCL; calls of one group start together
};
// Per communicator and member.
using NcclCalls = std::map<std::string, std::map<int, std::vector<Asked>>>;

NcclCalls nccl_calls(const OnDouble& run) {
  NcclCalls calls;
  for (const std::string& name : run.files("nccl.")) {
    const std::size_t dot = name.rfind('.');
    std::ifstream file(run.folder + "/calls/" + name);
    std::vector<Asked>& lines = calls[name.substr(0, dot)][std::stoi(name.substr(dot + 1))];
    for (Asked a; file >> a.what >> a.elements >> a.type >> a.peer >> a.group;) lines.push_back(a);
  }
  return calls;
}

std::string text_of(const Asked& asked) {
  return asked.what + " of " + std::to_string(asked.elements) + ", type " + std::to_string(asked.type);
}

std::vector<std::string> collectives(const std::vector<Asked>& all) {
  std::vector<std::string> found;
  for (const Asked& asked : all)
    if (asked.peer < 0) found.push_back(text_of(asked));
  return found;
}

// Number and type of the elements of each message to or from `peer`.
std::vector<std::pair<long, int>> messages(const std::vector<Asked>& all, const std::string& what, int peer) {
  std::vector<std::pair<long, int>> found;
  for (const Asked& asked : all)
    if (asked.what == what && asked.peer == peer) found.emplace_back(asked.elements, asked.type);
  return found;
}

std::vector<Step> layouts() {
  return {with_layout(tiny_llama(4, true), {.tensor = 2, .sequence_parallel = true}),
          with_layout(tiny_llama(4, true), {.pipeline = 2}),
          scheduled("interleaved-1f1b", {.pipeline = 2, .chunks = 2}),
          scheduled("zb-v", {.pipeline = 2, .chunks = 2}),
          with_layout(tiny_llama(4, true), {.data = 2, .zero = 1}),
          with_layout(tiny_llama(4, true), {.data = 2, .zero = 3}),
          ring({.context = 2})};
}

TEST(CudaCalls, MembersAskNcclForTheSameMessagesInTheSameOrder) {
  for (const Step& input : layouts()) {
    SCOPED_TRACE(input.schedule + ", pipeline " + std::to_string(input.layout.pipeline));
    const OnDouble run = run_on_double(bundle_of(input, 2, Dtype::bfloat16), 2);
    expect_success(run);
    const NcclCalls calls = nccl_calls(run);
    EXPECT_THAT(calls, Not(IsEmpty()));
    for (const auto& [communicator, members] : calls) {
      ASSERT_EQ(members.size(), 2u) << communicator;
      EXPECT_EQ(collectives(members.at(0)), collectives(members.at(1))) << communicator;
      for (const int sender : {0, 1})
        EXPECT_EQ(messages(members.at(sender), "send", 1 - sender), messages(members.at(1 - sender), "receive", sender))
            << communicator;
    }
  }
}

// Otherwise each member would wait for the other to receive.
TEST(CudaCalls, AroundARingEverySendIsStartedTogetherWithItsReceive) {
  const OnDouble run = run_on_double(bundle_of(ring({.context = 2}), 2, Dtype::bfloat16), 2);
  expect_success(run);
  for (const auto& [communicator, members] : nccl_calls(run)) {
    for (const auto& [member, all] : members) {
      std::map<long, std::vector<std::string>> groups;
      for (const Asked& asked : all)
        if (asked.peer >= 0) groups[asked.group].push_back(asked.what);
      for (const auto& [number, group] : groups)
        EXPECT_EQ(group, (std::vector<std::string>{"send", "receive"})) << communicator << ", member " << member;
    }
  }
}

// Number of times the host has waited for the device. Allocations, which may wait too, are not counted: they depend on
// which lane is faster.
long waits(const Bundle& bundle, int processes) {
  const OnDouble run = run_on_double(bundle, processes);
  expect_success(run);
  long sum = 0;
  for (const char* call : {"cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy",
                           "cudaMemcpyAsync, pageable"})
    sum += run.calls()[call];
  return sum;
}

// Rows of at least 16 bytes, as the grouped kernel needs.
Model experts_for_kernels() {
  Model model = tiny_mixtral(4);
  model.runs[1].block.ffn = 32;
  return model;
}

// In a step other than the first, each lane waits for its end. Once tasks_ahead tasks behind it are not known to be
// done, it also waits before each task for the one tasks_ahead before. The rank with the loss waits for it, rank 0 for
// the norm by which it clips. Nothing else waits, whatever a task holds.
TEST(CudaCalls, TheHostWaitsForTheEndOfAStepAndForTasksThatLieFarBack) {
  struct Case {
    Model model;
    Degrees degrees;
    int processes;
  };
  // With experts too, though only the device knows each expert's number of rows.
  for (const auto& [model, degrees, processes] :
       {Case{tiny_llama(4, true), {.pipeline = 2}, 1},
        Case{tiny_llama(4, true), {.tensor = 2, .sequence_parallel = true}, 1},
        Case{tiny_llama(4, true), {.pipeline = 2}, 2}, Case{experts_for_kernels(), {.pipeline = 2}, 1}}) {
    constexpr int few = 4, more = 8;
    const Step input = with_layout(model, degrees);
    const Bundle longer = bundle_of(input, more, Dtype::bfloat16);
    long expected = 2;
    for (const Lane& lane : lanes_of(longer.graph)) {
      const auto tasks = static_cast<long>(lane.tasks.size()), behind = 2 * tasks - static_cast<long>(tasks_ahead);
      expected += 1 + std::clamp(behind, 0L, tasks);
    }
    const long more_waits = waits(longer, processes) - waits(bundle_of(input, few, Dtype::bfloat16), processes);
    EXPECT_EQ(more_waits, (more - few) * expected) << processes << " processes, tensor " << degrees.tensor;
  }
}

TEST(CudaCalls, InBfloat16AttentionNormsAndOptimizerAreTheFusedKernels) {
  const OnDouble run = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2, Dtype::bfloat16), 1);
  expect_success(run);
  const int forwards = 2 * 8 * 4;  // steps, micro-batches, layers
  EXPECT_EQ(run.calls_of("flash_fwd_kernel"), forwards);
  EXPECT_EQ(run.calls_of("flash_bwd_dq_dk_dv"), forwards);
  EXPECT_EQ(run.calls_of("softmax_warp"), 0) << "of the whole score matrix";
  EXPECT_GT(run.calls_of("FusedAdam"), 0);
  EXPECT_GT(run.calls_of("layer_norm_kernel"), 0);
  EXPECT_EQ(run.calls_of("Dgemm"), 0) << "nothing is multiplied in float64";
  const OnDouble wide = run_on_double(bundle_of(with_layout(tiny_llama(4, true), {}), 2, Dtype::float64), 1);
  expect_success(wide);
  EXPECT_GT(wide.calls_of("Dgemm"), 0);
  EXPECT_EQ(wide.calls_of("flash_fwd_kernel"), 0) << "which has no float64";
}

// For a model of 100 KB: cuBLAS's workspaces would be 32 MiB each.
// Three products forward would be four; up and down of a layer, and twice as many backward.
TEST(CudaCalls, InBfloat16AllExpertsOfALayerAreOneKernelAProduct) {
  const OnDouble run = run_on_double(bundle_of(with_layout(experts_for_kernels(), {}), 2, Dtype::bfloat16), 1);
  expect_success(run);
  const int layers = 2 * 8 * 4;  // in steps, micro-batches
  EXPECT_EQ(run.calls_of("GroupProblemShape"), 2 * 3 * layers);
}

TEST(CudaCalls, MeasuredMemoryIsThatOfTasksAndNotOfLibraries) {
  const Bundle bundle = bundle_of(with_layout(tiny_llama(4, true), {}), 2, Dtype::bfloat16);
  const OnDouble run = run_on_double(bundle, 1);
  expect_success(run);
  std::ifstream file(run.folder + "/rank-0.records");
  double most = 0;
  for (std::string line; std::getline(file, line);) most = std::max(most, record_from_text(line).memory_peak_bytes);
  EXPECT_GT(most, 100e3);
  EXPECT_LT(most, 4e6);
}

}  // namespace
}  // namespace slipway::test
