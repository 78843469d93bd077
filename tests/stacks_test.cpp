// Stack profiles: every built-in file is complete and sourced, and a wrong one is named by line and key.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "scenarios/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/tables/price.h"

namespace slipway {
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
      for (const StackConstant& constant : time.constants) {
        EXPECT_FALSE(constant.source.empty());
        // Within four of the prior's own standard deviations: a fit may move it, not replace it.
        if (constant.spread > 0) {
          EXPECT_LT(std::abs(std::log(constant.value / constant.prior)), 5.5 * constant.spread)
              << model.trainer << " " << time.machine << " " << constant.source;
        }
      }
    }
  }
  EXPECT_EQ(built_in_stack("nobody"), nullptr);
}

// NCCL's rings run through all ports of a node and leave it once per byte: a GPU of a sharded group over many nodes sees
// what the data sheet gives the whole node, not its own port.
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

TEST(Stacks, EveryMemoryConstantThatAProfileNamesHasASourceAndStaysNearItsPrior) {
  for (const EmbeddedFile& file : embedded_stacks()) {
    const Stack* stack = built_in_stack(file.name);
    ASSERT_FALSE(stack->memories.empty()) << file.name;
    for (const StackMemory& memory : stack->memories) {
      ASSERT_EQ(memory.sources.size(), memory_parameters().size());
      EXPECT_EQ(memory.constants.name, file.name);
      EXPECT_LE(memory.constants.cautious_share, memory.constants.usable_share);
      EXPECT_LT(memory.constants.usable_share, 1);
      for (const StackConstant& constant : memory.sources) {
        if (constant.spread <= 0) continue;
        EXPECT_LT(std::abs(std::log(constant.value / constant.prior)), 2.5 * constant.spread)
            << file.name << " " << memory.machine << " " << constant.source;
      }
    }
  }
}

TEST(Stacks, WhatAMemorySectionDoesNotNameIsTheBooks) {
  Defects defects;
  const auto stack = stack_from_yaml("memory:\n  b200:\n    logit_bytes: {value: 8, source: counted}\n", "mine.yaml",
                                     "mine", defects);
  ASSERT_TRUE(stack.has_value()) << describe(defects);
  EXPECT_EQ(stack->model, nullptr);
  ASSERT_NE(memory_on(*stack, "b200"), nullptr);
  EXPECT_EQ(memory_on(*stack, "h200"), nullptr);
  const MemoryConstants constants = memory_on(*stack, "b200")->constants;
  EXPECT_EQ(constants.logit_bytes, 8);
  EXPECT_EQ(constants.layer_factor, MemoryConstants{}.layer_factor);
  EXPECT_EQ(constants.machine, "b200");
}

TEST(Stacks, AnUnknownSectionOrMemoryConstantIsRefused) {
  EXPECT_THAT(defects_of("memory:\n  b200:\n    magic: {value: 8, source: counted}\n"),
              HasSubstr("s.yaml:3: memory.b200.magic: is no constant of memory"));
  EXPECT_THAT(defects_of("memroy:\n  b200:\n"), HasSubstr("memroy: unknown key; allowed: time, memory"));
  EXPECT_THAT(defects_of("memory: 3\n"), HasSubstr("is no map of machines"));
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
  EXPECT_THAT(defects_of(profile_of("nanotron", "gemm_efficiency",
                                    "    gemm_efficiency: {value: much, source: a book}\n")),
              HasSubstr("s.yaml:4: time.a100-80gb.gemm_efficiency.value"));
}

}  // namespace
}  // namespace slipway
