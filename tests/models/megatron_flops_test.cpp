// Megatron-LM's count of FLOPs beside published formulas and the values of its own function.
#include "models/model/megatron_flops.h"

#include <gtest/gtest.h>

namespace slipway::test {
namespace {

// Narayanan et al. 2021 (arXiv 2104.04473), section 5.1 without recomputation: 72 B s l h² (1 + s/6h + V/12lh), of GPT-3.
TEST(MegatronFlops, WithFullAttentionAreThoseOfThePaperOf2021) {
  const Model model = gpt("gpt3", {.layers = 96,
                                   .hidden = 12288,
                                   .ffn = 49152,
                                   .heads = 96,
                                   .vocab = 51200,
                                   .max_positions = 2048,
                                   .sequence = 2048});
  MegatronCount count = megatron_count(model);
  count.causal_half = false;
  const double l = 96, h = 12288, s = 2048, v = 51200;
  EXPECT_DOUBLE_EQ(megatron_flops_per_token(count), 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)));
}

// The terms of num_floating_point_operations of NVIDIA/Megatron-LM@001b00c, added up apart from this program, with the
// arguments of examples/moe_recipes: latent attention, three dense layers, a shared expert and one layer of multi-token
// prediction. DeepSeek-V3 activates 37 B parameters; six FLOPs of each are 222 G.
TEST(MegatronFlops, OfDeepSeekV3CountItsLatentAttentionAndMultiTokenPrediction) {
  const MegatronCount count{.hidden_size = 7168,
                            .seq_length = 4096,
                            .padded_vocab_size = 129280,
                            .dense_layers = 3,
                            .moe_layers = 59,
                            .ffn_hidden_size = 18432,
                            .moe_ffn_hidden_size = 2048,
                            .moe_router_topk = 8,
                            .moe_shared_expert_intermediate_size = 2048,
                            .swiglu = true,
                            .num_attention_heads = 128,
                            .multi_latent_attention = true,
                            .q_lora_rank = 1536,
                            .kv_lora_rank = 512,
                            .qk_head_dim = 128,
                            .qk_pos_emb_head_dim = 64,
                            .v_head_dim = 128,
                            .mtp_num_layers = 1};
  EXPECT_DOUBLE_EQ(megatron_flops_per_token(count), 259992950784.0);
}

// The same of Qwen3-30B-A3B. 3 B active parameters: six FLOPs of each and the causal half of attention.
TEST(MegatronFlops, OfAMixtureOfExpertsCountTheExpertsThatATokenGoesThrough) {
  const Model model = llama("qwen3-30b-a3b", {.layers = 48,
                                              .hidden = 2048,
                                              .ffn = 768,
                                              .heads = 32,
                                              .kv_heads = 4,
                                              .vocab = 151936,
                                              .sequence = 4096,
                                              .head_dim = 128,
                                              .experts = 128,
                                              .experts_per_token = 8});
  EXPECT_DOUBLE_EQ(megatron_flops_per_token(megatron_count(model)), 23006281728.0);
}

}  // namespace
}  // namespace slipway::test
