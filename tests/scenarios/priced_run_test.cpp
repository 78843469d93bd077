// Published runs as their trainers make them: the critical path of each sums to its replay, and its slopes are those of
// replays under moved constants.
#include "scenarios/tables/priced_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string_view>

#include "scenarios/language/load_trainer.h"
#include "scenarios/tables/table.h"

namespace slipway::test {
namespace {

ConstantsOn always(const StepConstants& constants) {
  return [constants](const Machine&) { return constants; };
}
const ConstantsOn by_the_book = always(book_constants());

// Some measured runs of each study.
std::vector<PublishedRow> some_runs() {
  std::vector<PublishedRow> runs;
  for (const char* study :
       {"hagemann-2023", "fujii-2024", "vtrain-2024", "megatron-2021", "mosaicml-2023", "ultrascale-2025"}) {
    std::ifstream in(std::string(SLIPWAY_SOURCE_DIR "/scenarios/studies/") + study + "/runs.csv");
    const PublishedTable table = read_table(in, study);
    int count = 0;
    constexpr int every = 23, most = 6;
    for (std::size_t i = 0; i < table.rows.size() && count < most; i += every)
      if (exclusion_of(table.rows[i]) == Exclusion::none && table.rows[i].scenario)
        runs.push_back(table.rows[i]), ++count;
  }
  return runs;
}

TEST(PricedRun, TheCriticalPathOfARunSumsToItsReplay) {
  int checked = 0;
  for (const PublishedRow& row : some_runs()) {
    PricedRun run(row);
    const double replayed = run.replay(by_the_book);
    EXPECT_NEAR(run.seconds(by_the_book) / replayed, 1, 0.002) << in_words(row);
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

// Beyond a little, another path may be the longest. Where the path begins with launches of the step before, its share of
// them is by time, and what the device did meanwhile (update, fixed) counts too. That happens in steps of the host alone:
// in two of these runs, by 0.044 at most (host_member), where all other runs are exact to the step of the difference.
TEST(PricedRun, SlopesAreThoseOfReplaysUnderMovedConstants) {
  int exact = 0;
  for (const PublishedRow& row : some_runs()) {
    PricedRun run(row);
    StepConstants constants = book_constants();
    const double here = run.replay(always(constants));
    const std::vector<double> slopes = run.slopes(always(constants), row.machine);
    double sum = 0, of_host = 0;
    std::vector<double> replayed;
    const auto table = step_constants();
    for (std::size_t j = 0; j < table.size(); ++j) {
      constexpr double little = 1e-3;
      StepConstants moved = constants;
      moved.*table[j].value *= std::exp(little);
      replayed.push_back(std::log(PricedRun(row).replay(always(moved)) / here) / little);
      if (std::string_view(table[j].name).starts_with("host_")) of_host += replayed[j];
      sum += std::abs(slopes[j]);
    }
    const bool is_of_the_host = of_host > 0.5;
    for (std::size_t j = 0; j < table.size(); ++j)
      EXPECT_NEAR(replayed[j], slopes[j], is_of_the_host ? 0.05 : 1e-3) << table[j].name << ", " << in_words(row);
    EXPECT_GT(sum, 0.5) << in_words(row);
    exact += is_of_the_host ? 0 : 1;
  }
  EXPECT_GE(exact, 20);
}

TEST(PricedRun, NothingMeasuredEntersAPrediction) {
  for (PublishedRow row : some_runs()) {
    const double with = PricedRun(row).replay(by_the_book);
    row.step_s = 1, row.allocated_bytes = row.reserved_bytes = row.all_reduce_bytes_per_s = 0;
    EXPECT_EQ(PricedRun(row).replay(by_the_book), with) << in_words(row);
  }
}

TEST(PricedRun, ASlowerHostMakesSmallModelsSlowerAndLargeOnesHardly) {
  StepConstants slow = book_constants();
  slow.host_kernel *= 3;
  std::map<std::string, double> most;
  for (const PublishedRow& row : some_runs()) {
    const double factor = PricedRun(row).replay(always(slow)) / PricedRun(row).replay(by_the_book);
    EXPECT_GE(factor, 1 - 1e-9) << in_words(row);
    most[row.trainer] = std::max(most[row.trainer], factor);
  }
  EXPECT_GT(most["megatron-deepspeed"], 1.5);
  EXPECT_LT(most["megatron-core"], 1.1);
}

TEST(PricedRun, AFactorOfEverythingIsThatOfTheStep) {
  StepConstants twice = book_constants();
  twice.whole = 2;
  for (const PublishedRow& row : some_runs()) {
    PricedRun run(row);
    EXPECT_NEAR(run.replay(always(twice)) / PricedRun(row).replay(by_the_book), 2, 1e-9) << in_words(row);
  }
}

TEST(PricedRun, ARowWithoutAScenarioHasNoneAndAReason) {
  PublishedRow row;
  row.unpriceable = "not modelled: hybrid layers";
  EXPECT_THROW(PricedRun{row}, std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
