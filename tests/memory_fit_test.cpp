// Memory constants from verdicts and peaks that other constants made.
#include "models/fit/memory_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway {
namespace {

std::size_t index_of(std::string_view name) {
  const auto parameters = memory_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

StackMemory profile() {
  StackMemory memory;
  for (const MemoryParameter& parameter : memory_parameters()) {
    const double book = memory.constants.*parameter.value;
    memory.sources.push_back({book, book, 0, ""});
  }
  memory.sources[index_of("layer_factor")] = {1, 1, 0.3, "the book"};
  memory.sources[index_of("library_bytes")] = {1e9, 1e9, 0.5, "a guess"};
  memory.sources[index_of("score_bytes")] = {5, 5, 0.2, "the book; no run has scores"};
  return memory;
}

// Layers of one stage, in bytes that the book counts; the truth takes 1.3 of them and 2 GB besides.
std::vector<MemoryRun> runs(bool measured) {
  MemoryConstants truth;
  truth.layer_factor = 1.3;
  truth.library_bytes = 2e9;
  std::vector<MemoryRun> result;
  for (int i = 0; i < 60; ++i) {
    MemoryRun run;
    run.stages.resize(1);
    run.stages[0].parts[MemoryPart::weights] = 1e9 * (i % 7);
    run.stages[0].parts[MemoryPart::mlp] = 4e8 * i;
    run.capacity_bytes = 20e9;
    const double peak = peak_bytes(run.stages, truth);
    run.fitted = peak <= run.capacity_bytes;
    if (measured && run.fitted) run.reserved_bytes = peak;
    result.push_back(run);
  }
  return result;
}

TEST(MemoryFit, MeasuredPeaksGiveTheConstantsBack) {
  const std::vector<MemoryRun> made = runs(true);
  const MemoryFit fit = fit_memory(made, profile());
  EXPECT_NEAR(fit.constants.layer_factor, 1.3, 0.01);
  EXPECT_NEAR(fit.constants.library_bytes, 2e9, 0.1e9);
  EXPECT_LT(fit.remaining_spread[index_of("layer_factor")], 0.2);
}

TEST(MemoryFit, VerdictsAloneGiveVerdictsBack) {
  const std::vector<MemoryRun> made = runs(false);
  const MemoryFit fit = fit_memory(made, profile());
  for (const MemoryRun& run : made) {
    const double share = peak_bytes(run.stages, fit.constants) / run.capacity_bytes;
    if (std::abs(share - 1) < 0.05) continue;
    EXPECT_EQ(share <= 1, run.fitted) << share;
  }
  EXPECT_GT(fit.constants.layer_factor, 1.1);
}

TEST(MemoryFit, WhatNoRunDependsOnStaysAtItsPrior) {
  const std::vector<MemoryRun> made = runs(false);
  const MemoryFit fit = fit_memory(made, profile());
  const std::size_t score = index_of("score_bytes");
  EXPECT_DOUBLE_EQ(fit.values[score], 5);
  EXPECT_NEAR(fit.remaining_spread[score], 1, 1e-6);
  EXPECT_EQ(fit.remaining_spread[index_of("logit_bytes")], 0) << "not fitted";
}

TEST(MemoryFit, NeedsRuns) { EXPECT_THROW(fit_memory({}, profile()), std::invalid_argument); }

}  // namespace
}  // namespace slipway
