// Memory verdicts of the published tables, by constants fitted without the rows.
#include "scenarios/tables/memory_refit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/price_memory.h"
#include "scenarios/validate/validation.h"

namespace slipway::test {
namespace {

PublishedTable study(const std::string& name) {
  const std::string path = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/studies/" + name + "/runs.csv";
  std::ifstream in(path);
  return read_table(in, path);
}

ScoreSet left_out(const Validation& validation, Left way) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : validation.rows) rows.push_back(&row);
  return score(rows, way);
}

struct Bar {
  Left way;
  double right;  // of the plain verdict, at least
};

void expect_bars(const std::string& name, const std::vector<Bar>& bars) {
  const PublishedTable table = study(name);
  const Validation validation = validate(table, true);
  for (const Bar& bar : bars) {
    const ScoreSet set = left_out(validation, bar.way);
    EXPECT_EQ(set.memory_unpriced, 0);
    EXPECT_GE(set.oom.share_right(), bar.right) << name << " by " << name_of(bar.way);
    EXPECT_LE(set.oom_cautious.share_of_safe_oom(), 0.01) << name << " by " << name_of(bar.way);
  }
}

TEST(MemoryRefit, VerdictsOfHagemannLeftOutReachTheirBar) {
  expect_bars("hagemann-2023", {{Left::layout, 0.96}, {Left::group, 0.96}, {Left::choice, 0.96}});
}

TEST(MemoryRefit, VerdictsOfFujiiLeftOutReachTheirBar) {
  expect_bars("fujii-2024", {{Left::layout, 0.95}, {Left::group, 0.95}, {Left::choice, 0.95}});
}

// Peak within 10 % (median 7 %) of the allocator's reserve, bytes after a step within 10 % (median 5 %).
TEST(MemoryRefit, PeaksOfNanotronLeftOutReachTheirBars) {
  const PublishedTable table = study("ultrascale-2025");
  const Validation validation = validate(table, true);
  for (const Left way : {Left::layout, Left::group}) {
    const ScoreSet set = left_out(validation, way);
    EXPECT_EQ(set.reserved.priced, 797);
    EXPECT_LE(set.reserved.mape, 10);
    EXPECT_LE(set.reserved.median_ape, 7);
    EXPECT_LE(set.allocated.mape, 10);
    EXPECT_LE(set.allocated.median_ape, 5);
    EXPECT_LE(set.oom_cautious.share_of_safe_oom(), 0.01);
    EXPECT_GE(set.oom.share_right(), 0.975);
  }
}

TEST(MemoryRefit, ARowThatIsLeftOutDoesNotMoveItsOwnPrediction) {
  PublishedTable table = study("fujii-2024");
  std::vector<PublishedRow*> rows;
  for (PublishedRow& row : table.rows)
    if (has_memory_result(row) && row.machine == "a100-40gb") rows.push_back(&row);
  std::vector<int> parts;
  for (std::size_t i = 0; i < rows.size(); ++i) parts.push_back(i < 20 ? 0 : 1);
  const auto peak = [&](std::size_t i) {
    return MemoryRefit({rows.begin(), rows.end()}).left_out(parts)[i]->peak_bytes;
  };
  const double own = peak(0), other = peak(30);
  for (std::size_t i = 0; i < 20; ++i) rows[i]->status = RowStatus::out_of_memory;
  EXPECT_EQ(peak(0), own);
  EXPECT_NE(peak(30), other) << "it does move the others'";
}

// The profiles' values are those fitted to the rows of the study folders. After a change of the estimate or of a table
// run `slipway validate --constants FILE`.
TEST(MemoryRefit, BuiltInConstantsAreTheFitToTheStudies) {
  for (const char* name : {"hagemann-2023", "fujii-2024", "ultrascale-2025"}) {
    const PublishedTable table = study(name);
    std::map<std::string, std::vector<const PublishedRow*>> sets;
    for (const PublishedRow& row : table.rows)
      if (has_memory_result(row)) sets[row.machine].push_back(&row);
    for (const auto& [machine, rows] : sets) {
      const MemoryRefit refit(rows);
      const MemoryFit fit = refit.all();
      for (std::size_t i = 0; i < fit.values.size(); ++i) {
        const double kept = refit.memory().sources[i].value;
        EXPECT_NEAR(kept, fit.values[i], 0.01 * fit.values[i]) << name << " " << memory_parameters()[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace slipway::test
