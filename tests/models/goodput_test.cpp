// Days of training on failing nodes, against hand-made histories and Daly's closed form.
#include "models/training/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace slipway::test {
namespace {

constexpr double day = 86400, endless = std::numeric_limits<double>::infinity();

FaultyTraining training() {  // checkpoints of 10 s after 100 s of steps
  FaultyTraining t;
  t.step_s = 2, t.steps_per_checkpoint = 50;
  t.checkpoint_s = 10, t.restart_s = 30, t.repair_s = 500;
  t.nodes = 4;
  return t;
}

void expect_complete(const Goodput& g) {
  EXPECT_NEAR(g.useful_s + g.checkpoint_s + g.lost_s + g.restart_s + g.waiting_s, g.elapsed_s, 1e-6 * g.elapsed_s);
}

TEST(Faults, WithoutThemOnlyCheckpointsCostTime) {
  const Goodput g = simulate_faults(training(), endless, 1000, 1);
  EXPECT_DOUBLE_EQ(g.elapsed_s, 20 * 110);
  EXPECT_DOUBLE_EQ(g.useful_s, 2000);
  EXPECT_EQ(g.failures, 0);
  // The horizon cuts: 110·9 + 100 + 5 of writing.
  const Goodput cut = simulate_faults(training(), 1095, 0, 1);
  EXPECT_DOUBLE_EQ(cut.useful_s, 1000);
  EXPECT_DOUBLE_EQ(cut.checkpoint_s, 95);
}

TEST(Faults, OneFailureAtAKnownDateLosesTheWorkSinceTheCheckpoint) {
  FaultyTraining t = training();
  t.spare_nodes = 1;
  t.failures = {{110 * 3 + 42, 1}};
  const Goodput g = simulate_faults(t, endless, 1000, 1);
  EXPECT_DOUBLE_EQ(g.lost_s, 42);
  EXPECT_DOUBLE_EQ(g.restart_s, 30);
  EXPECT_DOUBLE_EQ(g.waiting_s, 0);
  EXPECT_DOUBLE_EQ(g.elapsed_s, 20 * 110 + 42 + 30);
  EXPECT_EQ(g.failures, 1);
  t.failures = {{110 * 3 + 107, 1}};  // while the checkpoint is written
  EXPECT_DOUBLE_EQ(simulate_faults(t, endless, 1000, 1).lost_s, 107);
}

TEST(Faults, WithoutASpareTheyWaitForTheRepair) {
  FaultyTraining t = training();
  t.failures = {{50, 1}};
  Goodput g = simulate_faults(t, endless, 1000, 1);
  EXPECT_DOUBLE_EQ(g.waiting_s, 500);
  EXPECT_DOUBLE_EQ(g.elapsed_s, 20 * 110 + 50 + 500 + 30);
  t.failures = {{50, 3}};  // three at once, one spare
  t.spare_nodes = 1;
  g = simulate_faults(t, endless, 1000, 1);
  EXPECT_DOUBLE_EQ(g.waiting_s, 500);
  EXPECT_EQ(g.failures, 3);
}

TEST(Faults, ARepairedNodeIsASpareForTheNextFailure) {
  FaultyTraining t = training();
  t.spare_nodes = 1;
  t.failures = {{50, 1}, {450, 1}};  // the first is back at 550
  EXPECT_DOUBLE_EQ(simulate_faults(t, endless, 1000, 1).waiting_s, 100);
  t.failures = {{50, 1}, {650, 1}};
  EXPECT_DOUBLE_EQ(simulate_faults(t, endless, 1000, 1).waiting_s, 0);
}

TEST(Faults, AFailureDuringARestartBeginsItAgain) {
  FaultyTraining t = training();
  t.spare_nodes = 2;
  t.failures = {{110, 1}, {125, 1}};
  const Goodput g = simulate_faults(t, endless, 1000, 1);
  EXPECT_DOUBLE_EQ(g.lost_s, 0);
  EXPECT_DOUBLE_EQ(g.restart_s, 15 + 30);
  expect_complete(g);
}

TEST(Faults, PartsAddUpToTheTimeAndTheSameSeedGivesTheSameHistory) {
  FaultyTraining t = training();
  t.node_mtbf_s = 4000;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    t.spare_nodes = static_cast<int>(seed % 3);
    const Goodput a = simulate_faults(t, day, 0, seed), b = simulate_faults(t, day, 0, seed);
    expect_complete(a);
    EXPECT_DOUBLE_EQ(a.elapsed_s, day);
    EXPECT_EQ(a.useful_s, b.useful_s);
    EXPECT_EQ(a.failures, b.failures);
    EXPECT_NE(a.useful_s, simulate_faults(t, day, 0, seed + 100).useful_s);
  }
}

// Mean of 4,000 histories against the exact expectation, within four standard errors.
TEST(Faults, TakeAsLongAsDalyExpectsOnTheMean) {
  for (const double node_mtbf : {1500.0, 6000.0, 60000.0}) {
    FaultyTraining t = training();
    t.node_mtbf_s = node_mtbf;  // of four nodes: as short as 375 s for restarts of 30 s and intervals of 110 s
    t.spare_nodes = 1'000'000;
    constexpr int histories = 4000;
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 0; seed < histories; ++seed) {
      const double elapsed = simulate_faults(t, endless, 1000, seed).elapsed_s;
      sum += elapsed, squares += elapsed * elapsed;
    }
    const double mean = sum / histories, variance = squares / histories - mean * mean;
    EXPECT_NEAR(mean, daly_elapsed_s(t, 2000), 4 * std::sqrt(variance / histories)) << node_mtbf;
  }
}

TEST(DalyInterval, IsTheBestOfTheExactExpectation) {
  for (const double mtbf : {600.0, 3600.0, 86400.0}) {
    FaultyTraining t = training();
    t.nodes = 1, t.node_mtbf_s = mtbf, t.step_s = 0.01;
    const auto at = [&](double interval) {
      t.steps_per_checkpoint = steps_of(interval, t.step_s);
      return daly_elapsed_s(t, 1);
    };
    const double best = daly_interval_s(mtbf, t.checkpoint_s);
    EXPECT_LT(at(best), at(0.9 * best));
    EXPECT_LT(at(best), at(1.1 * best));
    // Young's is the first order of it.
    EXPECT_NEAR(young_interval_s(mtbf, t.checkpoint_s), best, 0.15 * best);
  }
  EXPECT_DOUBLE_EQ(young_interval_s(3600, 50), 600);
  EXPECT_DOUBLE_EQ(daly_interval_s(10, 30), 10);
}

TEST(Faults, RefuseWhatIsNoTraining) {
  FaultyTraining t = training();
  t.step_s = 0;
  EXPECT_THROW(simulate_faults(t, day, 0, 1), std::invalid_argument);
  t = training(), t.nodes = 0;
  EXPECT_THROW(simulate_faults(t, day, 0, 1), std::invalid_argument);
  t = training(), t.restart_s = -1;
  EXPECT_THROW(simulate_faults(t, day, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
