// Left-out rows: folds, fits without the rows that they predict, and what a score counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "scenarios/laboratory/tables/priced_run.h"
#include "scenarios/laboratory/validate/scores.h"
#include "scenarios/laboratory/validate/validation.h"
#include "schedules/time/replay.h"

namespace slipway::test {

namespace {

PublishedTable study(const std::string& name) {
  const std::string path = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/studies/" + name + "/runs.csv";
  std::ifstream in(path);
  return read_table(in, path);
}

std::vector<const RowResult*> rows_of(const Validation& validation) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : validation.rows) rows.push_back(&row);
  return rows;
}

// Some runs of Hagemann's table that ended, and one that ran out of memory.
PublishedTable some_runs(std::size_t every) {
  PublishedTable table = study("hagemann-2023");
  std::vector<PublishedRow> kept;
  bool ran_out = false;
  std::size_t number = 0;
  for (const PublishedRow& row : table.rows) {
    const bool is_first_out = row.status == RowStatus::out_of_memory && !ran_out;
    if (is_first_out || (row.status == RowStatus::ok && number++ % every == 0)) kept.push_back(row);
    ran_out |= is_first_out;
  }
  table.rows = kept;
  return table;
}

double seconds_of(const RowResult& row, Left way) { return row.left_out_s[static_cast<std::size_t>(way)]; }

TEST(Folds, EveryKeyIsInOnePartAndPartsDifferByOneKeyAtMost) {
  std::vector<std::string> keys;
  for (int i = 0; i < 23; ++i) keys.push_back("layout " + std::to_string(i % 12));
  const std::vector<int> parts = folds_of(keys, 5);
  std::map<int, std::set<std::string>> members;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(parts[i], parts[i % 12]) << "rows of one key are left out together";
    members[parts[i]].insert(keys[i]);
  }
  EXPECT_EQ(members.size(), 5u);
  for (const auto& [part, names] : members) EXPECT_TRUE(names.size() == 2 || names.size() == 3);
  EXPECT_EQ(folds_of(keys, 5), parts);
}

// The rest of its fold is left out with it. What the memory of a row is does not depend on its time.
TEST(LeftOut, ARowDoesNotMoveItsOwnPrediction) {
  PublishedTable table = some_runs(20);
  const Validation before = validate(table, true);
  std::size_t changed = 0;
  while (table.rows[changed].status != RowStatus::ok) ++changed;
  table.rows[changed].step_s *= 10;
  const Validation after = validate(table, true);
  for (const auto& [way, name] : left_names) {
    EXPECT_GT(seconds_of(before.rows[changed], way), 0) << name;
    EXPECT_EQ(seconds_of(before.rows[changed], way), seconds_of(after.rows[changed], way)) << name;
  }
  int moved = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(before.rows[i].price.step_s, after.rows[i].price.step_s) << "as built in, nothing moves";
    EXPECT_GT(seconds_of(after.rows[i], Left::layout), 0) << "also of a run that ran out of memory";
    moved += seconds_of(before.rows[i], Left::layout) != seconds_of(after.rows[i], Left::layout) ? 1 : 0;
  }
  EXPECT_GT(moved, static_cast<int>(table.rows.size()) / 2) << "it does move the others'";
}

// Times that the model itself made, on a cluster whose products are half as fast: no fit by others knows that, the rows
// of the table say it.
TEST(LeftOut, TheOtherRowsOfATableSayWhatIsSpecialAboutIt) {
  PublishedTable table = some_runs(12);
  StepConstants made = book_constants();
  made.gemm *= 0.5;
  for (PublishedRow& row : table.rows)
    if (row.status == RowStatus::ok) row.step_s = PricedRun(row).replay([&](const Machine&) { return made; });
  const Validation validation = validate(table, true);
  const double built_in = score(rows_of(validation), std::nullopt).time.mape;
  EXPECT_LT(score(rows_of(validation), Left::layout).time.mape, built_in / 3);
}

// 222 ok, 306 out of memory and 19 without kernel; 363 of 372 repaired runs have a healthy network. Products in fp8 have
// no price yet.
TEST(Validation, EveryRowIsPricedUnpricedOrExcluded) {
  const std::map<std::string, int> published{{"hagemann-2023", 222}, {"ultrascale-2025", 363}};
  for (const char* name :
       {"fujii-2024", "hagemann-2023", "megatron-2021", "mosaicml-2023", "ultrascale-2025", "vtrain-2024"}) {
    const PublishedTable table = study(name);
    const ScoreSet set = score(rows_of(validate(table, false)), std::nullopt);
    int excluded = 0, fp8 = 0;
    for (const auto& [rule, count] : set.excluded) excluded += count;
    for (const PublishedRow& row : table.rows)
      fp8 += !row.not_modelled.empty() && exclusion_of(row) == Exclusion::none ? 1 : 0;
    EXPECT_EQ(set.rows, static_cast<int>(table.rows.size()));
    EXPECT_EQ(set.rows, set.priced + set.unpriced + excluded) << name;
    EXPECT_EQ(set.unpriced, fp8) << name;
    if (published.contains(name)) {
      EXPECT_EQ(set.priced, published.at(name)) << name;
    }
    if (std::string(name) == "ultrascale-2025") {
      EXPECT_EQ(set.excluded.at("all_reduce_test"), 9);
    }
  }
}

}  // namespace

// Scores by hand.

namespace {

TEST(TimeScore, ErrorsAreRelativeToWhatWasMeasured) {
  const std::vector<TimePair> pairs = {{110, 100}, {80, 100}, {4, 4}};
  const TimeScore score = time_score(pairs);
  EXPECT_EQ(score.priced, 3);
  EXPECT_NEAR(score.mape, (10 + 20 + 0) / 3.0, 1e-12);
  EXPECT_NEAR(score.median_ape, 10, 1e-12);
  EXPECT_NEAR(score.bias, (10 - 20 + 0) / 3.0, 1e-12);
}

TEST(TimeScore, ARunThatCannotBePricedCountsAsAHundredPercent) {
  const std::vector<TimePair> pairs = {{0, 5}, {5, 5}};
  const TimeScore score = time_score(pairs);
  EXPECT_EQ(score.unpriced, 1);
  EXPECT_NEAR(score.mape, 50, 1e-12);
  EXPECT_NEAR(score.bias, 0, 1e-12);  // of the one that was priced
}

TEST(TimeScore, WithoutRowsThereIsNoError) { EXPECT_TRUE(std::isnan(time_score({}).mape)); }

TEST(RankCorrelation, OneForTheSameOrderMinusOneForTheReverse) {
  const std::vector<double> a = {1, 2, 3, 4}, same = {10, 100, 1000, 1e6}, reverse = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rank_correlation(a, same), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, reverse), -1);
}

TEST(RankCorrelation, TiesShareTheirMeanRank) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: Pearson of the ranks = 4.5/√(4.5·5).
  const std::vector<double> a = {1, 2, 2, 3}, b = {1, 2, 3, 4};
  EXPECT_NEAR(rank_correlation(a, b), 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(RankCorrelation, IsUndefinedForAConstant) {
  const std::vector<double> a = {1, 1}, b = {1, 2};
  EXPECT_TRUE(std::isnan(rank_correlation(a, b)));
}

TEST(RegretOfATable, ComparesTheRecommendedWithTheBest) {
  const std::vector<TableLayout> table = {{0.6, true, 0.45}, {0.5, true, 0.5}, {0.4, true, 0.3}, {0.3, true, 0.2}};
  const Regret regret = regret_of(table);
  EXPECT_NEAR(regret.first, 0.1, 1e-12);
  EXPECT_NEAR(regret.best_of_three, 0, 1e-12);
}

TEST(RegretOfATable, WhatIsPredictedNotToFitIsNotRecommended) {
  const std::vector<TableLayout> table = {{0.6, false, 0.5}, {0.5, true, 0.4}};
  EXPECT_NEAR(regret_of(table).first, 0.2, 1e-12);
}

TEST(RegretOfATable, ARecommendationThatRunsOutOfMemoryLosesAll) {
  const std::vector<TableLayout> table = {{0.6, true, 0}, {0.5, true, 0.4}};
  const Regret regret = regret_of(table);
  EXPECT_DOUBLE_EQ(regret.first, 1);
  EXPECT_TRUE(regret.first_ran_out);
  EXPECT_NEAR(regret.best_of_three, 0, 1e-12);
}

TEST(RegretOfATable, NoRecommendationLosesAll) {
  const std::vector<TableLayout> table = {{0.6, false, 0.5}, {0, true, 0.4}};
  EXPECT_DOUBLE_EQ(regret_of(table).first, 1);
}

TEST(MemoryConfusion, FourCasesAndTwoShares) {
  const std::vector<MemoryPair> pairs = {{true, true},  {true, true},   {true, true},
                                         {true, false}, {false, false}, {false, true}};
  const Confusion c = confusion(pairs);
  EXPECT_EQ(c.true_fit, 3);
  EXPECT_EQ(c.false_fit, 1);
  EXPECT_EQ(c.true_oom, 1);
  EXPECT_EQ(c.false_oom, 1);
  EXPECT_NEAR(c.share_right(), 4.0 / 6, 1e-12);
  EXPECT_NEAR(c.share_of_safe_oom(), 0.25, 1e-12);
}

}  // namespace

}  // namespace slipway::test
