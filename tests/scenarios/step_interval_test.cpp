// Intervals of predicted step times: what constants, runs and settings outside the fitted ones add to them.
#include "scenarios/predict/step_interval.h"
#include "scenarios/predict/load_scenario.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/predict/simulated_step.h"

namespace slipway::test {
namespace {

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
const std::string book = SLIPWAY_SOURCE_DIR "/tests/data/book_constants.yaml";

Scenario scenario_with(const std::vector<std::string>& overrides) {
  LoadResult loaded = load_scenario(llama, overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return std::move(loaded.scenario);
}

std::optional<StepInterval> interval_at(const Scenario& scenario, double step_s, std::size_t outside) {
  return step_interval(replayable_step(scenario), step_s, outside);
}

// A set of one constant whose logarithm is known to 0.1.
PooledConstants of_one(const char* name) {
  PooledConstants pooled;
  const auto table = step_constants();
  for (std::size_t j = 0; j < table.size(); ++j)
    if (table[j].name == std::string_view(name)) pooled.coordinates = {{j, "", "", 0.1}};
  pooled.values = {0};
  pooled.covariance = {0.01};
  return pooled;
}

TEST(StepInterval, LiesEvenlyAroundTheStepByTheLogarithm) {
  const Scenario scenario = scenario_with({});
  const auto interval = interval_at(scenario, 2, 0);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(std::log(interval->high_s / 2), std::log(2 / interval->low_s), 1e-12);
  EXPECT_NEAR(interval->half_width(), std::log(interval->high_s / 2), 1e-12);
}

// Student's t with five degrees of freedom has 90 % within 2.015 of its scales.
TEST(StepInterval, OfKnownConstantsIsThatOfRunsAlone) {
  Scenario scenario = scenario_with({});
  PooledConstants known = of_one("gemm");
  known.covariance = {0};
  // All that a trainer, a machine and their cluster have of their own is known as well.
  const PooledConstants all = prior_constants({{"generic", "h100-80gb", 0, 1}}, known);
  PooledConstants sure = all;
  sure.covariance.assign(all.covariance.size(), 0);
  scenario.constants = std::make_shared<PooledConstants>(sure);
  const auto interval = interval_at(scenario, 2, 0);
  EXPECT_NEAR(interval->constants, 0, 1e-12);
  EXPECT_NEAR(interval->half_width(), 2.015 * sure.row_spread, 1e-3);
}

TEST(StepInterval, WidensWithEachSettingOutsideTheFittedRuns) {
  const Scenario scenario = scenario_with({});
  const double none = interval_at(scenario, 1, 0)->half_width(), one = interval_at(scenario, 1, 1)->half_width(),
               two = interval_at(scenario, 1, 2)->half_width();
  EXPECT_LT(none, one);
  EXPECT_LT(one, two);
}

// What nobody measured counts with its prior: a machine whose runs were fitted is better known than one without any.
// An H800 has the processor and the kernels of an H100. Nobody has measured it.
TEST(StepInterval, IsWiderOnAGpuWhoseKernelsNobodyHasMeasured) {
  const auto on = [](const char* machine) {
    return interval_at(scenario_with({std::string("cluster.machine=") + machine}), 1, 0).value();
  };
  EXPECT_EQ(on("h200").kernels, 0);
  EXPECT_GT(on("h800").kernels, 0);
  EXPECT_GT(on("h800").half_width(), on("h200").half_width());
}

// 194 published runs are on it.
TEST(StepInterval, IsNotWidenedForKernelsWhoseRunsTheConstantsWereFittedTo) {
  EXPECT_EQ(interval_at(scenario_with({"cluster.machine=a100-40gb"}), 1, 0)->kernels, 0);
}

TEST(StepInterval, OfATrainerWithPublishedRunsIsNarrower) {
  const Scenario known = scenario_with({"cluster.trainer=nanotron"}), other = scenario_with({"cluster.machine=b300"});
  EXPECT_LT(interval_at(known, 1, 0)->constants, interval_at(other, 1, 0)->constants);
}

TEST(StepInterval, SensitivitiesAreThoseOfReplaysUnderMovedConstants) {
  Scenario scenario = scenario_with({});
  const double here = replayed_step_s(scenario);
  const auto interval = interval_at(scenario, here, 0);
  const auto list = sensitivities(*interval);
  ASSERT_GE(list.size(), 3);
  double sum = 0;
  for (const Sensitivity& each : list) sum += std::abs(each.slope);
  EXPECT_GT(sum, 0.5);
  const auto table = step_constants();
  for (std::size_t i = 0; i < 3; ++i) {
    Scenario moved = scenario;
    moved.step_constants = [&](const Machine& machine) {
      StepConstants values = constants_on(scenario, machine);
      for (const StepConstant& constant : table)
        if (constant.name == list[i].constant) values.*constant.value *= 1.001;
      return values;
    };
    EXPECT_NEAR(std::log(replayed_step_s(moved) / here) / std::log(1.001), list[i].slope, 0.05) << list[i].constant;
  }
}

TEST(StepInterval, ThereIsNoneOfAProfileOfSharesOfPeak) {
  LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", {});
  ASSERT_TRUE(loaded.errors.empty());
  EXPECT_FALSE(interval_at(loaded.scenario, 1, 0));
}

TEST(StepInterval, OfACalibratedProfileIsAsWideAsTheTasksThatItsFitHadNotSeen) {
  LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", {});
  ASSERT_TRUE(loaded.errors.empty());
  loaded.scenario.cluster.groups.front().machine.spread = 0.1;
  const auto interval = interval_at(loaded.scenario, 2, 0);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->high_s, 2 * std::exp(0.16449), 1e-5);
  EXPECT_NEAR(interval->low_s * interval->high_s, 4, 1e-9);
  EXPECT_NEAR(probability_faster(loaded.scenario, 2, *interval, 2, *interval), 0.5, 1e-9);
  EXPECT_GT(probability_faster(loaded.scenario, 2, *interval, 4, *interval), 0.95);
}

// Two numbers that are off in two directions: c₁ by 0.1 in the first, c₂ by 0.06 in it and by 0.08 in the second.
TEST(StepInterval, OfACalibratedProfileCountsItsNumbersBySlopesOfReplaysAndTheirCovariance) {
  LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", {});
  ASSERT_TRUE(loaded.errors.empty());
  Scenario& scenario = loaded.scenario;
  Machine& machine = scenario.cluster.groups.front().machine;
  machine.peak_flops[static_cast<std::size_t>(scenario.step.dtype)] = 50e9;
  machine.memory_bandwidth = 200e9;
  machine.task_overhead = 1e-5;
  machine.node_link = {"loopback", 1e9, 1e-4, 1};
  machine.spread = 0.05;
  machine.deviations = {{"gemm_efficiency", {0.1, 0}}, {"node_link.bandwidth", {0.06, 0.08}}};
  scenario.cluster.fabrics = default_fabrics(scenario.cluster.groups);
  const auto slope_of = [&](const char* name) {
    constexpr double little = 1e-3;
    Scenario moved = scenario;
    *fitted_number(moved.cluster.groups.front().machine, name) *= std::exp(little);
    moved.cluster.fabrics = default_fabrics(moved.cluster.groups);
    return std::log(replayed_step_s(moved) / replayed_step_s(scenario)) / little;
  };
  const double products = slope_of("gemm_efficiency"), link = slope_of("node_link.bandwidth");
  ASSERT_LT(products, -0.1);
  ASSERT_LT(link, -0.001);
  const auto interval = interval_at(scenario, 2, 0);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->constants, std::hypot(0.1 * products + 0.06 * link, 0.08 * link), 1e-4);
  EXPECT_NEAR(std::log(interval->high_s / 2), 1.6449 * std::hypot(interval->constants, 0.05), 1e-9);
  const auto list = sensitivities(*interval);
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.front().constant, "gemm_efficiency");
  EXPECT_NEAR(list.front().slope, products, 1e-2);
  // What both err in alike tells nothing apart: only what runs differ in is left.
  EXPECT_NEAR(probability_faster(scenario, 1, *interval, std::exp(0.05 * std::sqrt(2.0)), *interval), 0.8413, 1e-4);
}

// Products are known to 0.1, and everything else for sure. Two layouts err in them alike, so ln(b/a) is as uncertain as
// two runs are, 1.2816 of whose spreads are 90 % of a normal distribution; with 0.4 more of products also by 0.04.
TEST(StepInterval, TheIntervalOfADifferenceLeavesOutWhatBothStepsShare) {
  Scenario scenario = scenario_with({});
  PooledConstants known = prior_constants({{"generic", "h100-80gb", 0, 1}}, of_one("gemm"));
  known.covariance.assign(known.covariance.size(), 0);
  known.covariance[0] = 0.01;
  scenario.constants = std::make_shared<PooledConstants>(known);
  const StepInterval interval = interval_at(scenario, 1, 0).value();
  ASSERT_GT(interval.constants, 0.01);
  constexpr double of_90_percent = 1.2816;
  const double runs = std::sqrt(2.0) * known.row_spread;
  EXPECT_NEAR(probability_faster(scenario, 1, interval, std::exp(of_90_percent * runs), interval), 0.9, 1e-5);
  StepInterval other = interval;
  ASSERT_EQ(step_constants()[0].name, std::string_view("gemm"));
  other.slopes.front().slopes[0] += 0.4;
  EXPECT_NEAR(probability_faster(scenario, 1, interval, std::exp(of_90_percent * std::hypot(runs, 0.04)), other), 0.9,
              1e-5);
}

TEST(StepInterval, OfTwoEqualLayoutsEitherMayBeTheFasterOne) {
  const Scenario scenario = scenario_with({});
  const auto interval = interval_at(scenario, 1, 0);
  EXPECT_NEAR(probability_faster(scenario, 1, *interval, 1, *interval), 0.5, 1e-9);
  EXPECT_GT(probability_faster(scenario, 1, *interval, 1.5, *interval), 0.95);
  EXPECT_NEAR(probability_faster(scenario, 1, *interval, 1.2, *interval) +
                  probability_faster(scenario, 1.2, *interval, 1, *interval),
              1, 1e-9);
}

}  // namespace
}  // namespace slipway::test
