// How arguments are read from scripts and lists, before anything is interpreted.
#include <gmock/gmock.h>

#include <numeric>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/trainers/arguments.h"
#include "scenarios/trainers/shell_words.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words(const std::string& script, Variables variables = {}) {
  const std::vector<ShellCommand> commands = shell_commands(script, variables);
  return commands.empty() ? std::vector<std::string>() : commands.back().words;
}

TEST(ImportArguments, OfAScriptAreTheWordsThatAShellWouldPass) {
  const std::string script = R"(#!/bin/bash
TP=4   # tensor
NAME="a run"
ARGS=(
  --tensor-model-parallel-size $TP  # a comment
  --seq-length ${SEQ:-4096}
)
ARGS+=(--bf16)
torchrun --nnodes 2 pretrain_gpt.py "${ARGS[@]}" \
  --wandb-exp-name "$NAME" --load '${LOAD}'
)";
  EXPECT_THAT(words(script),
              ElementsAre("torchrun", "--nnodes", "2", "pretrain_gpt.py", "--tensor-model-parallel-size", "4",
                          "--seq-length", "4096", "--bf16", "--wandb-exp-name", "a run", "--load", "${LOAD}"));
  EXPECT_THAT(words("TP=4; python x.py --tp ${TP}", {{"TP", "8"}}), ElementsAre("python", "x.py", "--tp", "8"))
      << "--set holds against the script";
}

TEST(ImportArguments, KeepVariablesThatNothingSets) {
  EXPECT_EQ(with_variables("${DATA}/x", {}), "${DATA}/x");
  EXPECT_EQ(unset_variable("${DATA}/x"), "DATA");
  EXPECT_EQ(unset_variable("$TP"), "TP");
  EXPECT_EQ(unset_variable("4"), "");
  EXPECT_EQ(with_variables("${A:-${B}}", {{"B", "3"}}), "3");
}

TEST(ImportArguments, AScriptWhoseVariablesMultiplyIsRefusedBeforeItFillsTheMemory) {
  std::string doubling = "A=" + std::string(1000, 'x') + "\n";
  for (int i = 0; i < 40; ++i) doubling += "A+=\"$A\"\n";
  EXPECT_THROW(words(doubling), UsageError);
  std::string many = "A=" + std::string(1'000'000, 'x') + "\npython x.py --a";
  for (int i = 0; i < 10'000; ++i) many += " $A";
  EXPECT_THROW(words(many), UsageError);
}

TEST(ImportArguments, VariablesWithinVariablesAreReadToASensibleDepth) {
  std::string nested = "4";
  for (int i = 0; i < 10; ++i) nested = "${A:-" + nested + "}";
  EXPECT_EQ(with_variables(nested, {}), "4");
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "${A:-";
  EXPECT_EQ(with_variables(deep + "4" + std::string(200'000, '}'), {}).substr(0, 5), "${A:-");
}

TEST(ImportArguments, OfACommandLineBelongToTheLauncherOrTheTrainer) {
  Variables variables;
  Defects defects;
  const Arguments found =
      command_line_arguments("torchrun --nproc_per_node 8 --nnodes=2 pretrain_gpt.py --swiglu --lr=1e-3 --num_layers 4",
                             "line", variables, defects);
  EXPECT_THAT(defects, IsEmpty());
  ASSERT_EQ(found.launcher.size(), 2u);
  EXPECT_EQ(found.launcher[0].text(), "--nproc-per-node 8");
  ASSERT_EQ(found.list.size(), 3u);
  EXPECT_THAT(found.list[0].values, IsEmpty());
  EXPECT_EQ(found.list[1].text(), "--lr 1e-3");
  EXPECT_EQ(found.list[2].text(), "--num-layers 4");
}

// The layouts of NVIDIA's recipes of DeepSeek-V3: 61 layers on 16 and 32 stages.
TEST(LayerLists, ReadMegatronsPipelineLayouts) {
  const auto sum = [](const std::vector<std::int64_t>& list) {
    return std::accumulate(list.begin(), list.end(), std::int64_t{0});
  };
  const auto stages = pipeline_stages("Et*4|(tttt|)*14tmL");
  ASSERT_TRUE(stages.has_value());
  EXPECT_EQ(stages->layers.size(), 16u);
  EXPECT_EQ(sum(stages->layers), 61);
  EXPECT_EQ(stages->layers.back(), 1);
  EXPECT_EQ(stages->prediction_stage, 15);
  const auto alone = pipeline_stages("Et*3|(tt|)*29m|L");
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->layers.size(), 32u);
  EXPECT_EQ(sum(alone->layers), 61);
  EXPECT_EQ(alone->prediction_stage, 30);
  for (const char* wrong : {"", "tttL", "Et*4", "E(t|L", "Etx|L", "Et*999999999L"})
    EXPECT_FALSE(pipeline_stages(wrong)) << wrong;
}

TEST(LayerLists, WriteALayoutThatReadsBack) {
  EXPECT_EQ(pipeline_layout({9, 8, 1, 0}), "Et*9|t*8|t|L");
  EXPECT_EQ(pipeline_layout({4, 2}, 1), "Et*4|t*2mL");
  EXPECT_THAT(pipeline_stages(pipeline_layout({9, 8, 1, 0}))->layers, ElementsAre(9, 8, 1, 0));
}

TEST(LayerLists, ReadWhichLayersHaveExperts) {
  EXPECT_THAT(*layer_pattern("([0]*1+[1]*3)", 4), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(*layer_pattern("([0]+[1]*2)", 3), ElementsAre(0, 1, 1));
  EXPECT_THAT(*layer_pattern("2", 4), ElementsAre(1, 0, 1, 0))
      << "as Megatron-LM: layer i has experts where i % 2 == 0";
  EXPECT_FALSE(layer_pattern("every second", 4));
}

// What Python's eval gives; the second is the example of Megatron-LM's moe_freq_type (megatron/training/arguments.py).
TEST(LayerLists, ReadRepetitionsOfWholeListsAsPythonDoes) {
  EXPECT_THAT(*layer_pattern("([0]+[1])*2", 4), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(*layer_pattern("([1]*3+[0]*1)*3", 12), ElementsAre(1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(*layer_pattern("2*([1] * (1 + 1) + [0,])", 6), ElementsAre(1, 1, 0, 1, 1, 0));
  EXPECT_EQ(layer_pattern("([1]*5+[0]*1)*4", 24)->size(), 24u);
  for (const char* wrong : {"", "([0]+[1]", "[0]+[1])", "[0]*[1]", "[0]+1", "[[0]]", "[2]*4", "[0] [1]", "[0]*99999999",
                            "[0]*-1", "-2", "[0]**2"})
    EXPECT_FALSE(layer_pattern(wrong, 4)) << wrong;
  EXPECT_FALSE(layer_pattern(std::string(100'000, '(') + "[1]" + std::string(100'000, ')'), 1));
}

// megatron/core/transformer/utils.py, is_layer_window_attention: layers count from 1, and of every N the N-th has none.
TEST(LayerLists, ReadWhichLayersHaveAWindow) {
  EXPECT_THAT(*window_pattern("3", 6), ElementsAre(1, 1, 0, 1, 1, 0));
  EXPECT_THAT(*window_pattern("([1]+[0])*2", 4), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(*window_pattern("1", 3), ElementsAre(0, 0, 0));
  EXPECT_FALSE(window_pattern("0", 3));
}

TEST(LayerLists, FindThePeriodOfLayersThatAreTheLastOfEverySoMany) {
  EXPECT_EQ(period_of_last({false, false, true, false, false, true, false}), 3);
  EXPECT_EQ(period_of_last({true, true}), 1);
  EXPECT_EQ(period_of_last({false, false}), 0);
  EXPECT_EQ(period_of_last({false, true, true}), std::nullopt);
}

}  // namespace
}  // namespace slipway::test
