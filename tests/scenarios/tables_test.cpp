// Rows of the published formats against their papers' statements.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "scenarios/tables/csv.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/price.h"
#include "scenarios/validate/report.h"
#include "schedules/time/work_price.h"
#include "tests/support/table_text.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

const std::string hagemann_header =
    "model,seq_len,gpus,micro_batch,tensor,pipeline,sequence_parallel,recompute,kernel,status,step_time_s,"
    "mfu\n";
const std::string nanotron_header =
    "gpus,step_s_derived,name,seq_len,mbs,batch_accum,gbs,dp,tp,pp,zero_stage,hidden_size,interm_dim,num_"
    "layers,"
    "num_heads,num_kv_heads,vocab_size,status,Mem Alloc (GB),Mem Res (GB),AR Intra-node "
    "(GB/s),after_pp_fix\n";

TEST(HagemannTable, TheBestRunHasTheMfuOfThePaper) {
  const PublishedTable table = table_of(
      hagemann_header + "llama-13b,2048,64,1,1,1,0,none,flash2+rmsnorm,ok,26.53954972161187,0.7057311797718144\n");
  ASSERT_EQ(table.rows.size(), 1u);
  const PublishedRow& row = table.rows[0];
  EXPECT_EQ(row.unpriceable, "");
  EXPECT_EQ(row.step.layout.data, 64);
  EXPECT_EQ(micro_batches_of(row.step), 32);                    // 2048 sequences over 64 GPUs
  EXPECT_NEAR(mfu_of(row, row.step_s, 312e12), 0.705, 0.0005);  // the abstract: 70.5 %
}

TEST(HagemannTable, WhatDidNotEndHasNoTimeAndIsExcludedByItsStatus) {
  const PublishedTable table = table_of(hagemann_header +
                                        "llama-30b,2048,256,4,2,1,1,every_layer,torch,oom,,\n"
                                        "llama-30b,2048,256,4,2,1,0,none,fused_softmax,Kernel not available,,\n");
  EXPECT_EQ(table.rows[0].status, RowStatus::out_of_memory);
  EXPECT_TRUE(table.rows[0].step.layout.sequence_parallel);
  EXPECT_EQ(exclusion_of(table.rows[0]), Exclusion::status);
  EXPECT_EQ(table.rows[1].status, RowStatus::other);
  EXPECT_EQ(table.rows[1].unpriceable, "");
}

TEST(FujiiTable, SecondsComeFromThePapersFlopFormula) {
  const PublishedTable table = table_of(
      "model,gpu,gpus_per_node,seq_len,global_batch,tensor,context,pipeline,micro_batch,gpus,status,tflops_"
      "per_gpu\n"
      "llama-3.1-8b,a100-40gb,8,8192,1024,4,1,2,1,8,ok,182.6\n"
      "llama-3.1-8b,h100-94gb,4,8192,1024,4,4,2,1,8,dash,\n");
  // 12·1024·8192·32·4096²·(1 + 1/4 + 2 + 1.5·3.5 + 128256/(2·32·4096)) FLOPs on 8 × 182.6e12
  const double flops = 12.0 * 1024 * 8192 * 32 * 4096 * 4096 * (1 + 0.25 + 2 + 5.25 + 128256.0 / 262144);
  EXPECT_NEAR(table.rows[0].step_s, flops / (8 * 182.6e12), 1e-9);
  EXPECT_EQ(table.rows[0].gpus_per_node, 8);
  EXPECT_EQ(table.rows[1].status, RowStatus::infeasible);  // 4 x 4 x 2 ranks on 8 GPUs
}

TEST(NanotronTable, ARunOutOfMemoryIsReadFromItsName) {
  const PublishedTable table = table_of(nanotron_header +
                                        "16,1.6873,1.34G_dp16_tp1_pp1_acc8_mbs2_seq4096_zero1_x,4096,2,8.0,"
                                        "256.0,16,1,1,1,2048,8192,16,32,32.0,131072,"
                                        "Success,13.67,35.03,425.39,True\n"
                                        "8,,8.86G_dp4_tp2_pp1_acc32.0_mbs2_seq4096_zero1_x,4096,9,9,"
                                        "1048576.0,9,9,9,1,4096,14336,32,32,,131072,OOM,,,,True\n"
                                        "8,3.3,1.34G_dp8_tp1_pp1_acc32_mbs1_seq4096_zero0_x,4096,1,32.0,"
                                        "256.0,8,1,1,0,2048,8192,16,32,32.0,131072,"
                                        "Success,25.07,36.67,290.0,True\n"
                                        "8,3.3,1.34G_dp8_tp1_pp1_acc32_mbs1_seq4096_zero0_x,4096,1,32.0,"
                                        "256.0,8,1,1,0,2048,8192,16,32,32.0,131072,"
                                        "Success,25.07,36.67,425.0,False\n");
  EXPECT_EQ(table.rows[1].step.layout.data, 4);
  EXPECT_EQ(table.rows[1].step.layout.tensor, 2);
  EXPECT_EQ(micro_batches_of(table.rows[1].step), 32);
  EXPECT_EQ(table.rows[1].step.model->runs[1].block.kv_heads, 32);
  EXPECT_FALSE(table.rows[1].step.model->runs[2].block.tied);
  // "8.86G" and "1.34G" parameters
  EXPECT_NEAR(static_cast<double>(parameter_count(table.rows[1].step.model)), 8.86e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(table.rows[0].step.model)), 1.34e9, 0.01e9);
  EXPECT_EQ(exclusion_of(table.rows[0]), Exclusion::none);
  EXPECT_EQ(exclusion_of(table.rows[2]), Exclusion::all_reduce_test);
  EXPECT_EQ(exclusion_of(table.rows[3]), Exclusion::after_pp_fix);
}

TEST(NanotronTable, ColumnsThatNoPriceNeedsMayBeMissingOrEmpty) {
  const PublishedTable table = table_of(
      "gpus,step_s_derived,name,seq_len,mbs,batch_accum,dp,tp,pp,zero_stage,hidden_size,interm_dim,num_"
      "layers,"
      "num_heads,vocab_size,status\n"
      "16,1.6873,1.34G_dp16_tp1_pp1_acc8_mbs2_seq4096_zero1,4096,2,8.0,16,1,1,,2048,8192,16,32,131072,"
      "Success\n"
      "16,,1.34G_dp16_tp1_pp1_acc8_mbs2_seq4096_zero1,4096,2,8.0,16,1,1,1,2048,8192,16,32,131072,"
      "Timeout\n");
  EXPECT_EQ(table.rows[0].unpriceable, "");
  EXPECT_EQ(table.rows[0].step.layout.zero, 1);
  EXPECT_EQ(exclusion_of(table.rows[0]), Exclusion::none);
  EXPECT_EQ(exclusion_of(table.rows[1]), Exclusion::status);
}

TEST(NanotronTable, WithoutAStepTimeItFollowsFromTokensPerSecond) {
  const PublishedTable table = table_of(
      "gpus,name,seq_len,mbs,batch_accum,dp,tp,pp,zero_stage,hidden_size,interm_dim,num_layers,num_heads,"
      "vocab_size,"
      "status,tok/s/gpu\n"
      "8,1.34G_dp8_tp1_pp1_acc32_mbs1_seq4096_zero0,4096,1,32,8,1,1,0,2048,8192,16,32,131072,Success,39273."
      "41\n");
  EXPECT_NEAR(table.rows[0].step_s, 3.3374, 1e-3);  // derived by the table's authors
}

TEST(LlmFoundryTable, ModelsHaveTheParametersThatTheTableStates) {
  const PublishedTable table = table_of(
      "section,model,params,seq,gpus,gpu,micro_batch,grad_accum,global_batch,tokens_per_s,precision,"
      "sharding,act_ckpt\n"
      "\"A100, 40GB\",125m,124131840,512,8,a100_40gb,104,3,2496,1253886,bf16,FULL_SHARD,False\n"
      "\"A100, 40GB\",7b,6658859008,2048,64,a100_40gb,18,1,1152,234614,bf16,FULL_SHARD,True\n"
      "x,3b,2730480640,32768,8,h100_80gb,3,6,144,46853,amp_fp8,FULL_SHARD,True\n");
  EXPECT_EQ(parameter_count(table.rows[0].step.model), 124131840);
  EXPECT_EQ(parameter_count(table.rows[1].step.model), 6658859008);
  EXPECT_NEAR(table.rows[1].step_s, 1152 * 2048 / 234614.0, 1e-9);
  EXPECT_TRUE(table.rows[2].fp8);
  EXPECT_EQ(table.rows[2].unpriceable, "");
}

TEST(Tables, BrokenRowsStayInAndSayWhatIsWrong) {
  const PublishedTable table = table_of(hagemann_header +
                                        "llama-13b,2048,64,1\n"
                                        "llama-13b,2048,64,one,1,1,0,none,flash2,ok,30,\n"
                                        "llama-99b,2048,64,1,1,1,0,none,flash2,ok,30,\n"
                                        "llama-13b,2048,64,1,1,1,0,none,flash9,ok,30,\n"
                                        "llama-13b,2048,64,1,1,1,0,none,flash2,ok,,\n"
                                        "llama-13b,2048,60,1,8,1,0,none,flash2,ok,30,\n");
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_THAT(table.rows[0].unpriceable, HasSubstr("4 fields where the header has 12"));
  EXPECT_THAT(table.rows[1].unpriceable, HasSubstr("column micro_batch: 'one'"));
  EXPECT_THAT(table.rows[2].unpriceable, HasSubstr("no built-in model 'llama-99b'"));
  EXPECT_THAT(table.rows[3].unpriceable, HasSubstr("none of flash1, flash2, flash2+rmsnorm"));
  EXPECT_THAT(table.rows[4].unpriceable, HasSubstr("step_time_s"));
  EXPECT_THAT(table.rows[5].unpriceable, HasSubstr("does not divide 60 GPUs"));
  for (const PublishedRow& row : table.rows) EXPECT_EQ(exclusion_of(row), Exclusion::none) << "never skipped";
}

TEST(Tables, CellsThatMakeNoRunAreNamedAndNeverEndTheProgram) {
  const std::string header = "gpu,hidden,heads,layers,tp,pp,gpus,global_batch,seq,micro_batch,chunks,tflops_per_gpu\n";
  const PublishedTable table = table_of(header +
                                        "A100-80GB,2304,24,24,1,1,32,512,2048,16,,137\n"
                                        "A100-80GB,2304,7,24,1,1,32,512,2048,16,,137\n"
                                        "A100-80GB,2304,24,24,1,1,32,512,2048,16,,0\n"
                                        "A100-80GB,2304,24,24,1000000000,1000000000,32,512,2048,16,1,137\n"
                                        "A100-80GB,2304,24,99999,1,1,32,512,2048,16,,137\n"
                                        "A100-80GB,2304,24,24,1,1,32,16,2048,16,,137\n"
                                        "A100-80GB,99999999999,24,24,1,1,32,512,2048,16,,137\n");
  EXPECT_EQ(table.rows[0].unpriceable, "");
  EXPECT_THAT(table.rows[1].unpriceable, HasSubstr("not a multiple of heads = 7"));
  EXPECT_THAT(table.rows[2].unpriceable, HasSubstr("no step time above 0"));
  EXPECT_THAT(table.rows[3].unpriceable, HasSubstr("does not divide 32 GPUs"));
  EXPECT_THAT(table.rows[4].unpriceable, HasSubstr("more than 10000 layers"));
  EXPECT_THAT(table.rows[5].unpriceable, HasSubstr("does not divide the global batch of 16"));
  EXPECT_THAT(table.rows[6].unpriceable, HasSubstr("column hidden: '99999999999'"));
}

// In each column of each study's table, the first cell with text gets 100,000 characters more at four places.
TEST(Tables, ACellOfManyCharactersNeverEndsTheProgram) {
  int cells = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SLIPWAY_SOURCE_DIR "/scenarios/studies")) {
    if (entry.path().extension() != ".csv") continue;
    const CsvTable table = read_csv_file(entry.path());
    for (std::size_t column = 0; column < table.header.size(); ++column) {
      const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                    [&](const CsvRow& each) { return !each.fields[column].empty(); });
      if (row == table.rows.end()) continue;
      for (int quarter = 1; quarter <= 4; ++quarter, ++cells) {
        std::vector<std::string> fields = row->fields;
        std::string& cell = fields[column];
        const std::size_t at = (cell.size() * quarter + 3) / 4 - 1;
        cell.insert(at, 100'000, cell[at]);
        try {
          table_of(csv_line(table.header) + csv_line(fields));
        } catch (const std::runtime_error&) {  // refused
        }
      }
    }
  }
  EXPECT_GT(cells, 1000);
}

TEST(Tables, AnUnknownHeaderIsOneErrorThatNamesWhatIsMissing) {
  try {
    table_of("model,seq_len,gpus,micro_batch,tensor\nx,1,1,1,1\n");
    FAIL() << "was read";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nearest is hagemann-2023"));
    EXPECT_THAT(error.what(), HasSubstr("pipeline, sequence_parallel, recompute, kernel, status, step_time_s"));
  }
}

TEST(Tables, FilesWithoutLayoutsAreRefusedWithWhatTheyHold) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"gpu,gpus,bytes,time_us,busbw_GBps\n", "single collectives"},
      {"micro_batch,forward_ms,backward_ms,curvature_ms\n", "single Transformer blocks"},
      {"round,samples_or_tokens,eval_loss\n", "loss curves"},
      {"apples,pears\n", "no known table (hagemann-2023,"}};
  for (const auto& [header, reason] : cases) {
    try {
      table_of(header);
      FAIL() << header << " was read";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(reason));
      EXPECT_THAT(error.what(), HasSubstr("slipway list tables"));
    }
  }
}

TEST(MachineNames, AreRecognisedByGenerationAndGigabytes) {
  for (const char* name : {"A100-80GB SXM", "a100_80gb", "A100 SXM4 80 GB", "NVIDIA A100-SXM4-80GB", "a100-80gb"})
    EXPECT_EQ(machine_named("gpu", name), "a100-80gb") << name;
  EXPECT_EQ(machine_named("gpu", "V100 DGX-2"), "v100-32gb");
  EXPECT_EQ(machine_named("gpu", "H200"), "h200");
  EXPECT_EQ(machine_named("gpu", "A100", {"a100-40gb"}), "a100-40gb");
  for (const char* name : {"A100", "H100-12GB", "TPUv4", "", "GTX 1080"})
    EXPECT_THROW(machine_named("gpu", name), CellError) << name;
  EXPECT_THROW(machine_named("gpu", "H100", {"a100-40gb"}), CellError);
}

TEST(Tables, EveryFormatSurvivesTheFormatOfSlipway) {
  const PublishedTable first = table_of(hagemann_header +
                                        "llama-30b,2048,256,4,2,1,1,every_layer,fused_softmax,ok,45.25,0.5\n"
                                        "llama-13b,8192,128,1,1,1,0,none,torch,oom,,\n");
  std::string text = csv_line(slipway_columns());
  for (const PublishedRow& row : first.rows) text += csv_line(slipway_fields(row));
  const PublishedTable again = table_of(text);
  EXPECT_EQ(again.format->name, "slipway");
  for (std::size_t i = 0; i < first.rows.size(); ++i) {
    EXPECT_EQ(again.rows[i].unpriceable, "");
    EXPECT_EQ(slipway_fields(again.rows[i]), slipway_fields(first.rows[i]));
    EXPECT_EQ(layout_key(again.rows[i]), layout_key(first.rows[i]));
    EXPECT_EQ(again.rows[i].step.model, first.rows[i].step.model);
  }
}

// Its batch is read behind the word that is no number of chunks.
TEST(Tables, ARowThatIsReadInPartCanBeNamed) {
  const std::vector<std::string> columns = slipway_columns();
  const PublishedRow whole = table_of(hagemann_header + "llama-13b,2048,64,1,2,4,0,none,flash2,ok,30,0.5\n").rows.at(0);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<std::string> fields = slipway_fields(whole);
    fields[i] = "its";
    const PublishedTable table = table_of(csv_line(columns) + csv_line(fields));
    EXPECT_NO_THROW(in_words(table.rows.at(0))) << columns[i];
  }
}

// 48 GPUs are 24 replicas, of which 2048 sequences are no multiple.
TEST(Tables, WhatAReaderAssumedIsSaidInTheFormatOfSlipwayAsWell) {
  const PublishedRow row = table_of(hagemann_header + "llama-13b,2048,48,1,2,1,0,none,flash2,ok,30,0.5\n").rows.at(0);
  ASSERT_THAT(row.assumed, HasSubstr("86 micro-batches"));
  const PublishedTable again = table_of(csv_line(slipway_columns()) + csv_line(slipway_fields(row)));
  EXPECT_EQ(again.rows.at(0).assumed, row.assumed);
  EXPECT_THAT(report_text(validate(again, false)), HasSubstr("assumed in 1 row: data x micro-batch = 24 x 1 does not"));
}

}  // namespace

// Other groups' tables, with their own words and gaps: the forms of rows that are read, and the assumptions, in the row
// and in the report.

namespace {

using testing::HasSubstr;

PublishedRow hagemann(const std::string& model, const std::string& recompute, const std::string& kernel,
                      const std::string& gpus = "64") {
  return table_of(
             "model,seq_len,gpus,micro_batch,tensor,pipeline,sequence_parallel,recompute,kernel,status,step_time_s\n" +
             model + ",2048," + gpus + ",1,2,1,0," + recompute + "," + kernel + ",ok,30\n")
      .rows.at(0);
}

TEST(TableWords, RecomputationIsReadInAnySpellingAndNeverGuessed) {
  for (const char* word : {"full", "every_layer", "every-layer", "\"Full (use_checkpoint=true in configs)\""})
    EXPECT_EQ(hagemann("llama-13b", word, "flash2").step.recompute, Recompute::full) << word;
  const PublishedRow selective = hagemann("llama-13b", "selective", "torch");
  EXPECT_EQ(selective.step.recompute, Recompute::selective);
  EXPECT_TRUE(work_shape(selective.step).recompute_attention);
  EXPECT_EQ(hagemann("llama-13b", "none", "flash2").step.recompute, Recompute::none);
  EXPECT_THAT(hagemann("llama-13b", "sometimes", "flash2").unpriceable,
              HasSubstr("column recompute: 'sometimes' is none of every_layer, full, none, selective"));
}

TEST(TableWords, KernelsAreReadInAnySpelling) {
  for (const char* word :
       {"flash2+rmsnorm", "flash2+rms_norm", "flash2+RMS-norm", "flash2 + rmsnorm", "flash2 (RMSNorm)"})
    EXPECT_EQ(hagemann("llama-13b", "none", word).step.kernels, Kernels::flash2_rmsnorm) << word;
  EXPECT_THAT(hagemann("llama-13b", "none", "flash2 (other)").unpriceable,
              HasSubstr("column kernel: 'flash2 (other)' is none of"));
}

TEST(TableWords, LlamasAreKnownByTheirOtherNames) {
  EXPECT_EQ(library_llama("Llama-3.1-8B", 8192), library_llama("llama-3.1-8b", 8192));
  EXPECT_EQ(parameter_count(library_llama("llama-3-70b", 8192)), parameter_count(library_llama("llama-3.1-70b", 8192)));
  // Touvron et al. 2023, table 2: 6.7B, 32.5B, 65.2B parameters.
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-7b", 2048))), 6.74e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-2-30b", 2048))), 32.53e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-65b", 2048))), 65.29e9, 0.02e9);
  // Hagemann's vocabulary of 128,000 instead of 32,000, embedding and head.
  EXPECT_EQ(parameter_count(hagemann("llama-7b", "none", "flash2").step.model) -
                parameter_count(library_llama("llama-7b", 2048)),
            2 * 96000 * 4096);
}

TEST(TableWords, ABatchThatReplicasDoNotDivideTakesOneMicroBatchMoreAndSaysSo) {
  const PublishedRow row = hagemann("llama-13b", "none", "flash2", "48");  // 24 replicas of 2048 sequences
  EXPECT_EQ(row.unpriceable, "");
  EXPECT_EQ(micro_batches_of(row.step), 86);
  EXPECT_THAT(row.assumed, HasSubstr("24 x 1 does not divide the global batch of 2048: 86 micro-batches"));
  EXPECT_EQ(hagemann("llama-13b", "none", "flash2").assumed, "");
}

PublishedRow fsdp(const std::string& model, const std::string& gpu, const std::string& sharding,
                  const std::string& precision = "amp_bf16", const std::string& offload = "False") {
  return table_of("model,seq,gpus,gpu,micro_batch,global_batch,tokens_per_s,precision,sharding,act_ckpt,act_offload\n" +
                  model + ",2048,64," + gpu + ",8,512,140000," + precision + "," + sharding + ",True," + offload + "\n")
      .rows.at(0);
}

TEST(LlmFoundryTable, EveryShardingOfFsdpIsReadAndHasItsMemory) {
  const auto price_of = [](const char* sharding) { return price(fsdp("30b", "h100_80gb", sharding)); };
  const PublishedRow hybrid = fsdp("30b", "h100_80gb", "HYBRID_SHARD");
  EXPECT_EQ(hybrid.step.layout.zero, 3);
  EXPECT_EQ(hybrid.shard_group, 8);
  EXPECT_EQ(fsdp("30b", "h100_80gb", "NO_SHARD").step.layout.zero, 0);
  EXPECT_EQ(fsdp("30b", "h100_80gb", "FULL_SHARD").shard_group, 0);
  for (const char* sharding : {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"})
    EXPECT_GT(price_of(sharding).step_s, 0) << sharding;
  EXPECT_THAT(price_of("HYBRID_SHARD").cannot, HasSubstr("in groups of 8 GPUs"));
  EXPECT_TRUE(price_of("HYBRID_SHARD").memory.has_value());
  EXPECT_THAT(fsdp("30b", "h100_80gb", "SOME_SHARD").unpriceable, HasSubstr("none of FULL_SHARD, HYBRID_SHARD"));
}

TEST(LlmFoundryTable, ModelsGpusAndPrecisionsAreReadAsOthersWriteThem) {
  EXPECT_EQ(fsdp("1.3b", "h100_80gb", "FULL_SHARD").step.model, fsdp("1b", "h100_80gb", "FULL_SHARD").step.model);
  const PublishedRow bare = fsdp("7b", "h100", "FULL_SHARD");
  EXPECT_EQ(bare.machine, "h100-80gb");
  EXPECT_THAT(bare.assumed, HasSubstr("gpu h100 is h100-80gb"));
  EXPECT_EQ(fsdp("7b", "h100_80gb", "FULL_SHARD").assumed, "");
  EXPECT_EQ(fsdp("7b", "h100_80gb", "FULL_SHARD", "amp_fp16").step.dtype, Dtype::float16);
  EXPECT_THAT(fsdp("7b", "h100_80gb", "FULL_SHARD", "int4").unpriceable, HasSubstr("column precision: 'int4'"));
  EXPECT_THAT(fsdp("7b", "h100_80gb", "FULL_SHARD", "bf16", "True").unpriceable, HasSubstr("act_offload"));
}

PublishedRow megatron(const std::string& columns, const std::string& fields, int stages = 8) {
  return table_of("gpu,heads,hidden,layers,tp,pp,gpus,global_batch,seq,tflops_per_gpu" + columns +
                  "\nA100-80GB,96,12288,96,8," + std::to_string(stages) + ",64,64,2048,160" + fields + "\n")
      .rows.at(0);
}

// TFLOP/s of a run without full recomputation count three passes of the layers, not four.
TEST(MegatronScalingTable, ItsOwnColumnsAreRead) {
  const PublishedRow full = megatron(",micro_batch,chunks,recompute", ",1,2,full"),
                     selective = megatron(",micro_batch,chunks,recompute", ",1,2,selective");
  const double h = 12288, L = 96, s = 2048, V = 51200, tokens = 64 * s, gpus = 64 * 160e12;
  EXPECT_NEAR(full.step_s, 96 * tokens * L * h * h * (1 + s / (6 * h) + V / (16 * L * h)) / gpus, 1e-9);
  EXPECT_NEAR(selective.step_s, 72 * tokens * L * h * h * (1 + s / (6 * h) + V / (12 * L * h)) / gpus, 1e-9);
  EXPECT_EQ(megatron(",micro_batch,chunks", ",1,2").step.recompute, Recompute::full);
  EXPECT_LT(price(selective).step_s, price(full).step_s);
  const PublishedRow given = megatron(",micro_batch,interleave,sequence_parallel", ",2,4,True");
  EXPECT_EQ(given.step.micro_batch, 2);
  EXPECT_EQ(given.step.layout.chunks, 4);
  EXPECT_TRUE(given.step.layout.sequence_parallel);
  EXPECT_EQ(given.assumed, "");
  EXPECT_THAT(megatron(",micro_batch,chunks,recompute", ",1,2,partly").unpriceable, HasSubstr("'partly' is none of"));
}

// Both change a step by 10 to 20 %. A run without a pipeline has one chunk.
TEST(MegatronScalingTable, ARowWithoutMicroBatchOrChunksIsRefusedAndNoneIsInvented) {
  const std::string refusal =
      " is missing or empty; a step depends on it, and no value is assumed; add the authors' value";
  EXPECT_THAT(megatron("", "").unpriceable, HasSubstr("column micro_batch" + refusal));
  EXPECT_THAT(megatron(",micro_batch,chunks", ",,2").unpriceable, HasSubstr("column micro_batch" + refusal));
  EXPECT_THAT(megatron(",micro_batch", ",1").unpriceable, HasSubstr("column chunks" + refusal));
  EXPECT_THAT(megatron(",micro_batch,chunks", ",1,").unpriceable, HasSubstr("column chunks" + refusal));
  const PublishedRow flat = megatron(",micro_batch", ",1", 1);
  EXPECT_EQ(flat.unpriceable, "");
  EXPECT_EQ(flat.step.layout.chunks, 1);
}

// NVIDIA/Megatron-LM at 79a3bb6, examples/sc21/run_table_1.sh: MBS, and the layers of a stage over those of a virtual
// stage.
TEST(MegatronStudy, HasMicroBatchesAndChunksOfItsAuthors) {
  std::ifstream in(SLIPWAY_SOURCE_DIR "/scenarios/studies/megatron-2021/runs.csv");
  const PublishedTable table = read_table(in, "runs.csv");
  std::vector<std::pair<std::int64_t, int>> told;
  for (const PublishedRow& row : table.rows)
    if (row.machine == "a100-80gb") told.emplace_back(row.step.micro_batch, row.step.layout.chunks);
  EXPECT_THAT(
      told, testing::ElementsAre(std::pair{16, 1}, std::pair{16, 1}, std::pair{16, 1}, std::pair{8, 1}, std::pair{4, 1},
                                 std::pair{2, 3}, std::pair{2, 2}, std::pair{1, 2}, std::pair{1, 3}, std::pair{1, 1}));
}

TEST(NanotronTable, ItsOwnColumnsAreRead) {
  const auto row_of = [](const std::string& columns, const std::string& fields) {
    return table_of(
               "gpus,name,seq_len,mbs,batch_accum,dp,tp,pp,zero_stage,hidden_size,interm_dim,num_layers,num_heads,"
               "vocab_size,status,step_s_derived" +
               columns +
               "\n16,1.34G_dp4,4096,2,8,4,4,1,1,2048,8192,16,32,131072,"
               "Success,1.7" +
               fields + "\n")
        .rows.at(0);
  };
  const PublishedRow usual = row_of("", "");
  EXPECT_TRUE(usual.step.layout.sequence_parallel);
  EXPECT_TRUE(usual.step.model->runs[2].block.tied);
  EXPECT_EQ(usual.step.gradient_dtype, Dtype::float32);
  const PublishedRow other = row_of(",tp_mode,tie_word_embeddings,accumulate_grad_in_fp32", ",ALL_REDUCE,False,False");
  EXPECT_EQ(other.unpriceable, "");
  EXPECT_FALSE(other.step.layout.sequence_parallel);
  EXPECT_FALSE(other.step.model->runs[2].block.tied);
  EXPECT_EQ(other.step.gradient_dtype, Dtype::bfloat16);
  EXPECT_THAT(row_of(",tp_mode", ",MAGIC").unpriceable, HasSubstr("column tp_mode: 'MAGIC'"));
}

TEST(VtrainTable, RunsAreInHalfPrecisionSoThatAV100HasAPrice) {
  const PublishedRow row = table_of(
                               "gpus,gpu,tp,dp,pp,global_batch,micro_batch,hidden,heads,layers,seq,recompute,iter_ms\n"
                               "4,V100,1,4,1,16,2,1024,16,24,1024,full,300\n")
                               .rows.at(0);
  EXPECT_EQ(row.step.dtype, Dtype::float16);
  EXPECT_GT(price(row).step_s, 0) << price(row).cannot;
}

TEST(TableWords, TheReportNamesWhatWasAssumedWithItsLines) {
  const PublishedTable table = table_of(
      "gpu,heads,hidden,layers,tp,pp,gpus,global_batch,seq,micro_batch,chunks,tflops_per_gpu\n"
      "A100,96,12288,96,8,8,64,64,2048,1,2,160\n");
  EXPECT_THAT(report_text(validate(table, false)),
              HasSubstr("assumed in 1 row: gpu A100 is a100-80gb, as in its authors' other runs: line 2"));
}

// A study's table says in each row what its source lacks.
TEST(Studies, SayWhatTheirSourcesLack) {
  const std::map<std::string, std::string> lacking = {
      {"vtrain-2024", "tied vocabulary of 51200; gpu A100 is a100-80gb: eight A100-SXM-80GB"},
      {"megatron-2021", "one micro-batch of 8"}};
  for (const auto& [name, words] : lacking) {
    const std::string path = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/studies/" + name + "/runs.csv";
    std::ifstream in(path);
    EXPECT_THAT(report_text(validate(read_table(in, path), false)), HasSubstr(words)) << name;
  }
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvTable table_of(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "t.csv");
}

std::string error_of(const std::string& text) {
  try {
    table_of(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table = table_of("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n\"two\nlines\",2\nlast,row");
  EXPECT_THAT(table.header, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0].fields, ElementsAre("x, y", "say \"hi\""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("two\nlines", "2"));
  EXPECT_THAT(table.rows[2].fields, ElementsAre("last", "row"));
}

TEST(Csv, EachRowKnowsTheLineOnWhichItBegins) {
  const CsvTable table = table_of("# source\n# of it\na,b\n\n1,2\n\"x\ny\",3\n4,5\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].line, 5);
  EXPECT_EQ(table.rows[1].line, 6);
  EXPECT_EQ(table.rows[2].line, 8);
}

TEST(Csv, ByteOrderMarkCarriageReturnsAndEmptyFieldsDoNoHarm) {
  const CsvTable table = table_of(
      "\xEF\xBB\xBF"
      "a,b,c\r\n1,,\r\n\"2\",\"\",3\r\n");
  EXPECT_THAT(table.header, ElementsAre("a", "b", "c"));
  EXPECT_THAT(table.rows[0].fields, ElementsAre("1", "", ""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("2", "", "3"));
}

TEST(Csv, MistakesNameFileLineAndRemedy) {
  EXPECT_THAT(error_of(""), HasSubstr("t.csv: is empty"));
  EXPECT_THAT(error_of("a,a\n"), HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(error_of("a,b\n1,\"open\n"), HasSubstr("t.csv:2: a quoted field is not closed"));
}

TEST(Csv, WhatIsWrittenReadsBack) {
  const std::vector<std::string> fields = {"plain", "a,b", "\"q\"", "two\nlines", ""};
  const CsvTable table = table_of("1,2,3,4,5\n" + csv_line(fields));
  EXPECT_EQ(table.rows.at(0).fields, fields);
}

}  // namespace

}  // namespace slipway::test
