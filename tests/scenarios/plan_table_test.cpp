// The table and the reasons of `slipway plan`: as wide as requested, complete where there is room, and correct about
// what a row gains and loses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scenarios/commands/plan/answer.h"
#include "scenarios/commands/plan/table.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/readable.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;
using testing::Not;

Scenario scenario(const std::vector<std::string>& overrides = {}) {
  LoadResult loaded =
      load_scenario(std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/llama-70b-1024xh100.yaml", overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return loaded.scenario;
}

PricedLayout row(int pipeline, double step_s, double compute_s, double bubble_s, double exposed_s) {
  PricedLayout row;
  row.choice = scenario().step;
  row.choice.layout.tensor = 8;
  row.choice.layout.pipeline = pipeline;
  row.choice.layout.data = 128 / pipeline;
  row.choice.schedule = "1f1b";
  row.simulated = row.judged = true;
  row.step_time_s = step_s;
  row.compute_share = compute_s / step_s, row.bubble_share = bubble_s / step_s,
  row.exposed_comm_share = exposed_s / step_s;
  row.memory_bytes = 40e9, row.memory_share = 0.5;
  return row;
}

std::size_t widest(const std::string& table) {
  std::istringstream lines(table);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("  All") && !line.starts_with("  Left")) most = std::max(most, display_width(line));
  return most;
}

TEST(SearchTable, GivesTokensDaysAndCostWhereTheScenarioDoes) {
  const std::vector<PricedLayout> rows{row(4, 4.194304, 3, 0.5, 0.69)};
  const std::string with = table_of(scenario({"cluster.price_per_gpu_hour=2"}), rows, 0);
  EXPECT_THAT(with, HasSubstr("1.00 M")) << "1024 sequences of 4096 tokens in 4.194304 s";
  EXPECT_THAT(with, HasSubstr("23.15")) << "2 T tokens at 1 M tokens/s: 2e6 s";
  EXPECT_THAT(with, HasSubstr("1.14 M")) << "2e6 s x 1024 GPUs x 2 an hour / 3600";
  EXPECT_THAT(table_of(scenario(), rows, 0), Not(HasSubstr("cost")));
  EXPECT_THAT(table_of(scenario({"run.tokens="}), rows, 0), Not(HasSubstr("days")));
}

TEST(SearchTable, IsAsWideAsAskedForAndTellsWhatItLeftOut) {
  const std::vector<PricedLayout> rows{row(4, 4, 3, 0.5, 0.5), row(8, 5, 3, 1, 1)};
  const std::string full = table_of(scenario(), rows, 0);
  EXPECT_GT(widest(full), 120U);
  EXPECT_THAT(full, HasSubstr("exposed"));
  for (const int columns : {60, 80, 100, 120}) {
    const std::string table = table_of(scenario(), rows, columns);
    EXPECT_LE(widest(table), static_cast<std::size_t>(columns)) << table;
    EXPECT_THAT(table, HasSubstr("pipeline")) << "the rows differ in it";
    EXPECT_THAT(table, HasSubstr("All rows: context 1"));
  }
  EXPECT_THAT(table_of(scenario(), rows, 60), HasSubstr("Left out, to fit into 60 columns: bubble"));
}

TEST(SearchTable, ShowsInWhatTwoSplitsDiffer) {
  std::vector<PricedLayout> rows{row(4, 4, 3, 0.5, 0.5), row(4, 5, 3, 1, 1)};
  rows[0].choice.layout.split_list = {24, 24, 16, 16};
  rows[1].choice.layout.split_list = {25, 24, 16, 15};
  const std::string table = table_of(scenario(), rows, 80);
  EXPECT_THAT(table, HasSubstr("24x2, 16x2"));
  EXPECT_THAT(table, HasSubstr("25, 24, 16, 15"));
}

TEST(SearchReasons, NameTheGainAndWhatItCosts) {
  EXPECT_EQ(why(row(4, 4.92, 3, 0.92, 1), row(4, 5, 3.383, 0.617, 1)),
            "1.6 % faster (-80.0 ms): less compute (-383 ms) against more bubble (+303 ms)");
  EXPECT_EQ(why(row(4, 4, 3, 0.5, 0.5), row(4, 5, 3, 1.5, 0.5)), "20.0 % faster (-1.00 s): less bubble (-1.00 s)");
  EXPECT_EQ(why(row(1, 4, 3, 0.5, 0.5), row(1, 5, 3, 1.5, 0.5)),
            "20.0 % faster (-1.00 s): less waiting for other GPUs (-1.00 s)");
}

// P(the first row is faster): 0.9 and more is told apart.
TEST(SearchReport, SaysWhichRowsAreNotToldApartFromTheFirst) {
  SearchResult found;
  const auto said = [&](const std::vector<std::optional<double>>& others) {
    found.best = {row(4, 4, 3, 0.5, 0.5)};
    for (const auto& probability : others) {
      found.best.push_back(row(8, 5, 3, 1, 1));
      found.best.back().first_is_faster = probability;
    }
    return search_text(scenario(), found, {});
  };
  EXPECT_THAT(said({0.6}),
              HasSubstr("Row 2 is not told apart from the first: with 10 % or more, it may be faster on the cluster."));
  EXPECT_THAT(said({0.5, 0.89, 0.95}), HasSubstr("Rows 2 to 3 are not told apart from the first"));
  EXPECT_THAT(said({0.9, 0.95}), Not(HasSubstr("told apart")));
  EXPECT_THAT(said({std::nullopt}), Not(HasSubstr("told apart"))) << "no interval, no claim";
}

TEST(SearchReport, SaysAsWhoseStepsLayoutsArePricedAndHowFarToTrustIt) {
  SearchResult found;
  found.best = {row(4, 4, 3, 0.5, 0.5)};
  const std::string trainers = search_text(scenario({"cluster.trainer=nanotron"}), found, {});
  EXPECT_THAT(trainers.substr(0, trainers.find('\n')), HasSubstr("; as nanotron trains"));
  EXPECT_THAT(search_text(scenario(), found, {}),
              HasSubstr("No trainer is named (cluster.trainer): priced as generic trains"));
}

}  // namespace

}  // namespace slipway::test
