// The basis of a prediction's times: printed with the answer, and equal to docs/accuracy.md and the published tables.
#include "scenarios/basis/basis.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "scenarios/tables/csv.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string root = SLIPWAY_SOURCE_DIR, llama = root + "/scenarios/examples/llama-8b-64xh100.yaml",
                  tiny = root + "/scenarios/examples/tiny-llama-cpu.yaml";

std::string simulated(std::vector<std::string> settings, const std::string& scenario = llama) {
  std::vector<std::string> args{"simulate", scenario};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return answer.out;
}

nlohmann::json summary(std::vector<std::string> settings) {
  std::vector<std::string> args{"simulate", llama, "--json"};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  return nlohmann::json::parse(slipway_with(args).out);
}

TEST(Basis, BookValuesSayHowFarOffTheyAreAndWhoWasFittedOnThisMachine) {
  EXPECT_THAT(simulated({}),
              HasSubstr("No trainer's pace: book values of the hardware, on average 5 to 42 % off "
                        "published runs, mostly too fast.\nTrainers fitted on this machine, for cluster.stack: "));
  // From the files themselves: those with a section of this machine below `time:`.
  std::vector<std::string> fitted;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/models/trainers")) {
    const std::string text = text_of(entry.path().string());
    if (text.substr(0, text.find("\nmemory:")).find("\n  h100-80gb:") != std::string::npos)
      fitted.push_back(entry.path().stem().string());
  }
  std::sort(fitted.begin(), fitted.end());
  const auto json = summary({});
  EXPECT_EQ(json["basis"], "book");
  EXPECT_EQ(json["fitted_stacks"].get<std::vector<std::string>>(), fitted);
  EXPECT_EQ(json["book_error"].get<std::vector<double>>(), (std::vector<double>{0.05, 0.42}));
}

TEST(Basis, AProfileOfAFileIsNamedWithItsSourceOrWithThatItHasNone) {
  const std::string profile = text_of(root + "/models/machine/profiles/b200.yaml");
  const std::string folder = testing::TempDir() + "basis";
  std::filesystem::create_directories(folder);
  const auto simulated_on = [&](const std::string& name, const std::string& provenance) {
    std::string text = profile;
    if (const auto at = text.find("\nprovenance:"); at != std::string::npos) text.erase(at);
    std::ofstream(folder + "/" + name) << text << provenance;
    return simulated({"cluster.machine=" + folder + "/" + name});
  };
  EXPECT_THAT(simulated_on("sourced.yaml", "\nprovenance: {source: a data sheet, date: 2026-01-02}\n"),
              HasSubstr("Machine profile " + folder + "/sourced.yaml: a data sheet, 2026-01-02.\n"));
  EXPECT_THAT(simulated_on("unsourced.yaml", "\n"), HasSubstr("/unsourced.yaml: its numbers have no stated source"));
}

TEST(Basis, AStackOfAFileIsNamedByIt) {
  const std::string file = testing::TempDir() + "nanotron.yaml";
  std::ofstream(file) << text_of(root + "/models/trainers/nanotron.yaml");
  EXPECT_THAT(simulated({"cluster.stack=" + file}), HasSubstr("; at the pace of nanotron by " + file));
  EXPECT_THAT(simulated({"cluster.stack=nanotron"}), Not(HasSubstr("nanotron by")));
}

TEST(Basis, TimesOfABlockTableAreNamedOnWhateverMachine) {
  const std::string text =
      simulated({"cluster.machine=b200"}, root + "/scenarios/studies/pipefisher-2022/bert-base.yaml");
  EXPECT_THAT(text, HasSubstr("Blocks take the times of a table, on any machine: "));
  EXPECT_THAT(text, HasSubstr("P100"));
}

// The column "by book values" of docs/accuracy.md holds means and medians: "15.2 / 14.3 %", "5.1 / 3.8 %; 16.0 / 15.4
// %".
TEST(Basis, TheErrorOfBookValuesIsTheOneOfTheReadmesTable) {
  const std::string readme = text_of(root + "/docs/accuracy.md");
  EXPECT_THAT(std::regex_replace(readme, std::regex("\\s+"), " "), HasSubstr(book_error_text()));
  std::istringstream lines(readme.substr(readme.find("| by book values |")));
  double least = 100, most = 0;
  std::string line;
  std::getline(lines, line), std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with('|')) {
    const std::string cell = line.substr(line.find_last_of('|', line.size() - 2));
    const std::regex mean("([0-9.]+) / [0-9.]+ %");
    for (std::sregex_iterator at(cell.begin(), cell.end(), mean), end; at != end; ++at) {
      least = std::min(least, std::stod((*at)[1])), most = std::max(most, std::stod((*at)[1]));
    }
  }
  EXPECT_EQ(std::lround(least), book_error.least_percent);
  EXPECT_EQ(std::lround(most), book_error.most_percent);
}

TEST(Basis, TheLeastErrorIsWhatValidateSaysOfBookValues) {
  const Answer answer =
      slipway_with({"validate", root + "/scenarios/studies/fujii-2024/runs.csv", "--engine", "book", "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_EQ(json["priced_by"], "book");
  EXPECT_EQ(std::lround(json["machines"]["h100-94gb"]["mape"].get<double>()), book_error.least_percent);
}

TEST(Basis, AStackThatNobodyTimedOnTheMachineIsBookValuesToo) {
  EXPECT_THAT(simulated({"cluster.stack=aa-scaling"}), HasSubstr("book values of the hardware"));
}

TEST(Basis, AProfileOfTheUsersOwnIsNoBookValue) { EXPECT_THAT(simulated({}, tiny), Not(HasSubstr("book values"))); }

// LLM Foundry's tables are of FSDP alone, as MosaicML runs it: no tensor, pipeline or context parallelism.
TEST(Basis, ALayoutThatTheTrainerWasNeverFittedToIsNamedWithWhatItWasFittedTo) {
  const std::string text = simulated({"cluster.stack=llm-foundry"});
  EXPECT_THAT(
      text, HasSubstr("Outside the runs that llm-foundry was fitted to: tensor 8 (fitted: 1), pipeline 4 (fitted: 1)"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "The formula of llm-foundry does not price: tensor parallelism, pipeline stages; such times are guesses.\n"));
  const auto json = summary({"cluster.stack=llm-foundry"});
  EXPECT_EQ(json["basis"], "llm-foundry");
  EXPECT_EQ(json["not_priced"], (nlohmann::json{"tensor parallelism", "pipeline stages"}));
  EXPECT_EQ(json["outside_fit"][0], (nlohmann::json{{"what", "tensor"}, {"here", 8.0}, {"least", 1.0}, {"most", 1.0}}));
}

// The Playbook's runs neither recompute nor use unfused kernels, Megatron-LM's (2021) have no context parallelism.
// Ranges of degrees alone do not show the first two.
TEST(Basis, WhatTheFormulaHasNoTermForAndChoicesThatNoFittedRunMadeAreNamed) {
  const std::string text = simulated({"cluster.stack=nanotron", "schedule.recompute=full", "schedule.kernels=torch"});
  EXPECT_THAT(text, HasSubstr("recompute full (fitted: none)"));
  EXPECT_THAT(
      text,
      HasSubstr("The formula of nanotron does not price: its attention kernels (no run of the fit had them); such"));
  EXPECT_THAT(simulated({"cluster.stack=nanotron"}), Not(HasSubstr("does not price")));
  EXPECT_THAT(
      simulated({"cluster.stack=nanotron", "model=qwen3-32b"}),
      HasSubstr(
          "does not price: norms of query and key, heads that are not hidden/heads wide; such times are guesses"));
  EXPECT_THAT(simulated({"cluster.stack=nanotron", "schedule.name=zb-h1"}), HasSubstr("schedule zb-h1 (fitted: 1f1b)"));
  EXPECT_THAT(
      simulated({"cluster.stack=megatron-lm", "cluster.machine=a100-80gb", "layout.context=2", "layout.data=1"}),
      HasSubstr("The formula of megatron-lm does not price: context parallelism, "));
}

// Five commands print times and memory of a stack; each prints which of them are guesses.
TEST(Basis, EveryCommandThatShowsTimesOrMemorySaysOnWhatTheyRest) {
  const std::string guess = "does not price: ZeRO 2 and 3; such times are guesses", range = "zero 3 (fitted: 0 to 1)",
                    book = "No trainer's pace: book values of the hardware";
  const std::vector<std::string> zero{"--set", "cluster.stack=nanotron", "--set", "layout.zero=3"};
  const auto printed = [&](std::vector<std::string> args, const std::vector<std::string>& more) {
    args.insert(args.end(), more.begin(), more.end());
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.out;
  };
  const std::vector<std::string> faults{"--set", "cluster.mtbf_per_node=2000 h", "--set", "run.checkpoint_cost=20 s"};
  std::vector<std::string> goodput{"goodput", llama, "--histories", "2"};
  goodput.insert(goodput.end(), faults.begin(), faults.end());
  const std::vector<std::vector<std::string>> commands{
      {"simulate", llama},
      {"plan", llama, "--keep", "layout.zero", "--keep", "layout.tensor", "--keep", "layout.pipeline"},
      {"study", llama},
      goodput,
      {"memory", llama, "--changes"}};
  for (const auto& command : commands) {
    const std::string text = printed(command, zero);
    EXPECT_THAT(text, HasSubstr(guess)) << command.front();
    EXPECT_THAT(text, HasSubstr(range)) << command.front();
    EXPECT_THAT(printed(command, {}), HasSubstr(book)) << command.front();
    std::vector<std::string> with_json = zero;
    with_json.emplace_back("--json");
    const auto json = nlohmann::json::parse(printed(command, with_json));
    const auto& keys = command.front() == "study" ? json["points"][0] : json;
    EXPECT_EQ(keys["basis"], "nanotron") << command.front();
    EXPECT_EQ(keys["not_priced"], nlohmann::json{"ZeRO 2 and 3"}) << command.front();
  }
  EXPECT_THAT(printed({"memory", llama}, zero),
              HasSubstr("Outside the runs that the memory of nanotron was fitted to: "));
}

// Half a tile of a product: no published run computed fewer than 512 tokens at once (LLM Foundry, sequence 512).
TEST(Basis, SlicesShorterThanAnyPublishedRunAreCalledExtrapolated) {
  const auto sliced = [](int slices, std::vector<std::string> more) {
    more.insert(more.end(),
                {"schedule.name=terapipe", "schedule.slices=" + std::to_string(slices), "schedule.global_batch=8"});
    return more;
  };
  const std::string book = simulated(sliced(128, {}));
  EXPECT_THAT(book, HasSubstr("so extrapolated: tokens of a slice 64 (fitted: "));
  EXPECT_THAT(book, HasSubstr("No trainer's pace: book values"));
  EXPECT_THAT(simulated(sliced(128, {"cluster.stack=nanotron"})),
              HasSubstr("so extrapolated: tokens of a slice 64 (fitted: "));
  EXPECT_THAT(simulated(sliced(2, {})), Not(HasSubstr("extrapolated")));
  EXPECT_EQ(summary(sliced(128, {}))["outside_fit"][0]["here"], 64);
}

TEST(Basis, AStudyCountsThePointsThatAreOutside) {
  const Answer answer =
      slipway_with({"study", llama, "--set", "cluster.stack=nanotron", "--vary", "layout.zero=1,2,3"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("does not price: ZeRO 2 and 3 in 2 of 3 points; such times are guesses."));
  EXPECT_THAT(answer.out,
              HasSubstr("zero 2 (fitted: 0 to 1) in 1 of 3 points, zero 3 (fitted: 0 to 1) in 1 of 3 points"));
}

// The Playbook's own table: largest and smallest of a column of what ran.
std::pair<double, double> range_in_playbook(const std::string& column) {
  std::istringstream in(text_of(root + "/scenarios/studies/ultrascale-2025/runs.csv"));
  const CsvTable table = read_csv(in, "runs.csv");
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(table.header.begin(), table.header.end(), name) - table.header.begin());
  };
  double least = 1e300, most = 0;
  for (const CsvRow& row : table.rows) {
    const std::string& text = row.fields.at(index(column));
    if (text.empty()) continue;
    least = std::min(least, std::stod(text)), most = std::max(most, std::stod(text));
  }
  return {least, most};
}

TEST(Basis, InsideThePublishedRangeNothingIsSaidAndBeyondItTheRangeIsTheTables) {
  const auto [least, most] = range_in_playbook("micro_batch");
  ASSERT_GE(most, 2);
  LoadResult loaded = load_scenario(llama, {"cluster.stack=nanotron"});
  ASSERT_TRUE(loaded.errors.empty());
  Scenario& scenario = loaded.scenario;
  const auto named = [&](const std::string& what) {
    for (const OutsideFit& outside : basis_of(scenario).outside)
      if (outside.what == what) return std::optional(outside);
    return std::optional<OutsideFit>();
  };
  scenario.step.micro_batch = static_cast<std::int64_t>(least);
  EXPECT_FALSE(named("micro-batch"));
  scenario.step.micro_batch = 100000;
  ASSERT_TRUE(named("micro-batch"));
  EXPECT_GE(named("micro-batch")->least, least);
  EXPECT_LE(named("micro-batch")->most, most);
}

// Constants of a user's file, under a known trainer's name: the runs of their fit are unknown.
TEST(Basis, ConstantsThatTheUserFittedHaveNoKnownRange) {
  LoadResult loaded = load_scenario(llama, {"cluster.stack=llm-foundry"});
  ASSERT_TRUE(loaded.errors.empty());
  Scenario& scenario = loaded.scenario;
  EXPECT_FALSE(basis_of(scenario).outside.empty());
  for (StackTime& time : scenario.stack->times) time.constants[0].value *= 1.01;
  EXPECT_TRUE(basis_of(scenario).outside.empty());
  EXPECT_EQ(basis_of(scenario).trainer, "llm-foundry");
}

}  // namespace
}  // namespace slipway::test
