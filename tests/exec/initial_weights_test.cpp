// Weights that transformers has saved give the logits here that they give there: float32, 1e-5.
#include "exec/rank/initial_weights.h"
#include "exec/operators/operator_context.h"
#include "scenarios/commands/weights/read_weight_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/operators/operators.h"
#include "exec/rank/buckets.h"
#include "tests/support/hugging_face_weights.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

at::Tensor stored(const std::string& path, const std::string& name, at::ScalarType dtype) {
  const StoredShape tensor = read_safetensors_header(path).tensors.at(name);
  std::string bytes = elements_in(path, tensor);
  return at::from_blob(bytes.data(), tensor.shape, dtype).clone();
}

// Of one rank, in float32.
Bundle bundle_of_one_rank(const Model& model) {
  Step step = tiny_input(model);
  step.dtype = step.gradient_dtype = Dtype::float32;
  step.micro_batch = 2;
  return tiny_bundle(step);
}

// [sequences, tokens, vocabulary]: all operators of the model up to the logits.
at::Tensor logits_of(const Bundle& bundle, const WeightFiles& weights, const at::Tensor& tokens) {
  at::NoGradGuard no_grad;
  const Model model = bundle.graph.step.model;
  const std::vector<Block> blocks = blocks_of(model);
  Buckets buckets(bundle, 0, at::kCPU);
  buckets.load([&](const Parameter& parameter) { return initial_state(weights, parameter); });
  const at::Tensor by_token = tokens.t().contiguous();
  const TokenBatch batch{by_token, by_token, {}};
  const std::vector<TokenRange> range{{0, model.sequence}};
  RotaryTables rotary;
  ExpertRows rows;
  Region region(false);
  WireTensors wires;
  const WorkShape shape{.micro_batch = 2, .sequence = model.sequence};
  for (const Operator& op : operators_of(model, 0, static_cast<int>(blocks.size()), shape)) {
    if (op.kind == OpKind::loss) break;
    OperatorContext context{op, blocks[op.block], buckets.block(op.block), region, wires, batch, range, rotary, rows};
    run_operator(context);
  }
  return wires[index_of(wire_branch)].transpose(0, 1);
}

class SavedByTransformers : public testing::TestWithParam<SavedModel> {};

TEST_P(SavedByTransformers, GivesTheSameLogitsHere) {
  const SavedModel& saved = GetParam();
  const std::string expected = saved.folder() + "/expected.safetensors";
  const WeightFiles weights = weights_in("--weights", saved.folder(), saved.model());
  const at::Tensor logits =
      logits_of(bundle_of_one_rank(saved.model()), weights, stored(expected, "tokens", at::kLong));
  const at::Tensor theirs = stored(expected, "logits", at::kFloat);
  ASSERT_EQ(logits.sizes(), theirs.sizes());
  EXPECT_GT(theirs.abs().max().item<float>(), 1);  // else 1e-5 would be no measure
  EXPECT_LT((logits - theirs).abs().max().item<float>(), 1e-5);
}
INSTANTIATE_TEST_SUITE_P(Of, SavedByTransformers, testing::ValuesIn(saved_models()), [](const auto& each) {
  std::string name = each.param.name;
  std::erase(name, '-');
  return name;
});

TEST(InitialWeights, AreReadBackFromTheListThatRanksGet) {
  const SavedModel saved = saved_models().front();
  const WeightFiles weights = weights_in("--weights", saved.folder(), saved.model());
  const std::string list = temporary_folder().path("run.weights");
  std::ofstream(list) << to_text(weights);
  EXPECT_EQ(to_text(read_weight_files(list)), to_text(weights));
  std::string damaged = to_text(weights);
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(list) << damaged;
  EXPECT_THROW(read_weight_files(list), std::runtime_error);
}

std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(InitialWeights, OfAPartOutsideItsFileAreRefused) {
  const std::string list = temporary_folder().path("outside.weights");
  WeightFiles weights{"/weights", {{"model.safetensors", 100, 10, 0}}, {{"head.weight", Dtype::float32, 5, 4, 0, 20}}};
  std::ofstream(list) << to_text(weights);
  EXPECT_EQ(read_weight_files(list).parts.size(), 1u);
  for (const WeightPart& part :
       {WeightPart{"head.weight", Dtype::float32, 5, 4, 0, 21}, WeightPart{"head.weight", Dtype::float32, 5, 4, 1, 20},
        WeightPart{"head.weight", Dtype::float32, 1ll << 62, 1ll << 62, 0, 20},
        WeightPart{"head.weight", Dtype::float32, -5, 4, 0, 20}}) {
    weights.parts = {part};
    std::ofstream(list) << to_text(weights);
    EXPECT_THAT(refusal_of([&] { read_weight_files(list); }), HasSubstr("outside its file"));
  }
}

TEST(InitialWeights, OfAFileThatWasReplacedAreRefused) {
  const SavedModel saved = saved_models()[1];
  const std::string folder = temporary_folder().path("replaced");
  std::filesystem::copy(saved.folder(), folder);
  const WeightFiles weights = weights_in("--weights", folder, saved.model());
  check_weight_files(weights);
  std::ofstream(folder + "/model.safetensors", std::ios::binary | std::ios::app) << "more";
  EXPECT_THAT(refusal_of([&] { check_weight_files(weights); }), HasSubstr("is not the file whose header was read"));
}

TEST(InitialWeights, ThatAreNotFiniteAreRefusedWithTheParameter) {
  const SavedModel saved = saved_models()[1];
  const std::string folder = temporary_folder().path("infinite");
  std::filesystem::copy(saved.folder(), folder);
  const WeightFiles weights = weights_in("--weights", folder, saved.model());
  std::fstream file(folder + "/model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  const Parameter parameter = parameters_of(saved.model(), 0).front();
  const auto part = std::ranges::find(weights.parts, parameter.name, &WeightPart::parameter);
  file.seekp(static_cast<std::streamoff>(part->offset));
  file.write("\x80\x7f", 2);  // infinity in bfloat16
  file.close();
  EXPECT_THAT(refusal_of([&] { initial_state(weights, parameter); }),
              HasSubstr("weights of " + parameter.name + " are not finite"));
}

}  // namespace
}  // namespace slipway::test
