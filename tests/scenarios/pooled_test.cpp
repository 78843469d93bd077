// slipway validate --pooled, run in this process on a few rows of two studies.
#include "scenarios/validate/pooled.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/command_line/command.h"
#include "scenarios/language/load_kernels.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

class Pooled : public CommandTest {
 protected:
  // Measured rows of a study, in its own columns.
  std::string some_of(const std::string& study, int every, int most) const {
    std::ifstream in(SLIPWAY_SOURCE_DIR "/scenarios/studies/" + study + "/runs.csv");
    std::ofstream out(path(study + ".csv"));
    std::string line;
    int row = 0, taken = 0;
    while (std::getline(in, line)) {
      const bool is_data = line.find(",ok,") != std::string::npos;
      if (is_data && (row++ % every != 0 || taken++ >= most)) continue;
      if (is_data || line.starts_with("#") || line.starts_with("trainer,")) out << line << '\n';
    }
    return path(study + ".csv");
  }
  std::vector<std::string> both() const { return {some_of("hagemann-2023", 20, 10), some_of("fujii-2024", 8, 10)}; }
};

TEST_F(Pooled, PredictsEachTableAlsoWithoutItsPaperAndStatesHowSureItIs) {
  const std::vector<std::string> files = both();
  const Answer answer =
      slipway_with({"validate", files[0], files[1], "--pooled", "--rows", path("rows.csv"), "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  ASSERT_EQ(json["tables"].size(), 3u);  // aa-scaling, and two machines of megatron-core
  for (const auto& table : json["tables"])
    for (const char* way : {"book", "in_sample", "layouts", "paper"}) {
      EXPECT_GT(table[way]["mean"].get<double>(), 0) << table["trainer"] << way;
      EXPECT_TRUE(std::isfinite(table[way]["median"].get<double>()));
    }
  EXPECT_LT(json["mean"]["in_sample"]["mean"], json["mean"]["book"]["mean"]);
  EXPECT_GT(json["effective_constants"], 0);
  EXPECT_LT(json["effective_constants"], 60);
  std::ifstream rows(path("rows.csv"));
  const std::string text{std::istreambuf_iterator<char>(rows), {}};
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 20);
}

TEST_F(Pooled, EveryKeyOfTheJsonIsDocumented) {
  const std::string file = some_of("fujii-2024", 8, 6);
  const Answer answer = slipway_with({"validate", file, "--pooled", "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::vector<std::string> emitted;
  const auto json = nlohmann::json::parse(answer.out);
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(outermost(pooled_answers().front())));
}

TEST_F(Pooled, TheSameTablesGiveTheSameBytes) {
  const std::string file = some_of("fujii-2024", 8, 6);
  EXPECT_EQ(slipway_with({"validate", file, "--pooled"}).out, slipway_with({"validate", file, "--pooled"}).out);
}

TEST_F(Pooled, RefusesWhatAnotherEngineDoes) {
  const Answer answer = slipway_with({"validate", "--pooled", "--refit"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("leave --refit out"));
}

// The section `kernels` of a machine profile.
TEST(LoadKernels, ReadsEachKernelByItsName) {
  Defects defects;
  const auto text = parse_document(
      "source: timed\n"
      "gemm bfloat16: {share: 0.7, area: 600, memory: 0.6, launch: 2e-6, deviation: [0.1], left_out: 0.06}\n"
      "gemm fp8: {share: 0.6, area: 600, memory: 0.5, launch: 1e-5, cast: 9}\n"
      "attention bfloat16 128: {share: 0.5, half: 300, area: 1e4, memory: 0.7, launch: 3e-6}\n"
      "collective all-reduce: {share: 0.9, own: 0.5, launch: 6e-6, hop: 1e-6, ramp: 7e-9}\n",
      "m.yaml", defects);
  const MachineKernels kernels = kernels_from(*text, defects);
  EXPECT_TRUE(defects.empty()) << defects.front().key << defects.front().message;
  EXPECT_TRUE(kernels.measured);
  EXPECT_EQ(kernels.gemm[static_cast<std::size_t>(Format::bfloat16)]->share, 0.7);
  EXPECT_EQ(kernels.gemm[static_cast<std::size_t>(Format::bfloat16)]->cast, 0);
  EXPECT_EQ(kernels.gemm[static_cast<std::size_t>(Format::fp8)]->cast, 9);
  EXPECT_EQ(attention_of(kernels, Format::bfloat16, 96)->half, 300);
  EXPECT_EQ(kernels.collective[static_cast<std::size_t>(Collective::all_reduce)]->hop, 1e-6);
}

TEST(LoadKernels, WhatIsMissingUnknownOrImpossibleIsAnErrorWithItsLine) {
  Defects defects;
  const auto text = parse_document(
      "gemm bfloat16: {share: 0.97, area: 600, memory: 0.6}\n"
      "gemm brainfloat: {share: 0.5}\n"
      "attention bfloat16 128: {share: fast, half: 3, area: 1, memory: 1e-9, launch: 0, speed: 1}\n",
      "m.yaml", defects);
  kernels_from(*text, defects);
  std::string all;
  for (const ScenarioError& defect : defects) all += std::to_string(defect.line) + ' ' + defect.key + '\n';
  EXPECT_THAT(all, HasSubstr("1 kernels.gemm bfloat16.share"));
  EXPECT_THAT(all, HasSubstr("1 kernels.gemm bfloat16.launch"));
  EXPECT_THAT(all, HasSubstr("2 kernels.gemm brainfloat"));
  EXPECT_THAT(all, HasSubstr("3 kernels.attention bfloat16 128.share"));
  EXPECT_THAT(all, HasSubstr("3 kernels.attention bfloat16 128.speed"));
  EXPECT_THAT(all, HasSubstr("kernels.source"));
}

TEST(LoadKernels, AGpuMayTakeThoseOfAnotherProfile) {
  Defects defects;
  const auto text = parse_document("as: a100-80gb\nsource: alike\n", "m.yaml", defects);
  EXPECT_FALSE(kernels_from(*text, defects).measured);
  EXPECT_TRUE(defects.empty());
  const auto wrong = parse_document("as: a100-81gb\n", "m.yaml", defects);
  EXPECT_TRUE(kernels_from(*wrong, defects).empty());
  EXPECT_EQ(defects.size(), 1u);
}

}  // namespace
}  // namespace slipway::test
