// slipway kernels: its tables, its errors, and rows of experts.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/laboratory/kernels/kernel_rows.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

using KernelsCommand = CommandTest;

// Products of a GPU that reaches 0.6 of the H100's 989.4 TFLOP/s after 4 µs.
std::string products() {
  std::string text = "gpu,format,m,n,k,seconds\n";
  for (const int m : {1024, 2048, 4096, 8192})
    for (const int n : {2048, 4096, 8192})
      for (const int k : {4096, 8192})
        text += "h100-80gb,bfloat16," + std::to_string(m) + "," + std::to_string(n) + "," + std::to_string(k) + "," +
                std::to_string(4e-6 + 2.0 * m * n * k / 0.6 / 989.4e12) + "\n";
  return text;
}

class KernelsOfFile : public KernelsCommand {
 protected:
  std::string file(const std::string& text) const {
    std::ofstream(path("kernels.csv")) << text;
    return path("kernels.csv");
  }
};

TEST_F(KernelsOfFile, PrintsTheShareOfPeakThatMadeTheTimes) {
  const Answer answer = slipway_with({"kernels", file(products()), "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto kernel = nlohmann::json::parse(answer.out)["kernels"][0];
  EXPECT_EQ(kernel["gpu"], "h100-80gb");
  EXPECT_EQ(kernel["kernel"], "gemm bfloat16");
  EXPECT_EQ(kernel["shapes"], 24);
  EXPECT_EQ(kernel["constants"][0]["name"], "share");
  EXPECT_NEAR(kernel["constants"][0]["value"].get<double>(), 0.6, 0.01);
  EXPECT_EQ(kernel["constants"].size(), 4U) << "nothing is cast";
}

// Products as above, and all-reduces on the 450 GB/s of an NVLink 4 port, with the forms of models/machine/kernels.h.
TEST_F(KernelsOfFile, TheProfileHasTheConstantsThatMadeTheTimes) {
  std::string messages = "gpu,collective,members,bytes,seconds\n";
  for (const int members : {2, 4, 8})
    for (const double bytes : {1048576.0, 4194304.0, 16777216.0, 67108864.0, 268435456.0, 1073741824.0}) {
      const double ring = 2 * (members - 1.0) / members * bytes, port = 450e9;
      const double seconds =
          12e-6 + 1e-6 * (members - 1) + ring / (port * 0.7) + 0.5 * bytes / members / port + 8e-9 * std::sqrt(ring);
      messages += "h100-80gb,all-reduce," + std::to_string(members) + "," + std::to_string(std::llround(bytes)) + "," +
                  std::to_string(seconds * 1e9) + "e-9\n";
    }
  std::ofstream(path("messages.csv")) << messages;
  const Answer answer =
      slipway_with({"kernels", file(products()), path("messages.csv"), "--profile", path("kernels.yaml")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  // In the place of the built-in section, as a user would paste it.
  std::ifstream built_in(SLIPWAY_SOURCE_DIR "/models/machine/profiles/h100-80gb.yaml");
  std::string profile, line;
  for (bool is_kernels = false; std::getline(built_in, line);) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') is_kernels = line.starts_with("kernels:");
    if (!is_kernels) profile += line + '\n';
  }
  std::ofstream(path("own.yaml")) << profile << text_of(path("kernels.yaml"));
  const LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml",
                                          {"cluster.machine=" + path("own.yaml")});
  ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  const Machine& machine = loaded.scenario.cluster.groups.front().machine;
  const auto& gemm = machine.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)];
  ASSERT_TRUE(gemm);
  EXPECT_NEAR(gemm->share, 0.6, 0.006);
  EXPECT_NEAR(gemm->launch, 4e-6, 1.2e-6) << "the times of products are rounded to a microsecond";
  const auto& reduce = machine.kernels.collective[static_cast<std::size_t>(Collective::all_reduce)];
  ASSERT_TRUE(reduce);
  EXPECT_NEAR(reduce->share, 0.7, 0.02);
  for (const int members : {2, 3, 8})  // what prices read
    for (const double bytes : {2e6, 5e8}) {
      const double ring = 2 * (members - 1.0) / members * bytes, port = 450e9;
      const double made =
          12e-6 + 1e-6 * (members - 1) + ring / (port * 0.7) + 0.5 * bytes / members / port + 8e-9 * std::sqrt(ring);
      EXPECT_NEAR(seconds_of(*reduce, port, {static_cast<double>(members), bytes, ring}) / made, 1, 0.02)
          << members << ' ' << bytes;
    }
}

TEST_F(KernelsOfFile, WritesEveryShapeBesideItsPrediction) {
  const Answer answer = slipway_with({"kernels", file(products()), "--csv", path("shapes.csv")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const std::string shapes = text_of(path("shapes.csv"));
  EXPECT_EQ(std::count(shapes.begin(), shapes.end(), '\n'), 25);
  EXPECT_THAT(shapes, HasSubstr("h100-80gb,gemm bfloat16,bfloat16 1024 2048 4096,"));
}

TEST_F(KernelsOfFile, RefusesEachDefectWithItsPlace) {
  const auto refused = [&](const std::string& text, const std::string& error) {
    const Answer answer = slipway_with({"kernels", file(text), "--csv", path("out.csv")});
    EXPECT_EQ(answer.status, status_usage) << text;
    EXPECT_THAT(answer.err, HasSubstr(error));
    EXPECT_EQ(answer.out, "");
    EXPECT_EQ(files(), 1U) << "nothing may be written";
  };
  refused("", "kernels.csv");
  refused("gpu,format,p,q,seconds\nh100-80gb,bfloat16,1,2,3\n", "kernels.csv:1: its columns are of no known kernel");
  refused("gpu,format,m,n,k,seconds\nh100,bfloat16,8,8,8,1e-5\n",
          "kernels.csv:2: column gpu: no machine profile 'h100'");
  refused("gpu,format,m,n,k,seconds\nh100-80gb,int3,8,8,8,1e-5\n", "kernels.csv:2: column format: 'int3' is none of");
  refused("gpu,format,m,n,k,seconds\nh100-80gb,bfloat16,8,8,8,0\n", "kernels.csv:2: column seconds");
  refused("gpu,format,m,n,k,seconds\na100-80gb,nvfp4,8,8,8,1e-5\n", "machine a100-80gb has no peak_flops for nvfp4");
  refused("gpu,format,m,n,k,seconds\nh100-80gb,bfloat16,8,8,8,1e-5\n",
          "too few shapes of gemm bfloat16 on h100-80gb for its constants: 1; allowed: at least 10");
}

double sum(const std::vector<double>& rows) { return std::accumulate(rows.begin(), rows.end(), 0.0); }

TEST(RowsOfExperts, OfAllGpusAreTheTokensTimesTheExpertsOfEach) {
  EXPECT_NEAR(sum(rows_of_fullest_gpu(4096, 8, 128, 1, 1.2)), 4096 * 8, 1e-6);
}

TEST(RowsOfExperts, OfTheFullestGpuAreMoreThanItsShareAndNoExpertGetsATokenTwice) {
  for (const double exponent : {1.01, 1.2}) {
    const std::vector<double> rows = rows_of_fullest_gpu(4096, 8, 128, 8, exponent);
    EXPECT_EQ(rows.size(), 16U);
    EXPECT_GT(sum(rows), 4096);
    for (const double of_expert : rows) EXPECT_LE(of_expert, 4096 * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace slipway::test
