// Levers against what the trainer's documentation says they keep and compute, and against published counts.
#include "models/model/levers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/machine/cost.h"
#include "models/memory/memory_parts.h"
#include "models/model/operators.h"
#include "models/model/parameters.h"

namespace slipway::test {
namespace {

constexpr std::int64_t h = 4096, f = 14336, a = 32, k = 8, s = 8192, E = 8, top = 2, shared = 2048;
Model dense() { return llama("dense", {32, h, f, a, k, 128256, s}); }
Model mixture() {
  LlamaShape shape{32, h, f, a, k, 128256, s};
  shape.experts = E, shape.experts_per_token = top, shape.shared_ffn = shared;
  return llama("mixture", shape);
}

WorkShape shape_of(int tensor = 1) {
  WorkShape shape;
  shape.micro_batch = 1;
  shape.sequence = s;
  shape.sharding = {tensor, tensor > 1, 1};
  return shape;
}
WorkShape recomputing(RecomputedModule module, int tensor = 1) {
  WorkShape shape = shape_of(tensor);
  shape.levers.recomputed.add(module);
  return shape;
}

std::vector<Operator> layer(const Model& model, const WorkShape& shape) { return operators_of(model, 1, 2, shape); }

double kept(const Model& model, const WorkShape& shape) {
  double bytes = 0;
  for (const Operator& op : layer(model, shape)) bytes += op.saved_bytes;
  return bytes;
}
double saved_by(const Model& model, RecomputedModule module, int tensor = 1) {
  return kept(model, shape_of(tensor)) - kept(model, recomputing(module, tensor));
}

Machine plain_machine() {  // peaks that are reached, and no overheads
  Machine machine;
  machine.name = "plain";
  machine.peak_flops[static_cast<std::size_t>(Dtype::bfloat16)] = 100e12;
  machine.memory_bandwidth = 1e12;
  return machine;
}

double seconds(const std::vector<Operator>& operators, Direction direction) {
  return operators_seconds(plain_machine(), operators, direction);
}
template <typename Wanted>
double forward_of(const std::vector<Operator>& operators, Wanted wanted) {
  double sum = 0;
  for (const Operator& op : operators)
    if (op.kind != OpKind::communicate && wanted(std::string(op.part)))
      sum += operator_seconds(plain_machine(), op, Direction::forward);
  return sum;
}

// Bytes in bf16, of the terms of Fujii's formula: 4 h of the norms' outputs; gate, up, silu(gate) and their product.
TEST(RecomputedModules, OfADenseLayerKeepWhatMegatronsHelpSays) {
  for (const int t : {1, 2, 4}) {
    EXPECT_EQ(saved_by(dense(), RecomputedModule::layernorm, t), 4.0 * s * h / t);
    EXPECT_EQ(saved_by(dense(), RecomputedModule::mlp, t), 8.0 * s * f / t);
    EXPECT_EQ(saved_by(dense(), RecomputedModule::core_attn, t), 0) << "q, k, v and the output stay";
  }
}

TEST(RecomputedModules, OfExpertsKeepTheirInputs) {
  const double rows = static_cast<double>(s * top);
  EXPECT_EQ(saved_by(mixture(), RecomputedModule::moe_act), 4 * rows * f) << "silu(gate), and its product with up";
  EXPECT_EQ(saved_by(mixture(), RecomputedModule::shared_experts), 8.0 * s * shared);
  EXPECT_EQ(saved_by(mixture(), RecomputedModule::mlp), 0) << "no layer has a plain MLP";
  // The first half, the second norm's input, and the input of router and experts.
  const double first_half = s * h * (2 + 2 + (2 + 4.0 * k / a) + 2);
  EXPECT_EQ(kept(mixture(), recomputing(RecomputedModule::moe)), first_half + 2 * (2.0 * s * h));
}

TEST(RecomputedModules, TakeTheirForwardPassOnceMore) {
  const auto added = [&](const Model& model, RecomputedModule module) {
    return seconds(layer(model, recomputing(module)), Direction::backward) -
           seconds(layer(model, shape_of()), Direction::backward);
  };
  const std::vector<Operator> plain = layer(dense(), shape_of()), experts = layer(mixture(), shape_of());
  const auto any_of = [](std::vector<std::string> parts) {
    return [parts](const std::string& part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  };
  const auto near = [](double value, double truth) { EXPECT_NEAR(value, truth, 1e-9 * truth); };
  near(added(dense(), RecomputedModule::core_attn), forward_of(plain, any_of({"attn"})));
  near(added(dense(), RecomputedModule::layernorm), forward_of(plain, any_of({"norm1", "norm2"})));
  near(added(dense(), RecomputedModule::mlp), forward_of(plain, any_of({"mlp", "act", "down"})));
  near(added(mixture(), RecomputedModule::moe_act), forward_of(experts, any_of({"act"})));
  near(added(mixture(), RecomputedModule::shared_experts), forward_of(experts, any_of({"mlp_s", "act_s", "down_s"})));
  near(added(mixture(), RecomputedModule::moe),
       forward_of(experts, any_of({"share", "router", "mlp", "act", "down", "mlp_s", "act_s", "down_s", "combine"})));
}

// Attention of DeepSeek-V3: 128 heads whose queries and keys have 192 numbers and values 128 (its table 1). The latents
// stay, and q_up and kv_up run once more (Megatron-LM's help: --recompute-modules mla_up_proj).
TEST(RecomputedModules, OfLatentAttentionKeepTheLatentsAlone) {
  constexpr std::int64_t heads = 128, key = 192, value = 128;
  Block block;
  block.hidden = 7168, block.ffn = 18432, block.vocab = 129280;
  block.heads = block.kv_heads = heads, block.head_dim = key, block.v_head_dim = value;
  block.rope_head_dim = 64, block.kv_latent = 512, block.q_latent = 1536;
  const Model model = models::decoder("latent", models::Family::llama, s, block, {block});
  EXPECT_EQ(saved_by(model, RecomputedModule::mla_up_proj), 2.0 * s * heads * (2 * key + value));
  const std::vector<Operator> plain = layer(model, shape_of());
  const double added = seconds(layer(model, recomputing(RecomputedModule::mla_up_proj)), Direction::backward) -
                       seconds(plain, Direction::backward);
  const double again = forward_of(plain, [](const std::string& part) { return part == "q_up" || part == "kv_up"; });
  EXPECT_NEAR(added, again, 1e-9 * again);
  const double flops = 2.0 * s * heads * (1536 * key + 512 * (128 + value));
  EXPECT_GE(again, flops / 100e12) << "its products";
}

TEST(RecomputedModules, AreTheSameTwiceAndLeaveTheForwardPassAsItIs) {
  for (const auto& module : recomputed_module_names) {
    const WorkShape shape = recomputing(module.value);
    EXPECT_EQ(seconds(layer(mixture(), shape), Direction::forward),
              seconds(layer(mixture(), shape_of()), Direction::forward))
        << module.name;
    for (const Operator& op : layer(mixture(), shape)) EXPECT_GE(op.saved_bytes, 0) << module.name << " " << op.part;
  }
  WorkShape both = recomputing(RecomputedModule::moe);
  both.levers.recomputed.add(RecomputedModule::moe_act);
  EXPECT_EQ(seconds(layer(mixture(), both), Direction::backward),
            seconds(layer(mixture(), recomputing(RecomputedModule::moe)), Direction::backward));
}

// Host seconds of one launch: what a machine with a host lane says of each operator.

double launches(const std::vector<Operator>& operators, Direction direction) {
  Machine machine = plain_machine();
  machine.constants.host_kernel = 1;
  double sum = 0;
  for (const Operator& op : operators) sum += host_seconds(machine, op, direction);
  return sum;
}

TEST(Graphs, LaunchAModuleOnceInEachPass) {
  WorkShape shape = shape_of();
  shape.levers.graphs = set_of(GraphScope::attn, GraphScope::mlp);
  EXPECT_EQ(launches(layer(dense(), shape), Direction::forward), 2);
  EXPECT_EQ(launches(layer(dense(), shape), Direction::backward), 2);
}

TEST(Graphs, LeaveOtherModulesAsTheyAre) {
  WorkShape shape = shape_of();
  shape.levers.graphs = set_of(GraphScope::attn);
  double second_half = 0;
  const std::vector<Operator> plain = layer(dense(), shape_of());
  for (const char* part : {"norm2", "mlp", "act", "down", "add2"})
    for (const Operator& op : plain)
      if (std::string(op.part) == part) second_half += op.kernels;
  EXPECT_EQ(launches(layer(dense(), shape), Direction::forward), 1 + second_half);
}

// The router: five of its 13 kernels are those of scores and top-k, seven more sort rows, the last copies them.
TEST(Graphs, OfTheRouterHoldTheSharedExpertsToo) {
  const auto without_shared = [](const std::vector<Operator>& operators, double captured) {
    double sum = 0;
    for (const Operator& op : operators) {
      const std::string part = op.part;
      if (part == "norm2" || (op.writes & wire_shared) != 0) continue;
      sum += op.kernels;
    }
    return sum - captured + 1;  // the graph
  };
  const std::vector<Operator> plain = layer(mixture(), shape_of());
  WorkShape shape = shape_of();
  shape.levers.graphs = set_of(GraphScope::moe_router);
  EXPECT_NEAR(launches(layer(mixture(), shape), Direction::forward), without_shared(plain, 5), 1e-9);
  shape.levers.graphs.add(GraphScope::moe_preprocess);
  EXPECT_NEAR(launches(layer(mixture(), shape), Direction::forward), without_shared(plain, 12), 1e-9);
}

TEST(Graphs, HoldTheLaunchesOfWhatTheyRecompute) {
  WorkShape shape = recomputing(RecomputedModule::mlp);
  const double alone = launches(layer(dense(), shape), Direction::backward);
  EXPECT_GT(alone, launches(layer(dense(), shape_of()), Direction::backward));
  shape.levers.graphs = set_of(GraphScope::attn, GraphScope::mlp);
  EXPECT_EQ(launches(layer(dense(), shape), Direction::backward), 2);
}

// LoRA.

Lora lora_of(int rank, SetOf<LoraModule> modules = Lora{}.modules) { return {rank, modules}; }

BlockElements with_adapters(const Model& model, const Lora& lora, const Sharding& cut = {}) {
  BlockElements sum;
  const std::vector<Block> blocks = blocks_of(model);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    BlockElements each = block_shard_elements(model, static_cast<int>(block), cut);
    add_adapters(each, blocks[block], cut, lora);
    sum += each;
  }
  return sum;
}

// mlcommons/training, llama2_70b_lora: rank 16 beside qkv_proj and o_proj has 44,564,480 trained parameters.
TEST(Adapters, OfTheMlperfBenchmarkHaveItsNumberOfTrainedParameters) {
  const Model model = llama("llama-2-70b", {80, 8192, 28672, 64, 8, 32000, 4096});
  const Lora lora = lora_of(16, set_of(LoraModule::qkv, LoraModule::out));
  EXPECT_EQ(with_adapters(model, lora).trained(), 44'564'480);
  EXPECT_EQ(with_adapters(model, lora).dense, parameter_count(model) + 44'564'480);
  EXPECT_EQ(with_adapters(model, lora, {4, true, 1}).trained() * 4, 44'564'480) << "tensor ranks divide them";
}

TEST(Adapters, OfExpertsAreOneForEach) {
  const BlockElements elements = with_adapters(mixture(), lora_of(8, set_of(LoraModule::down)));
  EXPECT_EQ(elements.trained(), 32 * (8 * E * (f + h) + 8 * (shared + h)));
}

TEST(Adapters, LeaveNoWeightGradientAndKeepOnlyTheInputsThatTheyRead) {
  WorkShape shape = shape_of();
  shape.levers.lora = lora_of(16, set_of(LoraModule::qkv));
  double forward = 0, input = 0, weight = 0;
  for (const Operator& op : operators_of(dense(), 0, 34, shape)) {
    forward += op.forward_flops, input += op.input_grad_flops, weight += op.weight_grad_flops;
  }
  double full_weight = 0, full_input = 0;
  for (const Operator& op : operators_of(dense(), 0, 34, shape_of()))
    full_weight += op.weight_grad_flops, full_input += op.input_grad_flops;
  EXPECT_EQ(weight, 0);
  EXPECT_EQ(input, full_input);
  EXPECT_GT(full_weight, 0);
  // Of the Linears, those of attention's output and of the MLP keep no input: 2 h, 2 h and 2 f; x·Aᵀ comes to it.
  EXPECT_EQ(kept(dense(), shape_of()) - kept(dense(), shape), 2.0 * s * (h + h + f) - 2.0 * s * 16);
}

TEST(Adapters, TakeTheTrafficOfTheirTensors) {
  WorkShape shape = shape_of();
  const int rank = 16;
  shape.levers.lora = lora_of(rank, set_of(LoraModule::down));
  const auto down_of = [&](const WorkShape& of) {
    for (const Operator& op : layer(dense(), of))
      if (op.kind == OpKind::down) return op;
    return Operator{};
  };
  const Operator adapted = down_of(shape), plain = down_of(shape_of());
  const double forward = operator_seconds(plain_machine(), adapted, Direction::forward) -
                         operator_seconds(plain_machine(), plain, Direction::forward);
  EXPECT_NEAR(forward, 2.0 * s * (f + 2 * rank + 4 * h) / 1e12, 1e-9);
  EXPECT_LT(operator_seconds(plain_machine(), adapted, Direction::backward),
            operator_seconds(plain_machine(), plain, Direction::backward));
}

// Moments of 2 bytes: of 30 bytes of an update, four times 2 fewer.
TEST(Moments, OfTwoBytesLeaveTwentyTwoOfTheThirtyBytesOfAnUpdate) {
  EXPECT_DOUBLE_EQ(optimizer_seconds(plain_machine(), 1e9, Dtype::bfloat16, Dtype::bfloat16), 22e9 / 1e12);
  EXPECT_DOUBLE_EQ(optimizer_seconds(plain_machine(), 1e9, Dtype::bfloat16), 30e9 / 1e12);
}

// Megatron-Core's SwiGLUFunction keeps its input alone, and unpermute without probabilities nothing.
TEST(OptionalBytes, AreSiluOfTheGateAndTheExpertsResultsWhereverALayerKeepsThem) {
  const auto of = [](const WorkShape& shape) {
    OptionalBytes kept, at_work;
    const Block block = blocks_of(mixture())[1];
    for (const Operator& op : layer(mixture(), shape)) {
      kept += optional_kept(op, block);
      at_work += optional_at_work(op, block, 2);
    }
    return std::pair(kept, at_work);
  };
  const double gates = 2.0 * s * (top * f + shared), results = 2.0 * s * top * h;
  const auto [plain, plain_work] = of(shape_of());
  EXPECT_DOUBLE_EQ(plain.gates, gates);
  EXPECT_DOUBLE_EQ(plain.expert_results, results);
  EXPECT_EQ(plain_work.gates + plain_work.expert_results, 0);
  const auto [act, act_work] = of(recomputing(RecomputedModule::moe_act));
  EXPECT_DOUBLE_EQ(act.gates, 2.0 * s * shared) << "shared experts are no module of it";
  EXPECT_DOUBLE_EQ(act_work.gates, 2.0 * s * top * f);
  const auto [moe, moe_work] = of(recomputing(RecomputedModule::moe));
  EXPECT_EQ(moe.gates + moe.expert_results, 0);
  EXPECT_DOUBLE_EQ(moe_work.gates, gates);
  EXPECT_DOUBLE_EQ(moe_work.expert_results, results);
  WorkShape offloading = shape_of();
  offloading.levers.offloaded.add(OffloadedInput::moe_act);
  EXPECT_DOUBLE_EQ(of(offloading).first.gates, gates) << "gate and up are in the host's memory, silu(gate) is not";
}

// Attention's backward pass reads its output, which in 16 bits is the next product's input.
TEST(NarrowProducts, KeepAttentionsOutputBesideTheCopyOfTheProjection) {
  const auto attention = [](const WorkShape& shape) {
    for (const Operator& op : layer(dense(), shape))
      if (op.kind == OpKind::attention) return op;
    return Operator{};
  };
  WorkShape narrow = shape_of(2), recomputed = recomputing(RecomputedModule::core_attn, 2);
  narrow.narrow = recomputed.narrow = NarrowRecipe::tensorwise;
  const double output = 2.0 * s * h / 2;
  EXPECT_DOUBLE_EQ(attention(narrow).saved_bytes - attention(shape_of(2)).saved_bytes, output);
  EXPECT_DOUBLE_EQ(attention(narrow).saved_bytes - attention(recomputed).saved_bytes, output);
  EXPECT_DOUBLE_EQ(attention(recomputed).again_bytes, output);
}

}  // namespace
}  // namespace slipway::test
