// Good input: what the loader reads, what it derives, and that the resolved text is equivalent.
#include <gmock/gmock.h>

#include <algorithm>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/execute/learning_rate_end.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/step/action.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {

namespace {

Scenario loaded(const LoadResult& result) {
  EXPECT_EQ(describe(result.errors), "");
  return result.scenario;
}

class ScenarioLoad : public testing::Test {
 protected:
  ScenarioLoad() { folder.write("box.yaml", test_machine()); }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  ScenarioFolder folder;
};

// Megatron-Core's --pipeline-model-parallel-layout: stages between |.
TEST_F(ScenarioLoad, ALayoutOfStagesIsAListOfLayers) {
  const Scenario scenario = loaded(folder.load(sound_scenario(), {"layout.split=Et*5|(tt)*1tL"}));
  EXPECT_EQ(scenario.step.layout.split_list, (std::vector<int>{5, 3}));
  const LoadResult refused = folder.load(sound_scenario(), {"layout.split=Et*5m|tttL"});
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].key, "layout.split");
}

// Megatron-LM pads GPT-2's 50,257 tokens to 50,304 with tensor 1, to 50,432 with tensor 2 (its default of 128 per rank).
TEST_F(ScenarioLoad, PadsTheVocabularyAsMegatronDoes) {
  for (const auto& [tensor, padded] : {std::pair{1, 50304}, {2, 50432}, {4, 50688}}) {
    const Scenario s = loaded(folder.load(sound_scenario(), {"model.vocab=50257", "layout.vocab_multiple=128",
                                                             "layout.tensor=" + std::to_string(tensor)}));
    EXPECT_EQ(s.step.model->runs.front().block.vocab, padded);
    EXPECT_EQ(s.step.model->runs.back().block.vocab, padded);
    EXPECT_EQ(s.step.model->runs[1].block.vocab, 0);
  }
  EXPECT_EQ(loaded(folder.load(sound_scenario(), {"model.vocab=50258"})).step.model->runs.front().block.vocab, 50258);
}

TEST_F(ScenarioLoad, EveryKeyArrivesInItsPlace) {
  folder.write("text.txt", "To be, or not to be");
  const Scenario s = loaded(folder.load(
      std::string(sound_scenario()) +
          "  seed: 7\n  data: text.txt\n  lr: 0.01\n  clip_norm: 1.5\n  tokens: 2 G\n"
          "  dtype: float32\n  optimizer: {name: adamw, beta2: 0.99, weight_decay: 0, lr_warmup_samples: 32,\n"
          "  lr_decay_style: linear, lr_decay_samples: 5000000000, min_lr: 1e-4}\n",
      {"layout.zero=1", "schedule.recompute=selective", "schedule.kernels=flash2", "cluster.price_per_gpu_hour=2.5",
       "layout.sequence_parallel=true", "layout.context_exchange=ring"}));
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(layer_count(s.step.model), 8);
  EXPECT_EQ(s.step.model->sequence, 128);
  EXPECT_EQ(s.step.layout.tensor, 2);
  EXPECT_EQ(s.step.layout.data, 2);  // derived: 8 / (2·2)
  EXPECT_EQ(s.step.layout.chunks, 1);
  EXPECT_EQ(s.step.layout.zero, 1);
  EXPECT_EQ(s.step.layout.context_exchange, ContextExchange::ring);
  EXPECT_TRUE(s.step.layout.sequence_parallel);
  EXPECT_EQ(s.step.recompute, Recompute::selective);
  EXPECT_EQ(s.step.kernels, Kernels::flash2);
  EXPECT_EQ(s.run.seed, 7U);
  EXPECT_EQ(s.run.data, (folder.path() / "text.txt").string());
  EXPECT_EQ(s.step.optimizer.lr, 0.01);
  EXPECT_EQ(s.step.optimizer.beta1, 0.9);
  EXPECT_EQ(s.step.optimizer.beta2, 0.99);
  EXPECT_EQ(s.step.optimizer.weight_decay, 0.0);
  EXPECT_EQ(s.step.optimizer.lr_schedule.warmup_samples, 32);
  EXPECT_EQ(s.step.optimizer.lr_schedule.decay, DecayStyle::linear);
  EXPECT_EQ(s.step.optimizer.lr_schedule.decay_samples, 5'000'000'000);
  EXPECT_EQ(s.step.optimizer.lr_schedule.least, 1e-4);
  EXPECT_EQ(s.step.clip_norm, 1.5);
  EXPECT_EQ(s.tokens, 2e9);
  EXPECT_EQ(s.step.dtype, Dtype::float32);
  EXPECT_EQ(s.cluster.price_per_gpu_hour, 2.5);
}

TEST_F(ScenarioLoad, TheMachinesLinksBecomeFabrics) {
  const Scenario s = loaded(folder.load(sound_scenario()));
  ASSERT_EQ(s.cluster.fabrics.size(), 2U);
  EXPECT_EQ(s.cluster.fabrics[0].name, "bus");
  EXPECT_EQ(s.cluster.fabrics[0].scope, Fabric::Scope::node);
  EXPECT_EQ(s.cluster.fabrics[0].bandwidth, 10e9);
  EXPECT_EQ(s.cluster.fabrics[1].name, "wire");
  EXPECT_EQ(s.cluster.fabrics[1].scope, Fabric::Scope::cluster);
  EXPECT_EQ(s.cluster.fabrics[1].latency, 5e-6);
  EXPECT_EQ(s.step.dtype, Dtype::bfloat16);
}

TEST_F(ScenarioLoad, ACommonNetworkIsAsFastAsItsSlowestPort) {
  folder.write("slow.yaml",
               "name: slow\nmemory_bytes: 8 GB\npeak_flops: {bfloat16: 1 TFLOP/s}\nmemory_bandwidth: 1 GB/s\n"
               "network_link: {name: string, bandwidth: 0.5 GB/s, latency: 2 us}\n");
  const Scenario s = loaded(folder.load(
      sound_scenario(), {"cluster.machine=", "cluster.nodes=", "cluster.gpus_per_node=",
                         "cluster.groups=[{machine: " + path("box.yaml") + ", gpus_per_node: 4}, {machine: " +
                             path("slow.yaml") + ", nodes: 4, gpus_per_node: 1}]"}));
  ASSERT_EQ(s.cluster.fabrics.size(), 2U);
  EXPECT_EQ(s.cluster.fabrics[1].bandwidth, 0.5e9);
  EXPECT_EQ(s.cluster.fabrics[1].latency, 5e-6);
  EXPECT_EQ(s.cluster.fabrics[1].groups, (std::vector<int>{0, 1}));
}

TEST_F(ScenarioLoad, OverridesReachListsNestedKeysAndItems) {
  const Scenario s = loaded(
      folder.load(sound_scenario(),
                  {"layout.split=[5, 3]", "run.optimizer.lr=0.5", "cluster.machine=", "cluster.gpus_per_node=",
                   "cluster.nodes=", "cluster.groups=[{machine: " + path("box.yaml") + ", nodes: 1, gpus_per_node: 4}]",
                   "cluster.groups.0.nodes=3", "schedule.global_batch=24"}));
  EXPECT_EQ(s.step.layout.split, SplitKind::list);
  EXPECT_EQ(s.step.layout.split_list, (std::vector<int>{5, 3}));
  EXPECT_EQ(s.step.optimizer.lr, 0.5);
  EXPECT_EQ(s.cluster.groups[0].nodes, 3);
  EXPECT_EQ(s.step.layout.data, 3);
}

TEST_F(ScenarioLoad, AnEmptyOverrideLeavesTheKeyToItsDefault) {
  const Scenario s = loaded(folder.load(sound_scenario(), {"layout.pipeline=null", "layout.tensor="}));
  EXPECT_EQ(s.step.layout.pipeline, 1);
  EXPECT_EQ(s.step.layout.tensor, 1);
  EXPECT_EQ(s.step.layout.data, 8);
}

TEST_F(ScenarioLoad, UnsetChunksAreTheSchedulesOwn) {
  const Scenario s = loaded(folder.load(sound_scenario(), {"schedule=interleaved-1f1b", "schedule.global_batch=16"}));
  EXPECT_EQ(s.step.schedule, "interleaved-1f1b");
  EXPECT_EQ(s.step.layout.chunks, schedule_named("interleaved-1f1b")->default_chunks);
}

void expect_same(const Scenario& a, const Scenario& b) {
  EXPECT_EQ(a.resolved, b.resolved);
  EXPECT_EQ(a.summary, b.summary);
  EXPECT_EQ(a.step.model, b.step.model);
  EXPECT_EQ(a.step.dtype, b.step.dtype);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.run.data, b.run.data);
  EXPECT_EQ(a.step.optimizer.lr, b.step.optimizer.lr);
  EXPECT_EQ(a.step.optimizer.lr_schedule.decay, b.step.optimizer.lr_schedule.decay);
  EXPECT_EQ(a.step.optimizer.lr_schedule.decay_samples, b.step.optimizer.lr_schedule.decay_samples);
  EXPECT_EQ(a.step.layout.split_list, b.step.layout.split_list);
  EXPECT_EQ(rank_count(a.step.layout), rank_count(b.step.layout));
  ASSERT_EQ(a.cluster.fabrics.size(), b.cluster.fabrics.size());
  for (std::size_t i = 0; i < a.cluster.fabrics.size(); ++i) {
    EXPECT_EQ(a.cluster.fabrics[i].bandwidth, b.cluster.fabrics[i].bandwidth);
    EXPECT_EQ(a.cluster.fabrics[i].latency, b.cluster.fabrics[i].latency);
  }
}

TEST_F(ScenarioLoad, PathsOfTheFileStartAtTheFileAndThoseOfOverridesAtTheCurrentFolder) {
  folder.write("elsewhere/text.txt", "x");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path() / "elsewhere");
  const LoadResult result = folder.load(sound_scenario(), {"run.data=text.txt"});
  std::filesystem::current_path(before);
  const Scenario s = loaded(result);
  EXPECT_EQ(s.run.data, path("elsewhere/text.txt"));
  EXPECT_EQ(s.cluster.groups[0].machine.name, "box");
  expect_same(s, loaded(load_scenario(folder.write("again.yaml", s.resolved), {})));
}

TEST_F(ScenarioLoad, TheResolvedTextLoadsToTheSameScenario) {
  folder.write("a text.txt", "x");
  const Scenario first = loaded(
      folder.load(sound_scenario(), {"layout.split=[5, 3]", "run.lr=0.1", "run.data='" + path("a text.txt") + "'",
                                     "run.tokens=15 T", "run.optimizer.lr_decay_style=cosine",
                                     "cluster.fabrics=[{scope: cluster, bandwidth: 400 Gbit/s, latency: 3 us}]"}));
  const Scenario again = loaded(load_scenario(folder.write("again.yaml", first.resolved), {}));
  expect_same(first, again);
  const Scenario from_line = loaded(load_scenario(folder.write("line.yaml", first.summary), {}));
  expect_same(first, from_line);
}

// Also where its file lies, and that of its constants: prices are the same.
TEST_F(ScenarioLoad, TheResolvedTextOfATrainerLoadsToTheSamePrices) {
  folder.write("ours.yaml", "facts:\n  eager: {value: true, source: we wrote it}\n");
  folder.write("fitted.yaml",
               "noise: {run: 0.05}\nfitted_runs: []\ncoordinates:\n  - {constant: node_share, factor: "
               "0.5}\ncovariance:\n  - \"0.1\"\n");
  Scenario first =
      loaded(folder.load(sound_scenario(), {"cluster.machine=h100-80gb", "cluster.trainer=" + path("ours.yaml"),
                                            "cluster.constants=" + path("fitted.yaml")}));
  EXPECT_EQ(first.trainer.name, "ours");
  EXPECT_EQ(first.trainer_file, path("ours.yaml"));
  EXPECT_EQ(first.constants_file, path("fitted.yaml"));
  EXPECT_THAT(first.files, testing::IsSupersetOf({path("ours.yaml"), path("fitted.yaml")}));
  Scenario again = loaded(load_scenario(folder.write("again.yaml", first.resolved), {}));
  expect_same(first, again);
  EXPECT_TRUE(again.trainer.eager);
  for (Scenario* each : {&first, &again}) each->cluster = priced_cluster(*each);
  const double book = book_constants().node_share, port = first.cluster.groups[0].machine.node_link.bandwidth;
  EXPECT_NEAR(first.cluster.fabrics[0].bandwidth, 0.5 * book * port, 1e-6 * port);
  for (std::size_t i = 0; i < first.cluster.fabrics.size(); ++i)
    EXPECT_EQ(again.cluster.fabrics[i].bandwidth, first.cluster.fabrics[i].bandwidth) << i;
  EXPECT_EQ(again.cluster.algorithms, first.cluster.algorithms);
}

TEST_F(ScenarioLoad, ATrainersMistakesAreErrorsOfItsFile) {
  folder.write("ours.yaml", "facts:\n  speed: {value: 3, source: hope}\n");
  const LoadResult result =
      folder.load(sound_scenario(), {"cluster.machine=h100-80gb", "cluster.trainer=" + path("ours.yaml")});
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].file, path("ours.yaml"));
  EXPECT_EQ(result.errors[0].line, 2);
  EXPECT_EQ(result.errors[0].key, "facts.speed");
}

// A trainer's habits are of the machines that it is priced on.
TEST_F(ScenarioLoad, ATrainersHabitsHoldWhereItPricesTheStep) {
  const auto step_on = [&](const std::string& machine) {
    return loaded(folder.load(sound_scenario(), {"cluster.machine=" + machine, "cluster.trainer=aa-scaling"})).step;
  };
  EXPECT_FALSE(step_on("h100-80gb").overlap_grad_reduce);  // Aleph Alpha's reduces after the last backward pass
  EXPECT_TRUE(step_on(path("box.yaml")).overlap_grad_reduce);
  EXPECT_TRUE(loaded(folder.load(sound_scenario(), {"cluster.machine=h100-80gb"})).step.overlap_grad_reduce);
}

TEST_F(ScenarioLoad, TheOrderOfKeysInTheFileDoesNotChangeTheResolvedText) {
  const Scenario a = loaded(folder.load(sound_scenario()));
  const std::string moved = "run: {steps: 3}\nschedule: {global_batch: 16, micro_batch: 2}\n";
  const std::string text = sound_scenario();
  const Scenario b = loaded(folder.load(moved + text.substr(0, text.find("schedule:"))));
  EXPECT_EQ(a.resolved, b.resolved);
}

TEST_F(ScenarioLoad, KeysAndValuesAreGatheredUnlessTheyAreToGoAround) {
  EXPECT_EQ(loaded(folder.load(sound_scenario())).step.layout.context_exchange, ContextExchange::all_gather);
  const Scenario s = loaded(folder.load(sound_scenario(), {"layout.context=2", "layout.context_exchange=ring"}));
  EXPECT_EQ(s.step.layout.context_exchange, ContextExchange::ring);
}

TEST_F(ScenarioLoad, ContextRanksOfACausalModelNeedTwoPiecesEach) {
  const auto errors =
      folder.load(sound_scenario(), {"layout.context=2", "layout.pipeline=1", "model.sequence=126"}).errors;
  ASSERT_EQ(errors.size(), 1U) << describe(errors);
  EXPECT_THAT(describe(errors), testing::AllOf(testing::HasSubstr("4 does not divide model.sequence = 126"),
                                               testing::HasSubstr("allowed: 1, 3, 7, 9, 21, 63")));
}

TEST_F(ScenarioLoad, ARingNeedsKernelsThatHaveALogSumExp) {
  const auto errors = folder.load(sound_scenario(), {"layout.context_exchange=ring", "schedule.kernels=torch"}).errors;
  ASSERT_EQ(errors.size(), 1U) << describe(errors);
  EXPECT_THAT(describe(errors), testing::AllOf(testing::HasSubstr("layout.context_exchange"),
                                               testing::HasSubstr("set schedule.kernels to flash1")));
}

TEST_F(ScenarioLoad, TheLoweringTakesEveryNumberFromTheScenario) {
  const Scenario s = loaded(folder.load(sound_scenario(), {"schedule.recompute=selective", "run.clip_norm=2",
                                                           "layout.sequence_parallel=true", "run.dtype=float32"}));
  const Step input = s.step;
  EXPECT_EQ(input.model, s.step.model);
  EXPECT_EQ(input.schedule, "1f1b");
  EXPECT_EQ(input.micro_batch, 2);
  EXPECT_EQ(input.model->sequence, 128);
  EXPECT_EQ(work_shape(input).sharding, (Sharding{.tensor = 2, .sequence_parallel = true, .context = 1}));
  EXPECT_EQ(input.dtype, Dtype::float32);
  EXPECT_TRUE(work_shape(input).recompute_attention);
  EXPECT_EQ(input.global_batch, 16);
  EXPECT_EQ(input.clip_norm, 2.0);
}

class Examples : public testing::TestWithParam<std::string> {};

TEST_P(Examples, Load) {
  loaded(load_scenario(std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/" + GetParam() + ".yaml", {}));
}
INSTANTIATE_TEST_SUITE_P(AllOf, Examples,
                         testing::Values("llama-8b-64xh100", "gpt3-175b-1024xa100", "llama-8b-h100-and-a100",
                                         "tiny-llama-cpu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace

// Experts in a scenario: the valid settings, and one clear error for everything else.

namespace {

using testing::HasSubstr;

class ScenarioWithExperts : public testing::Test {
 protected:
  ScenarioWithExperts() { folder_.write("box.yaml", test_machine()); }
  LoadResult loaded(std::vector<std::string> overrides) { return folder_.load(sound_scenario(), overrides); }
  ScenarioError only_error(std::vector<std::string> overrides) {
    const LoadResult result = loaded(std::move(overrides));
    if (result.errors.size() != 1) {
      ADD_FAILURE() << result.errors.size() << " errors\n" << describe(result.errors);
      return {};
    }
    return result.errors.front();
  }

 private:
  ScenarioFolder folder_;
};

TEST_F(ScenarioWithExperts, HasThemInEveryLayer) {
  const LoadResult result = loaded({"model.experts=8", "model.experts_per_token=2"});
  ASSERT_TRUE(result.errors.empty()) << describe(result.errors);
  EXPECT_EQ(result.scenario.step.model->runs[1].block.experts, 8);
  EXPECT_EQ(result.scenario.step.model->runs[1].block.experts_per_token, 2);
  EXPECT_EQ(result.scenario.step.model->runs[0].block.experts, 0);
}

TEST_F(ScenarioWithExperts, SaysHowManyATokenGoesThrough) {
  const ScenarioError missing = only_error({"model.experts=8"});
  EXPECT_EQ(missing.key, "model.experts_per_token");
  EXPECT_THAT(missing.message, HasSubstr("missing with experts = 8; allowed: 1 to 8"));
  EXPECT_THAT(only_error({"model.experts=8", "model.experts_per_token=9"}).message,
              HasSubstr("experts_per_token = 9 is more than experts = 8"));
  EXPECT_EQ(only_error({"model.experts_per_token=2"}).key, "model.experts_per_token");
}

// Uses the width of its experts then.
TEST_F(ScenarioWithExperts, LeavesThemOutOfABuiltInModelWhereTheyAreSetToNone) {
  const Block block = loaded({"model=mixtral-8x7b", "model.experts=0"}).scenario.step.model->runs[1].block;
  EXPECT_EQ(block.ffn, 14336);
  EXPECT_EQ(block.experts_per_token, 0);
}

TEST_F(ScenarioWithExperts, IsOfTheLlamaFamily) {
  const LoadResult gpt = loaded({"model.family=gpt", "model.kv_heads=", "model.experts=8"});
  EXPECT_THAT(describe(gpt.errors), HasSubstr("models of family gpt have no experts"));
}

TEST_F(ScenarioWithExperts, NamesWhatKnowsNoExperts) {
  const std::vector<std::string> experts{"model.experts=8", "model.experts_per_token=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), experts.begin(), experts.end());
    return describe(loaded(more).errors);
  };
  EXPECT_THAT(with({"run.optimizer=kfac", "layout.tensor=1"}), HasSubstr("K-FAC of experts is not modelled"));
  EXPECT_THAT(with({"layout.expert=3"}), HasSubstr("layout.expert = 3 does not divide model.experts = 8"));
}

}  // namespace

// The learning rate's schedule in a scenario: its defaults, one clear error for impossible ones, and execute's
// messages.

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

struct Case {
  const char* title;
  std::vector<std::string> keys;  // of run.optimizer
  const char *key, *wrong, *allowed, *remedy;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.title; }

class WrongRate : public testing::TestWithParam<Case> {};

TEST_P(WrongRate, IsOneErrorWithKeyAllowedAndRemedy) {
  const Case& test = GetParam();
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  std::vector<std::string> overrides;
  for (const std::string& key : test.keys) overrides.push_back("run.optimizer." + key);
  const LoadResult result = folder.load(sound_scenario(), overrides);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  const ScenarioError& error = result.errors[0];
  EXPECT_EQ(error.key, std::string("run.optimizer.") + test.key);
  EXPECT_THAT(error.message, AllOf(HasSubstr(test.wrong), HasSubstr(test.allowed)));
  EXPECT_THAT(error.remedy, HasSubstr(test.remedy));
}

const char* const decays = "set run.optimizer.lr_decay_style to linear or cosine";
const Case cases[] = {
    {"NegativeWarmUp",
     {"lr_warmup_samples=-1"},
     "lr_warmup_samples",
     "-1 is out of range",
     "of at least 0",
     "lr_warmup_samples: 0"},
    {"RateBeyondCounting", {"lr=1e308"}, "lr", "1e308 is out of range (at most 1e+300)", "of at least 0", "lr: 0"},
    {"WarmUpBeyondCounting",
     {"lr_warmup_samples=99999999999999999999"},
     "lr_warmup_samples",
     "99999999999999999999 is out of range (at most 9223372036854774784)",
     "of at least 0",
     "lr_warmup_samples: 0"},
    {"WarmUpLongerThanTheDecay",
     {"lr_warmup_samples=5000000001", "lr_decay_style=linear", "lr_decay_samples=5000000000"},
     "lr_warmup_samples",
     "longer than the decay, which ends after 5000000000 (lr_decay_samples)",
     "up to 5000000000",
     "raise run.optimizer.lr_decay_samples"},
    {"NegativeLeastRate",
     {"lr_decay_style=linear", "min_lr=-0.2"},
     "min_lr",
     "-0.2 is out of range",
     "of at least 0",
     "min_lr: 0"},
    {"LeastRateAboveTheRate",
     {"lr=0.1", "lr_decay_style=linear", "min_lr=0.2"},
     "min_lr",
     "0.2 is above the learning rate, 0.1",
     "up to it",
     "raise run.lr"},
    {"LeastRateOfAConstantOne", {"min_lr=1e-5"}, "min_lr", "lr_decay_style is constant", "linear, cosine", decays},
    {"EndOfAConstantRate",
     {"lr_decay_samples=40"},
     "lr_decay_samples",
     "lr_decay_style is constant",
     "linear, cosine",
     decays},
    {"NoDecay",
     {"lr_decay_style=linear", "lr_decay_samples=0"},
     "lr_decay_samples",
     "0 is out of range",
     "of at least 1",
     "lr_decay_samples: 1"},
    {"DampingOfAdamW",
     {"damping=0.1"},
     "damping",
     "of K-FAC's inverses, but run.optimizer is adamw",
     "with kfac",
     "set run.optimizer.name to kfac"},
    {"UnknownDecay",
     {"lr_decay_style=cosinus"},
     "lr_decay_style",
     "'cosinus' is not known",
     "constant, linear, cosine",
     "did you mean 'cosine'?"},
};
INSTANTIATE_TEST_SUITE_P(Scenario, WrongRate, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.title); });

Scenario scenario_with(const std::vector<std::string>& overrides) {
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult result = folder.load(sound_scenario(), overrides);
  EXPECT_EQ(describe(result.errors), "");
  return result.scenario;
}
LearningRateSchedule schedule_with(const std::vector<std::string>& overrides) {
  return scenario_with(overrides).step.optimizer.lr_schedule;
}

TEST(ScenarioRate, IsConstantUnlessTheScenarioSaysOtherwise) {
  EXPECT_TRUE(schedule_with({}).is_constant());
  EXPECT_TRUE(schedule_with({"run.optimizer.min_lr=0"}).is_constant());
  EXPECT_FALSE(schedule_with({"run.optimizer.lr_warmup_samples=16"}).is_constant());
}

// Only `execute` needs the length of the training: other commands plan with the scenario, or try a few steps of it.
TEST(ScenarioRate, MayWarmUpForLongerThanRunSteps) {
  EXPECT_EQ(schedule_with({"run.optimizer.lr_warmup_samples=4900"}).warmup_samples, 4900);
  EXPECT_EQ(
      schedule_with({"run.optimizer.lr_warmup_samples=4900", "run.optimizer.lr_decay_style=linear"}).warmup_samples,
      4900);
}

TEST(ScenarioRate, DecaysToTheEndOfTheTrainingWhateverItsBatchesAre) {
  EXPECT_EQ(schedule_with({"run.optimizer.lr_decay_style=cosine"}).decay_samples, 0);
}

// A warm-up that leads straight to the least rate, and a decay that changes nothing.
TEST(ScenarioRate, MayWarmUpToTheEndOfTheDecayAndDecayToTheRateItself) {
  const LearningRateSchedule schedule =
      schedule_with({"run.optimizer.lr=0.1", "run.optimizer.min_lr=0.1", "run.optimizer.lr_decay_style=linear",
                     "run.optimizer.lr_warmup_samples=40", "run.optimizer.lr_decay_samples=40"});
  EXPECT_EQ(schedule.warmup_samples, schedule.decay_samples);
  EXPECT_EQ(schedule.least, 0.1);
}

// 3 steps of 16; from a checkpoint of 20 samples after one step, 20 + 2 x 16.
TEST(ExecutedRate, MayWarmUpForTheWholeTrainingAndNoLonger) {
  const std::string decay = "run.optimizer.lr_decay_style=cosine", warmup = "run.optimizer.lr_warmup_samples=";
  const Resumption resumed{.checkpoint = "c", .done = 1, .samples = 20};
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "48"}), {}));
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "52"}), resumed));
  EXPECT_NO_THROW(refuse_warmup_beyond_end(scenario_with({warmup + "49"}), {})) << "a constant rate has no end";
  EXPECT_NO_THROW(
      refuse_warmup_beyond_end(scenario_with({decay, warmup + "49", "run.optimizer.lr_decay_samples=50"}), {}));
  EXPECT_THROW(refuse_warmup_beyond_end(scenario_with({decay, warmup + "53"}), resumed), UsageError);
  EXPECT_THAT(
      [&] {
        refuse_warmup_beyond_end(scenario_with({decay, warmup + "49"}), {});
      },
      ThrowsMessage<UsageError>(HasSubstr("49 sequences is longer than the training")));
}

TEST(ExecutedRate, ThatWarmsUpTooLongIsRefusedWithAllDigits) {
  const Scenario scenario = scenario_with(
      {"run.optimizer.lr_decay_style=cosine", "run.steps=1500", "run.optimizer.lr_warmup_samples=123456789"});
  EXPECT_THAT([&] { refuse_warmup_beyond_end(scenario, {}); },
              ThrowsMessage<UsageError>(HasSubstr("the warm-up of 123456789 sequences is longer than the "
                                                  "training, with which the decay ends: 24000 "
                                                  "(1500 steps x schedule.global_batch 16)")));
}

TEST(ExecutedRate, IsToldAsTheScenarioMeansIt) {
  const auto printed = [](const LearningRateSchedule& schedule) {
    return rate_text({.lr = 0.003, .lr_schedule = schedule});
  };
  EXPECT_EQ(printed({.warmup_samples = 64}), "learning rate: 0.003 after a warm-up of 64 sequences");
  EXPECT_EQ(printed({.decay = DecayStyle::linear}), "learning rate: 0.003, linear decay to 0 over the training");
  EXPECT_EQ(printed({.warmup_samples = 1, .decay = DecayStyle::cosine, .least = 3e-4}),
            "learning rate: 0.003 after a warm-up of 1 sequence, cosine decay to 0.0003 over the training");
  EXPECT_EQ(printed({.decay = DecayStyle::cosine, .decay_samples = 160, .least = 3e-4}),
            "learning rate: 0.003, cosine decay to 0.0003 after 160 sequences");
}

// A checkpoint does not know where its own run would have ended.
TEST(ExecutedRate, OfAResumedRunSaysWhereItEndsUnlessTheScenarioDoes) {
  const Resumption resumed{.checkpoint = "c", .done = 1, .samples = 16};
  const std::string decay = "run.optimizer.lr_decay_style=linear";
  const Scenario unsaid = scenario_with({decay});
  EXPECT_THAT(rate_notes(unsaid, resumed),
              ElementsAre(AllOf(HasSubstr("decays to the end of this start, step 3"), HasSubstr("lr_decay_samples"))));
  EXPECT_THAT(rate_notes(unsaid, {}), IsEmpty());
  EXPECT_THAT(rate_notes(scenario_with({decay, "run.optimizer.lr_decay_samples=48"}), resumed), IsEmpty());
  EXPECT_THAT(rate_notes(scenario_with({"run.optimizer.lr_warmup_samples=48"}), resumed), IsEmpty());
}

}  // namespace

}  // namespace slipway::test
