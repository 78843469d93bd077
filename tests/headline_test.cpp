// What the first line of a prediction names, and the dtype that it has where none is written.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

nlohmann::json summary_of(std::vector<std::string> args) {
  args.insert(args.begin(), "simulate");
  args.push_back("--json");
  return nlohmann::json::parse(slipway_with(args).out);
}

std::string headline_of(std::vector<std::string> settings) {
  std::vector<std::string> args{"simulate", llama};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  const std::string out = slipway_with(args).out;
  return out.substr(0, out.find('\n'));
}

TEST(Headline, TheHeadlineNamesRecomputationAndKernelsThatAreNotTheDefault) {
  EXPECT_THAT(headline_of({}), testing::EndsWith("bfloat16"));
  EXPECT_THAT(headline_of({"schedule.recompute=full"}), testing::EndsWith("bfloat16, recompute full"));
  EXPECT_THAT(headline_of({"schedule.recompute=selective", "schedule.kernels=torch"}),
              testing::EndsWith("bfloat16, recompute selective, kernels torch"));
  EXPECT_THAT(headline_of({"schedule.name=terapipe", "schedule.slices=8"}), testing::EndsWith("bfloat16, 8 slices"));
}

// Jiang et al. 2024: 47B parameters, of which a token uses 13B.
TEST(Headline, OfAMixtureOfExpertsItTellsHowManyParametersATokenGoesThrough) {
  EXPECT_THAT(headline_of({}), HasSubstr("llama-3.1-8b (8.03 G parameters), sequence"));
  EXPECT_THAT(headline_of({"model=mixtral-8x7b", "model.sequence=8192"}), HasSubstr("(46.7 G parameters, 12.9 G active), sequence"));
  EXPECT_NEAR(summary_of({llama, "--set", "model=mixtral-8x7b", "--set", "model.sequence=8192"})["active_parameters"].get<double>(), 12.9e9, 5e7);
  EXPECT_FALSE(summary_of({llama}).contains("active_parameters"));
}

// V100s have no bfloat16: their 16 bits are float16, with a peak of 125 and not 15.7 TFLOP/s.
TEST(Headline, GpusWithoutBfloat16TrainInFloat16AndNotSilentlyInFloat32) {
  EXPECT_THAT(headline_of({"cluster.machine=v100-32gb"}), HasSubstr(", float16"));
  EXPECT_THAT(headline_of({"cluster.machine=v100-32gb", "run.dtype=float32"}), HasSubstr(", float32"));
  const auto half = summary_of({llama, "--set", "cluster.machine=v100-32gb"}),
             whole = summary_of({llama, "--set", "cluster.machine=v100-32gb", "--set", "run.dtype=float32"});
  EXPECT_NEAR(whole["mfu"].get<double>() * whole["step_time_s"].get<double>() /
                  (half["mfu"].get<double>() * half["step_time_s"].get<double>()),
              125 / 15.7, 1e-9);
  EXPECT_LT(half["peak_memory_bytes"][0], whole["peak_memory_bytes"][0]);
  // On a GPU that has both, float16 takes the time and the memory of bfloat16.
  auto brain = summary_of({llama}), other = summary_of({llama, "--set", "run.dtype=float16"});
  for (const char* same : {"step_time_s", "mfu", "peak_memory_bytes"}) EXPECT_EQ(brain[same], other[same]) << same;
}

}  // namespace
}  // namespace slipway
