// Tables of today's trainers: rows as keys of a scenario, effects that no key says refused by name, pairs of levers.
// Truths are the rows themselves, by the arithmetic of their sources.
#include <gmock/gmock.h>

#include "models/model/model.h"
#include "scenarios/language/scenario.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/run_keys.h"
#include "scenarios/validate/levers.h"
#include "tests/support/table_text.h"

namespace slipway::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string bridge_header =
    "release,in_head,phase,model_family,variant,moe,gpu,gpus,precision_norm,seq,gbs,mbs,tp,pp,cp,vp,ep,fsdp,"
    "tokens_per_s_per_gpu,recipe,recipe_differs,r_recompute_modules,r_recompute_num_layers,r_cuda_graph_impl,"
    "r_cuda_graph_scope,r_moe_a2a_overlap,r_moe_flex_dispatcher_backend,r_cpu_offloading_num_layers,r_offload_modules,"
    "r_use_megatron_fsdp,r_pp_layout,r_expert_tensor_parallel_size\n";
const std::string qwen =
    "yes,pretrain,Qwen3_30B_a3B,,yes,H100,16,FP8_CS,4096,1024,1,1,1,1,n/"
    "a,16,0,8901,v0.4.0:X,,,,,,False,hybridep,,,,,1\n";

TEST(BridgeTable, ARowIsAScenarioWithTheSecondsOfItsTokens) {
  const PublishedTable table = table_of(bridge_header + "26.04," + qwen);
  const PublishedRow& row = table.rows.at(0);
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_NEAR(row.step_s, 1024 * 4096 / (16 * 8901.0), 1e-9);
  EXPECT_EQ(row.machine, "h100-80gb");
  EXPECT_EQ(row.trainer, "megatron-bridge");
  EXPECT_EQ(row.step.layout.expert, 16);
  EXPECT_EQ(row.step.layout.data, 16);
  EXPECT_EQ(row.step.narrow, NarrowRecipe::tensorwise);
  EXPECT_EQ(row.step.model->runs.at(1).block.experts, 128);
  EXPECT_GT(price(row).step_s, 0);
  EXPECT_EQ(exclusion_of(row), Exclusion::none);
}

TEST(BridgeTable, ARowReadsBackInSlipwaysOwnFormatWithItsExperts) {
  const PublishedTable table = table_of(bridge_header + "26.04," + qwen);
  const PublishedRow& row = table.rows.at(0);
  const PublishedTable again = table_of(csv_line(slipway_columns()) + csv_line(slipway_fields(row)));
  ASSERT_EQ(again.rows.at(0).unpriceable, "");
  EXPECT_EQ(again.rows.at(0).step.model->runs, row.step.model->runs);
  EXPECT_EQ(again.rows.at(0).step.layout.expert, 16);
  EXPECT_EQ(price(again.rows.at(0)).step_s, price(row).step_s);
}

// LoRA of rank 16 beside qkv, graphs of parts of a layer, layers in the host's memory: keys of one row.
TEST(BridgeTable, LeversOfARecipeAreKeys) {
  const PublishedTable table = table_of(bridge_header +
                                        "26.04,yes,lora,LLAMA3_70B,,,GB200,8,BF16,4096,32,1,1,1,1,1,n/a,0,1000,v,,mlp,,"
                                        "transformer_engine,attn mlp,False,,40,,,,\n");
  const PublishedRow& row = table.rows.at(0);
  ASSERT_EQ(row.unpriceable, "");
  const Levers& levers = row.step.levers;
  EXPECT_EQ(levers.recomputed, set_of(RecomputedModule::mlp));
  EXPECT_EQ(levers.graphs, set_of(GraphScope::attn, GraphScope::mlp));
  EXPECT_EQ(levers.lora, (Lora{16, set_of(LoraModule::qkv)}));
  EXPECT_THAT(row.assumed, HasSubstr("adapters of rank 16 on queries, keys and values"));
  EXPECT_EQ(levers.offloaded_layers, 40);
  EXPECT_GT(price(row).step_s, 0);
}

TEST(BridgeTable, OfTheReleasesOfALayoutTheNewestIsScored) {
  const PublishedTable table = table_of(bridge_header + "26.04," + qwen + "26.06," + qwen + "26.02.01," + qwen);
  EXPECT_EQ(exclusion_of(table.rows.at(0)), Exclusion::superseded);
  EXPECT_EQ(exclusion_of(table.rows.at(1)), Exclusion::none);
  EXPECT_EQ(exclusion_of(table.rows.at(2)), Exclusion::superseded);
}

TEST(BridgeTable, WhatItsAuthorsTookBackAndUnknownRecipesAreNotScored) {
  const std::string back = "25.09,no" + qwen.substr(3);
  std::string other = "25.11," + qwen;
  other.replace(other.find("v0.4.0:X,"), 9, "nearest,mbs");
  const PublishedTable table = table_of(bridge_header + back + other);
  EXPECT_EQ(exclusion_of(table.rows.at(0)), Exclusion::superseded);
  EXPECT_EQ(exclusion_of(table.rows.at(1)), Exclusion::unknown_recipe);
}

TEST(BridgeTable, AnEffectThatNoKeySaysIsRefusedByItsName) {
  const PublishedTable table =
      table_of(bridge_header +
               "26.04,yes,pretrain,Nemotron_3_Nano,,yes,H100,16,FP8_CS,8192,1024,1,1,1,1,n/a,8,"
               "0,14507,v,,,,,,False,hybridep,,,,,1\n");
  EXPECT_EQ(table.rows.at(0).unpriceable, "not modelled: hybrid layers (Mamba)");
  EXPECT_THAT(table.rows.at(0).not_modelled, Contains("hybrid layers (Mamba)"));
}

// NVIDIA ran them: recipes whose parameters are in 8 bits, with gradients and moments in 16.
TEST(BridgeTable, PublishedRunsFit) {
  const PublishedTable table =
      table_of(bridge_header +
               "26.08,yes,pretrain,DeepSeekV3,,yes,GB200,256,FP8_MX,4096,4096,1,1,4,1,4,64,0,4900,v,,mla_up_proj,,full_"
               "iteration,,"
               "True,hybridep,,,,,\n"
               "26.02,yes,pretrain,LLAMA3_70B,,,H100,64,FP8_CS,8192,128,1,4,8,1,5,n/a,0,1600,v,,,,,,,,,,,,\n"
               "26.04,yes,pretrain,Qwen3_30B_a3B,,yes,GB200,8,FP8_MX,4096,512,4,1,1,1,n/"
               "a,8,0,20000,v,,,,,,False,hybridep,,,,,\n");
  for (const PublishedRow& row : table.rows) {
    ASSERT_EQ(row.unpriceable, "") << row.table;
    EXPECT_TRUE(price(row).memory->fits) << row.table;
  }
  EXPECT_EQ(table.rows[0].step.optimizer.moment_dtype, Dtype::bfloat16);
}

TEST(BridgeTable, AReleaseWithoutARecipeHasTheUsualModulesAndSaysSo) {
  const PublishedTable table =
      table_of(bridge_header +
               "25.09,yes,pretrain,DeepSeekV3,,yes,B200,256,FP8_CS,4096,2048,1,1,16,1,1,8,0,2265,,,,,,,,,,,,,\n");
  EXPECT_EQ(table.rows.at(0).step.levers.recomputed, set_of(RecomputedModule::mla_up_proj));
  EXPECT_THAT(table.rows[0].assumed, HasSubstr("compute again"));
}

TEST(RunKeys, AKeyThatTheLanguageLacksRefusesTheRowByItsEffect) {
  RunKeys keys;
  keys.set("layout.tensor", 2);
  keys.set("layout.no_such_key", "7", "a thing of tomorrow");
  keys.set("layout.dispatcher", "pigeons", "the dispatcher pigeons");
  EXPECT_EQ(keys.values().count("layout.no_such_key"), 0u);
  EXPECT_EQ(keys.refused(), (std::vector<std::string>{"a thing of tomorrow", "the dispatcher pigeons"}));
  EXPECT_EQ(keys.wanted().at("layout.no_such_key"), "7");
}

TEST(RunKeys, ARowThatTheLoaderRefusesSaysTheKeyAndWhatIsWrong) {
  PublishedRow row;
  RunKeys keys;
  set_model(keys, "Qwen/Qwen3-30B-A3B");
  set_cluster(keys, "h100-80gb", 16);
  set_layout(keys, {.tensor = 3, .micro_batch = 1, .global_batch = 16, .sequence = 4096});
  set_scenario(row, keys);
  EXPECT_THAT(row.unpriceable, HasSubstr("layout.tensor"));
  EXPECT_EQ(row.scenario, nullptr);
}

TEST(RunKeys, StagesOfDeepSeekHoldItsLayersInAnyPipelineOfTheRecipes) {
  for (const auto& [pipeline, chunks] : {std::pair{4, 1}, {8, 1}, {16, 1}, {4, 4}, {8, 2}, {8, 4}}) {
    RunKeys keys;
    set_pipeline(keys, "deepseek-v3", pipeline, chunks);
    int sum = 0, stages = 0;
    for (const char c : keys.values().at("layout.split") + ",")
      if (c == ',') ++stages;
    std::string digits;
    for (const char c : keys.values().at("layout.split") + ",")
      if (c >= '0' && c <= '9')
        digits += c;
      else if (!digits.empty())
        sum += std::stoi(digits), digits.clear();
    EXPECT_EQ(sum, 61);
    EXPECT_EQ(stages, pipeline * chunks);
  }
}

TEST(RunKeys, AnNvlinkDomainIsANodeOfAtMostSeventyTwoGpus) {
  for (const auto& [gpus, per_node] : {std::pair{8, "8"}, {64, "64"}, {72, "72"}, {256, "64"}, {144, "72"}}) {
    RunKeys keys;
    set_cluster(keys, "gb200", gpus);
    EXPECT_EQ(keys.values().at("cluster.gpus_per_node"), per_node);
  }
}

TEST(DgxcTable, RowsWithoutALayoutDoNotCountAndContradictionsAreNotScored) {
  const std::string header =
      "model,size,framework,phase,precision,gpu,gpus,seq,layers,gbs,mbs,tp,pp,cp,vp,ep,etp,fsdp,step_s,check_tokens\n";
  const PublishedTable table =
      table_of(header + "llama-3.1,70b,nemo/megatron,pretrain,BF16,H100,64,8192,80,128,1,4,4,2,5,NA,,,14.66,ok\n" +
               "llama-2,70b,maxtext (JAX),pretrain,BF16,H100,64,4096,,128,2,,,,,,,64,6.999,ok\n" +
               "llama-3.1,70b,nemo/megatron,pretrain,BF16,H100,64,8192,80,128,1,4,4,2,5,NA,,,14.66,-0.50\n");
  EXPECT_EQ(table.rows.at(0).unpriceable, "");
  EXPECT_EQ(table.rows.at(0).step.layout.chunks, 5);
  EXPECT_EQ(table.rows.at(0).step.layout.data, 2);
  EXPECT_EQ(exclusion_of(table.rows.at(1)), Exclusion::no_layout);
  EXPECT_EQ(exclusion_of(table.rows.at(2)), Exclusion::contradiction);
}

TEST(MlperfTable, AStepFasterThanTheGpusPeakIsAContradiction) {
  const PublishedTable table = table_of(
      "version,benchmark,org,accelerator,accelerators_per_node,gpus,seq,gbs,step_s_median,tp,pp,cp,vp,mbs,fp8,fp4,"
      "cuda_graph\n"
      "v4.1,gpt3,NVIDIA,NVIDIA H100-SXM5-80GB,8,512,2048,2048,0.00506,4,8,,6,2,,,\n"
      "v5.1,llama31_8b,Dell,NVIDIA Blackwell GPU (B200-SXM-180GB),8,16,8192,32,0.58178,1,1,1,null,2,,,\n");
  EXPECT_EQ(exclusion_of(table.rows.at(0)), Exclusion::contradiction);
  EXPECT_EQ(exclusion_of(table.rows.at(1)), Exclusion::none);
  EXPECT_EQ(table.rows.at(1).machine, "b200");
}

const std::string aws_header =
    "seq,model,gpu,network,tp,etp,cp,gpus,gbs,ep,pp,vpp,mbs,overlap,recompute,dispatcher,step_s\n";

TEST(AwsTable, TensorRanksMayBeMoreThanKeyValueHeads) {
  const PublishedTable table =
      table_of(aws_header + "4096,Qwen3-30B-A3B,H100,EFA,8,1,1,64,256,16,4,1,4,off,none,NCCL alltoall,8.6\n");
  EXPECT_EQ(table.rows.at(0).unpriceable, "");
  EXPECT_EQ(table.rows.at(0).step.model->runs.at(1).block.kv_heads, 4);
  EXPECT_THAT(table.rows.at(0).assumed, HasSubstr("copies of key-value heads"));
}

TEST(Levers, APairDiffersInOneLeverAndItsRatioIsOfSeconds) {
  const PublishedTable table =
      table_of(aws_header + "4096,Qwen3-30B-A3B,H100,EFA,8,1,1,64,256,16,4,1,4,off,none,NCCL alltoall,8.0\n" +
               "4096,Qwen3-30B-A3B,H100,EFA,8,1,1,64,256,16,4,1,4,off,none,DeepEP,6.0\n" +
               "4096,Qwen3-30B-A3B,H100,EFA,8,1,1,64,256,16,4,1,1,off,none,DeepEP,9.0\n" +
               "4096,Qwen3-30B-A3B,H100,EFA,8,1,1,64,256,32,2,1,1,off,none,DeepEP,9.0\n");
  const Validation validation = validate(table, false);
  const std::vector<LeverPair> pairs = lever_pairs(validation.rows);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].key, "layout.dispatcher");
  EXPECT_DOUBLE_EQ(pairs[0].measured(), 0.75);
  EXPECT_EQ(pairs[1].key, "schedule.micro_batch");
  EXPECT_DOUBLE_EQ(pairs[1].measured(), 1.5);
  const LeverScore score = score_of(pairs);
  EXPECT_EQ(score.pairs, 2);
  EXPECT_EQ(score.priced, 2);
}

PublishedTable study_table(const std::string& path) {
  return read_table_file(SLIPWAY_SOURCE_DIR "/scenarios/studies/" + path);
}

TEST(InternevoTable, TheFirstRowIsTheModelOfItsConfigurationWithShardsOverAllReplicas) {
  const PublishedTable table = study_table("internevo-2023/throughput.csv");
  ASSERT_EQ(table.format->name, "internevo");
  ASSERT_EQ(table.rows.size(), 70u);
  const PublishedRow& row = table.rows.at(0);
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_NEAR(row.step_s, 131072 / (8 * 4062.0), 1e-9);
  EXPECT_EQ(row.trainer, "internevo");
  EXPECT_EQ(row.machine, "a100-80gb");
  EXPECT_EQ(row.step.layout.data, 8);
  EXPECT_EQ(row.step.layout.zero, 1);
  EXPECT_EQ(row.step.layout.replicate, 1);
  EXPECT_EQ(row.step.micro_batch, 2);
  EXPECT_EQ(micro_batches_of(row.step), 4);
  // config.json of internlm/internlm-7b: 32 layers, 4,096 wide, MLP of 11,008, 103,168 words, 7.32e9 parameters.
  EXPECT_EQ(layer_count(row.step.model), 32);
  EXPECT_NEAR(static_cast<double>(parameter_count(row.step.model)), 7.32e9, 0.01e9);
  EXPECT_GT(price(row).step_s, 0);
}

// zero1=8 on 1,024 GPUs: 128 copies of the optimizer's states, each inside a node.
TEST(InternevoTable, ShardsInsideANodeHaveCopiesAndNodesHaveFourPorts) {
  const PublishedTable table = study_table("internevo-2023/throughput.csv");
  const PublishedRow& row = table.rows.at(15);
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_EQ(row.gpus, 1024);
  EXPECT_EQ(row.step.layout.replicate, 128);
  const std::vector<Fabric>& fabrics = row.scenario->cluster.fabrics;
  ASSERT_EQ(fabrics.size(), 2u);
  EXPECT_EQ(fabrics[1].gpus_per_port, 2);
  EXPECT_EQ(table.rows.at(31).step.layout.tensor, 2);
  EXPECT_FALSE(table.rows.at(31).step.layout.sequence_parallel);
  EXPECT_EQ(table.rows.at(31).step.layout.replicate, 128);  // zero1=4 of 512 replicas
  EXPECT_EQ(table.rows.at(32).step.recompute, Recompute::full);
}

TEST(InternevoTable, RowsOfTheMemoryTestAreRefusedByWhatTheyLack) {
  const PublishedTable table = study_table("internevo-2023/throughput.csv");
  const PublishedRow& row = table.rows.at(54);
  EXPECT_EQ(row.status, RowStatus::other);
  EXPECT_THAT(row.unpriceable, HasSubstr("without a step time"));
  EXPECT_THAT(row.unpriceable, HasSubstr("A800"));
}

TEST(AutomodelTable, TheFirstRowsAreRefusedForTheirMambaLayersAndTheNextIsPriced) {
  const PublishedTable table = study_table("automodel-2026/performance.csv");
  ASSERT_EQ(table.format->name, "nemo-automodel");
  ASSERT_EQ(table.rows.size(), 24u);
  EXPECT_EQ(table.rows.at(0).unpriceable, "not modelled: hybrid layers (Mamba)");
  EXPECT_NEAR(table.rows.at(0).step_s, 15.614, 1e-9);
  const PublishedRow& row = table.rows.at(4);  // Qwen3 MoE 30B
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_EQ(row.trainer, "automodel");
  EXPECT_EQ(row.machine, "h100-80gb");
  // The table's tokens per second and GPU, 12,040, say the same.
  EXPECT_NEAR(row.step_s, 512 * 4096 / (8 * 12040.0), 0.001 * row.step_s);
  EXPECT_EQ(row.step.layout.expert, 8);
  EXPECT_EQ(row.step.layout.zero, 3);
  EXPECT_EQ(row.step.micro_batch, 4);
  EXPECT_EQ(micro_batches_of(row.step), 16);  // GA
  EXPECT_EQ(row.step.recompute, Recompute::full);
  EXPECT_EQ(exclusion_of(row), Exclusion::none);
  EXPECT_GT(price(row).step_s, 0);
}

TEST(AutomodelTable, APipelineThatEmptiesSeveralTimesAStepIsRefusedAndAnOldRowIsNotScored) {
  const PublishedTable table = study_table("automodel-2026/performance.csv");
  EXPECT_THAT(table.rows.at(2).unpriceable, HasSubstr("a pipeline that empties 4 times a step"));
  EXPECT_EQ(exclusion_of(table.rows.at(23)), Exclusion::superseded);
  const PublishedRow& lora = table.rows.at(8);  // Llama3 8B on one GPU
  ASSERT_EQ(lora.unpriceable, "");
  EXPECT_EQ(lora.step.levers.lora.rank, 16);
  EXPECT_EQ(lora.step.layout.zero, 0);
}

TEST(MoeRecipesTable, TheFirstRowHasTheStagesOfItsLayoutAndSecondsByMegatronsFormula) {
  const PublishedTable table = study_table("megatron-moe-recipes-2026/recipes.csv");
  ASSERT_EQ(table.format->name, "megatron-moe-recipes");
  ASSERT_EQ(table.rows.size(), 14u);
  const PublishedRow& row = table.rows.at(0);
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_EQ(row.machine, "b200");
  EXPECT_EQ(row.step.layout.pipeline, 8);
  EXPECT_EQ(row.step.layout.chunks, 2);
  EXPECT_EQ(row.step.layout.expert, 32);
  EXPECT_EQ(row.step.schedule, "1f1b-merged");
  EXPECT_TRUE(row.step.delay_weight_grads);
  EXPECT_EQ(row.step.narrow, NarrowRecipe::mxfp8);
  EXPECT_EQ(row.step.levers.recomputed, set_of(RecomputedModule::mla_up_proj, RecomputedModule::mlp));
  EXPECT_EQ(row.step.optimizer.moment_dtype, Dtype::bfloat16);
  // DeepSeek-V3 has 37e9 active parameters and the head of its MTP module: 6 FLOPs each, and attention.
  const double flops = row.step_s * 256 * 776.7e12 / (2048 * 4096.0);
  EXPECT_GT(flops, 6 * 37e9);
  EXPECT_LT(flops, 6 * 37e9 * 1.35);
  EXPECT_GT(price(row).step_s, 0);
}

TEST(MoeRecipesTable, OfTwoFiguresOfARecipeThePullRequestsIsScored) {
  const PublishedTable table = study_table("megatron-moe-recipes-2026/recipes.csv");
  EXPECT_EQ(exclusion_of(table.rows.at(4)), Exclusion::superseded);
  EXPECT_EQ(exclusion_of(table.rows.at(5)), Exclusion::none);
  EXPECT_EQ(exclusion_of(table.rows.at(2)), Exclusion::status);  // a recipe without a figure
  EXPECT_THAT(table.rows.at(1).unpriceable, HasSubstr("optimizer states that go to the host's memory"));
  EXPECT_EQ(table.rows.at(7).step.levers.graphs, set_of(GraphScope::full));
}

TEST(TorchtitanTable, TheFirstRowIsRefusedForItsRecomputationAndABf16RowIsPricedButNotScored) {
  const PublishedTable table = study_table("torchtitan-narrow-2026/narrow.csv");
  ASSERT_EQ(table.format->name, "torchtitan");
  ASSERT_EQ(table.rows.size(), 10u);
  EXPECT_EQ(table.rows.at(0).machine, "b200");
  EXPECT_NEAR(table.rows.at(0).step_s, 8192 / 8307.5, 1e-9);
  EXPECT_EQ(table.rows.at(0).unpriceable, "not modelled: recomputation of single operators (per-op SAC)");
  EXPECT_EQ(table.rows.at(4).keys.at("run.fp8"), "NVFP4 (layers 27-31 bf16)");
  EXPECT_THAT(table.rows.at(4).unpriceable, HasSubstr("layers in two precisions: NVFP4 (layers 27-31 bf16)"));
  const PublishedRow &mx = table.rows.at(5), &bf16 = table.rows.at(6);
  ASSERT_EQ(mx.unpriceable, "");
  EXPECT_EQ(mx.step.narrow, NarrowRecipe::mxfp8);
  ASSERT_EQ(bf16.unpriceable, "");
  EXPECT_EQ(bf16.machine, "gb200");
  EXPECT_EQ(bf16.step.layout.data, 4);
  EXPECT_EQ(bf16.step.layout.zero, 3);
  EXPECT_NEAR(bf16.step_s, 32 * 2048 / 21919.0, 1e-9);
  EXPECT_EQ(exclusion_of(bf16), Exclusion::unknown_recipe);
  EXPECT_GT(price(bf16).step_s, price(mx).step_s);
}

TEST(GoldenTable, TheNewestRowOfACaseAndGpuCountsAndTimesDoNot) {
  const std::string header =
      "date,family,test_case,gpu,gpus,iter_s_median,mem_alloc_bytes,mem_max_alloc_bytes,tp,pp,cp,ep,etp,layers_per_vp,"
      "vp,"
      "mbs,gbs,seq,layers,hidden,ffn,heads,dist_opt,bf16,transformer_impl,env_vars,other_args,gpus_inferred,attn_"
      "backend\n";
  const std::string rest =
      ",gpt,gpt3_tp1_pp4,H100-80GB,8,1.4,747498496,2212196352,1,4,,,,,,4,32,1024,12,512,,8,,True,transformer_engine,"
      "CUBLAS_WORKSPACE_CONFIG=:4096:8,max-position-embeddings=1024,,\n";
  const PublishedTable table = table_of(header + "2025-10-21" + rest + "2026-08-19" + rest);
  EXPECT_EQ(table.rows.at(0).unpriceable, "");
  EXPECT_TRUE(table.rows.at(0).superseded);
  EXPECT_FALSE(table.rows.at(1).superseded);
  EXPECT_EQ(exclusion_of(table.rows.at(1)), Exclusion::memory_only);
  EXPECT_THAT(table.rows.at(1).assumed, HasSubstr("a vocabulary of 50257 tokens"));
  EXPECT_EQ(table.rows.at(1).step.model->runs.at(0).block.vocab, 50304);  // a multiple of 128
  const RowPrice priced = price(table.rows.at(1));
  ASSERT_TRUE(priced.memory.has_value());
  EXPECT_GT(priced.memory->first_bytes, priced.memory->static_bytes);
}

}  // namespace
}  // namespace slipway::test
