// Memory constants fitted to verdicts and peaks that other constants made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "models/fit/memory_fit.h"
#include "models/fit/prior_fit.h"

namespace slipway::test {

namespace {

std::size_t index_of(std::string_view name) {
  const auto parameters = memory_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

PooledMemory priors() {
  PooledMemory memory;
  MemoryConstants book;
  for (std::size_t i = 0; i + memory_deviations < memory_parameters().size(); ++i) {
    const double value = std::max(book.*memory_parameters()[i].value, 1e-3);
    memory.constants.push_back({value, value, 0.3, "a test"});
  }
  memory.constants[index_of("context_bytes")] = {1e9, 1e9, 0.5, "a test"};
  memory.constants[index_of("communicator_bytes")] = {1, 1, 0.01, "a test"};
  memory.fragmentation_spread = memory.library_spread = 0.01;
  memory.other_share = 1e-4;
  return memory;
}

// Layers of one stage; the truth takes 1.3 of the count and a context of 2 GB.
std::vector<MemoryRun> runs(bool measured) {
  MemoryConstants truth = constants_of(priors(), "one", "gpu", {});
  truth.layer_factor = 1.3;
  truth.context_bytes = 2e9;
  std::vector<MemoryRun> result;
  for (int i = 0; i < 60; ++i) {
    MemoryRun run;
    run.trainer = "one", run.machine = "gpu";
    run.stages.resize(1);
    run.stages[0].parts[MemoryPart::weights] = 1e9 * (i % 7);
    run.stages[0].parts[MemoryPart::mlp] = 4e8 * i;
    run.capacity_bytes = 20e9;
    run.fitted = peak_bytes(run.stages[0], truth) <= run.capacity_bytes;
    if (measured && run.fitted) run.reserved_bytes = reserved_bytes(run.stages[0], truth);
    result.push_back(run);
  }
  return result;
}

std::vector<const MemoryRun*> pointers(const std::vector<MemoryRun>& runs) {
  std::vector<const MemoryRun*> result;
  for (const MemoryRun& run : runs) result.push_back(&run);
  return result;
}

double variance_of(const PooledMemory& memory, const char* name) {
  return memory.covariance[index_of(name) * (memory.unknowns() + 1)];
}

TEST(MemoryFit, MeasuredPeaksGiveTheConstantsBack) {
  const std::vector<MemoryRun> made = runs(true);
  const PooledMemory fit = fit_memory(pointers(made), priors());
  EXPECT_NEAR(fit.constants[index_of("layer_factor")].value, 1.3, 0.01);
  EXPECT_LT(variance_of(fit, "layer_factor"), 0.05);
}

TEST(MemoryFit, VerdictsAloneGiveVerdictsBack) {
  const std::vector<MemoryRun> made = runs(false);
  const PooledMemory fit = fit_memory(pointers(made), priors());
  const MemoryConstants constants = constants_of(fit, "one", "gpu", {});
  for (const MemoryRun& run : made) {
    const double share = peak_bytes(run.stages[0], constants) / run.capacity_bytes;
    if (std::abs(share - 1) < 0.05) continue;
    EXPECT_EQ(share <= 1, run.fitted) << share;
  }
  EXPECT_GT(fit.constants[index_of("layer_factor")].value, 1.1);
}

TEST(MemoryFit, WhatNoRunDependsOnStaysAtItsPrior) {
  const std::vector<MemoryRun> made = runs(false);
  const PooledMemory fit = fit_memory(pointers(made), priors());
  EXPECT_NEAR(fit.constants[index_of("score_bytes")].value, 5, 1e-9);
  EXPECT_NEAR(variance_of(fit, "score_bytes"), 1, 1e-6);
}

// A second trainer with runs of its own sharpens what both share.
TEST(MemoryFit, TrainersShareConstantsAndKeepTheirDeviations) {
  std::vector<MemoryRun> made = runs(false), others = runs(false);
  const PooledMemory alone = fit_memory(pointers(made), priors());
  for (MemoryRun& run : others) run.trainer = "two";
  made.insert(made.end(), others.begin(), others.end());
  const PooledMemory both = fit_memory(pointers(made), priors());
  EXPECT_EQ(both.fragmentation.size(), 2u);
  EXPECT_LT(variance_of(both, "layer_factor"), variance_of(alone, "layer_factor"));
}

TEST(MemoryFit, NoTrainerCountsAsMoreThanItsShare) {
  std::vector<MemoryRun> made(1000);
  const std::vector<double> weights = weights_of(pointers(made));
  EXPECT_DOUBLE_EQ(weights[0] * 1000, most_runs_of_a_trainer);
  made.resize(10);
  EXPECT_DOUBLE_EQ(weights_of(pointers(made))[0], 1);
}

TEST(MemoryFit, NeedsRuns) { EXPECT_THROW(fit_memory({}, priors()), std::invalid_argument); }

}  // namespace

// The fit with priors against known constants, from which the times were made.

namespace {

// seconds = work / rate + latency, for work 1, 2, ... n
std::vector<double> line(std::span<const double> values, int rows) {
  std::vector<double> seconds;
  for (int work = 1; work <= rows; ++work) seconds.push_back(work / values[0] + values[1]);
  return seconds;
}

TEST(PriorFit, RecoversConstantsThatTheRowsDetermine) {
  const std::vector<double> truth = {2.0, 0.5};
  const auto predict = [](std::span<const double> values) { return line(values, 40); };
  const PriorFit fit = fit_with_priors(std::vector<PriorParameter>{{3.0, 1.0}, {0.2, 1.0}}, predict(truth), predict,
                                       {.scale = 1e-3, .start = {}, .most_rounds = 60});
  EXPECT_NEAR(fit.values[0], 2.0, 1e-3);
  EXPECT_NEAR(fit.values[1], 0.5, 1e-3);
  EXPECT_LT(fit.remaining_spread[0], 0.01);
}

TEST(PriorFit, AConstantThatNoRowDependsOnStaysAtItsPrior) {
  const auto predict = [](std::span<const double> values) { return std::vector<double>(3, values[0]); };
  const PriorFit fit =
      fit_with_priors(std::vector<PriorParameter>{{1.0, 0.5}, {7.0, 0.5}}, std::vector<double>{2, 2, 2}, predict);
  EXPECT_DOUBLE_EQ(fit.values[1], 7.0);
  EXPECT_NEAR(fit.remaining_spread[1], 1.0, 1e-6);
}

TEST(PriorFit, OneRowAndOnePriorMeetWhereTheirPullsBalance) {
  // With ln(value) = spread·z and r = (spread·z − ln 2)/scale the optimum solves r·spread/scale/√(1+r²) + z
  // = 0.
  const auto predict = [](std::span<const double> values) { return std::vector<double>{values[0]}; };
  const double spread = 0.1, scale = 0.2;
  const PriorFit fit = fit_with_priors(std::vector<PriorParameter>{{1.0, spread}}, std::vector<double>{2.0}, predict,
                                       {.scale = scale, .start = {}, .most_rounds = 100});
  const double z = std::log(fit.values[0]) / spread, r = (spread * z - std::log(2.0)) / scale;
  EXPECT_GT(z, 0.1);
  EXPECT_NEAR(r * spread / scale / std::sqrt(1 + r * r) + z, 0, 1e-4);
}

TEST(PriorFit, AWildRowMovesTheConstantLittle) {
  const auto predict = [](std::span<const double> values) { return std::vector<double>(21, values[0]); };
  std::vector<double> measured(21, 1.0);
  measured[20] = 40;  // a broken run
  const PriorFit fit = fit_with_priors(std::vector<PriorParameter>{{1.2, 1.0}}, measured, predict);
  EXPECT_NEAR(fit.values[0], 1.0, 0.01);
}

TEST(PriorFit, AFixedConstantIsNotTouched) {
  const auto predict = [](std::span<const double> values) { return std::vector<double>{values[0] * values[1]}; };
  const PriorFit fit = fit_with_priors(std::vector<PriorParameter>{{2.0, 0.0}, {1.0, 1.0}}, std::vector<double>{6.0},
                                       predict, {.scale = 1e-4, .start = {}, .most_rounds = 100});
  EXPECT_DOUBLE_EQ(fit.values[0], 2.0);
  EXPECT_NEAR(fit.values[1], 3.0, 1e-3);
}

TEST(PriorFit, RefusesWhatCannotBeFitted) {
  const auto predict = [](std::span<const double> values) { return std::vector<double>{values[0]}; };
  const std::vector<PriorParameter> one = {{1.0, 1.0}};
  EXPECT_THROW(fit_with_priors(one, std::vector<double>{0.0}, predict), std::invalid_argument);
  EXPECT_THROW(fit_with_priors(one, std::vector<double>{1.0, 2.0}, predict), std::invalid_argument);
  EXPECT_THROW(fit_with_priors(std::vector<PriorParameter>{{0.0, 1.0}}, std::vector<double>{1.0}, predict),
               std::invalid_argument);
  const auto nothing = [](std::span<const double>) {
    return std::vector<double>{std::numeric_limits<double>::quiet_NaN()};
  };
  EXPECT_THROW(fit_with_priors(one, std::vector<double>{1.0}, nothing), std::invalid_argument);
}

}  // namespace

}  // namespace slipway::test
