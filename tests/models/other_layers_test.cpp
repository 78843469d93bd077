// Latent attention, windows, multi-token prediction and layers side by side, against formulas of others and counts by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/model/megatron_flops.h"
#include "models/model/operators.h"

namespace slipway::test {
namespace {

constexpr std::int64_t h = 7168, a = 128, q_latent = 1536, kv_latent = 512, plain = 128, turned = 64, v = 128, s = 4096;

Block latent_layer() {
  Block block;
  block.hidden = h, block.ffn = 18432;
  block.heads = block.kv_heads = a, block.head_dim = plain + turned, block.v_head_dim = v;
  block.rope_head_dim = turned, block.kv_latent = kv_latent, block.q_latent = q_latent;
  block.vocab = 129280;
  return block;
}

Model deepseek_v3() {
  Block features = latent_layer(), experts = latent_layer();
  experts.ffn = 2048, experts.experts = 256, experts.experts_per_token = 8, experts.shared_ffn = 2048;
  features.predicted_tokens = 1;
  std::vector<Block> layers(61, experts);
  for (int i = 0; i < 3; ++i) layers[static_cast<std::size_t>(i)] = latent_layer();
  return models::decoder("deepseek-v3", models::Family::llama, s, features, layers);
}

WorkShape shape_of(int tensor, int context, std::int64_t sequence = s) {
  WorkShape shape;
  shape.micro_batch = 1;
  shape.sequence = sequence;
  shape.sharding = {tensor, tensor > 1, context};
  return shape;
}

double forward_flops(const Model& model, const WorkShape& shape) {
  double sum = 0;
  for (const Operator& op : operators_of(model, 0, static_cast<int>(blocks_of(model).size()), shape))
    sum += op.forward_flops;
  return sum;
}

const Operator& operator_named(const std::vector<Operator>& list, const std::string& part) {
  return *std::find_if(list.begin(), list.end(), [&](const Operator& op) { return part == op.part; });
}

// Megatron-LM's formula (megatron_flops_test.cpp has its value) counts norms of latents and of the module as two FLOPs a
// number, and no routers.
TEST(LatentAttention, WithExpertsAndMultiTokenPredictionHasTheFlopsOfMegatronsFormula) {
  const Model model = deepseek_v3();
  constexpr double megatron = 259992950784.0, layers = 62, with_experts = 59;
  EXPECT_DOUBLE_EQ(megatron_flops_per_token(megatron_count(model)), megatron);
  const double norms = 2 * (layers * (q_latent + kv_latent) + 3 * h), routers = 2.0 * with_experts * h * 256;
  EXPECT_NEAR(forward_flops(model, shape_of(1, 1)) / s, megatron / 3 - norms + routers, 1);
}

TEST(LatentAttention, IsDividedByTensorAndContextRanksButForItsLatents) {
  const Model model = models::decoder("m", models::Family::llama, s, latent_layer(), {latent_layer()});
  EXPECT_DOUBLE_EQ(forward_flops(model, shape_of(4, 2)) * 8, forward_flops(model, shape_of(1, 1)));
}

// Bytes: the norm's input and its result; each latent before and behind its norm; queries, keys and values; the result.
TEST(LatentAttention, KeepsItsInputAndLatentsOnce) {
  const Model model = models::decoder("m", models::Family::llama, s, latent_layer(), {latent_layer()});
  const std::vector<Operator> list = operators_of(model, 1, 2, shape_of(1, 1));
  double kept = 0;
  for (const Operator& op : list) {
    kept += op.saved_bytes;
    if (op.kind == models::OpKind::out_projection) break;
  }
  EXPECT_DOUBLE_EQ(kept, 2.0 * s * (2 * h + 2 * (q_latent + kv_latent) + a * (2 * (plain + turned) + v) + a * v));
}

TEST(LatentAttention, GathersLatentsInPlaceOfTheInput) {
  const Model model = models::decoder("m", models::Family::llama, s, latent_layer(), {latent_layer()});
  const std::vector<Operator> list = operators_of(model, 1, 2, shape_of(8, 1));
  EXPECT_DOUBLE_EQ(operator_named(list, "ag1").message_bytes, 2.0 * s * (q_latent + kv_latent + turned));
  EXPECT_DOUBLE_EQ(operator_named(list, "ag2").message_bytes, 2.0 * s * h);
}

Block windowed(std::int64_t window, bool chunks) {
  Block block;
  block.hidden = 64, block.ffn = 128, block.heads = block.kv_heads = 4, block.head_dim = 16, block.vocab = 128;
  block.window = window, block.window_chunks = chunks;
  return block;
}

double attention_flops(const Block& block, std::int64_t before, std::int64_t length) {
  const Model model = models::decoder("m", models::Family::llama, before + length, block, {block});
  WorkShape shape = shape_of(1, 1, length);
  shape.before = before;
  return operator_named(operators_of(model, 1, 2, shape), "attn").forward_flops;
}

// Pairs of a query and a key that it sees, times 4 FLOPs a number of a head.
TEST(Windows, HaveTheFlopsOfThePairsThatSeeEachOther) {
  constexpr std::int64_t length = 1000, window = 128;
  for (const bool chunks : {false, true}) {
    double pairs = 0;
    for (std::int64_t query = 0; query < length; ++query)
      pairs += static_cast<double>(chunks ? query % window + 1 : std::min(query + 1, window));
    const double flops = attention_flops(windowed(window, chunks), 0, length);
    EXPECT_NEAR(flops / (4.0 * 64 * (pairs - length / 2.0 * (chunks ? 1.0 : window / (1.0 * length)))), 1, 1e-3)
        << chunks;
  }
}

TEST(Windows, OfSlicesAddUpToTheWhole) {
  for (const bool chunks : {false, true}) {
    const Block block = windowed(96, chunks);
    double slices = 0;
    for (std::int64_t before = 0; before < 1024; before += 256) slices += attention_flops(block, before, 256);
    EXPECT_NEAR(slices / attention_flops(block, 0, 1024), 1, 1e-12) << chunks;
  }
}

TEST(OtherLayers, ReadOnlyWiresThatWereWrittenBefore) {
  std::vector<Block> variants(6, windowed(0, false));
  variants[1].parallel = models::Parallel::one_norm;
  variants[2].parallel = models::Parallel::two_norms;
  variants[3].norms = models::NormPlace::result;
  variants[4].norms = models::NormPlace::both, variants[4].predicted_tokens = 1;
  variants[5].kv_latent = 32, variants[5].rope_head_dim = 8, variants[5].predicted_tokens = 1;
  for (const Block& block : variants)
    for (const int tensor : {1, 2})
      for (const int context : {1, 2}) {
        const Model model = models::decoder("m", models::Family::llama, 64, block, {block, block});
        models::Wires written = 0;
        for (const Operator& op : operators_of(model, 0, 4, shape_of(tensor, context, 64))) {
          EXPECT_EQ(op.reads & ~written, 0) << op.part << " tensor " << tensor << " context " << context;
          written = static_cast<models::Wires>(written | op.writes);
        }
        EXPECT_NE(written & models::wire_loss, 0);
      }
}

}  // namespace
}  // namespace slipway::test
