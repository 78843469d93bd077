// Memory verdicts of the published tables, by constants fitted without the rows. Runs of other trainers stay in the fit.
#include "scenarios/tables/memory_refit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "scenarios/language/load_memory.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/table.h"
#include "scenarios/validate/memory_text.h"
#include "scenarios/validate/scores.h"

namespace slipway::test {
namespace {

struct Runs {
  std::vector<const PublishedRow*> rows;
  std::vector<int> groups;
};

Runs runs_of(const std::string& trainer) {
  Runs runs;
  std::set<std::string> names;
  for (const PublishedRow& row : published_rows()) {
    if (row.trainer != trainer || !has_memory_result(row)) continue;
    runs.rows.push_back(&row);
    names.insert(row.group);
    runs.groups.push_back(0);
  }
  for (std::size_t i = 0; i < runs.rows.size(); ++i)
    runs.groups[i] = static_cast<int>(std::distance(names.begin(), names.find(runs.rows[i]->group)));
  return runs;
}

struct Scores {
  Confusion likely, recommended;
  double peak_error = 0;  // mean of |predicted / measured − 1|
};

Scores left_out_by_group(const std::string& trainer) {
  const Runs runs = runs_of(trainer);
  const auto prices = MemoryRefit(runs.rows, published_rows()).left_out(runs.groups);
  std::vector<MemoryPair> likely, recommended;
  double errors = 0, measured = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (!prices[i]) continue;
    const bool fitted = runs.rows[i]->status == RowStatus::ok;
    likely.push_back({prices[i]->fits, fitted});
    recommended.push_back({prices[i]->fits_cautious, fitted});
    if (!(runs.rows[i]->reserved_bytes > 0)) continue;
    errors += std::abs(prices[i]->first_bytes / runs.rows[i]->reserved_bytes - 1);
    ++measured;
  }
  return {confusion(likely), confusion(recommended), measured > 0 ? errors / measured : 0};
}

// At most 1 % out of memory of those recommended at 99 %. Of all verdicts of left-out groups, 96 % are right: the aim is
// 97 %, which one or two rows decide.
void expect_bar(const Scores& scores, int recommended) {
  EXPECT_GE(scores.likely.share_right(), 0.96);
  EXPECT_LE(scores.recommended.share_of_safe_oom(), 0.01);
  EXPECT_GE(scores.recommended.true_fit, recommended) << "and not by recommending nothing";
}

TEST(MemoryRefit, VerdictsOfHagemannsModelsAndSequencesLeftOutReachTheBar) {
  expect_bar(left_out_by_group("aa-scaling"), 150);
}

TEST(MemoryRefit, VerdictsOfFujiisLayoutsLeftOutReachTheBar) { expect_bar(left_out_by_group("megatron-core"), 70); }

TEST(MemoryRefit, VerdictsAndPeaksOfNanotronsModelsLeftOutReachTheBar) {
  const Scores scores = left_out_by_group("nanotron");
  expect_bar(scores, 700);
  EXPECT_LE(scores.peak_error, 0.10);
}

TEST(MemoryRefit, ARowThatIsLeftOutDoesNotMoveItsOwnPrediction) {
  std::vector<PublishedRow> table;
  for (const PublishedRow& row : published_rows())
    if (row.trainer == "megatron-core" && has_memory_result(row) && row.machine == "a100-40gb") table.push_back(row);
  std::vector<const PublishedRow*> rows;
  std::vector<int> parts;
  for (const PublishedRow& row : table) {
    parts.push_back(rows.size() < 20 ? 0 : 1);
    rows.push_back(&row);
  }
  const auto peak = [&](std::size_t i) { return MemoryRefit(rows, {}).left_out(parts)[i]->odds.bytes; };
  const double own = peak(0), other = peak(30);
  for (std::size_t i = 0; i < 20; ++i) table[i].status = RowStatus::out_of_memory;
  EXPECT_EQ(peak(0), own);
  EXPECT_NE(peak(30), other) << "it does move the others'";
}

// After a change of the count, a prior or a table run `slipway validate --memory-constants models/memory/pooled.yaml`.
TEST(MemoryRefit, BuiltInConstantsAreTheFitToTheStudies) {
  const PooledMemory fit = MemoryRefit({}, published_rows()).all();
  const PooledMemory& built_in = built_in_memory();
  ASSERT_EQ(fit.unknowns(), built_in.unknowns());
  for (std::size_t i = 0; i < fit.constants.size(); ++i)
    EXPECT_NEAR(std::log(fit.constants[i].value / built_in.constants[i].value), 0, 0.1 * fit.constants[i].spread)
        << memory_parameters()[i].name;
  const std::size_t n = fit.unknowns();
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_NEAR(std::sqrt(fit.covariance[i * n + i] / built_in.covariance[i * n + i]), 1, 0.1) << i;
}

}  // namespace
}  // namespace slipway::test
