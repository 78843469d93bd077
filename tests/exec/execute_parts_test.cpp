// The parts of the executor, each against an outside truth: counted GEMMs, torch::optim::AdamW, at::cross_entropy_loss.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <cmath>

#include "exec/operators/head.h"
#include "exec/rank/optimizer.h"
#include "exec/rank/rank_model.h"
#include "exec/rank/slots.h"
#include "exec/transport/device.h"
#include "schedules/lower/lowering.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

// ---- FLOPs -------------------------------------------------------------------------------------------

// With asserts, LibTorch's header demands of its library what only one built with asserts does.
#ifdef NDEBUG
constexpr bool inputs_can_be_seen = true;
#else
constexpr bool inputs_can_be_seen = false;
#endif

double counted_flops = 0;

// 2·m·n·k of every matrix product that ATen runs, whatever calls it.
std::unique_ptr<at::ObserverContext> count_products(const at::RecordFunction& call) {
  const std::string name = call.name();
  const auto inputs = call.inputs();
  if (name == "aten::mm") {
    const at::Tensor a = inputs[0].toTensor(), b = inputs[1].toTensor();
    counted_flops += 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  } else if (name == "aten::addmm" || name == "aten::addmm_") {
    const at::Tensor a = inputs[1].toTensor(), b = inputs[2].toTensor();
    counted_flops += 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  }
  return nullptr;
}

class CountFlops {
 public:
  CountFlops() {
    counted_flops = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(count_products).needsInputs(true));
  }
  ~CountFlops() { at::removeCallback(handle_); }

 private:
  at::CallbackHandle handle_;
};

struct PassFlops {
  double forward = 0, backward = 0, input_grad = 0, weight_grad = 0;
};

PassFlops flops_of_one_step(std::shared_ptr<const ActionLists> actions) {
  Step input = tiny_input(tiny_llama(2, false));
  input.actions = actions;
  input.global_batch = 1;
  const Bundle bundle = tiny_bundle(input);
  RankModel rank(bundle, 0, at::kCPU);
  PassFlops flops;
  for (const TaskId task : bundle.graph.order) {
    const CountFlops counter;
    rank.run(task, 0);
    switch (bundle.graph.work(task).pass) {
      case Pass::forward:
        flops.forward += counted_flops;
        break;
      case Pass::backward:
        flops.backward += counted_flops;
        break;
      case Pass::input_grad:
        flops.input_grad += counted_flops;
        break;
      case Pass::weight_grad:
        flops.weight_grad += counted_flops;
        break;
      default:
        break;
    }
  }
  return flops;
}

TEST(SplitBackward, InputAndWeightGradientsCostTogetherWhatTheFullBackwardCosts) {
  if (!inputs_can_be_seen) GTEST_SKIP() << "a released LibTorch shows a build with asserts no operator's inputs";
  const auto split = std::make_shared<const ActionLists>(
      ActionLists{{{Pass::forward, 0, 0}, {Pass::input_grad, 0, 0}, {Pass::weight_grad, 0, 0}}});
  const PassFlops whole = flops_of_one_step(nullptr), parts = flops_of_one_step(split);
  // Linear FLOPs of one sequence: 2 · tokens · matrix elements (the embedding is no product).
  const double matrices = 2.0 * ((32 + 2 * 16) * 32 + 32 * 32 + 3 * 48 * 32) + 256 * 32;
  EXPECT_EQ(whole.forward, 2.0 * 16 * matrices);
  EXPECT_EQ(whole.backward, 2.0 * whole.forward);
  EXPECT_EQ(parts.input_grad, whole.forward);
  EXPECT_EQ(parts.weight_grad, whole.forward);
}

// ---- Regions -----------------------------------------------------------------------------------------

TEST(Region, AWireThatIsOnlyReadCarriesTheGradientOfWhatFollows) {
  const at::Tensor x = at::arange(6, at::kDouble).view({3, 2});
  Region region(true);
  const at::AutoGradMode on(true);
  const at::Tensor residual = region.enter(wire_residual, x);
  const at::Tensor handed_on = region.leave(wire_residual, residual, true);
  const at::Tensor branch = region.leave(wire_branch, residual.square(), true);
  EXPECT_FALSE(handed_on.requires_grad() || branch.requires_grad());
  WireTensors gradients;
  gradients[index_of(wire_residual)] = at::full({3, 2}, 10.0, at::kDouble);
  gradients[index_of(wire_branch)] = at::ones({3, 2}, at::kDouble);
  const WireTensors found = region.backward(gradients);
  EXPECT_TRUE(at::equal(found[index_of(wire_residual)], 2 * x + 10));
}

TEST(Region, ANeededGradientThatIsMissingIsAnError) {
  Region region(true);
  const at::AutoGradMode on(true);
  const at::Tensor residual = region.enter(wire_residual, at::ones({2, 2}, at::kDouble));
  region.leave(wire_branch, residual * 2, true);
  EXPECT_THROW(region.backward({}), std::runtime_error);
}

TEST(Region, SmallWeightsAddTheirGradientToTheBucket) {
  const at::Tensor weight = at::full({2}, 3.0, at::kFloat), bucket = at::ones({2}, at::kDouble);
  Region region(true);
  const at::AutoGradMode on(true);
  const at::Tensor x = region.enter(wire_residual, at::full({2}, 5.0, at::kFloat));
  region.leave(wire_branch, region.tap(weight, bucket) * x, true);
  WireTensors gradients;
  gradients[index_of(wire_branch)] = at::ones({2}, at::kFloat);
  region.backward(gradients);
  EXPECT_TRUE(at::equal(bucket, at::full({2}, 6.0, at::kDouble)));
}

// ---- Vocabulary-parallel loss ------------------------------------------------------------------------

TEST(VocabularyLoss, ShardsGiveTheCrossEntropyAndGradientOfTheWholeVocabulary) {
  at::manual_seed(1);
  const std::int64_t vocab = 12, sequence = 5, batch = 3;
  const at::Tensor logits = (at::randn({sequence, batch, vocab}, at::kDouble) * 30).requires_grad_(true);
  const at::Tensor targets = at::randint(vocab, {sequence, batch}, at::kLong);
  const at::Tensor expected = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
  expected.backward();
  for (const std::int64_t shards : {1, 2, 4}) {
    const std::int64_t columns = vocab / shards;
    std::vector<at::Tensor> parts, statistics;
    for (std::int64_t i = 0; i < shards; ++i) {
      parts.push_back(logits.detach().narrow(-1, i * columns, columns).contiguous().requires_grad_(true));
      statistics.push_back(vocabulary_statistics(parts.back(), targets, i * columns));
    }
    for (std::int64_t i = 0; i < shards; ++i) {
      const at::Tensor& part = parts[i];
      const at::Tensor loss = vocabulary_loss(part, at::cat(statistics), targets, {}, i * columns, sequence * batch);
      EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-13 * expected.item<double>());
      loss.backward();
      const at::Tensor wanted = logits.grad().narrow(-1, i * columns, columns);
      EXPECT_LE((part.grad() - wanted).abs().max().item<double>(), 1e-15);
    }
  }
}

// For a confident token, softmax − 1 is small: a softmax rounded to bfloat16 first has none of its digits.
TEST(VocabularyLoss, InBfloat16EveryGradientIsRoundedOnce) {
  at::manual_seed(3);
  const std::int64_t vocab = 40, tokens = 60;
  at::Tensor logits = at::randn({tokens, 1, vocab}) * 2;
  const at::Tensor targets = at::randint(vocab, {tokens, 1}, at::kLong);
  const at::Tensor sure = at::arange(tokens) % 3;  // by one, ten or nothing
  logits.scatter_add_(2, targets.unsqueeze(2), (sure * 5).to(at::kFloat).view({tokens, 1, 1}));
  const at::Tensor narrow = logits.to(at::kBFloat16).requires_grad_(true),
                   exact = narrow.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor counted = (at::arange(tokens) % 5 != 0).view({tokens, 1});
  const double n = 1000;
  vocabulary_loss(narrow, vocabulary_statistics(narrow, targets, 0), targets, counted, 0, n).backward();
  const at::Tensor each = at::cross_entropy_loss(exact.flatten(0, 1), targets.flatten(), {}, at::Reduction::None);
  ((each * counted.flatten().to(at::kDouble)).sum() / n).backward();
  const at::Tensor wanted = exact.grad(), found = narrow.grad().to(at::kDouble);
  EXPECT_TRUE(at::equal(found == 0, wanted == 0)) << "tokens that do not count";
  const at::Tensor apart = ((found - wanted).abs() / wanted.abs().clamp_min(1e-300)).max();
  EXPECT_LE(apart.item<double>(), std::ldexp(1.0, -8) + 1e-5) << "half of bfloat16's last place";
}

// ---- Weight gradients --------------------------------------------------------------------------------

// Products of two bfloat16 numbers are exact in float32, so only the sums round.
TEST(Product, OfBfloat16MatricesAddsUpInFloat32) {
  at::manual_seed(4);
  const at::Tensor a = at::randn({30, 400}).to(at::kBFloat16), b = at::randn({400, 20}).to(at::kBFloat16);
  at::Tensor sum = at::ones({30, 20});
  for (int i = 0; i < 2; ++i) add_product(sum, a, b);
  const at::Tensor wanted = 1 + 2 * at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  EXPECT_LE((sum - wanted).abs().max().item<double>(), 400 * 1e-6);
}

// ---- AdamW -------------------------------------------------------------------------------------------

ParameterPlacement placed(int rank, int degree, int slices = 1) {
  ParameterPlacement placement;
  placement.tensor_rank = rank, placement.tensor_degree = degree, placement.slices = slices;
  placement.weight_dtype = placement.gradient_dtype = at::kDouble;
  return placement;
}

TEST(Adamw, SlicesOfABlockFollowTorchsAdamWWithDecayOnMatricesOnly) {
  const Model model = tiny_gpt(1);
  const Optimizer o{.name = "adamw", .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  const BlockParameters ours = make_parameters(model, 1, 3, placed(0, 1, 3));
  const std::int64_t slice = ours.weights.size(0) / 3;
  std::vector<OptimizerShard> shards;
  for (std::int64_t i = 0; i < 3; ++i) shards.emplace_back(ours, i * slice, (i + 1) * slice);

  std::vector<at::Tensor> matrices, vectors, all;
  for (const ShardedParameter& parameter : ours.parameters) {
    all.push_back(parameter.weight.clone().requires_grad_(true));
    (parameter.meta.is_vector ? vectors : matrices).push_back(all.back());
  }
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(matrices, options(o.weight_decay));
  groups.emplace_back(vectors, options(0.0));
  torch::optim::AdamW torchs(std::move(groups), torch::optim::AdamWOptions(o.lr));

  at::manual_seed(2);
  for (int step = 0; step < 5; ++step) {
    const double rate = o.lr * (step + 1);  // it multiplies the weight decay, too
    for (auto& group : torchs.param_groups()) group.options().set_lr(rate);
    ours.gradients.copy_(at::randn_like(ours.gradients));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].mutable_grad() = ours.parameters[i].gradient * 0.5;
    torchs.step();
    for (std::int64_t i = 0; i < 3; ++i)
      shards[i].step(ours.gradients.narrow(0, i * slice, slice), o, rate, at::scalar_tensor(0.5, at::kDouble));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_LE((all[i] - ours.parameters[i].weight).abs().max().item<double>(), 1e-14) << ours.parameters[i].meta.name;
}

// A float32 master takes the clipping factor as a divisor inside AdamW's own pass.
TEST(Adamw, ClippedInFloat32EqualsTorchsOnClippedGradients) {
  const Optimizer o{.name = "adamw", .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  ParameterPlacement placement = placed(0, 1);
  placement.weight_dtype = placement.gradient_dtype = at::kFloat;
  const BlockParameters ours = make_parameters(tiny_llama(1, false), 1, 3, placement);
  OptimizerShard shard(ours, 0, ours.weights.size(0));
  const ShardedParameter& matrix = parameter_named(ours, "mlp.down.weight");
  const at::Tensor torchs_weight = matrix.weight.clone().requires_grad_(true);
  torch::optim::AdamW torchs(
      {torchs_weight},
      torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(o.weight_decay));
  at::manual_seed(2);
  for (int step = 0; step < 5; ++step) {
    ours.gradients.copy_(at::randn_like(ours.gradients));
    torchs_weight.mutable_grad() = matrix.gradient * 0.3;
    torchs.step();
    shard.step(ours.gradients, o, o.lr, at::scalar_tensor(0.3, at::kDouble));
  }
  EXPECT_LE((torchs_weight - matrix.weight).abs().max().item<double>(), 1e-6);
}

// ---- Buffers -----------------------------------------------------------------------------------------

TEST(Slots, AStepLeavesNoActivationBehind) {
  Step input = tiny_input(tiny_llama(2, false));
  const Bundle bundle = tiny_bundle(input);
  Slots slots(bundle.graph, 0);
  for (const TaskId task : bundle.graph.order) {
    for (const BufferKind kind : {BufferKind::value, BufferKind::gradient})
      for (const BufferId buffer : slots.outputs(task, kind)) slots.put(buffer, 0, at::ones({1}));
    for (const BufferId buffer : slots.outputs(task, BufferKind::saved))
      slots.put(buffer, 0, std::make_shared<Region>(true));
    slots.release_inputs(task, 0);
  }
  for (BufferId buffer = 0; buffer < bundle.graph.buffers.size(); ++buffer)
    EXPECT_THROW(slots.tensor(buffer, 0), std::runtime_error);
}

}  // namespace
}  // namespace slipway::test
