// slipway validate, run in this process.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string hagemann = SLIPWAY_SOURCE_DIR "/scenarios/studies/hagemann-2023/runs.csv";
const std::string header = "scenario,status,step_s\n";
std::string run_of(const std::string& model, int pipeline) {
  return "\"{model: " + model +
         ", cluster: {machine: a100-80gb, nodes: 8, gpus_per_node: 8, trainer: aa-scaling}, "
         "layout: {zero: 1, pipeline: " +
         std::to_string(pipeline) + "}, schedule: {global_batch: 2048}}\",";
}
const std::string good = run_of("llama-13b-v128k", 1) + "ok,26.5\n";

class ValidateCommand : public CommandTest {
 protected:
  std::string table(const std::string& text) const {
    std::ofstream(path("t.csv")) << text;
    return path("t.csv");
  }
  static nlohmann::json json(std::vector<std::string> args) {
    args.insert(args.begin(), "validate");
    args.emplace_back("--json");
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
  static Answer refused(const std::string& file) {
    const Answer answer = slipway_with({"validate", file});
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_EQ(answer.out, "");
    return answer;
  }
};

TEST_F(ValidateCommand, PrintsScoresGroupsVerdictsRegretAndWorstRows) {
  const Answer answer = slipway_with({"validate", hagemann});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  for (const char* text : {"222 scored", "325 excluded by status", "as built in", "memory verdict",
                           "recommended layout", "worst rows, as built in"})
    EXPECT_THAT(answer.out, HasSubstr(text));
  EXPECT_THAT(answer.out, Not(HasSubstr("left out")));
}

// 1,603 published runs have a price (docs/accuracy.md), 222 of them Hagemann's.
TEST_F(ValidateCommand, SaysToWhichRunsTheConstantsWereFittedAndWhetherTheseAreAmongThem) {
  const auto said = [&](const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"validate", table(text)};
    args.insert(args.end(), more.begin(), more.end());
    return slipway_with(args).out;
  };
  std::ifstream in(hagemann);
  std::string columns, known;
  for (std::string line; known.empty() && std::getline(in, line);) {
    if (line.starts_with("scenario,")) columns = line + '\n';
    if (line.find(",ok,") != std::string::npos) known = line + '\n';
  }
  std::string strange = known;  // the same run, in a time that nobody measured
  strange.replace(strange.find(",ok,"), 4, ",ok,1");
  EXPECT_THAT(said(header + good), HasSubstr("fitted to 1,603 runs: fujii-2024 103, hagemann-2023 222, "));
  EXPECT_THAT(said(columns + strange), HasSubstr("  None of the rows priced here is among them.\n"));
  EXPECT_THAT(said(columns + known), HasSubstr("  All of the 1 row priced here is among them: in sample."));
  EXPECT_THAT(said(columns + known + strange), HasSubstr("  1 of the 2 rows priced here is among them: in sample."));
  EXPECT_THAT(said(columns + known, {"--engine", "book"}),
              testing::AllOf(HasSubstr("Constants of the book: fitted to no run."), Not(HasSubstr("among them"))));
}

// A fit without the scored rows takes half a minute, so there is one.
TEST_F(ValidateCommand, RefittedEveryDocumentedKeyIsThereAndTheReportHasItsLines) {
  const std::string two = table(header + good + "llama-13b,2048,64,1,2,1,0,none,flash2+rmsnorm,ok,28.5\n");
  const auto whole = json({two, "--refit", "--rows", path("rows.csv")});
  std::vector<std::string> emitted;
  for (const auto& [key, value] : whole.items()) emitted.push_back(key);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(outermost(answers_of("validate").front())));
  EXPECT_THAT(text_of(path("rows.csv")), HasSubstr("left_out_by_layout_s"));
}

TEST_F(ValidateCommand, WithoutATableThoseOfTheStudiesAreScoredAsTheyAre) {
  const auto all = json({});
  EXPECT_EQ(all["tables"].size(), 6u);
  EXPECT_FALSE(all.contains("left_out"));
  EXPECT_EQ(all["priced_by"], "replay");
}

TEST_F(ValidateCommand, ConstantsAreWhatThePooledFitWrites) {
  const Answer answer = slipway_with({"validate", hagemann, "--constants", path("c.yaml")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("--constants writes what --pooled fits"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(ValidateCommand, GroupsHaveTheKeysOfTheWholeAndAddUp) {
  const auto whole = json({hagemann});
  EXPECT_FALSE(whole.contains("left_out"));
  int rows = 0, priced = 0, safe = 0;
  for (const auto& [name, group] : whole["groups"].items()) {
    for (const char* key : {"rows", "priced", "unpriced", "excluded", "mape", "median_ape", "bias", "rank_correlation",
                            "regret_mfu", "oom", "oom_cautious"})
      EXPECT_TRUE(group.contains(key)) << name << " lacks " << key;
    rows += group["rows"].get<int>();
    priced += group["priced"].get<int>();
    safe += group["oom"]["true_fit"].get<int>();
  }
  EXPECT_EQ(rows, whole["rows"]);
  EXPECT_EQ(priced, whole["priced"]);
  EXPECT_EQ(safe, whole["oom"]["true_fit"]);
  EXPECT_EQ(rows, 547);
}

TEST_F(ValidateCommand, ColumnsMayStandInAnyOrderAndOthersBesideThem) {
  const auto plain = json({table(header + good)});
  const auto turned =
      json({table("mfu,step_s,status,scenario\n0.7,26.5,ok," +
                  run_of("llama-13b-v128k", 1).substr(0, run_of("llama-13b-v128k", 1).size() - 1) + "\n")});
  EXPECT_EQ(plain["mape"], turned["mape"]);
  EXPECT_EQ(plain["oom"], turned["oom"]);
}

TEST_F(ValidateCommand, RowsThatCannotBePricedAreCountedNamedAndCountAsAHundredPercent) {
  const std::string file = table(header + good + run_of("llama-13b-v128k", 64) + "ok,30\n" + run_of("llama-99b", 1) +
                                 "ok,30\n" + "llama-13b,2048\n");
  const auto whole = json({file});
  EXPECT_EQ(whole["rows"], 4);
  EXPECT_EQ(whole["priced"], 1);
  EXPECT_EQ(whole["unpriced"], 3);
  EXPECT_GE(whole["mape"].get<double>(), 75);
  EXPECT_EQ(whole["unpriced_rows"][0]["line"], 3);
  EXPECT_THAT(whole["unpriced_rows"][1]["reason"], HasSubstr("llama-99b"));
  EXPECT_THAT(slipway_with({"validate", file}).out, HasSubstr("llama-99b"));
}

TEST_F(ValidateCommand, AnUnknownHeaderIsOneErrorWithPlaceColumnAndRemedy) {
  const Answer answer = refused(table("gpus,tokens\n8,1\n"));
  EXPECT_THAT(answer.err, HasSubstr("t.csv:1: this is no table of runs"));
  EXPECT_THAT(answer.err, HasSubstr("slipway list tables"));
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1);
}

TEST_F(ValidateCommand, NoFileAnEmptyFileAndAnOpenQuoteAreStatusTwo) {
  EXPECT_THAT(refused(path("nowhere.csv")).err, HasSubstr("cannot read the table"));
  EXPECT_THAT(refused(SLIPWAY_SOURCE_DIR "/scenarios/studies/hagemann-2023").err,
              HasSubstr("hagemann-2023 is a folder; give tables (CSV), for example "));
  EXPECT_THAT(refused(SLIPWAY_SOURCE_DIR "/scenarios").err,
              testing::EndsWith("/scenarios is a folder; give tables (CSV)\n"));  // it does not search the folder
  EXPECT_THAT(refused(table("")).err, HasSubstr("is empty"));
  EXPECT_THAT(refused(table(header + "\"llama\n")).err, HasSubstr("t.csv:2: a quoted field is not closed"));
}

TEST_F(ValidateCommand, WrittenRowsReadBackWithTheSameScores) {
  const std::string out = path("rows.csv"), first = table(header + good);
  const auto before = json({first, "--rows", out});
  const auto after = json({out});
  EXPECT_EQ(before["mape"], after["mape"]);
  EXPECT_EQ(before["oom"], after["oom"]);
  EXPECT_THAT(text_of(out), HasSubstr("predicted_step_s"));
}

TEST_F(ValidateCommand, TheSameInputGivesTheSameBytes) {
  EXPECT_EQ(slipway_with({"validate", hagemann}).out, slipway_with({"validate", hagemann}).out);
}

TEST_F(ValidateCommand, AFileOfRunsInTheirOldColumnsIsRefusedWithItsConverter) {
  const Answer answer = refused(table(
      "trainer,machine,model,family,layers,hidden,ffn,heads,kv_heads,vocab,tied,sequence,gpus,gpus_per_node,tensor,"
      "sequence_parallel,context,pipeline,chunks,zero,micro_batch,global_batch,recompute,kernels,gradient_dtype,"
      "status,step_s\n"));
  EXPECT_THAT(answer.err, HasSubstr("scenarios/studies/old-runs/convert.py"));
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1);
}

TEST_F(ValidateCommand, TablesThatCanBeReadAreListedWithTheirColumns) {
  const Answer answer = slipway_with({"list", "tables"});
  EXPECT_EQ(answer.status, status_done);
  for (const char* text : {"scenario", "not_modelled", "scenarios/studies/hagemann-2023/convert.py", "step_time_s",
                           "scenarios/studies/old-runs/convert.py"})
    EXPECT_THAT(answer.out, HasSubstr(text));
}

}  // namespace
}  // namespace slipway::test
