// The commands with slipway-rank-cuda without a GPU (tests/cuda_double/): each does its whole work. Kernels do nothing,
// so no measured value is checked.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/support/command_test.h"
#include "tests/support/on_cuda_double.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaCommands : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    setenv("LD_PRELOAD", preloaded().c_str(), 1);  // for the started ranks
    setenv("SLIPWAY_RANK", SLIPWAY_CUDA_RANK_PROGRAM, 1);
    std::ofstream(path("text.txt")) << std::string(5000, 'a');
    std::ofstream(path("s.yaml"))
        << "model: {family: llama, layers: 4, hidden: 64, ffn: 160, heads: 4, kv_heads: 2, vocab: 256, "
           "sequence: 64}\n"
           "cluster: {machine: h100-80gb, gpus_per_node: 1, ranks_per_gpu: 2}\n"
           "layout: {pipeline: 2}\n"
           "schedule: {name: 1f1b, micro_batch: 1, global_batch: 8}\n"
           "run: {steps: 4, seed: 1, data: text.txt, lr: 0.003, clip_norm: 1, dtype: bfloat16}\n";
  }
};

TEST_F(CudaCommands, ExecuteWithConfirmPredictsTrainsAndComparesKindByKind) {
  const Answer answer = slipway_with({"execute", path("s.yaml"), "--confirm", "--out", path("run")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_THAT(answer.out,
              AllOf(HasSubstr("step 4/4"), HasSubstr("Predicted before the run, and measured"), HasSubstr("forward"),
                    HasSubstr("backward"), HasSubstr("transfer"), HasSubstr("optimizer"), HasSubstr("Peak memory")));
  EXPECT_TRUE(std::filesystem::exists(path("run/trace.json")));
}

TEST_F(CudaCommands, CalibrateMeasuresTheGpuAndWritesItsProfile) {
  const Answer answer = slipway_with({"calibrate", path("s.yaml"), "--measure", "-o", path("gpu.yaml")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  for (const char* kind : {"gemm bfloat16", "attention bfloat16 64", "host-to-device", "device-to-host"})
    EXPECT_THAT(answer.out, HasSubstr(kind));
  EXPECT_THAT(text_of(path("gpu.yaml")), AllOf(HasSubstr("kernels:"), HasSubstr("host_to_device")));
  EXPECT_EQ(slipway_with({"simulate", path("s.yaml"), "--set", "cluster.machine=" + path("gpu.yaml")}).status, 0);
}

}  // namespace
}  // namespace slipway::test
