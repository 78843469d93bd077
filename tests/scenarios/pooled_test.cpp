// slipway validate --pooled, run in this process on a few rows of two studies.
#include "scenarios/laboratory/validate/pooled.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "scenarios/laboratory/validate/residual_scores.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/language/load_kernels.h"
#include "schedules/time/replay.h"
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
      const bool is_data = line.find(",ok,") != std::string::npos && line.starts_with("\"{");
      if (is_data && (row++ % every != 0 || taken++ >= most)) continue;
      if (is_data || line.starts_with("#") || line.starts_with("scenario,")) out << line << '\n';
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
    for (const char* way :
         {"book", "in_sample", "layouts", "layouts_corrected", "groups", "groups_corrected", "paper", "after_1"}) {
      EXPECT_GT(table[way]["mean"].get<double>(), 0) << table["trainer"] << way;
      EXPECT_TRUE(std::isfinite(table[way]["median"].get<double>()));
    }
  EXPECT_GT(json["tables"][0]["after_3"]["half_width"].get<double>(), 0);
  for (const auto& table : json["tables"]) EXPECT_TRUE(table["after_10"]["mean"].is_null());  // too few runs
  double inside = 0, runs = 0;
  for (const auto& table : json["tables"])
    inside += table["paper"]["covered"].get<double>() * table["rows"].get<int>(), runs += table["rows"].get<int>();
  EXPECT_NEAR(json["covered"].get<double>(), inside / runs, 1e-9) << "of runs, not the mean over tables";
  EXPECT_LT(json["mean"]["in_sample"]["mean"], json["mean"]["book"]["mean"]);
  EXPECT_GT(json["effective_constants"], 0);
  EXPECT_LT(json["effective_constants"], 60);
  std::ifstream rows(path("rows.csv"));
  const std::string text{std::istreambuf_iterator<char>(rows), {}};
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 20);
}

TEST(PooledScores, ALargeTableCountsInTheCoverageAsItsRunsDo) {
  const double none = std::nan("");
  const std::vector<PooledScore> scores{{{}, 80, 10}, {{}, 100, 20}, {{}, none, none}};
  EXPECT_DOUBLE_EQ(covered_of_all_runs(scores, {30, 10, 500}), 85);
  EXPECT_TRUE(std::isnan(covered_of_all_runs({{{}, none, none}}, {4})));
}

// What takes time or bytes makes no step faster by being there.
TEST_F(Pooled, WithoutAnEffectStepsAreNotSlower) {
  const std::vector<std::string> files = both();
  const auto json = nlohmann::json::parse(slipway_with({"validate", files[0], files[1], "--pooled", "--json"}).out);
  std::set<std::string> names;
  const double bias = json["mean"]["in_sample"]["bias"];
  for (const auto& effect : json["effects"]) {
    names.insert(effect["name"].get<std::string>());
    EXPECT_LE(effect["without"]["bias"].get<double>(), bias + 0.1) << effect["name"];
  }
  for (const auto& effect : json["effects"]) {
    double sum = 0;
    for (const auto& table : effect["tables"]) sum += table["mean"].get<double>();
    ASSERT_EQ(effect["tables"].size(), json["tables"].size());
    EXPECT_NEAR(sum / static_cast<double>(json["tables"].size()), effect["without"]["mean"].get<double>(), 1e-9)
        << effect["name"];
  }
  for (const char* name : {"host_kernel", "beside", "node_start", "fixed"}) EXPECT_TRUE(names.contains(name)) << name;
  // 20 bytes for each of 128,000 logits a token (Hagemann's vocabulary).
  const auto logits = std::find_if(json["effects"].begin(), json["effects"].end(),
                                   [](const auto& effect) { return effect["name"] == "logit_bytes"; });
  ASSERT_NE(logits, json["effects"].end());
  EXPECT_LT((*logits)["without"]["bias"].get<double>(), bias - 0.1);
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

// Runs of one table as somebody would measure them who has other constants than the book.
class OwnRuns : public Pooled {
 protected:
  void SetUp() override {
    Pooled::SetUp();
    std::ifstream in(some_of("hagemann-2023", 7, 30));
    table_ = read_table(in, "table");
    std::erase_if(table_.rows, [](const PublishedRow& row) { return exclusion_of(row) != Exclusion::none; });
  }
  PooledRuns runs() const {
    std::vector<const PublishedRow*> rows;
    for (const PublishedRow& row : table_.rows) rows.push_back(&row);
    return PooledRuns(rows);
  }
  // As measured where the constant of this name is a multiple of the book's.
  void measure(const std::string& name, double multiple) {
    PooledConstants truth = prior_constants({});
    for (std::size_t c = 0; c < truth.coordinates.size(); ++c)
      if (name == step_constants()[truth.coordinates[c].constant].name) truth.values[c] = std::log(multiple);
    const PooledRuns here = runs();
    std::vector<double> seconds(here.size());
    here.predict(here.all(), truth, seconds, nullptr);
    for (std::size_t i = 0; i < here.size(); ++i) table_.rows[i].step_s = seconds[i];
  }
  PublishedTable table_;
};

TEST_F(OwnRuns, ThatAreLeftOutMoveNeitherTheFitNorTheLayerThatPredictThem) {
  measure("host_kernel", 2);
  const auto predicted = [&] {
    PooledRuns here = runs();
    std::vector<int> parts(here.size());
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = i % 3 == 0 ? 0 : -1;
    const PooledConstants book = prior_constants({});
    here.replay(here.all(), book);
    return left_out(here, parts, book, [] {});
  };
  const LeftOutBothWays before = predicted();
  for (std::size_t i = 0; i < table_.rows.size(); i += 3) table_.rows[i].step_s *= 3;
  const LeftOutBothWays after = predicted();
  for (std::size_t i = 0; i < table_.rows.size(); i += 3) {
    EXPECT_EQ(before.corrected.seconds[i], after.corrected.seconds[i]);
    EXPECT_EQ(before.corrected.widths[i], after.corrected.widths[i]);
    EXPECT_EQ(before.physics.seconds[i], after.physics.seconds[i]);
    EXPECT_GT(before.corrected.seconds[i], 0);
  }
}

TEST_F(OwnRuns, TheSameAreDrawnEachTimeAndEachOfAnotherLayout) {
  const PooledRuns here = runs();
  for (const std::size_t n : {1, 3, 10}) {
    const auto draws = draws_of(here, here.all(), n);
    EXPECT_EQ(draws, draws_of(here, here.all(), n));
    EXPECT_EQ(draws.size(), n == 10 ? 3u : 5u);
    EXPECT_NE(draws[0], draws[1]);
    for (const auto& draw : draws) {
      std::set<std::string> layouts;
      for (const std::size_t i : draw) layouts.insert(layout_key(here.published(i)));
      EXPECT_EQ(layouts.size(), n);
    }
  }
  EXPECT_TRUE(draws_of(here, {0, 1, 2}, 3).empty());  // no other run would be left
}

TEST_F(OwnRuns, TenOfAClusterWithHalfTheNetworkLowerTheErrorOfTheOthers) {
  measure("network_share", 0.5);
  const PooledRuns here = runs();
  const PooledConstants book = prior_constants({});
  std::vector<double> seconds(here.size());
  here.predict(here.all(), book, seconds, nullptr);
  const double before = error_of(here, here.all(), seconds).mean;
  EXPECT_GT(before, 2);
  const PooledScore after = after_runs_of_own(here, here.all(), book, 10);
  EXPECT_LT(after.error.mean, before / 2);
  EXPECT_EQ(after.covered, 100);
  EXPECT_LT(after.half_width, after_runs_of_own(here, here.all(), book, 1).half_width);
}

// All other runs are as the book says, so each prediction is right but that of the run that was measured wrong.
TEST_F(OwnRuns, ARunThatWasNotDrawnMovesNoPrediction) {
  measure("network_share", 1);
  std::set<std::size_t> drawn;
  const PooledRuns right = runs();
  for (const auto& draw : draws_of(right, right.all(), 3)) drawn.insert(draw.begin(), draw.end());
  std::size_t other = 0;
  while (drawn.contains(other)) ++other;
  table_.rows[other].step_s *= 2;
  const PooledRuns here = runs();
  EXPECT_NEAR(after_runs_of_own(here, here.all(), prior_constants({}), 3).error.mean,
              50.0 / static_cast<double>(here.size() - 3), 1e-6);
}

// Of two runs the one is scored that was not drawn. Were both, the wrong one would count in each draw.
TEST_F(OwnRuns, ADrawnRunIsNotScored) {
  std::vector<std::size_t> two{0};
  const PooledRuns here = runs();
  while (layout_key(here.published(two.back())) == layout_key(here.published(0))) two = {0, two.back() + 1};
  const PooledScore one_left = after_runs_of_own(here, two, prior_constants({}), 1);
  EXPECT_EQ(one_left.error.mean, one_left.error.median);
  EXPECT_TRUE(std::isnan(after_runs_of_own(here, two, prior_constants({}), 2).error.mean));
}

TEST_F(OwnRuns, MeasuredTimesOfAPaperDoNotMoveItsPaperOutPrediction) {
  std::ifstream in(some_of("fujii-2024", 8, 6));
  std::vector<PublishedTable> tables{table_, read_table(in, "other")};
  const PooledValidation first =
      pooled_validation(tables, [](const std::string&, double share) { EXPECT_LE(share, 1); });
  for (PublishedRow& row : tables[1].rows) row.step_s *= 2;
  const PooledValidation second =
      pooled_validation(tables, [](const std::string&, double share) { EXPECT_LE(share, 1); });
  ASSERT_EQ(first.runs.size(), second.runs.size());
  for (std::size_t i = 0; i < first.runs.size(); ++i) {
    if (first.runs[i].trainer != "megatron-core") continue;
    EXPECT_NEAR(second.runs[i].paper_s / first.runs[i].paper_s, 1, 2e-3);
    EXPECT_GT(second.runs[i].in_sample_s, 1.1 * first.runs[i].in_sample_s);
  }
}

TEST_F(OwnRuns, ChoosesTheFastestThatFitsAndCountsWhatRanOutOfMemory) {
  std::vector<PublishedRow> rows(4, table_.rows.front());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].table = "one", rows[i].step_s = 1.0 + 0.25 * double(i);
  rows[0].status = RowStatus::out_of_memory;
  std::vector<PooledAlternative> layouts;
  for (const PublishedRow& row : rows) layouts.push_back({&row, row.step_s, true});
  EXPECT_EQ(choice_among(layouts).ran_out, 1);
  EXPECT_NEAR(choice_among(layouts).mean, 100, 1e-9);
  layouts[0].fits = layouts[1].fits = false;
  EXPECT_EQ(choice_among(layouts).ran_out, 0);
  EXPECT_NEAR(choice_among(layouts).mean, 100 * (1 - 1.25 / 1.5), 1e-9);
  layouts.resize(2);  // one measured layout is no choice
  EXPECT_EQ(choice_among(layouts).tables, 0);
  EXPECT_TRUE(std::isnan(choice_among(layouts).mean));
}

// The constants that it writes price a scenario of that trainer.
TEST_F(Pooled, WritesConstantsThatAScenarioTakes) {
  const std::string constants = path("fitted.yaml");
  const Answer answer = slipway_with({"validate", some_of("fujii-2024", 8, 6), "--pooled", "--constants", constants});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto step_time = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"simulate", SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml", "--json",
                                  "--set", "cluster.trainer=megatron-core"};
    args.insert(args.end(), more.begin(), more.end());
    const Answer simulated = slipway_with(args);
    EXPECT_EQ(simulated.status, status_done) << simulated.err;
    return nlohmann::json::parse(simulated.out)["step_time_s"].get<double>();
  };
  const double own = step_time({"--set", "cluster.constants=" + constants});
  EXPECT_GT(own, 0);
  EXPECT_NE(own, step_time({}));
}

TEST_F(Pooled, WrittenConstantsNameTheirTablesWithRunsAndChecksum) {
  const std::vector<std::string> files = both();
  const Answer answer =
      slipway_with({"validate", files[0], files[1], "--pooled", "--constants", path("constants.yaml")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  Defects defects;
  const auto tables = tables_from_yaml(text_of(path("constants.yaml")), "constants.yaml", defects);
  ASSERT_EQ(tables.size(), 2u) << describe(defects);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(tables[i], (FittedTable{files[i], 10, checksum_of_scored(read_table_file(files[i]))}));
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
