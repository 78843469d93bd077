// What tables of others say in words of their own, and what they do not say: forms of rows that are read, and what is
// assumed, in the row and in the report.
#include "scenarios/tables/words.h"

#include <gmock/gmock.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/machine_names.h"
#include "scenarios/tables/price.h"
#include "scenarios/validation/report.h"
#include "tests/table_text.h"

namespace slipway {
namespace {

using testing::HasSubstr;

PublishedRow hagemann(const std::string& model, const std::string& recompute, const std::string& kernel,
                      const std::string& gpus = "64") {
  return table_of("model,seq_len,gpus,micro_batch,tensor,pipeline,sequence_parallel,recompute,kernel,status,step_time_s\n" +
                  model + ",2048," + gpus + ",1,2,1,0," + recompute + "," + kernel + ",ok,30\n")
      .rows.at(0);
}

TEST(TableWords, RecomputationIsReadInAnySpellingAndNeverGuessed) {
  for (const char* word : {"full", "every_layer", "every-layer", "\"Full (use_checkpoint=true in configs)\""})
    EXPECT_EQ(hagemann("llama-13b", word, "flash2").recompute, Recompute::full) << word;
  const PublishedRow selective = hagemann("llama-13b", "selective", "torch");
  EXPECT_EQ(selective.recompute, Recompute::selective);
  EXPECT_TRUE(selective.shape.recompute_attention);
  EXPECT_EQ(hagemann("llama-13b", "none", "flash2").recompute, Recompute::none);
  EXPECT_THAT(hagemann("llama-13b", "sometimes", "flash2").unpriceable,
              HasSubstr("column recompute: 'sometimes' is none of every_layer, full, none, selective"));
}

TEST(TableWords, KernelsAreReadInAnySpelling) {
  for (const char* word : {"flash2+rmsnorm", "flash2+rms_norm", "flash2+RMS-norm", "flash2 + rmsnorm", "flash2 (RMSNorm)"})
    EXPECT_EQ(hagemann("llama-13b", "none", word).shape.kernels, Kernels::flash2_rmsnorm) << word;
  EXPECT_THAT(hagemann("llama-13b", "none", "flash2 (other)").unpriceable, HasSubstr("column kernel: 'flash2 (other)' is none of"));
}

TEST(TableWords, LlamasAreKnownByTheirOtherNames) {
  EXPECT_EQ(library_llama("Llama-3.1-8B", 8192), library_llama("llama-3.1-8b", 8192));
  EXPECT_EQ(parameter_count(library_llama("llama-3-70b", 8192)), parameter_count(library_llama("llama-3.1-70b", 8192)));
  // Touvron et al. 2023, table 2: 6.7B, 32.5B, 65.2B parameters.
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-7b", 2048))), 6.74e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-2-30b", 2048))), 32.53e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(library_llama("llama-65b", 2048))), 65.29e9, 0.02e9);
  // Hagemann's vocabulary of 128,000 instead of 32,000, embedding and head.
  EXPECT_EQ(parameter_count(hagemann("llama-7b", "none", "flash2").model) -
                parameter_count(library_llama("llama-7b", 2048)),
            2 * 96000 * 4096);
}

TEST(TableWords, ABatchThatReplicasDoNotDivideTakesOneMicroBatchMoreAndSaysSo) {
  const PublishedRow row = hagemann("llama-13b", "none", "flash2", "48");  // 24 replicas of 2048 sequences
  EXPECT_EQ(row.unpriceable, "");
  EXPECT_EQ(row.micro_batches, 86);
  EXPECT_THAT(row.assumed, HasSubstr("24 x 1 does not divide the global batch of 2048: 86 micro-batches"));
  EXPECT_EQ(hagemann("llama-13b", "none", "flash2").assumed, "");
}

PublishedRow fsdp(const std::string& model, const std::string& gpu, const std::string& sharding,
                  const std::string& precision = "amp_bf16", const std::string& offload = "False") {
  return table_of("model,seq,gpus,gpu,micro_batch,global_batch,tokens_per_s,precision,sharding,act_ckpt,act_offload\n" +
                  model + ",2048,64," + gpu + ",8,512,140000," + precision + "," + sharding + ",True," + offload + "\n")
      .rows.at(0);
}

TEST(LlmFoundryTable, EveryShardingOfFsdpHasItsTrafficAndMemory) {
  const auto price_of = [](const char* sharding) { return price(fsdp("30b", "h100_80gb", sharding)); };
  const PublishedRow hybrid = fsdp("30b", "h100_80gb", "HYBRID_SHARD");
  EXPECT_EQ(hybrid.zero, 3);
  EXPECT_EQ(hybrid.shard_group, 8);
  EXPECT_EQ(fsdp("30b", "h100_80gb", "NO_SHARD").zero, 0);
  EXPECT_EQ(fsdp("30b", "h100_80gb", "FULL_SHARD").shard_group, 0);
  for (const char* sharding : {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD"})
    EXPECT_GT(price_of(sharding).step_s, 0) << sharding;
  EXPECT_EQ(work_of(hybrid).shard_group, 8);
  EXPECT_THAT(fsdp("30b", "h100_80gb", "SOME_SHARD").unpriceable, HasSubstr("none of FULL_SHARD, HYBRID_SHARD"));
}

TEST(LlmFoundryTable, ModelsGpusAndPrecisionsAreReadAsOthersWriteThem) {
  EXPECT_EQ(fsdp("1.3b", "h100_80gb", "FULL_SHARD").model, fsdp("1b", "h100_80gb", "FULL_SHARD").model);
  const PublishedRow bare = fsdp("7b", "h100", "FULL_SHARD");
  EXPECT_EQ(bare.machine, "h100-80gb");
  EXPECT_THAT(bare.assumed, HasSubstr("gpu h100 is h100-80gb"));
  EXPECT_EQ(fsdp("7b", "h100_80gb", "FULL_SHARD").assumed, "");
  EXPECT_EQ(fsdp("7b", "h100_80gb", "FULL_SHARD", "amp_fp16").shape.dtype, Dtype::float16);
  EXPECT_THAT(fsdp("7b", "h100_80gb", "FULL_SHARD", "int4").unpriceable, HasSubstr("column precision: 'int4'"));
  EXPECT_THAT(fsdp("7b", "h100_80gb", "FULL_SHARD", "bf16", "True").unpriceable, HasSubstr("act_offload"));
}

PublishedRow megatron(const std::string& columns, const std::string& fields) {
  return table_of("gpu,heads,hidden,layers,tp,pp,gpus,global_batch,seq,tflops_per_gpu" + columns +
                  "\nA100-80GB,96,12288,96,8,8,64,64,2048,160" + fields + "\n")
      .rows.at(0);
}

// TFLOP/s of a run without full recomputation count three passes of the layers, not four.
TEST(MegatronScalingTable, ItsOwnColumnsAreRead) {
  const PublishedRow full = megatron(",recompute", ",full"), selective = megatron(",recompute", ",selective");
  const double h = 12288, L = 96, s = 2048, V = 51200, tokens = 64 * s, gpus = 64 * 160e12;
  EXPECT_NEAR(full.step_s, 96 * tokens * L * h * h * (1 + s / (6 * h) + V / (16 * L * h)) / gpus, 1e-9);
  EXPECT_NEAR(selective.step_s, 72 * tokens * L * h * h * (1 + s / (6 * h) + V / (12 * L * h)) / gpus, 1e-9);
  EXPECT_EQ(megatron("", "").recompute, Recompute::full);
  EXPECT_LT(price(selective).step_s, price(full).step_s);
  const PublishedRow told = megatron(",micro_batch,interleave,sequence_parallel", ",2,4,True");
  EXPECT_EQ(told.shape.micro_batch, 2);
  EXPECT_EQ(told.chunks, 4);
  EXPECT_TRUE(told.shape.sharding.sequence_parallel);
  EXPECT_EQ(told.assumed, "");
  EXPECT_THAT(megatron(",recompute", ",partly").unpriceable, HasSubstr("'partly' is none of"));
}

// Narayanan et al. 2021, section 3.4: few micro-batches lengthen the bubble, without a pipeline large ones are fastest.
// Interleaving needs as many micro-batches as a multiple of the stages.
TEST(MegatronScalingTable, AMicroBatchThatIsNotToldIsTheFastestThatFitsAndIsSaid) {
  const PublishedRow piped = megatron("", "");  // 64 micro-batches on eight stages
  EXPECT_EQ(piped.shape.micro_batch, 1);
  EXPECT_EQ(piped.chunks, 2);
  EXPECT_THAT(piped.assumed, HasSubstr("micro-batch 1: of 1 to 16 the fastest that fits"));
  const PublishedTable flat = table_of(
      "gpu,heads,hidden,layers,tp,pp,gpus,global_batch,seq,tflops_per_gpu\n"
      "A100-80GB,32,4096,36,4,1,128,512,2048,142\n"   // replicas of 16 sequences
      "A100-80GB,32,4096,36,4,1,128,160,2048,142\n"   // of 5
      "A100-80GB,80,20480,32,8,6,48,128,2048,140\n"); // six stages of 32 layers
  EXPECT_EQ(flat.rows[0].shape.micro_batch, 16);
  EXPECT_EQ(flat.rows[1].shape.micro_batch, 1);
  EXPECT_EQ(flat.rows[2].chunks, 1);
}

TEST(NanotronTable, ItsOwnColumnsAreRead) {
  const auto row_of = [](const std::string& columns, const std::string& fields) {
    return table_of("gpus,name,seq_len,mbs,batch_accum,dp,tp,pp,zero_stage,hidden_size,interm_dim,num_layers,num_heads,"
                    "vocab_size,status,step_s_derived" + columns + "\n16,1.34G_dp4,4096,2,8,4,4,1,1,2048,8192,16,32,131072,"
                    "Success,1.7" + fields + "\n").rows.at(0);
  };
  const PublishedRow usual = row_of("", "");
  EXPECT_TRUE(usual.shape.sharding.sequence_parallel);
  EXPECT_TRUE(usual.model.runs[2].block.tied);
  EXPECT_EQ(usual.gradient_dtype, Dtype::float32);
  const PublishedRow other = row_of(",tp_mode,tie_word_embeddings,accumulate_grad_in_fp32", ",ALL_REDUCE,False,False");
  EXPECT_EQ(other.unpriceable, "");
  EXPECT_FALSE(other.shape.sharding.sequence_parallel);
  EXPECT_FALSE(other.model.runs[2].block.tied);
  EXPECT_EQ(other.gradient_dtype, Dtype::bfloat16);
  EXPECT_THAT(row_of(",tp_mode", ",MAGIC").unpriceable, HasSubstr("column tp_mode: 'MAGIC'"));
}

TEST(VtrainTable, RunsAreInHalfPrecisionSoThatAV100HasAPrice) {
  const PublishedRow row =
      table_of("gpus,gpu,tp,dp,pp,global_batch,micro_batch,hidden,heads,layers,seq,recompute,iter_ms\n"
               "4,V100,1,4,1,16,2,1024,16,24,1024,full,300\n")
          .rows.at(0);
  EXPECT_EQ(row.shape.dtype, Dtype::float16);
  EXPECT_GT(price(row).step_s, 0) << price(row).cannot;
}

TEST(TableWords, TheReportNamesWhatWasAssumedWithItsLines) {
  const PublishedTable table = table_of(
      "gpu,heads,hidden,layers,tp,pp,gpus,global_batch,seq,tflops_per_gpu\nA100,96,12288,96,8,8,64,64,2048,160\n");
  EXPECT_THAT(report_text(validate(table, false)),
              HasSubstr("assumed in 1 row: gpu A100 is a100-80gb, as in its authors' other runs; micro-batch 1"));
}

}  // namespace
}  // namespace slipway
