// `slipway import`: files of other projects as scenarios, refusals by name, and the way back from `plan --emit`.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "scenarios/commands/plan/answer.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "tests/support/command_test.h"
#include "tests/support/printed.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string arguments = SLIPWAY_SOURCE_DIR "/tests/data/arguments/";
const std::string recipes = arguments + "megatron_moe_recipes/", examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";
const std::string llama =
    "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 8192 --swiglu --normalization RMSNorm "
    "--disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 "
    "--attention-dropout 0 --hidden-dropout 0 --micro-batch-size 1 --global-batch-size 32 --bf16 "
    "--use-distributed-optimizer ";

class ImportCommand : public CommandTest {
 protected:
  // With the variables of the files that have some.
  Answer import(std::vector<std::string> args) {
    args.insert(args.begin(), "import");
    args.insert(args.end(), {"-o", path("s.yaml")});
    return slipway_with(args);
  }
  Answer import_line(const std::string& line, std::vector<std::string> args = {}) {
    args.insert(args.begin(), {"--arguments", line});
    return import(args);
  }
  Scenario scenario() const {
    const LoadResult loaded = load_scenario(path("s.yaml"), {});
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    return loaded.scenario;
  }
};

// NVIDIA's recipe: 32 H100, expert parallel 8, 30.5 G parameters (config.json of Qwen/Qwen3-30B-A3B).
TEST_F(ImportCommand, TurnsARecipeOfMegatronIntoTheScenarioThatItsNameSays) {
  const Answer answer = import({recipes + "qwen3_30b__h100__bf16_32GPU_TP1PP1EP8.yaml", "--simulate"});
  ASSERT_EQ(answer.status, 0) << answer.err;
  const Scenario s = scenario();
  EXPECT_NEAR(static_cast<double>(parameter_count(s.step.model)), 30.53e9, 0.01e9);
  EXPECT_EQ(rank_count(s.step.layout), 32);
  EXPECT_EQ(s.step.layout.expert, 8);
  EXPECT_EQ(s.step.global_batch, 256);
  EXPECT_EQ(s.cluster.groups[0].machine.name, "h100-80gb");
  EXPECT_THAT(answer.out, HasSubstr("--log-interval 1 "));
  EXPECT_THAT(answer.out, HasSubstr("TFLOP/s per GPU, by Megatron-LM's count of FLOPs"));
  EXPECT_THAT(answer.out, HasSubstr("Published: 234.1 TFLOP/s per GPU"));
}

// Each argument of a file has a key, a line, or a refusal.
TEST_F(ImportCommand, KnowsEachArgumentOfThePublishedFiles) {
  const std::vector<std::string> variables{"TP=2",
                                           "PP=2",
                                           "EP=4",
                                           "CP=1",
                                           "MBS=1",
                                           "GBS=256",
                                           "SEQ_LEN=4096",
                                           "LAYERS_PER_VP=",
                                           "PP_FIRST=",
                                           "PP_LAST=",
                                           "MOE_GROUPED_GEMM=true",
                                           "MOE_TOKEN_DISPATCHER=alltoall"};
  int files = 0;
  for (const char* folder : {"megatron", "megatron_moe_recipes", "torchtitan", "hugging_face"})
    for (const auto& entry : std::filesystem::directory_iterator(arguments + folder)) {
      std::vector<std::string> args{entry.path().string()};
      for (const std::string& variable : variables) args.insert(args.end(), {"--set", variable});
      const Answer answer = import(args);
      ++files;
      EXPECT_THAT(answer.err, Not(HasSubstr("unknown to import"))) << entry.path();
      if (answer.status == 0) {
        EXPECT_GT(rank_count(scenario().step.layout), 0);
      } else {
        EXPECT_EQ(answer.status, 2) << answer.err;
        EXPECT_THAT(answer.err, HasSubstr("not modelled")) << answer.err;
      }
    }
  EXPECT_EQ(files, 35);
}

TEST_F(ImportCommand, ReadsTheTomlOfTorchtitan) {
  ASSERT_EQ(import({arguments + "torchtitan/llama3__llama3_70b.toml", "--set", "cluster.nodes=8", "--set",
                    "cluster.machine=a100-80gb"})
                .status,
            0);
  const Scenario s = scenario();
  EXPECT_EQ(s.step.model->name, "llama-3.1-70b");
  EXPECT_EQ(s.step.layout.tensor, 8);
  EXPECT_EQ(s.step.layout.data, 8);
  EXPECT_EQ(s.step.layout.zero, 3);
  EXPECT_EQ(s.step.micro_batch, 8);
  EXPECT_EQ(s.step.recompute, Recompute::full);
  EXPECT_EQ(s.trainer.name, "torchtitan");
  ASSERT_EQ(import({arguments + "torchtitan/llama3__llama3_70b.toml", "--arguments",
                    "--parallelism.tensor_parallel_degree=4 --training.seq_len=4096", "--set", "cluster.nodes=8"})
                .status,
            0);
  EXPECT_EQ(scenario().step.layout.tensor, 4) << "overrides hold against the file";
}

// Names and defaults of torchtitan's Float8Linear and MXLinear (torchtitan/config/job_config.py of January 2026).
TEST_F(ImportCommand, TakesOverTorchtitansFloat8AndMx) {
  const std::string llama3 = arguments + "torchtitan/llama3__llama3_70b.toml", linear = "--quantize.linear.float8.";
  const auto converted = [&](const std::string& line, const std::string& machine = "h100-80gb") {
    return import({llama3, "--arguments", line, "--set", "cluster.nodes=8", "--set", "cluster.machine=" + machine});
  };
  const auto narrow = [&] { return scenario().step.narrow; };
  const Answer plain = converted("--model.converters=float8 --quantize.linear.float8.filter_fqns=output");
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(narrow(), NarrowRecipe::tensorwise);
  EXPECT_FALSE(narrow_habits(scenario().step).gathers_weights);
  EXPECT_TRUE(narrow_habits(scenario().step).gathers_inputs) << "of tensor groups, with a scale per tensor";
  const Answer mx = converted("--model.converters=quantize.linear.mx", "b200");
  ASSERT_EQ(mx.status, 0) << mx.err;
  EXPECT_EQ(narrow(), NarrowRecipe::mxfp8);
  ASSERT_EQ(converted("--training.seq_len=4096").status, 0);
  EXPECT_EQ(narrow(), NarrowRecipe::none) << "the file has settings of a converter, and none";
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {"--model.converters=float8 " + linear + "recipe_name=rowwise", "the recipe rowwise, which is not modelled"},
           {"--model.converters=float8 " + linear + "filter_fqns=attention.wk", "attention.wk"},
           {"--model.converters=float8,mx", "float8 and mx contradict each other"},
           {"--model.converters=qat", "the converter qat, which is not modelled"}}) {
    const Answer refused = converted(line);
    EXPECT_EQ(refused.status, 2) << line;
    EXPECT_THAT(refused.err, HasSubstr(words));
  }
  const Answer mixture =
      import({arguments + "torchtitan/deepseek_v3__deepseek_v3_671b.toml", "--arguments", "--model.converters=float8",
              "--set", "cluster.machine=h100-80gb", "--set", "cluster.nodes=8"});
  EXPECT_EQ(mixture.status, 2);
  EXPECT_THAT(mixture.err, HasSubstr("experts in run.dtype beside Linears in float8"));
}

// 671.0 G without its module of multi-token prediction (DeepSeek-V3 Technical Report, table 1 counts 671 B); Llama 4 Scout
// has 109 B with 17 B active, 1.2 B of them for images (its model card).
TEST_F(ImportCommand, KnowsTorchtitansMixturesOfExperts) {
  const auto parameters = [&](const char* file) {
    const Answer answer =
        import({arguments + "torchtitan/" + file, "--set", "cluster.machine=h100-80gb", "--set", "cluster.nodes=8"});
    EXPECT_EQ(answer.status, 0) << answer.err;
    return static_cast<double>(parameter_count(scenario().step.model));
  };
  EXPECT_NEAR(parameters("deepseek_v3__deepseek_v3_671b.toml"), 671.0e9, 0.05e9);
  EXPECT_EQ(scenario().step.micro_batch, 4);
  EXPECT_NEAR(parameters("llama4__llama4_17bx16e.toml"), 107.8e9, 0.1e9);
  EXPECT_EQ(scenario().step.layout.tensor, 8);
}

// As Megatron-LM's router does it; `execute` trains so.
TEST_F(ImportCommand, TakesOverHowARouterWeighsAndBalances) {
  const auto routed = [&](const std::string& more) {
    const Answer answer =
        import({"--arguments",
                "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --swiglu "
                "--normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
                "--vocab-size 256 --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32 "
                "--micro-batch-size 2 --global-batch-size 8 " +
                    more,
                "--set", "cluster.machine=h100-80gb", "--set", "cluster.nodes=1", "--set", "cluster.gpus_per_node=2"});
    EXPECT_EQ(answer.status, 0) << answer.err;
    return answer.out;
  };
  const auto routing = [&] { return scenario().step.routing; };
  const auto block = [&] { return scenario().step.model->runs[1].block; };
  EXPECT_THAT(routed("--moe-router-load-balancing-type aux_loss"), HasSubstr("--moe-aux-loss-coeff is 0"));
  EXPECT_EQ(routing(), Routing{});
  EXPECT_EQ(block().scores, RouterScores::softmax);
  EXPECT_TRUE(block().normalises_scores) << "the softmax is over the chosen experts";
  routed("--moe-aux-loss-coeff 1e-2 --moe-router-pre-softmax");
  EXPECT_EQ(routing().balancing_loss, 1e-2) << "aux_loss is Megatron-LM's default";
  EXPECT_EQ(routing().balancing_sequences, 0);
  EXPECT_FALSE(block().normalises_scores);
  routed("--moe-aux-loss-coeff 1e-4 --moe-router-load-balancing-type seq_aux_loss");
  EXPECT_EQ(routing().balancing_sequences, 1);
  EXPECT_THAT(routed("--moe-aux-loss-coeff 1e-4 --moe-router-load-balancing-type global_aux_loss"),
              HasSubstr("run.balancing_sequences"));
  EXPECT_EQ(routing().balancing_loss, 1e-4);
  EXPECT_EQ(routing().balancing_sequences, 0);
  EXPECT_THAT(routed("--moe-aux-loss-coeff 1e-4 --moe-router-load-balancing-type none"), HasSubstr("no loss"));
  EXPECT_EQ(routing(), Routing{});
  EXPECT_THAT(routed("--moe-router-load-balancing-type sinkhorn"), HasSubstr("experts are chosen by their scores"));
  routed("--moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5 --moe-router-enable-expert-bias");
  EXPECT_EQ(block().scores, RouterScores::sigmoid);
  EXPECT_EQ(block().score_scale, 2.5);
  EXPECT_EQ(scenario().step.optimizer.router_bias_speed, 1e-3) << "the default of --moe-router-bias-update-rate";
  EXPECT_THAT(routed("--moe-router-bias-update-rate 1e-3"), HasSubstr("it needs --moe-router-enable-expert-bias"));
  const Answer wrong = import({"--arguments",
                               "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                               "--num-experts 8 --moe-router-load-balancing-type loss"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("'loss' is not known; allowed: aux_loss, seq_aux_loss, global_aux_loss, sinkhorn"));
}

TEST_F(ImportCommand, ReadsListsOfModulesAsTrainersWriteThem) {
  const auto levers = [&](const std::string& arguments) {
    const Answer answer = import_line(llama + arguments);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return scenario().step.levers;
  };
  EXPECT_EQ(levers("--recompute-granularity selective --recompute-modules mlp layernorm").recomputed,
            set_of(RecomputedModule::mlp, RecomputedModule::layernorm));
  EXPECT_EQ(levers("--cuda-graph-impl transformer_engine --cuda-graph-scope attn mlp").graphs,
            set_of(GraphScope::attn, GraphScope::mlp));
  EXPECT_EQ(levers("--cuda-graph-impl local --cuda-graph-scope full_iteration").graphs, set_of(GraphScope::full));
  EXPECT_EQ(levers("--cuda-graph-impl none").graphs, SetOf<GraphScope>{});
}

TEST_F(ImportCommand, RefusesAnEffectThatIsNotModelledAndNamesTheArgument) {
  const std::string gate = "--attention-output-gate";
  const Answer answer = import_line(llama + gate);
  EXPECT_EQ(answer.status, 2);
  EXPECT_THAT(answer.err,
              HasSubstr("--attention-output-gate: a gate on the output of attention, which is not modelled; "
                        "import without it: --without attention-output-gate"));
  EXPECT_FALSE(std::filesystem::exists(path("s.yaml")));
  const Answer without = import_line(llama + gate, {"--without", "attention-output-gate"});
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("left out:\n  --attention-output-gate"));
  EXPECT_EQ(import_line(llama + gate, {"--without", "all"}).status, 0);
  EXPECT_THAT(import_line(llama + "--sequence-paralel").err, HasSubstr("did you mean '--sequence-parallel'?"));
}

// megatron/core/transformer/utils.py: a window of 128,0 is the 128 tokens before a token and the token itself
// (get_sliding_window_causal_mask); of every N layers the last has none (is_layer_window_attention).
TEST_F(ImportCommand, TakesOverWindowsAndSinksOfAttention) {
  const auto windows = [&](const std::string& more) {
    const Answer answer = import_line(llama + more);
    EXPECT_EQ(answer.status, 0) << answer.err;
    std::vector<std::int64_t> list;
    const auto model = scenario().step.model;
    for (const models::BlockRun& run : model->runs)
      if (run.block.kind == models::BlockKind::transformer)
        list.insert(list.end(), static_cast<std::size_t>(run.count), run.block.window);
    return list;
  };
  EXPECT_EQ(windows("--window-size 128,0"), std::vector<std::int64_t>(32, 129));
  std::vector<std::int64_t> alternating;
  for (int i = 0; i < 16; ++i) alternating.insert(alternating.end(), {129, 0});
  EXPECT_EQ(windows("--window-size '(128, 0)' --window-attn-skip-freq 2 --softmax-type learnable"), alternating);
  EXPECT_TRUE(scenario().step.model->runs[1].block.sinks);
  EXPECT_EQ(windows("--window-size 128,0 --window-attn-skip-freq '([1]*1+[0]*1)*16'"), alternating);
  EXPECT_EQ(windows("--window-size=-1,0"), std::vector<std::int64_t>(32, 0));
  EXPECT_EQ(windows("--window-attn-skip-freq 2 --softmax-type vanilla"), std::vector<std::int64_t>(32, 0));
  EXPECT_FALSE(scenario().step.model->runs[1].block.sinks);
  for (const auto& [more, words] : std::vector<std::pair<std::string, std::string>>{
           {"--window-size 128", "--window-size: '128' is no window; allowed: tokens before and behind, as 128,0"},
           {"--window-size 128,5", "--window-size: a window with tokens behind, which is not modelled"},
           {"--window-size 128,0 --window-attn-skip-freq '[0]+[1]*31'",
            "--window-attn-skip-freq: layers without a window"},
           {"--window-size 128,0 --window-attn-skip-freq '[0]+[1]'", "--window-attn-skip-freq: it has 2 layers"},
           {"--window-size 128,0 --window-attn-skip-freq often", "--window-attn-skip-freq: 'often' cannot be read"},
           {"--softmax-type off-by-one",
            "--softmax-type: a constant one in attention's softmax, which is not modelled"},
           {"--softmax-type hard", "--softmax-type: 'hard' is not known; allowed: vanilla, learnable, off-by-one"}}) {
    const Answer answer = import_line(llama + more);
    EXPECT_EQ(answer.status, 2) << more;
    EXPECT_THAT(answer.err, HasSubstr(words));
  }
}

// GPT-NeoX turns a quarter of each head: 32 of 128.
TEST_F(ImportCommand, TakesOverTheTurnedShareOfHeads) {
  const auto turned = [&](const std::string& more) {
    const Answer answer = import_line(llama + more);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return scenario().step.model->runs[1].block.rope_head_dim;
  };
  EXPECT_EQ(turned("--rotary-percent 0.25"), 32);
  EXPECT_EQ(turned("--rotary-percent 0.5 --kv-channels 64"), 32);
  EXPECT_EQ(turned("--rotary-percent 1.0"), 0) << "all of it";
  EXPECT_THAT(import_line(llama + "--rotary-percent 25").err, HasSubstr("--rotary-percent: it is no share"));
  EXPECT_THAT(import_line(llama + "--rotary-percent 0.5 --apply-query-key-layer-scaling").out,
              testing::ContainsRegex("--apply-query-key-layer-scaling +it changes numbers"));
}

// validate_args of megatron/training/arguments.py.
TEST_F(ImportCommand, TakesOverTheDtypeInWhichGradientsAreSummed) {
  std::string half = llama;
  half.replace(half.find("--bf16"), 6, "--fp16");
  const auto summed_in = [&](const std::string& line) {
    const Answer answer = import_line(line);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return scenario().step.gradient_dtype;
  };
  EXPECT_EQ(summed_in(llama), Dtype::float32);
  EXPECT_EQ(summed_in(llama + "--grad-reduce-in-bf16"), Dtype::bfloat16);
  EXPECT_EQ(summed_in(llama + "--accumulate-allreduce-grads-in-fp32"), Dtype::float32);
  EXPECT_EQ(summed_in(llama + "--accumulate-allreduce-grads-in-fp32 --grad-reduce-in-bf16"), Dtype::bfloat16);
  EXPECT_EQ(summed_in(half), Dtype::float16);
  EXPECT_EQ(summed_in(half + "--accumulate-allreduce-grads-in-fp32"), Dtype::float32);
}

const std::string experts = llama + "--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall ";

// A negative factor is none, padding needs one (megatron/core/transformer/transformer_config.py).
TEST_F(ImportCommand, TakesOverTheCapacityOfExperts) {
  const auto capacity = [&](const std::string& more) {
    const Answer answer = import_line(experts + more);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return scenario().step.routing.capacity;
  };
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 1.25 --moe-token-drop-policy probs"), 1.25);
  EXPECT_EQ(capacity("--moe-expert-capacity-factor=-1"), 0);
  EXPECT_EQ(capacity("--moe-expert-capacity-factor 1.0 --moe-pad-expert-input-to-capacity"), 1);
  const Answer padded = import_line(experts + "--moe-expert-capacity-factor 1.5 --moe-pad-expert-input-to-capacity");
  EXPECT_EQ(padded.status, 2);
  EXPECT_THAT(padded.err, HasSubstr("--moe-pad-expert-input-to-capacity: experts' inputs that are padded"));
  EXPECT_THAT(import_line(experts + "--moe-pad-expert-input-to-capacity").err, HasSubstr("it needs a capacity"));
  EXPECT_THAT(import_line(llama + "--moe-expert-capacity-factor 1").out, HasSubstr("there are no experts"));
}

// Python: ([0]+[1])*16 is 0, 1, 0, 1, ...
TEST_F(ImportCommand, TakesOverWhichLayersHaveExperts) {
  const auto with_experts = [&](const std::string& pattern) {
    const Answer answer = import_line(experts + "--moe-layer-freq '" + pattern + "'");
    EXPECT_EQ(answer.status, 0) << answer.err;
    std::vector<bool> list;
    const auto model = scenario().step.model;
    for (const models::BlockRun& run : model->runs)
      if (run.block.kind == models::BlockKind::transformer)
        list.insert(list.end(), static_cast<std::size_t>(run.count), run.block.experts > 0);
    return list;
  };
  std::vector<bool> every_second;
  for (int i = 0; i < 16; ++i) every_second.insert(every_second.end(), {false, true});
  EXPECT_EQ(with_experts("([0]+[1])*16"), every_second);
  EXPECT_EQ(scenario().step.model->runs[1].block.ffn, 14336) << "--ffn-hidden-size";
  std::vector<bool> behind_two(32, true);
  behind_two[0] = behind_two[1] = false;
  EXPECT_EQ(with_experts("[0]*2+([1]*3)*10"), behind_two);
  EXPECT_THAT(import_line(experts + "--moe-layer-freq '([1]+[0])*16'").err,
              HasSubstr("--moe-layer-freq: layers without experts among those with them are not modelled"));
  EXPECT_THAT(import_line(experts + "--moe-layer-freq '([1]+[0]*16'").err, HasSubstr("cannot be read"));
}

TEST_F(ImportCommand, NamesTheVariableThatIsNotSet) {
  const std::string line = llama + "--tensor-model-parallel-size ${TP} --load ${WHERE}";
  const Answer answer = import_line(line);
  EXPECT_EQ(answer.status, 2);
  EXPECT_THAT(answer.err,
              HasSubstr("--tensor-model-parallel-size: the variable TP is not set; give its value: --set TP=..."));
  EXPECT_THAT(answer.err, Not(HasSubstr("WHERE"))) << "paths have no effect";
  ASSERT_EQ(import_line(line, {"--set", "TP=4"}).status, 0);
  EXPECT_EQ(scenario().step.layout.tensor, 4);
}

TEST_F(ImportCommand, NamesWhatIsMissingAndFilesThatHoldNoArguments) {
  const std::string missing = import_line("pretrain_gpt.py --num-layers 2 --hidden-size 64").err;
  EXPECT_THAT(missing,
              HasSubstr("num-attention-heads: it is missing; allowed: a whole number; add --num-attention-heads N"));
  EXPECT_THAT(missing, HasSubstr("seq-length: it is missing"));
  EXPECT_THAT(import({path("none.sh")}).err, HasSubstr("No such file"));
  std::ofstream(path("x.toml")) << "a = [";
  EXPECT_THAT(import({path("x.toml")}).err, HasSubstr("x.toml:1: this is not valid TOML"));
  std::ofstream(path("x.sh")) << "echo nothing";
  EXPECT_THAT(import({path("x.sh")}).err, HasSubstr("no command with options"));
  EXPECT_EQ(import({}).status, 2);
}

TEST_F(ImportCommand, RefusesContradictionsWithOneError) {
  const auto error = [&](const std::string& more, const std::vector<std::string>& args = {}) {
    const Answer answer = import_line(llama + more, args);
    EXPECT_EQ(answer.status, 2) << more;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 2)
        << answer.err;  // with its head and an empty line
    return answer.err;
  };
  EXPECT_THAT(error("--num-layers 16"), HasSubstr("--num-layers: it is given twice, as '--num-layers 32' and as "
                                                  "'--num-layers 16'; allowed: one value; remove one of the two"));
  EXPECT_THAT(error("--fp16"), HasSubstr("--fp16: it contradicts --bf16"));
  EXPECT_THAT(import_line(llama + "--tensor-model-parallel-size 3").err,
              HasSubstr("--tensor-model-parallel-size: layout.tensor = 3 does not divide model.heads = 32"));
  EXPECT_THAT(
      error("--pipeline-model-parallel-size 4", {"--set", "cluster.nodes=3", "--set", "cluster.gpus_per_node=2"}),
      HasSubstr("layout.data"));
  EXPECT_THAT(error("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Ett|ttL'"),
              HasSubstr("2 stages, no multiple of --pipeline-model-parallel-size 4"));
}

// Found by the fuzzer: the product of nodes and GPUs overflowed, and no degree made a cluster of no GPU.
TEST_F(ImportCommand, CountsBeyondAnyClusterAreRefusedByName) {
  const auto refused = [&](const std::string& launcher, const std::string& arguments) {
    const Answer answer = import_line(launcher + llama + arguments);
    EXPECT_EQ(answer.status, 2);
    return answer.err;
  };
  EXPECT_THAT(refused("torchrun --nnodes 9223372036854775807 ", ""), HasSubstr("cluster.nodes"));
  EXPECT_THAT(refused("", "--tensor-model-parallel-size 0"), HasSubstr("--tensor-model-parallel-size"));
  EXPECT_THAT(refused("", "--tensor-model-parallel-size 4611686018427387904 --context-parallel-size 8"),
              HasSubstr("--tensor-model-parallel-size"));
}

TEST_F(ImportCommand, ReadsUnevenPipelinesAndTheLauncher) {
  ASSERT_EQ(import_line("torchrun --nnodes 2 --nproc-per-node 8 " + llama +
                        "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 "
                        "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7")
                .status,
            0);
  EXPECT_THAT(scenario().step.layout.split_list, testing::ElementsAre(7, 9, 9, 7));
  EXPECT_EQ(rank_count(scenario().step.layout), 16);
  ASSERT_EQ(import_line(llama + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*7|t*9|t*9|t*7L'")
                .status,
            0);
  EXPECT_EQ(scenario().step.layout.chunks, 2);
  EXPECT_EQ(scenario().step.schedule, "interleaved-1f1b");
}

// Modules that NVIDIA's recipes of DeepSeek-V3 compute again (the dictionary's `recipes`).
TEST_F(ImportCommand, ARecipesArgumentsAreAddedAndThoseGivenHoldAgainstThem) {
  ASSERT_EQ(import_line(llama, {"--recipe", "moonlight-16b-a3b"}).status, 0);
  EXPECT_EQ(scenario().step.optimizer.moment_dtype, Dtype::bfloat16);
  ASSERT_EQ(import_line(llama + "--exp-avg-dtype fp32", {"--recipe", "moonlight-16b-a3b"}).status, 0);
  EXPECT_EQ(scenario().step.optimizer.moment_dtype, Dtype::float32);
  const Answer unknown = import_line(llama, {"--recipe", "moonlight"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no recipe 'moonlight'; did you mean 'moonlight-16b-a3b'?"));
  EXPECT_THAT(import_line(llama, {"--recipe", "moonlight-16b-a3b@7"}).err, HasSubstr("has no version '7'; allowed: "));
}

// --recompute-modules came with Megatron-Core 0.12 (the tag core_v0.12.0; the CHANGELOG says 0.13).
TEST_F(ImportCommand, AVersionOfTheTrainerRefusesWhatItHasNot) {
  const std::string modules = llama + "--recompute-granularity selective --recompute-modules layernorm";
  const auto with = [&](const std::string& trainer) {
    return import_line(modules, {"--set", "cluster.trainer=" + trainer});
  };
  EXPECT_EQ(with("megatron-core@0.12").status, 0);
  EXPECT_EQ(scenario().trainer_version, "0.12");
  EXPECT_EQ(with("megatron-core").status, 0);
  const Answer old = with("megatron-core@0.11");
  EXPECT_EQ(old.status, 2);
  EXPECT_THAT(old.err,
              HasSubstr("--recompute-modules: it is an argument of 0.12 and later; cluster.trainer says 0.11"));
  EXPECT_THAT(with("megatron-core@0.99").err, HasSubstr("there is no version '0.99' of megatron-core"));
}

// Megatron-Core 0.12 and 0.13 call it custom FSDP, 0.14 and later Megatron-FSDP.
TEST_F(ImportCommand, ARenamedArgumentIsReadInTheVersionsThatHaveThatName) {
  const auto with = [&](const std::string& argument, const std::string& version) {
    return import_line(llama + argument + " --data-parallel-sharding-strategy optim_grads_params",
                       {"--set", "cluster.trainer=megatron-core@" + version});
  };
  for (const auto& [argument, version] : {std::pair("--use-custom-fsdp", "0.12"), {"--use-megatron-fsdp", "0.14"}}) {
    ASSERT_EQ(with(argument, version).status, 0) << argument;
    EXPECT_EQ(scenario().step.layout.zero, 3) << argument;
  }
  EXPECT_THAT(with("--use-custom-fsdp", "0.14").err, HasSubstr("--use-custom-fsdp: it is an argument of 0.12 to 0.13"));
  EXPECT_THAT(with("--use-megatron-fsdp", "0.13").err,
              HasSubstr("--use-megatron-fsdp: it is an argument of 0.14 and later"));
}

// Files of Megatron-LM@d98e8a64 and of torchtitan@238fa995, two commits after 0.2.2.
TEST_F(ImportCommand, PublishedFilesHaveTheArgumentsOfTheirOwnVersionAlone) {
  int files = 0;
  for (const auto& [folder, of, trainer] :
       {std::tuple("megatron", "golden__", "megatron-core@main"), {"torchtitan", "", "torchtitan@0.2"}})
    for (const auto& entry : std::filesystem::directory_iterator(arguments + folder)) {
      if (!entry.path().filename().string().starts_with(of)) continue;
      const Answer answer = import({entry.path().string(), "--set", std::string("cluster.trainer=") + trainer});
      EXPECT_THAT(answer.err, Not(HasSubstr("it is an argument of"))) << entry.path();
      ++files;
    }
  EXPECT_GE(files, 15);
}

// Keys of torchtitan's TOMLs that have moved: 0.1, 0.2 and the dotted names of 0.3.
TEST_F(ImportCommand, AKeyOfTorchtitanIsReadInTheSectionThatItsVersionHas) {
  const auto with = [&](const std::string& toml, const std::string& version) {
    std::ofstream(path("x.toml")) << "[model]\nname = 'llama3'\nflavor = '8B'\n" << toml;
    return import({path("x.toml"), "--set", "cluster.trainer=torchtitan@" + version});
  };
  const std::string first = "[training]\ncompile = true\nseed = 1\n[float8]\nfilter_fqns = ['output']\n";
  const std::string second = "[compile]\nenable = true\n[debug]\nseed = 1\n";
  EXPECT_EQ(with(first, "0.1").status, 0);
  EXPECT_EQ(with(second, "0.2").status, 0);
  EXPECT_THAT(with(first, "0.2").err, HasSubstr("--training.compile: it is an argument of 0.1 and before"));
  EXPECT_THAT(with(second, "0.1").err, HasSubstr("--compile.enable: it is an argument of 0.2 and later"));
  EXPECT_THAT(with("[training]\nseed = 1\n", "0.3").err,
              HasSubstr("--training.seed: it is an argument of 0.2 and before"));
}

TEST_F(ImportCommand, ListPrintsADictionaryByTrainerAndVersion) {
  const auto listed = [&](const std::string& trainer) { return slipway_with({"list", "arguments", trainer}); };
  EXPECT_THAT(listed("megatron-bridge").out, HasSubstr("--tensor-model-parallel-size"));
  EXPECT_THAT(listed("megatron-core@0.12").out, HasSubstr("--recompute-modules"));
  EXPECT_THAT(listed("megatron-core@0.11").out, Not(HasSubstr("--recompute-modules")));
  EXPECT_THAT(listed("hugging-face").out, HasSubstr("--use_cache"));
  EXPECT_THAT(listed("megatron-croe").err, HasSubstr("did you mean 'slipway list arguments megatron-core'?"));
  EXPECT_THAT(slipway_with({"list", "recipes", "torchtitan"}).out, HasSubstr("llama3_8b: torchtitan 0.3"));
  EXPECT_EQ(slipway_with({"list", "arguments"}).status, 2);
  EXPECT_EQ(slipway_with({"list", "models", "megatron-core"}).status, 2);
}

// The way back: what plan --emit prints is the step that was planned.
struct RoundTrip {
  std::string file;
  std::vector<std::string> keys;
  std::string trainer;  // of --emit
};

class ImportedAgain : public ImportCommand, public testing::WithParamInterface<RoundTrip> {};

std::string line_of(const LaunchArguments& launch) {
  std::string line = launch.program;
  for (const std::string& argument : launch.arguments) line += " " + argument;
  return line;
}

TEST_P(ImportedAgain, IsTheStepThatWasEmitted) {
  const LoadResult loaded = load_scenario(examples + GetParam().file, GetParam().keys);
  ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  const Step& planned = loaded.scenario.step;
  const LaunchArguments launch = launch_arguments(loaded.scenario, *emitted(GetParam().trainer));
  ASSERT_TRUE(launch.refused.empty()) << launch.refused[0];
  const NodeGroup& nodes = loaded.scenario.cluster.groups[0];
  const Answer answer = import_line(line_of(launch), {"--set", "cluster.machine=" + nodes.machine.name, "--set",
                                                      "cluster.nodes=" + std::to_string(nodes.nodes), "--set",
                                                      "cluster.gpus_per_node=" + std::to_string(nodes.gpus_per_node)});
  ASSERT_EQ(answer.status, 0) << answer.err << line_of(launch);
  const Step again = scenario().step;
  EXPECT_EQ(again.model->runs, planned.model->runs);
  EXPECT_EQ(again.model->sequence, planned.model->sequence);
  EXPECT_EQ(split_blocks(again.model, again.layout), split_blocks(planned.model, planned.layout));
  const auto degrees = [](const Layout& l) {
    return std::tuple(l.tensor, l.pipeline, l.chunks, l.context, l.data, l.expert, l.sequence_parallel, l.zero,
                      l.replicate);
  };
  EXPECT_EQ(degrees(again.layout), degrees(planned.layout));
  const auto order = [](const Step& s) {
    return std::tuple(s.schedule, s.micro_batch, s.global_batch, s.recompute, s.dtype, s.clip_norm);
  };
  EXPECT_EQ(order(again), order(planned));
  EXPECT_EQ(again.levers, planned.levers);
  EXPECT_EQ(again.optimizer.moment_dtype, planned.optimizer.moment_dtype);
  EXPECT_EQ(again.optimizer.offload_fraction, planned.optimizer.offload_fraction);
  EXPECT_EQ(again.narrow, planned.narrow);
  EXPECT_EQ(narrow_habits(again), narrow_habits(planned));
  EXPECT_EQ(again.delay_weight_grads, planned.delay_weight_grads);
  EXPECT_EQ(again.gradient_dtype, planned.gradient_dtype);
  EXPECT_EQ(again.routing, planned.routing);
  const auto rate = [](const Optimizer& o) {
    return std::tuple(o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, o.lr_schedule.decay, o.lr_schedule.least,
                      o.lr_schedule.warmup_samples);
  };
  EXPECT_EQ(rate(again.optimizer), rate(planned.optimizer));
}

const std::vector<std::string> training{"run.clip_norm=1", "run.tokens=1 T", "run.optimizer.lr=0.002",
                                        "run.optimizer.lr_decay_style=cosine", "run.optimizer.min_lr=0.0002"};

std::vector<std::string> with_training(std::vector<std::string> keys) {
  keys.insert(keys.end(), training.begin(), training.end());
  return keys;
}

INSTANTIATE_TEST_SUITE_P(
    OfPlan, ImportedAgain,
    testing::Values(
        RoundTrip{"llama-8b-64xh100.yaml", with_training({}), "megatron"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"layout.split=[9, 8, 8, 7]", "run.optimizer.lr_warmup_samples=64"}), "megatron"},
        RoundTrip{"llama-70b-1024xh100.yaml",
                  with_training({"layout.pipeline=8", "layout.chunks=5", "layout.data=16",
                                 "schedule.name=interleaved-1f1b", "schedule.recompute=full"}),
                  "megatron"},
        RoundTrip{"llama-70b-1024xh100.yaml", with_training({"model=qwen2.5-72b", "layout.zero=1"}), "megatron"},
        RoundTrip{"mixtral-8x7b-64xh100.yaml", with_training({"layout.expert=4", "layout.expert_tensor=1"}),
                  "megatron"},
        RoundTrip{"mixtral-8x7b-64xh100.yaml",
                  with_training({"layout.expert=4", "layout.expert_tensor=1",
                                 "schedule.recompute_modules=[moe_act, layernorm]",
                                 "schedule.cuda_graphs=[attn, moe_router, moe_preprocess]",
                                 "schedule.offload=[core_attn, expert_fc1]", "run.optimizer.moment_dtype=bfloat16"}),
                  "megatron"},
        RoundTrip{
            "llama-8b-64xh100.yaml",
            with_training({"layout.tensor=2", "layout.data=8", "layout.replicate=2", "schedule.cuda_graphs=[full]"}),
            "megatron"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"run.fp8=delayed", "run.fp8_param_gather=true", "run.optimizer.offload_fraction=0.5"}),
                  "megatron"},
        RoundTrip{"mixtral-8x7b-64xh100.yaml",
                  with_training({"layout.expert=4", "layout.expert_tensor=1", "layout.chunks=2",
                                 "schedule.name=1f1b-merged", "schedule.delay_wgrad=true"}),
                  "megatron"},
        RoundTrip{"gpt3-175b-1024xa100.yaml", with_training({}), "megatron"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"model.window=4096", "model.full_every=4", "model.sinks=true",
                                 "model.rope_head_dim=96", "run.gradient_dtype=bfloat16"}),
                  "megatron"},
        RoundTrip{"mixtral-8x7b-64xh100.yaml",
                  with_training({"layout.expert=4", "layout.expert_tensor=1", "run.expert_capacity=1.25",
                                 "run.balancing_loss=1e-07", "model.experts_every=2", "model.dense_ffn=14336"}),
                  "megatron"},
        RoundTrip{"llama-8b-64xh100.yaml", with_training({"layout.zero=2"}), "torchtitan"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"layout.zero=2", "layout.split=[8, 8, 8, 8]", "schedule.recompute=full"}),
                  "torchtitan"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"layout.zero=2", "layout.chunks=2", "schedule.name=interleaved-1f1b"}), "torchtitan"},
        RoundTrip{"llama-8b-64xh100.yaml",
                  with_training({"model=qwen3-14b", "model.sequence=4096", "layout.tensor=4", "layout.pipeline=1",
                                 "layout.data=16", "layout.zero=3"}),
                  "torchtitan"}));

// The setting that torchtitan's own parser reads (setup/torchtitan.sh).
TEST(EmittedForTorchtitan, IsReadByItsOwnParserAsPlanned) {
  const std::string python = SLIPWAY_SOURCE_DIR "/.venv-torchtitan/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "torchtitan is not installed; setup/torchtitan.sh installs it";
  const LoadResult loaded =
      load_scenario(examples + "llama-8b-64xh100.yaml",
                    with_training({"layout.zero=2", "layout.split=[9, 8, 8, 7]", "schedule.recompute=full",
                                   "run.optimizer.lr_warmup_samples=64"}));
  ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  const LaunchArguments launch = launch_arguments(loaded.scenario, *emitted("torchtitan"));
  EXPECT_THAT(launch.version, HasSubstr("0.3.0"));
  std::string command = python + " " SLIPWAY_SOURCE_DIR "/tests/torchtitan/parsed.py";
  for (const std::string& argument : launch.arguments) command += " " + argument;
  const Printed printed = printed_by(command + " 2>/dev/null");
  ASSERT_EQ(printed.status, 0) << command;
  const nlohmann::json read = nlohmann::json::parse(printed.text);
  const auto& parallelism = read["parallelism"];
  EXPECT_EQ(parallelism["tensor_parallel_degree"], 8);
  EXPECT_EQ(parallelism["data_parallel_shard_degree"], 2);
  EXPECT_EQ(parallelism["pipeline_parallel_schedule"], "1F1B");
  std::vector<std::size_t> modules;
  for (const auto& part : parallelism["module_fqns_per_model_part"]) modules.push_back(part.size());
  EXPECT_THAT(modules, testing::ElementsAre(10, 8, 8, 9)) << "9, 8, 8, 7 layers, the embedding, norm and lm_head";
  EXPECT_EQ(read["training"]["global_batch_size"], 32);
  EXPECT_EQ(read["training"]["local_batch_size"], 16);
  EXPECT_EQ(read["lr_scheduler"]["warmup_steps"], 2);
  EXPECT_EQ(read["optimizer"]["lr"], 0.002);
  EXPECT_EQ(read["optimizer"]["betas"], nlohmann::json({0.9, 0.95}));
  EXPECT_EQ(read["activation_checkpoint"], "FullAC");
  EXPECT_EQ(read["model"]["layers"], 32);
}

}  // namespace
}  // namespace slipway::test
