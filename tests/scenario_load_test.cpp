// Good input: what the loader reads, what it derives, and that the resolved text means the same.
#include "scenarios/scenario.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "schedules/action.h"
#include "tests/scenario_file.h"

namespace slipway {
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

TEST_F(ScenarioLoad, EveryKeyArrivesInItsPlace) {
  folder.write("text.txt", "To be, or not to be");
  const Scenario s =
      loaded(folder.load(std::string(sound_scenario()) +
                             "  seed: 7\n  data: text.txt\n  lr: 0.01\n  clip_norm: 1.5\n  tokens: 2 G\n"
                             "  dtype: float32\n  optimizer: {name: adamw, beta2: 0.99, weight_decay: 0, lr_warmup_samples: 32,\n"
                             "  lr_decay_style: linear, lr_decay_samples: 5000000000, min_lr: 1e-4}\n",
                         {"layout.zero=1", "schedule.recompute=selective", "schedule.kernels=flash2",
                          "cluster.price_per_gpu_hour=2.5", "layout.sequence_parallel=true",
                          "layout.context_exchange=ring"}));
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(layer_count(s.model), 8);
  EXPECT_EQ(s.model.sequence, 128);
  EXPECT_EQ(s.layout.tensor, 2);
  EXPECT_EQ(s.layout.data, 2);  // derived: 8 / (2·2)
  EXPECT_EQ(s.layout.chunks, 1);
  EXPECT_EQ(s.layout.zero, 1);
  EXPECT_EQ(s.layout.context_exchange, ContextExchange::ring);
  EXPECT_TRUE(s.layout.sequence_parallel);
  EXPECT_EQ(s.schedule.recompute, Recompute::selective);
  EXPECT_EQ(s.schedule.kernels, Kernels::flash2);
  EXPECT_EQ(s.run.seed, 7U);
  EXPECT_EQ(s.run.data, (folder.path() / "text.txt").string());
  EXPECT_EQ(s.run.optimizer.lr, 0.01);
  EXPECT_EQ(s.run.optimizer.beta1, 0.9);
  EXPECT_EQ(s.run.optimizer.beta2, 0.99);
  EXPECT_EQ(s.run.optimizer.weight_decay, 0.0);
  EXPECT_EQ(s.run.optimizer.lr_schedule.warmup_samples, 32);
  EXPECT_EQ(s.run.optimizer.lr_schedule.decay, DecayStyle::linear);
  EXPECT_EQ(s.run.optimizer.lr_schedule.decay_samples, 5'000'000'000);
  EXPECT_EQ(s.run.optimizer.lr_schedule.least, 1e-4);
  EXPECT_EQ(s.run.clip_norm, 1.5);
  EXPECT_EQ(s.tokens, 2e9);
  EXPECT_EQ(s.dtype, Dtype::float32);
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
  EXPECT_EQ(s.dtype, Dtype::bfloat16);
}

TEST_F(ScenarioLoad, ACommonNetworkIsAsFastAsItsSlowestPort) {
  folder.write(
      "slow.yaml",
      "name: slow\nmemory_bytes: 8 GB\npeak_flops: {bfloat16: 1 TFLOP/s}\nmemory_bandwidth: 1 GB/s\n"
      "network_link: {name: string, bandwidth: 0.5 GB/s, latency: 2 us}\n");
  const Scenario s =
      loaded(folder.load(sound_scenario(), {"cluster.machine=", "cluster.nodes=", "cluster.gpus_per_node=",
                                            "cluster.groups=[{machine: " + path("box.yaml") +
                                                ", gpus_per_node: 4}, {machine: " + path("slow.yaml") +
                                                ", nodes: 4, gpus_per_node: 1}]"}));
  ASSERT_EQ(s.cluster.fabrics.size(), 2U);
  EXPECT_EQ(s.cluster.fabrics[1].bandwidth, 0.5e9);
  EXPECT_EQ(s.cluster.fabrics[1].latency, 5e-6);
  EXPECT_EQ(s.cluster.fabrics[1].groups, (std::vector<int>{0, 1}));
}

TEST_F(ScenarioLoad, OverridesReachListsNestedKeysAndItems) {
  const Scenario s = loaded(folder.load(
      sound_scenario(),
      {"layout.split=[5, 3]", "run.optimizer.lr=0.5", "cluster.machine=", "cluster.gpus_per_node=",
       "cluster.nodes=", "cluster.groups=[{machine: " + path("box.yaml") + ", nodes: 1, gpus_per_node: 4}]",
       "cluster.groups.0.nodes=3", "schedule.global_batch=24"}));
  EXPECT_EQ(s.layout.split, SplitKind::list);
  EXPECT_EQ(s.layout.split_list, (std::vector<int>{5, 3}));
  EXPECT_EQ(s.run.optimizer.lr, 0.5);
  EXPECT_EQ(s.cluster.groups[0].nodes, 3);
  EXPECT_EQ(s.layout.data, 3);
}

TEST_F(ScenarioLoad, AnEmptyOverrideLeavesTheKeyToItsDefault) {
  const Scenario s = loaded(folder.load(sound_scenario(), {"layout.pipeline=null", "layout.tensor="}));
  EXPECT_EQ(s.layout.pipeline, 1);
  EXPECT_EQ(s.layout.tensor, 1);
  EXPECT_EQ(s.layout.data, 8);
}

TEST_F(ScenarioLoad, UnsetChunksAreTheSchedulesOwn) {
  const Scenario s =
      loaded(folder.load(sound_scenario(), {"schedule=interleaved-1f1b", "schedule.global_batch=16"}));
  EXPECT_EQ(s.schedule.name, "interleaved-1f1b");
  EXPECT_EQ(s.layout.chunks, schedule_named("interleaved-1f1b")->default_chunks);
}

void expect_same(const Scenario& a, const Scenario& b) {
  EXPECT_EQ(a.resolved, b.resolved);
  EXPECT_EQ(a.summary, b.summary);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.run.data, b.run.data);
  EXPECT_EQ(a.run.optimizer.lr, b.run.optimizer.lr);
  EXPECT_EQ(a.run.optimizer.lr_schedule.decay, b.run.optimizer.lr_schedule.decay);
  EXPECT_EQ(a.run.optimizer.lr_schedule.decay_samples, b.run.optimizer.lr_schedule.decay_samples);
  EXPECT_EQ(a.layout.split_list, b.layout.split_list);
  EXPECT_EQ(rank_count(a.layout), rank_count(b.layout));
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
  const Scenario first = loaded(folder.load(
      sound_scenario(),
      {"layout.split=[5, 3]", "run.lr=0.1", "run.data='" + path("a text.txt") + "'", "run.tokens=15 T",
       "run.optimizer.lr_decay_style=cosine",
       "cluster.fabrics=[{scope: cluster, bandwidth: 400 Gbit/s, latency: 3 us}]"}));
  const Scenario again = loaded(load_scenario(folder.write("again.yaml", first.resolved), {}));
  expect_same(first, again);
  const Scenario from_line = loaded(load_scenario(folder.write("line.yaml", first.summary), {}));
  expect_same(first, from_line);
}

TEST_F(ScenarioLoad, TheOrderOfKeysInTheFileDoesNotChangeTheResolvedText) {
  const Scenario a = loaded(folder.load(sound_scenario()));
  const std::string moved = "run: {steps: 3}\nschedule: {global_batch: 16, micro_batch: 2}\n";
  const std::string text = sound_scenario();
  const Scenario b = loaded(folder.load(moved + text.substr(0, text.find("schedule:"))));
  EXPECT_EQ(a.resolved, b.resolved);
}

TEST_F(ScenarioLoad, KeysAndValuesAreGatheredUnlessTheyAreToGoAround) {
  EXPECT_EQ(loaded(folder.load(sound_scenario())).layout.context_exchange, ContextExchange::all_gather);
  const Scenario s = loaded(folder.load(sound_scenario(), {"layout.context=2", "layout.context_exchange=ring"}));
  EXPECT_EQ(lowering_input(s).shape.sharding.exchange, ContextExchange::ring);
}

TEST_F(ScenarioLoad, ContextRanksOfACausalModelNeedTwoPiecesEach) {
  const auto errors =
      folder.load(sound_scenario(), {"layout.context=2", "layout.pipeline=1", "model.sequence=126"}).errors;
  ASSERT_EQ(errors.size(), 1U) << describe(errors);
  EXPECT_THAT(describe(errors), testing::AllOf(testing::HasSubstr("4 does not divide model.sequence = 126"),
                                               testing::HasSubstr("allowed: 1, 3, 7, 9, 21, 63")));
}

TEST_F(ScenarioLoad, ARingNeedsKernelsThatHaveALogSumExp) {
  const auto errors =
      folder.load(sound_scenario(), {"layout.context_exchange=ring", "schedule.kernels=torch"}).errors;
  ASSERT_EQ(errors.size(), 1U) << describe(errors);
  EXPECT_THAT(describe(errors), testing::AllOf(testing::HasSubstr("layout.context_exchange"),
                                               testing::HasSubstr("set schedule.kernels to flash1")));
}

TEST_F(ScenarioLoad, TheLoweringTakesEveryNumberFromTheScenario) {
  const Scenario s =
      loaded(folder.load(sound_scenario(), {"schedule.recompute=selective", "run.clip_norm=2",
                                            "layout.sequence_parallel=true", "run.dtype=float32"}));
  const LoweringInput input = lowering_input(s);
  EXPECT_EQ(input.model, s.model);
  EXPECT_EQ(input.schedule, "1f1b");
  EXPECT_EQ(input.shape.micro_batch, 2);
  EXPECT_EQ(input.shape.sequence, 128);
  EXPECT_EQ(input.shape.sharding, (Sharding{.tensor = 2, .sequence_parallel = true, .context = 1}));
  EXPECT_EQ(input.shape.dtype, Dtype::float32);
  EXPECT_TRUE(input.shape.recompute_attention);
  EXPECT_EQ(input.global_batch, 16);
  EXPECT_EQ(input.clip_norm, 2.0);
}

class Examples : public testing::TestWithParam<std::string> {};

TEST_P(Examples, Load) {
  loaded(
      load_scenario(std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/" + GetParam() + ".yaml", {}));
}
INSTANTIATE_TEST_SUITE_P(AllOf, Examples,
                         testing::Values("llama-8b-64xh100", "gpt3-175b-1024xa100", "llama-8b-h100-and-a100", "tiny-llama-cpu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace slipway
