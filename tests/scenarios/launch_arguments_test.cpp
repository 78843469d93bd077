// `slipway plan --emit`: a scenario as another trainer's arguments, and what they cannot express.
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "scenarios/commands/plan/answer.h"
#include "scenarios/predict/load_scenario.h"

namespace slipway::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string large = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-70b-1024xh100.yaml";

LaunchArguments launch(const std::string& file, const std::vector<std::string>& overrides, const std::string& trainer) {
  const LoadResult loaded = load_scenario(file, overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return launch_arguments(loaded.scenario, *emitted(trainer));
}

// The README of Megatron-LM's examples gives Llama and GPT-3 these options.
TEST(LaunchArguments, OfMegatronNameTheLayoutAndTheModel) {
  const auto found = launch(large,
                            {"layout.pipeline=8", "layout.chunks=5", "layout.data=16", "schedule.name=interleaved-1f1b",
                             "schedule.recompute=full"},
                            "megatron");
  EXPECT_EQ(found.program, "pretrain_gpt.py");
  for (const char* argument :
       {"--tensor-model-parallel-size 8", "--sequence-parallel", "--pipeline-model-parallel-size 8",
        "--num-virtual-stages-per-pipeline-rank 5", "--micro-batch-size 1", "--global-batch-size 1024",
        "--use-distributed-optimizer", "--num-layers 80", "--num-query-groups 8", "--swiglu", "--bf16",
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"})
    EXPECT_THAT(found.arguments, Contains(argument));
  EXPECT_THAT(found.missing, IsEmpty());
  EXPECT_THAT(found.refused, IsEmpty());
}

// 16 replicas: 320 sequences are 20 micro-batches, two groups of 10; 448 are 28, of 10, 9 and 9.
TEST(LaunchArguments, OfMegatronNameTheGroupsOfMicroBatchesAndRefuseSeveralSizes) {
  const std::vector<std::string> keys{"layout.pipeline=8", "layout.chunks=5", "layout.data=16",
                                      "schedule.name=interleaved-1f1b"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), keys.begin(), keys.end());
    return launch(large, more, "megatron");
  };
  EXPECT_THAT(with({"schedule.group=16"}).arguments, Contains("--microbatch-group-size-per-virtual-pipeline-stage 16"));
  EXPECT_THAT(with({}).arguments, Not(Contains(HasSubstr("--microbatch-group-size"))));
  EXPECT_THAT(with({"schedule.global_batch=320"}).arguments,
              Contains("--microbatch-group-size-per-virtual-pipeline-stage 10"));
  EXPECT_THAT(with({"schedule.global_batch=448"}).refused, Contains(HasSubstr("set schedule.group")));
  EXPECT_THAT(with({"schedule.overlap_tensor=true"}).arguments, Contains("--tp-comm-overlap"));
}

TEST(LaunchArguments, OfMegatronNameBiasesOfQueryKeyAndValueWhereTheModelHasThem) {
  const auto found = launch(large, {"model=qwen2.5-72b"}, "megatron");
  EXPECT_THAT(found.arguments, Contains("--add-qkv-bias"));
  EXPECT_THAT(found.arguments, Contains("--disable-bias-linear"));
  EXPECT_THAT(launch(large, {}, "megatron").arguments, Not(Contains("--add-qkv-bias")));
}

TEST(LaunchArguments, NameExpertsForMegatronAndSayThatTorchtitansAreNotKnown) {
  const auto megatron = launch(large, {"model=mixtral-8x7b", "model.sequence=4096"}, "megatron");
  EXPECT_THAT(megatron.arguments,
              testing::IsSupersetOf({"--num-experts 8", "--moe-router-topk 2", "--moe-ffn-hidden-size 14336"}));
  EXPECT_THAT(megatron.to_add, Contains(HasSubstr("--moe-aux-loss-coeff")));
  EXPECT_THAT(megatron.refused, IsEmpty());
  EXPECT_THAT(launch(large, {"model=mixtral-8x7b", "model.sequence=4096", "layout.sequence_parallel=false"}, "megatron")
                  .refused,
              Contains(HasSubstr("wants both")));
  const auto titan = launch(large, {"model=mixtral-8x7b", "model.sequence=4096"}, "torchtitan");
  EXPECT_THAT(titan.refused, Contains(HasSubstr("experts")));
}

// Megatron-LM users' options for Qwen3.
TEST(LaunchArguments, NameNormsOfQueryAndKeyAndHeadsOfTheirOwnWidth) {
  const auto megatron = launch(large, {"model=qwen3-32b"}, "megatron");
  EXPECT_THAT(megatron.arguments,
              testing::IsSupersetOf({"--qk-layernorm", "--kv-channels 128", "--disable-bias-linear"}));
  EXPECT_THAT(launch(large, {}, "megatron").arguments, Not(Contains("--qk-layernorm")));
  const auto titan = launch(large, {"model=qwen3-32b"}, "torchtitan");
  EXPECT_THAT(titan.arguments, testing::IsSupersetOf({"--module qwen3", "--config qwen3_32b"}));
  EXPECT_THAT(launch(large, {"model.layers=40"}, "torchtitan").to_add, Contains(HasSubstr("--module and --config")))
      << "the registry's model has other shapes";
}

// Megatron-LM's own defaults are others: dropout 0.1, clipping 1, betas 0.9 and 0.999.
TEST(LaunchArguments, LeaveNothingToTheTrainersDefaultsAndSaySlipwaysOwn) {
  const auto found = launch(large,
                            {"run.optimizer.lr=0.002", "run.optimizer.beta2=0.98", "run.optimizer.weight_decay=0.05",
                             "run.clip_norm=1", "run.tokens=1 T"},
                            "megatron");
  for (const char* argument :
       {"--optimizer adam", "--adam-beta1 0.9", "--adam-beta2 0.98", "--adam-eps 1e-08", "--weight-decay 0.05",
        "--lr 0.002", "--clip-grad 1", "--attention-dropout 0", "--hidden-dropout 0", "--train-iters 238419"})
    EXPECT_THAT(found.arguments, Contains(argument));
  EXPECT_THAT(found.to_add, Contains(HasSubstr("--tokenizer-type")));
  EXPECT_THAT(found.to_add, Contains(HasSubstr("--data-path")));
  EXPECT_THAT(found.to_add, Not(Contains(HasSubstr("default"))));
  const auto silent = launch(large, {"run.tokens="}, "megatron");
  EXPECT_THAT(silent.to_add, Contains(HasSubstr("slipway's default of run.optimizer.lr")));
  EXPECT_THAT(silent.to_add, Contains(HasSubstr("run.clip_norm is 0")));
  EXPECT_THAT(silent.to_add, Contains(HasSubstr("--train-iters")));
}

// Megatron-LM accepts lengths in samples only where the whole training is given in samples.
TEST(LaunchArguments, NameTheScheduleOfTheLearningRate) {
  const std::vector<std::string> cosine{"run.optimizer.lr=0.002",
                                        "run.optimizer.min_lr=0.0002",
                                        "run.optimizer.lr_decay_style=cosine",
                                        "run.optimizer.lr_warmup_samples=2000",
                                        "run.optimizer.lr_decay_samples=1000000",
                                        "run.tokens=1 T"};
  const auto found = launch(large, cosine, "megatron");
  for (const char* argument : {"--train-samples 244141056", "--lr-decay-style cosine", "--lr-warmup-samples 2000",
                               "--lr-decay-samples 1000000", "--min-lr 2e-04"})
    EXPECT_THAT(found.arguments, Contains(argument));
  EXPECT_THAT(found.arguments, Not(Contains(HasSubstr("--train-iters"))));
  EXPECT_THAT(found.missing, Contains(HasSubstr("its first step has rate 0")));
  const auto constant = launch(large, {}, "megatron");
  EXPECT_THAT(constant.arguments, Contains("--lr-decay-style constant"));
  EXPECT_THAT(constant.to_add, Contains(HasSubstr("your own schedule of the learning rate")));
  const auto titan = launch(large, cosine, "torchtitan");
  for (const char* argument : {"--lr_scheduler.warmup_steps 2", "--lr_scheduler.decay_type cosine",
                               "--lr_scheduler.min_lr_factor 0.1", "--lr_scheduler.decay_ratio 1"})
    EXPECT_THAT(titan.arguments, Contains(argument));
  EXPECT_THAT(titan.missing, Contains(HasSubstr("run.optimizer.lr_decay_samples")));
  EXPECT_THAT(launch(large, {}, "torchtitan").arguments,
              testing::IsSupersetOf({"--lr_scheduler.warmup_steps 0", "--lr_scheduler.decay_ratio 0"}));
}

// The assertion of Megatron-LM's scheduler: lr_warmup_steps < lr_decay_steps, also for a constant rate.
// 4096 tokens a sequence, 1024 sequences a step: 10 steps.
TEST(LaunchArguments, SayThatMegatronRefusesAWarmUpAsLongAsTheDecay) {
  const auto refused = [](std::vector<std::string> overrides) {
    for (std::string& key : overrides) key = "run." + key;
    return launch(large, overrides, "megatron").refused_anyway;
  };
  const std::string tokens = "tokens=41943040", cosine = "optimizer.lr_decay_style=cosine";
  EXPECT_THAT(refused({tokens, "optimizer.lr_warmup_samples=10239"}), IsEmpty());
  EXPECT_THAT(refused({tokens, "optimizer.lr_warmup_samples=10240"}),
              Contains(HasSubstr("the warm-up of 10240 samples is not shorter than --train-samples 10240")));
  EXPECT_THAT(refused({tokens, cosine, "optimizer.lr_warmup_samples=10240"}),
              Contains(HasSubstr("--train-samples 10240")));
  EXPECT_THAT(refused({tokens, cosine, "optimizer.lr_warmup_samples=99", "optimizer.lr_decay_samples=100"}), IsEmpty());
  EXPECT_THAT(refused({tokens, cosine, "optimizer.lr_warmup_samples=100", "optimizer.lr_decay_samples=100"}),
              Contains(HasSubstr("--lr-decay-samples 100")));
  EXPECT_THAT(refused({"tokens=", cosine, "optimizer.lr_warmup_samples=10240"}), IsEmpty())
      << "the end is the user's to add";
}

// It accepts whole steps, and lowers numbers above the training's.
TEST(LaunchArguments, SayHowTorchtitanRoundsAndCutsAWarmUp) {
  const auto missing = [](const std::string& samples) {
    return launch(large, {"run.tokens=41943040", "run.optimizer.lr_warmup_samples=" + samples}, "torchtitan").missing;
  };
  const auto rounded = HasSubstr(
      "a warm-up of 2000 samples (run.optimizer.lr_warmup_samples): rounded up to steps of 1024, 2048 "
      "samples");
  EXPECT_THAT(missing("2000"), Contains(rounded));
  EXPECT_THAT(missing("2048"), Not(Contains(HasSubstr("warm-up"))));
  EXPECT_THAT(missing("10240"), Not(Contains(HasSubstr("warm-up"))));
  EXPECT_THAT(missing("11264"),
              Contains(HasSubstr("a warm-up of 11 steps (run.optimizer.lr_warmup_samples): torchtitan cuts it to the "
                                 "training, --training.steps 10 (of run.tokens)")));
}

// torchtitan's own default is bfloat16, whatever the scenario has.
TEST(LaunchArguments, OfTorchtitanNameTheDtype) {
  EXPECT_THAT(launch(large, {}, "torchtitan").arguments, Contains("--training.mixed_precision_param bfloat16"));
  EXPECT_THAT(launch(large, {"run.dtype=float32"}, "torchtitan").arguments,
              Contains("--training.mixed_precision_param float32"));
}

// --cuda-graph-modules came with 0.18, Megatron-FSDP with 0.14, --fp8-recipe with 0.12. What else of the same key an older
// version takes stands for none of them.
TEST(LaunchArguments, OfAnOlderMegatronSayWhatItHasNotAndLeaveItOut) {
  const auto with = [&](const std::string& version, const std::string& key) {
    return launch(large, {"cluster.trainer=megatron-core@" + version, key}, "megatron");
  };
  for (const auto& [version, key, argument] :
       {std::tuple("0.17", "schedule.cuda_graphs=[attn, mlp]", "--cuda-graph-modules"),
        {"0.13", "layout.zero=3", "--use-megatron-fsdp"},
        {"0.11", "run.fp8=tensorwise", "--fp8-recipe"}}) {
    const auto found = with(version, key);
    EXPECT_THAT(found.refused, Contains(HasSubstr(std::string(argument) + ": it is an argument of"))) << version;
    EXPECT_THAT(found.arguments, Not(Contains(HasSubstr(argument)))) << version;
    EXPECT_THAT(with("main", key).arguments, Contains(HasSubstr(argument)));
  }
}

// What a function composes too: torchtitan 0.1 has no module_fqns_per_model_part.
TEST(LaunchArguments, OfAnOlderTorchtitanSayWhatItHasNotAndLeaveItOut) {
  const std::string small = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  const auto found =
      launch(small, {"cluster.trainer=torchtitan@0.1", "layout.split=[9, 8, 8, 7]", "layout.zero=2"}, "torchtitan");
  const std::string argument = "--parallelism.module_fqns_per_model_part";
  EXPECT_THAT(found.refused, Contains(HasSubstr(argument + ": it is an argument of")));
  EXPECT_THAT(found.arguments, Not(Contains(HasSubstr(argument))));
  EXPECT_THAT(found.version, HasSubstr("0.1"));
}

// Its converters (torchtitan 0.3.0, torchtitan/components/quantization) and its only dtype of reductions.
TEST(LaunchArguments, OfTorchtitanNameItsConvertersAndRefuseOtherRecipes) {
  const auto with = [&](const std::string& key) { return launch(large, {"cluster.machine=b200", key}, "torchtitan"); };
  EXPECT_THAT(with("run.fp8=mxfp8").missing, Contains(HasSubstr("MXFP8LinearConverter")));
  EXPECT_THAT(with("run.fp8=tensorwise").refused, Contains(HasSubstr("run.fp8 tensorwise")));
  EXPECT_THAT(with("run.gradient_dtype=bfloat16").refused, Contains(HasSubstr("run.gradient_dtype")));
  EXPECT_THAT(with("run.gradient_dtype=float32").refused, Not(Contains(HasSubstr("run.gradient_dtype"))));
}

// --pipeline-model-parallel-layout of Megatron-Core 0.14, module_fqns_per_model_part of torchtitan.
TEST(LaunchArguments, NameEachStageOfAnUnevenSplit) {
  const std::string small = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  const auto megatron = launch(small, {"layout.split=[9, 8, 8, 7]"}, "megatron");
  EXPECT_THAT(megatron.arguments, Contains("--pipeline-model-parallel-layout 'Et*9|t*8|t*8|t*7L'"));
  EXPECT_THAT(megatron.refused, IsEmpty());
  EXPECT_THAT(launch(small, {}, "megatron").arguments, Not(Contains(HasSubstr("--pipeline-model-parallel-layout"))));
  const auto titan = launch(small, {"layout.split=[9, 8, 8, 7]", "layout.zero=2"}, "torchtitan");
  EXPECT_THAT(titan.arguments, Contains(HasSubstr("layers.24 layers.25,")));
  EXPECT_THAT(titan.refused, IsEmpty());
}

TEST(LaunchArguments, NameRanksOfExpertsRotaryScalingAndTheEnvironment) {
  const std::string mixtral = SLIPWAY_SOURCE_DIR "/scenarios/examples/mixtral-8x7b-64xh100.yaml";
  const auto experts = launch(mixtral, {"layout.expert=4", "layout.expert_tensor=1"}, "megatron");
  EXPECT_THAT(experts.arguments,
              testing::IsSupersetOf({"--expert-model-parallel-size 4", "--expert-tensor-parallel-size 1"}));
  EXPECT_THAT(experts.environment, testing::ElementsAre("CUDA_DEVICE_MAX_CONNECTIONS=1"));
  EXPECT_THAT(experts.arguments, Not(Contains("--use-rope-scaling")));
  const auto bridge = launch(mixtral, {"cluster.trainer=megatron-bridge"}, "megatron");
  EXPECT_THAT(bridge.arguments, Not(Contains("--fp8-param-gather")));  // its habit in FP8 runs; this one is in bfloat16
  const auto balanced = [&](const std::string& sequences) {            // micro-batches of two on 8 data ranks
    return launch(mixtral,
                  {"layout.tensor=1", "layout.sequence_parallel=false", "layout.pipeline=8", "layout.data=8",
                   "layout.expert=8", "schedule.micro_batch=2", "run.balancing_loss=0.01",
                   "run.balancing_sequences=" + sequences},
                  "megatron")
        .arguments;
  };
  for (const auto& [sequences, type] : std::map<std::string, std::string>{
           {"0", "aux_loss"}, {"1", "seq_aux_loss"}, {"2", "aux_loss"}, {"16", "global_aux_loss"}})
    EXPECT_THAT(balanced(sequences), Contains("--moe-router-load-balancing-type " + type)) << sequences;
  EXPECT_THAT(launch(large, {"model=llama-3.1-70b"}, "megatron").arguments, Contains("--use-rope-scaling"));
  EXPECT_THAT(launch(large, {"cluster.machine=b200"}, "megatron").environment, IsEmpty());
}

// Megatron-LM's window is of the tokens before a token (megatron/core/transformer/utils.py). Gemma 3 has five layers with
// a window to one without; gpt-oss has sinks.
TEST(LaunchArguments, OfMegatronNameWindowsSinksAndSharesOfRotaryPositions) {
  const auto found = launch(large, {"model.window=1024", "model.full_every=5", "model.sinks=true"}, "megatron");
  EXPECT_THAT(found.arguments,
              testing::IsSupersetOf({"--window-size 1023,0", "--window-attn-skip-freq 5", "--softmax-type learnable"}));
  EXPECT_THAT(found.refused, IsEmpty());
  const auto all = launch(large, {"model.window=1024"}, "megatron").arguments;
  EXPECT_THAT(all, Contains("--window-size 1023,0"));
  EXPECT_THAT(all, Not(Contains(HasSubstr("--window-attn-skip-freq"))));
  EXPECT_THAT(all, Not(Contains(HasSubstr("--softmax-type"))));
  EXPECT_THAT(launch(large, {"model.window=1024", "model.window_chunks=true"}, "megatron").refused,
              Contains(HasSubstr("model.window_chunks")));
  EXPECT_THAT(
      launch(large, {"model.window=1024", "model.full_every=5", "model.window_rope_theta=500000"}, "megatron").refused,
      Contains(HasSubstr("model.window_rope_theta")));
  EXPECT_THAT(launch(large, {"model.rope_head_dim=32"}, "megatron").arguments, Contains("--rotary-percent 0.25"));
}

// Megatron-LM's turned part is int(width * share) (megatron/core/models/common/embeddings/rotary_pos_embedding.py).
TEST(LaunchArguments, GiveASharesTextThatRoundsDownToTheTurnedPart) {
  for (std::int64_t turned = 2; turned < 128; turned += 2) {
    const auto arguments = launch(large, {"model.rope_head_dim=" + std::to_string(turned)}, "megatron").arguments;
    const auto found = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& a) { return a.starts_with("--rotary-percent "); });
    ASSERT_NE(found, arguments.end()) << turned;
    EXPECT_EQ(static_cast<std::int64_t>(128 * std::stod(found->substr(17))), turned);
  }
}

// validate_args of megatron/training/arguments.py: fp32 with --bf16, unless --grad-reduce-in-bf16 is given; fp16 with
// --fp16, unless --accumulate-allreduce-grads-in-fp32 is.
TEST(LaunchArguments, NameTheDtypeOfGradients) {
  const std::string narrow = "--grad-reduce-in-bf16", wide = "--accumulate-allreduce-grads-in-fp32";
  const auto with = [&](const std::string& dtype, const std::string& gradients) {
    return launch(large, {"run.dtype=" + dtype, "run.gradient_dtype=" + gradients}, "megatron").arguments;
  };
  EXPECT_THAT(with("bfloat16", "bfloat16"), testing::AllOf(Contains(narrow), Not(Contains(wide))));
  EXPECT_THAT(with("bfloat16", "float32"), testing::AllOf(Contains(wide), Not(Contains(narrow))));
  EXPECT_THAT(with("float16", "float16"), testing::AllOf(Not(Contains(wide)), Not(Contains(narrow))));
  EXPECT_THAT(with("float16", "float32"), Contains(wide));
}

// A capacity needs its factor, small weights all their digits.
TEST(LaunchArguments, WriteNumbersOfExpertsWithAllDigits) {
  const std::string mixtral = SLIPWAY_SOURCE_DIR "/scenarios/examples/mixtral-8x7b-64xh100.yaml";
  const auto found = launch(mixtral, {"run.expert_capacity=1.25", "run.balancing_loss=1e-7"}, "megatron");
  EXPECT_THAT(found.arguments, testing::IsSupersetOf({"--moe-expert-capacity-factor 1.25", "--moe-aux-loss-coeff 1e-07",
                                                      "--moe-token-drop-policy position"}));
}

TEST(LaunchArguments, OfTorchtitanTakeAConfigOfItsRegistryForTheSameBlocksOnly) {
  const auto added = [&](const std::string& key) {
    return launch(large, {"model=llama-3.1-70b", key}, "torchtitan").to_add;
  };
  EXPECT_THAT(added("model.sequence=8192"), Not(Contains(HasSubstr("--module"))));
  for (const char* key : {"model.window=1024", "model.sinks=true", "model.rope_head_dim=64", "model.tied=true"})
    EXPECT_THAT(added(key), Contains(HasSubstr("no config of torchtitan's registry"))) << key;
}

TEST(LaunchArguments, OfTorchtitanGiveASchedulesClassOrItsCsv) {
  const std::string small = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  const auto schedule = [&](const std::string& name, const std::string& chunks) {
    return launch(small, {"layout.zero=2", "schedule.name=" + name, "layout.chunks=" + chunks}, "torchtitan");
  };
  EXPECT_THAT(schedule("zb-v", "2").arguments, Contains("--parallelism.pipeline_parallel_schedule ZBVZeroBubble"));
  EXPECT_THAT(schedule("interleaved-1f1b", "2").arguments,
              Contains("--parallelism.pipeline_parallel_schedule Interleaved1F1B"));
  const auto by_csv = schedule("zb-h1", "1");
  EXPECT_THAT(by_csv.arguments, Contains("--parallelism.pipeline_parallel_schedule_csv schedule.csv"));
  EXPECT_THAT(by_csv.to_add, Contains(HasSubstr("slipway show SCENARIO --csv")));
  for (const char* twice : {"chimera", "dualpipe"})
    EXPECT_THAT(launch(small, {"layout.zero=0", std::string("schedule.name=") + twice}, "torchtitan").refused,
                Contains(HasSubstr("it has two copies of the model")))
        << twice;
}

TEST(LaunchArguments, SayWhatTheTrainerCannotExpress) {
  EXPECT_THAT(launch(large, {"schedule.name=gpipe"}, "megatron").refused, Contains(HasSubstr("the schedule gpipe")));
  const auto titan = launch(large, {}, "torchtitan");
  EXPECT_THAT(titan.refused, Contains(HasSubstr("ZeRO 1")));
  EXPECT_THAT(titan.arguments, Contains("--parallelism.pipeline_parallel_schedule 1F1B"));
  EXPECT_THAT(titan.arguments, Contains("--parallelism.tensor_parallel_degree 8"));
  EXPECT_THAT(launch(large, {"layout.zero=3"}, "torchtitan").arguments,
              Contains("--parallelism.fsdp_reshard_after_forward always"));
}

}  // namespace
}  // namespace slipway::test
