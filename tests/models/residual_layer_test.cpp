// The residual layer against smooth errors that made the residuals: it finds them near runs and nowhere else.
#include "models/fit/residual_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace slipway::test {
namespace {

// Runs of one site at random places of three numbers; the third does not matter.
std::vector<ResidualRow> runs_of(const std::string& trainer, int count, double noise, std::mt19937_64& random,
                                 double (*error)(const std::vector<double>&)) {
  std::uniform_real_distribution<double> anywhere(-2, 2);
  std::normal_distribution<double> normal;
  std::vector<ResidualRow> rows;
  for (int i = 0; i < count; ++i) {
    ResidualRow row{trainer, "machine", {anywhere(random), anywhere(random), anywhere(random)}, 0};
    row.residual = error(row.place) + noise * normal(random);
    rows.push_back(row);
  }
  return rows;
}

double smooth(const std::vector<double>& place) { return 0.1 * std::sin(place[0]) + 0.05 * place[1]; }
double none(const std::vector<double>&) { return 0; }

double error_left(const ResidualLayer& layer, const std::vector<ResidualRow>& others,
                  double (*error)(const std::vector<double>&)) {
  double sum = 0;
  for (const ResidualRow& row : others)
    sum += std::abs(error(row.place) - layer.at(row.trainer, row.machine, row.place).shift);
  return sum / static_cast<double>(others.size());
}

TEST(ResidualLayer, FindsASmoothErrorAtPlacesBetweenRuns) {
  std::mt19937_64 random(1);
  const ResidualLayer layer(runs_of("a", 80, 0.01, random, smooth));
  const auto others = runs_of("a", 200, 0, random, smooth);
  EXPECT_GT(error_left(ResidualLayer(runs_of("a", 80, 0, random, none)), others, smooth), 0.05);
  EXPECT_LT(error_left(layer, others, smooth), 0.01);
}

TEST(ResidualLayer, FarFromAllRunsCorrectsNothingAndIsLessSure) {
  std::mt19937_64 random(2);
  const auto rows = runs_of("a", 80, 0.01, random, smooth);
  const ResidualLayer layer(rows);
  const ResidualCorrection near = layer.at("a", "machine", {0.5, 0.5, 0}), far = layer.at("a", "machine", {90, 90, 0});
  EXPECT_LT(std::abs(far.shift), 1e-6);
  EXPECT_GT(far.spread, 3 * near.spread);
  EXPECT_GT(half_width(far, 0), half_width(near, 0));
}

TEST(ResidualLayer, OfNoiseAloneItMakesNearlyNothing) {
  std::mt19937_64 random(3);
  const ResidualLayer layer(runs_of("a", 100, 0.05, random, none));
  EXPECT_LT(error_left(layer, runs_of("a", 200, 0, random, none), none), 0.4 * 0.05);
}

TEST(ResidualLayer, OneRunThatIsTenTimesSlowerDoesNotBendIt) {
  std::mt19937_64 random(4);
  auto rows = runs_of("a", 80, 0.01, random, smooth);
  const ResidualLayer right(rows);
  const ResidualRow wrong = rows[7];
  rows[7].residual += std::log(10);
  const ResidualLayer bent(rows);
  EXPECT_NEAR(bent.at("a", "machine", wrong.place).shift, right.at("a", "machine", wrong.place).shift, 0.03);
  const auto others = runs_of("a", 200, 0, random, smooth);
  EXPECT_LT(error_left(bent, others, smooth), 0.013);
}

TEST(ResidualLayer, NoRunOfOneTrainerOrMachineMovesTheCorrectionOfAnother) {
  std::mt19937_64 random(5);
  auto rows = runs_of("a", 60, 0.01, random, smooth);
  const auto other = runs_of("b", 60, 0.01, random, none);
  const ResidualLayer alone(other);
  rows.insert(rows.end(), other.begin(), other.end());
  const ResidualLayer layer(rows);
  EXPECT_TRUE(layer.knows("a", "machine"));
  EXPECT_FALSE(layer.knows("a", "another machine"));
  EXPECT_THROW(layer.at("c", "machine", {0, 0, 0}), std::out_of_range);
  for (const ResidualRow& row : other) {
    const ResidualCorrection one = alone.at("b", "machine", row.place), both = layer.at("b", "machine", row.place);
    EXPECT_EQ(one.shift, both.shift);
    EXPECT_EQ(one.spread, both.spread);
    EXPECT_EQ(one.noise, both.noise);
  }
}

// The error depends on the first two numbers of a place. Far off in the third, runs still say what it is.
TEST(ResidualLayer, LearnsWhatErrorsDoNotDependOn) {
  std::mt19937_64 random(7);
  const ResidualLayer layer(runs_of("a", 80, 0.005, random, smooth));
  auto others = runs_of("a", 100, 0, random, smooth);
  for (ResidualRow& row : others) row.place[2] += 4;
  EXPECT_LT(error_left(layer, others, smooth), 0.01);
  for (ResidualRow& row : others) row.place[2] -= 4, row.place[0] += 4;
  EXPECT_GT(error_left(layer, others, smooth), 0.02);
}

TEST(ResidualLayer, NineOfTenRunsAreInItsInterval) {
  std::mt19937_64 random(6);
  std::student_t_distribution<double> noise(residual_freedom);
  int inside = 0, all = 0;
  for (int time = 0; time < 10; ++time) {
    auto rows = runs_of("a", 160, 0, random, smooth);
    for (ResidualRow& row : rows) row.residual += 0.02 * noise(random);
    const std::vector<ResidualRow> seen(rows.begin(), rows.begin() + 60);
    const ResidualLayer layer(seen);
    for (std::size_t i = seen.size(); i < rows.size(); ++i, ++all) {
      const ResidualCorrection correction = layer.at("a", "machine", rows[i].place);
      inside += std::abs(rows[i].residual - correction.shift) <= half_width(correction, 0);
    }
  }
  EXPECT_NEAR(100.0 * inside / all, 90, 4);
}

TEST(ResidualLayer, WithoutRunsItKnowsNobodyAndPlacesMustBeAlike) {
  EXPECT_FALSE(ResidualLayer({}).knows("a", "machine"));
  EXPECT_THROW(ResidualLayer({{"a", "machine", {1, 2}, 0}, {"a", "machine", {1}, 0}}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
