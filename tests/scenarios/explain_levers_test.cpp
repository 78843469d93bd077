// Levers: what each changes, what it refuses, and the three best of them against simulations of all.
#include "scenarios/search/levers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/search/lever_trials.h"
#include "schedules/rules/rules.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";

Scenario loaded(const std::string& name, const std::vector<std::string>& overrides = {}) {
  LoadResult result = load_scenario(examples + name, overrides);
  EXPECT_TRUE(result.errors.empty()) << describe(result.errors);
  return std::move(result.scenario);
}

Lever lever_named(const std::string& name) {
  for (const Lever& lever : all_levers())
    if (lever.name == name) return lever;
  ADD_FAILURE() << "no lever " << name;
  return {};
}

TEST(Levers, HaveDistinctNames) {
  std::vector<std::string> names;
  for (const Lever& lever : all_levers()) names.push_back(lever.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Levers, GiveALegalStepOrAReason) {
  for (const char* name : {"llama-8b-64xh100.yaml", "mixtral-8x7b-64xh100.yaml", "tiny-llama-cpu.yaml",
                           "gpt3-175b-1024xa100.yaml", "llama-8b-h100-and-a100.yaml"}) {
    const Scenario scenario = loaded(name);
    for (const Lever& lever : all_levers()) {
      const VariedScenario change = changed_by(lever, scenario);
      EXPECT_NE(change.scenario.has_value(), !change.why_not.empty()) << name << ": " << lever.name;
      if (!change.scenario) continue;
      EXPECT_TRUE(refusals(change.scenario->step, change.scenario->cluster).empty()) << lever.name;
      EXPECT_EQ(rank_count(change.scenario->step.layout), rank_count(scenario.step.layout)) << lever.name;
      EXPECT_EQ(change.scenario->step.global_batch, scenario.step.global_batch) << lever.name;
    }
  }
}

// What it prints as options of --set gives the same step.
TEST(Levers, SettingsAreOverridesThatMakeTheSameStep) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml");
  int loads = 0;
  for (const Lever& lever : all_levers()) {
    const VariedScenario change = changed_by(lever, scenario);
    if (!change.scenario) continue;
    if (!std::all_of(change.variation.overrides.begin(), change.variation.overrides.end(),
                     [](const std::string& setting) { return setting.find('=') != std::string::npos; }))
      continue;
    const LoadResult result = load_scenario(examples + "llama-8b-64xh100.yaml", change.variation.overrides);
    ASSERT_TRUE(result.errors.empty()) << lever.name << ": " << describe(result.errors);
    const Step &a = result.scenario.step, &b = change.scenario->step;
    EXPECT_EQ(a.schedule, b.schedule) << lever.name;
    EXPECT_EQ(a.micro_batch, b.micro_batch) << lever.name;
    EXPECT_EQ(a.layout.chunks, b.layout.chunks) << lever.name;
    EXPECT_EQ(a.layout.data, b.layout.data) << lever.name;
    EXPECT_EQ(a.levers, b.levers) << lever.name;
    EXPECT_EQ(result.scenario.trainer.cuda_graphs, change.scenario->trainer.cuda_graphs) << lever.name;
    EXPECT_EQ(a.recompute, b.recompute) << lever.name;
    ++loads;
  }
  EXPECT_GT(loads, 10);
}

TEST(Levers, SayWhyTheyCannotBe) {
  const Scenario one = loaded("tiny-llama-cpu.yaml");
  EXPECT_THAT(changed_by(lever_named("overlap tensor messages"), one).why_not, HasSubstr("one tensor rank"));
  EXPECT_THAT(changed_by(lever_named("expert x 2"), one).why_not, HasSubstr("no experts"));
  EXPECT_THAT(changed_by(lever_named("schedule 1f1b"), one).why_not, HasSubstr("own"));
  const Scenario uneven = loaded("tiny-llama-cpu.yaml", {"schedule.micro_batch=1", "schedule.global_batch=3"});
  EXPECT_THAT(changed_by(lever_named("micro-batch x 2"), uneven).why_not, HasSubstr("3"));
}

// Megatron-LM of 2021 had two schedules and no sharded optimizer. Nobody named: nothing is missing.
TEST(Levers, ThatTheNamedTrainerLacksAreNotOffered) {
  const Scenario of_2021 = loaded("gpt3-175b-1024xa100.yaml", {"cluster.trainer=megatron-lm"});
  const Scenario of_nobody = loaded("gpt3-175b-1024xa100.yaml");
  for (const char* lever : {"schedule zb-h1", "CUDA graphs of layers"}) {
    EXPECT_THAT(changed_by(lever_named(lever), of_2021).why_not, HasSubstr("megatron-lm does not have it")) << lever;
    EXPECT_THAT(changed_by(lever_named(lever), of_nobody).why_not, testing::Not(HasSubstr("does not have it")))
        << lever;
  }
  EXPECT_THAT(changed_by(lever_named("overlap gradient reductions"), of_2021).why_not, HasSubstr("does not do so"));
  EXPECT_EQ(changed_by(lever_named("interleaved, 2 chunks"), of_2021).why_not, "");
}

TEST(Levers, ChangeOneThing) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml");
  EXPECT_EQ(changed_by(lever_named("micro-batch x 2"), scenario).variation.overrides,
            std::vector<std::string>{"schedule.micro_batch=2"});
  EXPECT_THAT(changed_by(lever_named("data x 2, tensor / 2"), scenario).variation.overrides,
              testing::UnorderedElementsAre("layout.tensor=4", "layout.data=4"));
  EXPECT_EQ(changed_by(lever_named("overlap tensor messages"), scenario).variation.overrides,
            std::vector<std::string>{"schedule.overlap_tensor=true"});
}

// Each lever simulated on its own, rank by rank and micro-batch by micro-batch, as `slipway simulate --exact` does it.
struct Truth {
  double step_s = 0, probability = 0;
};

std::map<std::string, Truth> all_simulated(const Scenario& scenario) {
  std::map<std::string, Truth> truths;
  StepOptions exact;
  exact.representatives_only = exact.chains = exact.periodic = exact.makespan = false;
  for (const Lever& lever : all_levers()) {
    const VariedScenario change = changed_by(lever, scenario);
    if (!change.scenario || change.variation.overrides.empty()) continue;
    const Prediction prediction = prediction_of(simulated_step(*change.scenario, exact));
    truths[lever.name] = {prediction.step.step_time_s, prediction.verdict.probability};
  }
  return truths;
}

void expect_the_three_best(const Scenario& scenario) {
  StepOptions exact;
  exact.representatives_only = exact.chains = exact.periodic = exact.makespan = false;
  const double step_s = prediction_of(simulated_step(scenario, exact)).step.step_time_s;
  const std::vector<LeverTrial> trials = lever_trials(scenario, step_s, all_levers());
  const std::map<std::string, Truth> truths = all_simulated(scenario);
  std::vector<std::pair<double, std::string>> best;
  for (const auto& [lever, truth] : truths)
    if (truth.probability >= 0.5) best.emplace_back(truth.step_s, lever);
  std::sort(best.begin(), best.end());
  ASSERT_GE(best.size(), 3);
  ASSERT_GE(trials.size(), 3);
  for (std::size_t i = 0; i < 3 && best[i].first < step_s; ++i) {
    EXPECT_NEAR(trials[i].step_s, best[i].first, 1e-6 * step_s)
        << trials[i].variation.words << " for " << best[i].second;
    EXPECT_TRUE(trials[i].simulated) << trials[i].variation.words;
  }
}

TEST(LeverTrials, TheThreeBestAreThoseOfSimulatingEachOfThem) {
  expect_the_three_best(loaded("llama-8b-64xh100.yaml",
                               {"model.layers=16", "cluster.nodes=2", "layout.tensor=2", "schedule.global_batch=16"}));
}

TEST(LeverTrials, TheThreeBestAreThoseOfSimulatingEachOfThemWithExperts) {
  expect_the_three_best(
      loaded("mixtral-8x7b-64xh100.yaml", {"model.layers=8", "cluster.nodes=2", "layout.tensor=2", "layout.pipeline=2",
                                           "layout.data=4", "layout.expert=4", "schedule.global_batch=32"}));
}

TEST(LeverTrials, TheThreeBestAreThoseOfSimulatingEachOfThemOnCpuRanks) {
  expect_the_three_best(loaded("tiny-llama-cpu.yaml",
                               {"cluster.nodes=4", "layout.pipeline=4", "layout.data=2", "schedule.micro_batch=1"}));
}

TEST(LeverTrials, AreTheSameForAnyNumberOfWorkersHoweverFewAreSimulated) {
  const Scenario scenario = loaded("tiny-llama-cpu.yaml");
  const auto of = [&](int workers, int simulated) {
    LeverOptions options;
    options.workers = workers, options.simulated = simulated;
    std::vector<std::tuple<std::string, double, bool, std::string>> rows;
    for (const LeverTrial& trial : lever_trials(scenario, 1, all_levers(), options))
      rows.emplace_back(trial.variation.words, trial.step_s, trial.simulated, trial.why_not);
    return rows;
  };
  for (const int simulated : {1, 3, 10}) {
    EXPECT_EQ(of(1, simulated), of(3, simulated)) << simulated;
    for (int i = 0; i < simulated; ++i)  // the fastest are found, however few are asked for
      EXPECT_EQ(of(2, simulated)[static_cast<std::size_t>(i)], of(2, 100)[static_cast<std::size_t>(i)]) << simulated;
  }
}

// Bounds know no table of measured blocks: without one, every lever would be slower than the step by its bound.
TEST(LeverTrials, OfAMachineWithATableOfBlocksHaveNoBound) {
  const Scenario scenario = loaded("../studies/pipefisher-2022/bert-base.yaml");
  const std::vector<LeverTrial> trials = lever_trials(scenario, replayed_step_s(scenario), all_levers());
  const auto zb =
      std::ranges::find(trials, "schedule zb-h1", [](const LeverTrial& trial) { return trial.variation.words; });
  ASSERT_NE(zb, trials.end());
  EXPECT_TRUE(zb->simulated);
  EXPECT_GT(zb->gain, 0.2);
}

// A V100 has no constants of flash attention, which one lever asks for.
TEST(LeverTrials, ThatCannotBePricedSayWhyAndLeaveTheOthers) {
  const Scenario scenario = loaded(
      "llama-8b-64xh100.yaml", {"model.layers=4", "cluster.machine=v100-32gb", "cluster.nodes=1", "layout.tensor=2",
                                "layout.pipeline=1", "layout.data=4", "schedule.kernels=torch", "run.dtype=float16"});
  const std::vector<LeverTrial> trials = lever_trials(scenario, replayed_step_s(scenario), all_levers());
  EXPECT_TRUE(std::ranges::any_of(trials, [](const LeverTrial& trial) { return trial.why_not.empty(); }));
  EXPECT_TRUE(std::ranges::any_of(
      trials, [](const LeverTrial& trial) { return trial.why_not.find("flash") != std::string::npos; }));
}

// Recomputing nothing is faster and does not fit: the table has it behind what fits.
TEST(LeverTrials, WhatDoesNotFitComesBehindWhatDoes) {
  const Scenario scenario = loaded("llama-8b-64xh100.yaml", {"model.layers=16", "model.sequence=262144",
                                                             "schedule.recompute=full", "schedule.global_batch=8"});
  const std::vector<LeverTrial> trials = lever_trials(scenario, 1e9, all_levers());
  bool behind = false, beyond = false;
  for (const LeverTrial& trial : trials) {
    if (!trial.why_not.empty()) {
      beyond = true;
      continue;
    }
    EXPECT_FALSE(beyond) << trial.variation.words;
    EXPECT_FALSE(behind && trial.fits()) << trial.variation.words;
    behind = behind || !trial.fits();
  }
  EXPECT_TRUE(behind);
}

}  // namespace
}  // namespace slipway::test
