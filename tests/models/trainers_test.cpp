// Stack profiles: every built-in file is complete and sourced; a wrong one is reported with line and key.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "models/trainers/time_formulas.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/tables/price.h"
#include "tests/support/ideal_run.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

std::string profile_of(const std::string& trainer, const std::string& changed = "", const std::string& line = "") {
  std::string text = "time:\n  a100-80gb:\n    scale: 0.02\n";
  for (const TimeParameter& parameter : time_model_of(trainer)->parameters) {
    if (parameter.name == changed)
      text += line;
    else
      text += "    " + std::string(parameter.name) + ": {value: 0.5, prior: 0.6, spread: 0.1, source: a book}\n";
  }
  return text;
}

std::string defects_of(const std::string& text) {
  Defects defects;
  EXPECT_FALSE(stack_from_yaml(text, "s.yaml", "nanotron", defects).has_value());
  return describe(defects);
}

TEST(Stacks, EveryTrainerWithAFormulaHasAProfileWithASourceForEveryConstant) {
  EXPECT_EQ(embedded_stacks().size(), time_models().size());
  for (const TimeModel& model : time_models()) {
    const Stack* stack = built_in_stack(model.trainer);
    ASSERT_NE(stack, nullptr) << model.trainer;
    EXPECT_FALSE(stack->times.empty());
    for (const StackTime& time : stack->times) {
      ASSERT_EQ(time.constants.size(), model.parameters.size());
      for (const StackConstant& constant : time.constants) EXPECT_FALSE(constant.source.empty());
    }
  }
  EXPECT_EQ(built_in_stack("nobody"), nullptr);
}

// NCCL's rings run through all ports of a node and leave it once per byte. So a GPU of a sharded group over many nodes
// gets the data sheet's bandwidth of the whole node, not of its own port.
TEST(Stacks, GathersAcrossNodesStartFromAllPortsOfANode) {
  const TimeModel& model = *time_model_of("llm-foundry");
  const auto named = std::ranges::find(model.parameters, "network_bandwidth", &TimeParameter::name);
  const auto at = static_cast<std::size_t>(named - model.parameters.begin());
  for (const StackTime& time : built_in_stack("llm-foundry")->times) {
    PublishedRow row;
    row.machine = time.machine;
    const double ports = 8 * machine_of(row).network_link.bandwidth;
    EXPECT_NEAR(time.constants.at(at).prior, 0.8 * ports, 1e-6 * ports) << time.machine;
  }
}

TEST(Stacks, EveryProfileHasFactsAboutMemoryWithSources) {
  for (const EmbeddedFile& file : embedded_stacks()) {
    const Stack* stack = built_in_stack(file.name);
    EXPECT_FALSE(stack->memory.sources.empty()) << file.name;
    for (const std::string& source : stack->memory.sources) EXPECT_GT(source.size(), 15u) << file.name;
  }
  EXPECT_EQ(built_in_stack("aa-scaling")->memory.loss, LossMemory::plain);
  EXPECT_EQ(built_in_stack("nanotron")->memory.gathered, GatheredInputs::by_stages);
}

TEST(Stacks, WhatAMemorySectionDoesNotNameIsUsual) {
  Defects defects;
  const auto stack =
      stack_from_yaml("memory:\n  update_bytes: {value: 3, source: counted}\n", "mine.yaml", "mine", defects);
  ASSERT_TRUE(stack.has_value()) << describe(defects);
  EXPECT_EQ(stack->model, nullptr);
  EXPECT_EQ(stack->memory.update_bytes, 3);
  EXPECT_EQ(stack->memory.loss, LossMemory::vocabulary_parallel);
}

TEST(Stacks, AnUnknownSectionOrFactIsRefused) {
  EXPECT_THAT(defects_of("memory:\n  magic: {value: 8, source: counted}\n"),
              HasSubstr("s.yaml:2: memory.magic: is no fact about memory"));
  EXPECT_THAT(defects_of("memory:\n  loss: {value: magic, source: counted}\n"),
              HasSubstr("memory.loss: 'magic' is unknown; allowed: vocabulary-parallel, plain, fused"));
  EXPECT_THAT(defects_of("memory:\n  update_bytes: {value: 3}\n"), HasSubstr("has no value or no source"));
  EXPECT_THAT(defects_of("memroy:\n  b200:\n"), HasSubstr("memroy: unknown key; allowed: time, memory"));
  EXPECT_THAT(defects_of("memory: 3\n"), HasSubstr("is no map"));
}

TEST(Stacks, ACompleteProfileLoads) {
  Defects defects;
  const auto stack = stack_from_yaml(profile_of("nanotron"), "s.yaml", "nanotron", defects);
  ASSERT_TRUE(stack.has_value()) << describe(defects);
  ASSERT_NE(time_on(*stack, "a100-80gb"), nullptr);
  EXPECT_EQ(time_on(*stack, "h200"), nullptr);
  EXPECT_DOUBLE_EQ(stack->times[0].scale, 0.02);
  EXPECT_DOUBLE_EQ(stack->times[0].constants[3].prior, 0.6);
}

TEST(Stacks, AMissingConstantIsNamedWithItsMeaning) {
  const std::string text = defects_of(profile_of("nanotron", "floor_nodes"));
  EXPECT_THAT(text, HasSubstr("s.yaml:2: time.a100-80gb.floor_nodes: is missing"));
  EXPECT_THAT(text, HasSubstr("for each further node"));
}

TEST(Stacks, AConstantOfAnotherFormulaIsRefused) {
  EXPECT_THAT(defects_of(profile_of("nanotron") + "    jitter: {value: 1, source: a book}\n"),
              HasSubstr("time.a100-80gb.jitter: is no constant of this trainer's formula"));
}

TEST(Stacks, ANumberWithoutSourceIsRefused) {
  EXPECT_THAT(defects_of(profile_of("nanotron", "fixed", "    fixed: {value: 1}\n")), HasSubstr("has no source"));
}

TEST(Stacks, WhatIsNoNumberIsNamedByItsLine) {
  EXPECT_THAT(
      defects_of(profile_of("nanotron", "gemm_efficiency", "    gemm_efficiency: {value: much, source: a book}\n")),
      HasSubstr("s.yaml:4: time.a100-80gb.gemm_efficiency.value"));
}

}  // namespace

// Costs of features in the formulas of step time, each counted in FLOPs or bytes where nothing else takes time. A
// formula must price every feature or report that it does not.

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StrEq;

// Interleaving divides the bubble: 4 stages, 8 micro-batches, (8 + 3/2)/(8 + 3) (Narayanan et al. 2021).
TEST(TimeFormulas, ChunksDivideTheBubble) {
  for (const TimeModel& model : time_models()) {
    if (!has_pipelines(model)) continue;
    StepWork w = ideal_run(model);
    w.p = w.gpus = 4;
    const double whole = ideal_seconds(model, w);
    w.chunks = 2;
    EXPECT_NEAR(ideal_seconds(model, w) / whole, 9.5 / 11, 1e-4) << model.trainer;
  }
}

// Full recomputation is one forward pass of the layers, selective one of attention alone (Korthikanti et al. 2022):
// 2·b·s²·h FLOPs where flash skips the masked half, else 4.
TEST(TimeFormulas, RecomputationRunsAForwardPassOrItsAttentionOnceMore) {
  for (const TimeModel& model : time_models()) {
    StepWork w = ideal_run(model);
    const bool flash = w.kernels == Kernels::flash2_rmsnorm, gelu = !flash;
    if (gelu) w.gated = false;
    const double plain = ideal_seconds(model, w), M = w.b * w.s;
    const double attention = (flash ? 2 : 4) * w.b * w.s * w.s * w.h;
    double forward = 2 * M * layer_matrix_parameters(w) + attention;
    if (!has_pipelines(model)) forward -= 2 * M * w.h * w.f;  // non-reentrant: below
    w.recompute = Recompute::selective;
    EXPECT_NEAR((ideal_seconds(model, w) - plain) * w.peak_flops / w.L / w.m / attention, 1, 1e-4) << model.trainer;
    w.recompute = Recompute::full;
    EXPECT_NEAR((ideal_seconds(model, w) - plain) * w.peak_flops / w.L / w.m / forward, 1, 1e-4) << model.trainer;
  }
}

// Two context ranks share the tokens and the scores of a sequence: half the work each.
TEST(TimeFormulas, ContextRanksShareTheWorkOfASequenceOrTheRunIsOutside) {
  int priced = 0;
  for (const TimeModel& model : time_models()) {
    StepWork w = ideal_run(model);
    const double alone = ideal_seconds(model, w);
    w.c = w.gpus = 2;
    if (!model.outside(w).empty()) continue;
    EXPECT_NEAR(ideal_seconds(model, w) / alone, 0.5, 1e-4) << model.trainer;
    ++priced;
  }
  EXPECT_EQ(priced, 3);  // AA-Scaling, nanotron, Megatron-Core
}

// 40 layers on 16 stages: the fullest has three, so each further micro-batch takes three layers' time.
TEST(TimeFormulas, WhereStagesDoNotDivideTheLayersTheFullestSetsThePace) {
  for (const TimeModel& model : time_models()) {
    if (!has_pipelines(model)) continue;
    StepWork w = ideal_run(model);
    const auto next = [&] {
      w.m = 101;
      const double more = ideal_seconds(model, w);
      w.m = 100;
      return more - ideal_seconds(model, w);
    };
    const double layer = next() / w.L;
    w.p = w.gpus = 16;
    EXPECT_NEAR(next() / layer, 3, 1e-3) << model.trainer;
  }
}

// Four all-reduces of 2·b·s·h bytes a layer (Megatron-Core shows three; AA-Scaling has one more at either end). Each
// byte of a ring over two nodes goes through their eight ports once.
TEST(TimeFormulas, ATensorGroupThatLeavesTheNodeIsAsFastAsTheNodesPorts) {
  for (const TimeModel& model : time_models()) {
    if (model.trainer == "nanotron" || !has_pipelines(model)) continue;  // nanotron has a constant of its own
    StepWork w = ideal_run(model);
    w.t = w.gpus = 16;
    const double unbounded = ideal_seconds(model, w);
    w.port_bandwidth = 2e10;
    const double reduces = model.trainer == "megatron-core" ? 3 : 4;
    const double expected = w.m * w.L * reduces * 2 * (2 * w.b * w.s * w.h) * 15 / 16 / (8 * w.port_bandwidth);
    EXPECT_NEAR((ideal_seconds(model, w) - unbounded) / expected, 1, 2.1 / 4 / w.L) << model.trainer;
    w.gpus_per_node = 16;
    EXPECT_NEAR(ideal_seconds(model, w) / unbounded, 1, 1e-9) << model.trainer;
  }
}

// The context groups of a node share its ports: here two, one per tensor rank.
TEST(TimeFormulas, AContextGroupThatLeavesTheNodeSharesItsPorts) {
  for (const char* trainer : {"aa-scaling", "nanotron", "megatron-core"}) {
    const TimeModel& model = *time_model_of(trainer);
    StepWork w = ideal_run(model);
    w.t = 2, w.c = 8, w.gpus = 16;
    const double unbounded = ideal_seconds(model, w);
    w.port_bandwidth = 2e10;
    const double block = 2 * 2 * w.b * w.s / w.c * w.h / w.t;  // keys and values, bf16
    const double expected = w.m * w.L * 3 * 7 * block / (8 * w.port_bandwidth / 2);
    EXPECT_NEAR((ideal_seconds(model, w) - unbounded) / expected, 1, 2e-3) << trainer;
  }
}

// Narayanan et al. 2021 against Korthikanti et al. 2022: with sequence parallelism a tensor rank reads only its share.
TEST(MegatronLmTime, SequenceParallelismDividesElementWiseWork) {
  const TimeModel& model = *time_model_of("megatron-lm");
  std::vector<double> constants = ideal(model);
  constants[4] = 60;  // elementwise_bytes
  StepWork w = ideal_run(model);
  w.t = w.gpus = 4, w.memory_bandwidth = 2e12;
  const double whole = model.seconds(w, constants);
  w.sequence_parallel = true;
  const double saved = w.m * w.L * w.b * w.s * w.h * 60 * 3 / 4 / (0.8 * w.memory_bandwidth);
  EXPECT_NEAR((whole - model.seconds(w, constants)) / saved, 1, 1e-6);
}

// FSDP's hybrid sharding: weights and gradients move inside the node. Each GPU's eighth of the gradients is reduced
// over the four nodes, all eight at once through the node's ports.
TEST(LlmFoundryTime, ShardsInsideANodeAreReducedOverTheNodesBesides) {
  const TimeModel& model = *time_model_of("llm-foundry");
  std::vector<double> constants = ideal(model);
  constants[7] = 2e11, constants[8] = 1.6e11;  // node_bandwidth, network_bandwidth
  StepWork w = ideal_run(model);
  w.d = w.gpus = 32, w.m = 1, w.zero = 3, w.shard_group = 8, w.peak_flops = 1e30;
  const double bytes = 2 * (w.L * layer_matrix_parameters(w) + w.V * w.h);
  EXPECT_NEAR(model.seconds(w, constants) / (3 * bytes * 7 / 8 / 2e11 + 2 * bytes * 3 / 4 / 1.6e11), 1, 1e-3);
  w.shard_group = 0, w.zero = 0;  // every GPU holds all: one all-reduce over all
  EXPECT_NEAR(model.seconds(w, constants) / (2 * bytes * 31 / 32 / 1.6e11), 1, 1e-3);
}

// Sixteen replicas on two nodes: a ring over all ports, and the network's latency in each of its 30 steps.
TEST(MegatronDeepSpeedTime, AReductionOverNodesIsARingOverTheirPorts) {
  const TimeModel& model = *time_model_of("megatron-deepspeed");
  std::vector<double> constants = ideal(model);
  constants[constants.size() - 3] = 2;  // gradient_bytes
  StepWork w = ideal_run(model);
  w.d = w.gpus = 16;
  const double unbounded = model.seconds(w, constants);
  w.port_bandwidth = 2e10, w.port_latency = 1e-5;
  const double bytes = 2 * 12 * w.h * w.h * w.L;
  EXPECT_NEAR(model.seconds(w, constants) - unbounded, 2 * 15 / 16.0 * bytes / 1.6e11 + 30 * 1e-5, 1e-6);
}

// Features without a fitted constant or a term in the formula have no price (scenarios/tables/price.cpp).
TEST(TimeFormulas, SayWhatTheyDoNotPrice) {
  for (const TimeModel& model : time_models()) {
    StepWork w = ideal_run(model);
    EXPECT_THAT(model.outside(w), IsEmpty()) << model.trainer;
    if (has_pipelines(model)) {
      w.zero = 3;
      EXPECT_THAT(model.outside(w), ElementsAre(StrEq("ZeRO 2 and 3"))) << model.trainer;
      continue;
    }
    w.t = w.p = 2;
    EXPECT_THAT(model.outside(w), ElementsAre(StrEq("tensor parallelism"), StrEq("pipeline stages")));
  }
  StepWork w = llama_13b();
  w.kernels = Kernels::flash1;
  EXPECT_THAT(time_model_of("nanotron")->outside(w), SizeIs(1));
  EXPECT_THAT(time_model_of("aa-scaling")->outside(w), IsEmpty());  // Hagemann's runs had it
}

}  // namespace

}  // namespace slipway::test
