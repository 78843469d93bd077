// Models from config.json files, against the parameters that transformers counts.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "models/model/model.h"
#include "scenarios/language/profiles.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string published(const std::string& name) {
  return std::string(SLIPWAY_SOURCE_DIR) + "/tests/data/hugging_face/" + name + ".json";
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A scenario around a config.json.
class Config : public testing::Test {
 protected:
  LoadResult load(const std::string& json, const std::string& sequence = "128") {
    folder.write("box.yaml", test_machine());
    folder.write("some-model/config.json", json);
    return folder.load("model: {config: some-model/config.json, sequence: " + sequence +
                       "}\ncluster: {machine: ./box.yaml, gpus_per_node: 1}\nschedule: {global_batch: 1}\n");
  }
  Model model(const std::string& json) {
    const LoadResult result = load(json);
    EXPECT_EQ(describe(result.errors), "");
    return result.scenario.step.model;
  }
  ScenarioError error(const std::string& json, const std::string& sequence = "128") {
    const LoadResult result = load(json, sequence);
    EXPECT_EQ(result.errors.size(), 1U) << describe(result.errors);
    return result.errors.empty() ? ScenarioError{} : result.errors[0];
  }
  ScenarioFolder folder;
};

// The fields of published config.json files.
const char* llama_3_1_8b = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "vocab_size": 128256
})";
const char* mistral_7b =
    R"({"model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})";
const char* qwen_2_5_7b =
    R"({"model_type": "qwen2", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072,
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 131072, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 152064})";
const char* qwen_3_0_6b =
    R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
  "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
  "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})";
const char* phi_3_mini =
    R"({"model_type": "phi3", "attention_bias": false, "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192,
  "max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false,
  "vocab_size": 32064})";
const char* gpt2 =
    R"({"model_type": "gpt2", "activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "n_inner": null, "layer_norm_epsilon": 1e-05, "vocab_size": 50257})";
const char* bert_base =
    R"({"model_type": "bert", "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072,
  "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
  "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522})";

TEST_F(Config, FamiliesHaveTheirPublishedParameterCounts) {
  EXPECT_EQ(parameter_count(model(llama_3_1_8b)), 8'030'261'248);
  EXPECT_EQ(parameter_count(model(mistral_7b)), 7'241'732'096);
  EXPECT_EQ(parameter_count(model(qwen_2_5_7b)), 7'615'616'512);
  EXPECT_EQ(parameter_count(model(qwen_3_0_6b)), 596'049'920);
  EXPECT_EQ(parameter_count(model(phi_3_mini)), 3'821'079'552);
  EXPECT_EQ(parameter_count(model(gpt2)), 124'439'808);
  // BertForMaskedLM: 109,514,298 (bert-base-uncased, no pooler).
  EXPECT_EQ(parameter_count(model(bert_base)), 109'514'298);
}

TEST_F(Config, TheScenarioNamesAndOverridesTheModel) {
  const Model llama = model(llama_3_1_8b);
  EXPECT_EQ(llama.name, "some-model");
  EXPECT_EQ(llama.sequence, 128);
  EXPECT_EQ(llama.runs[1].block.rope_theta, 500000.0);
}

TEST_F(Config, OnlyQwen3HasNormsOfQueryAndKeyWithoutAFieldThatSaysSo) {
  EXPECT_TRUE(model(qwen_3_0_6b).runs[1].block.qk_norm);
  EXPECT_FALSE(model(qwen_3_0_6b).runs[1].block.qkv_bias);
  EXPECT_FALSE(model(qwen_2_5_7b).runs[1].block.qk_norm);
  EXPECT_FALSE(model(llama_3_1_8b).runs[1].block.qk_norm);
}

std::string without(std::string json, const std::string& field) {
  const std::size_t at = json.find("\"" + field + "\"");
  return json.erase(at, json.find_first_of(",}", at) + 1 - at);
}

TEST_F(Config, AMissingFieldIsAnErrorInTheConfig) {
  const ScenarioError found = error(without(llama_3_1_8b, "num_attention_heads"));
  EXPECT_EQ(found.file, (folder.path() / "some-model/config.json").string());
  EXPECT_EQ(found.key, "num_attention_heads");
  EXPECT_THAT(found.message, HasSubstr("missing"));
}

TEST_F(Config, AFieldOfWrongTypeNamesItsLine) {
  std::string json = llama_3_1_8b;
  json.replace(json.find("32, \"num_hidden_layers\""), 2, "\"32\"");
  const ScenarioError found = error(json);
  EXPECT_EQ(found.key, "num_attention_heads");
  EXPECT_EQ(found.line, 4);
}

TEST_F(Config, AnUnknownFamilyIsAnErrorThatListsTheKnownOnes) {
  const ScenarioError found = error(R"({"model_type": "t5", "d_model": 512})");
  EXPECT_EQ(found.key, "model_type");
  EXPECT_THAT(found.message, HasSubstr("llama, llama4_text, mistral, mixtral"));
  EXPECT_EQ(error(R"({"d_model": 512})").key, "model_type");
}

constexpr const char* qwen_3_30b_a3b = R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048,
  "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
  "vocab_size": 151936, "max_position_embeddings": 40960, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true,
  "decoder_sparse_step": 1, "mlp_only_layers": [], "rope_theta": 1000000.0, "rms_norm_eps": 1e-06, "hidden_act": "silu",
  "attention_bias": false, "tie_word_embeddings": false, "sliding_window": null, "use_sliding_window": false})";

TEST_F(Config, ReadsMixturesOfExperts) {
  const Model qwen = model(qwen_3_30b_a3b);
  const Block& block = qwen.runs[1].block;
  EXPECT_EQ(parameter_count(qwen), 30532122624);
  EXPECT_EQ(block.ffn, 768) << "of an expert, not of the MLP that it would have without";
  EXPECT_EQ(block.experts, 128);
  EXPECT_EQ(block.experts_per_token, 8);
  EXPECT_TRUE(block.qk_norm);
  const Model mixtral = model(R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
    "max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null,
    "rope_theta": 1000000.0, "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})");
  EXPECT_EQ(parameter_count(mixtral), 46702792704);
}

// Where norm_topk_prob is missing, Transformers uses false: weights that do not add up to 1.
TEST_F(Config, ExpertsThatWorkOtherwiseAreNeverIgnored) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = qwen_3_30b_a3b;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_FALSE(
      model(changed("\"norm_topk_prob\": true,", "\"norm_topk_prob\": false,")).runs[1].block.normalises_scores);
  EXPECT_EQ(error(changed("\"norm_topk_prob\": true,", "")).key, "norm_topk_prob");
  const Model every_second = model(changed("\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2"));
  EXPECT_EQ(every_second.runs[1].block.ffn, 6144);
  EXPECT_EQ(every_second.runs[2].block.experts, 128);
  EXPECT_EQ(error(changed("\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]")).key, "mlp_only_layers");
  EXPECT_EQ(error(changed("\"mlp_only_layers\": []", "\"mlp_only_layers\": 3")).key, "mlp_only_layers");
  EXPECT_EQ(
      error(changed("\"num_experts\": 128", "\"shared_expert_intermediate_size\": 512, \"num_experts\": 128")).key,
      "shared_expert_intermediate_size");
}

TEST_F(Config, BlocksThatAreNotModelledNameTheirField) {
  const ScenarioError shared = error(R"({"model_type": "qwen2_moe", "num_experts": 60, "num_hidden_layers": 24})");
  EXPECT_EQ(shared.key, "num_experts");
  EXPECT_THAT(shared.message, AllOf(HasSubstr("'qwen2_moe'"), HasSubstr("qwen3_moe")));
  const std::pair<const char*, const char*> refused[] = {
      {"Qwen--Qwen3.5-397B-A17B", "linear_num_value_heads"},
      {"deepseek-ai--DeepSeek-V3.2", "index_topk"},
      {"deepseek-ai--DeepSeek-V4-Flash", "hc_mult"},
      {"google--gemma-4-26B-A4B", "enable_moe_block"},
      {"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "hybrid_override_pattern"},
      {"nvidia--Nemotron-H-56B-Base-8K", "hybrid_override_pattern"}};
  for (const auto& [name, field] : refused) {
    const ScenarioError found = error(text_of(published(name)));
    EXPECT_EQ(found.key, field) << name;
    EXPECT_THAT(found.message, HasSubstr("not modelled"));
    EXPECT_GT(found.line, 1) << name;
  }
}

TEST_F(Config, FeaturesThatHaveFieldsAreRead) {
  std::string json = llama_3_1_8b;
  json.replace(json.find("\"attention_bias\": false"), 23, "\"attention_bias\": true ");
  const Block biased = model(json).runs[1].block;
  EXPECT_TRUE(biased.qkv_bias && biased.out_bias);
  json = qwen_3_0_6b;
  json.replace(json.find("\"use_sliding_window\": false"), 27, "\"use_sliding_window\": true ");
  json.replace(json.find("\"sliding_window\": null"), 22, "\"sliding_window\": 64");
  EXPECT_EQ(error(json).key, "max_window_layers") << "windows of some layers only";
  json.replace(json.find("\"max_window_layers\": 28"), 23, "\"max_window_layers\": 0");
  EXPECT_EQ(model(json).runs[1].block.window, 64);
  EXPECT_EQ(error(without(qwen_3_0_6b, "head_dim")).key, "head_dim") << "hidden / heads is not what others would take";
  EXPECT_EQ(load(mistral_7b, "8192").scenario.step.model->runs[1].block.window, 4096);
  EXPECT_EQ(load(mistral_7b, "4096").scenario.step.model->runs[1].block.window, 0) << "no sequence is longer than it";
}

TEST_F(Config, DeepSeekV3HasItsLayers) {
  const Model model = this->model(text_of(published("deepseek-ai--DeepSeek-V3")));
  ASSERT_EQ(model.runs.size(), 4);
  EXPECT_EQ(model.runs[1].count, 3);
  EXPECT_EQ(model.runs[1].block.ffn, 18432);
  EXPECT_EQ(model.runs[1].block.experts, 0);
  const Block& layer = model.runs[2].block;
  EXPECT_EQ(layer.experts, 256);
  EXPECT_EQ(layer.shared_ffn, 2048);
  EXPECT_EQ(layer.head_dim, 192);
  EXPECT_EQ(value_dim(layer), 128);
  EXPECT_EQ(layer.kv_latent, 512);
  EXPECT_EQ(layer.expert_groups, 8);
  EXPECT_EQ(layer.groups_per_token, 4);
  EXPECT_EQ(layer.scores, models::RouterScores::sigmoid);
  EXPECT_EQ(layer.score_scale, 2.5);
  EXPECT_EQ(model.runs.back().block.predicted_tokens, 1);
}

TEST_F(Config, Llama4AlternatesChunksAndLayersWithoutPositions) {
  const LoadResult result = load(text_of(published("meta-llama--Llama-4-Scout-17B-16E-Instruct")), "16384");
  EXPECT_EQ(describe(result.errors), "");
  const std::vector<Block> blocks = blocks_of(result.scenario.step.model);
  for (int layer = 0; layer < 48; ++layer) {
    const Block& block = blocks[static_cast<std::size_t>(layer) + 1];
    const bool full = layer % 4 == 3;
    EXPECT_EQ(block.window, full ? 0 : 8192) << layer;
    EXPECT_EQ(block.positions, full ? models::Positions::none : models::Positions::rotary);
    EXPECT_EQ(block.qk_norm, !full);
  }
}

// As `sum(p.numel() for p in AutoModelForCausalLM.from_config(config).parameters())` counts them with transformers 5.24.0
// (2026-11-25), which has no multi-token prediction.
TEST_F(Config, FamiliesHaveTheParametersThatTransformersCounts) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"Qwen--Qwen3-30B-A3B", 30532122624},
      {"Qwen--Qwen3-32B", 32762123264},
      {"Qwen--Qwen3-8B", 8190735360},
      {"deepseek-ai--DeepSeek-V3", 671026404352},
      {"meta-llama--Llama-4-Scout-17B-16E-Instruct", 107769861120},
      {"meta-llama--Meta-Llama-3.1-70B", 70553706496},
      {"meta-llama--Meta-Llama-3.1-8B", 8030261248},
      {"mistralai--Mixtral-8x7B-v0.1", 46702792704},
      {"moonshotai--Kimi-K2.5", 1026408209408},
      {"openai--gpt-oss-120b", 116829156672},
      {"gemma", 8537680896},
      {"gemma2", 2614341888},
      {"gemma3_text", 2628658432},
      {"gpt_neox", 20554567680},
      {"gptj", 6050882784},
      {"opt", 125239296},
      {"falcon", 6921720704},
      {"falcon-40b", 41303293952},
      {"falcon-rw-1b", 1311625216},
      {"bloom", 559214592},
      {"starcoder2", 3030371328},
      {"olmo2", 6888624128},
      {"olmo3", 6888624128},
      {"granite", 6738415616},
      {"granitemoe", 37039116288},
      {"phi", 1418270720},
      {"phi3", 3836021760},
      {"glm4", 9400279040},
      {"glm4_moe", 106851597824},
      {"stablelm", 2795443200},
      {"nemotron", 15628775424},
      {"mistral", 7241732096},
      {"qwen2", 12049846272},
      {"qwen3", 12049461248},
      {"deepseek_v2", 38612307968},
      {"llama4_maverick", 400711848960},
  };
  for (const auto& [name, count] : counts) {
    folder.write("box.yaml", test_machine());
    const bool predicts = text_of(published(name)).find("num_nextn_predict_layers") != std::string::npos;
    const std::string without = predicts ? ", predicted_tokens: 0" : "";
    const LoadResult result = folder.load("model: {config: " + published(name) + ", sequence: 128" + without +
                                          "}\ncluster: {machine: ./box.yaml, gpus_per_node: 1}\n"
                                          "schedule: {global_batch: 1}\n");
    ASSERT_EQ(describe(result.errors), "") << name;
    EXPECT_EQ(parameter_count(*result.scenario.step.model), count) << name;
  }
}

// DeepSeek-V3's report, section 4.2: 671 billion, and the module of multi-token prediction beside (README of its weights:
// 11.5 billion that are its own).
TEST_F(Config, LibraryModelsHaveTheParametersOfTheirCheckpoints) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"deepseek-v3", 671026404352}, {"kimi-k2", 1026408209408}, {"gpt-oss-120b", 116829156672},
      {"gpt-oss-20b", 20914757184},  {"gemma-2-9b", 9241705984},
  };
  folder.write("box.yaml", test_machine());
  const auto of_library = [&](const std::string& name, const std::string& more) {
    const LoadResult result = folder.load("model: {name: " + name + more +
                                          "}\ncluster: {machine: ./box.yaml, gpus_per_node: 1}\n"
                                          "schedule: {global_batch: 1}\n");
    EXPECT_EQ(describe(result.errors), "") << name;
    return result.scenario.step.model;
  };
  for (const auto& [name, count] : counts)
    EXPECT_EQ(parameter_count(*of_library(name, ", predicted_tokens: 0")), count) << name;
  const double module = static_cast<double>(parameter_count(*of_library("deepseek-v3", "")) - 671026404352);
  EXPECT_NEAR(module / 1e9, 11.5, 0.15);
}

// Angles, soft caps and factors: a prediction is the same without them, training is not.
TEST_F(Config, WhatChangesOnlyNumbersIsKeptForTheExecutor) {
  EXPECT_THAT(model(llama_3_1_8b).only_predicted, testing::ElementsAre("rope_scaling"));
  EXPECT_THAT(model(qwen_3_0_6b).only_predicted, testing::IsEmpty());
  // Built-in models have what their config.json has.
  const auto built_in = [&](const std::string& name) {
    folder.write("box.yaml", test_machine());
    const LoadResult loaded = folder.load("model: " + name +
                                          "\ncluster: {machine: ./box.yaml, gpus_per_node: 1}\n"
                                          "schedule: {global_batch: 1}\n");
    EXPECT_EQ(describe(loaded.errors), "");
    return loaded.scenario.step.model->only_predicted;
  };
  for (const char* name : {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b"})
    EXPECT_THAT(built_in(name), testing::ElementsAre("rope_scaling")) << name;
  EXPECT_THAT(built_in("qwen3-0.6b"), testing::IsEmpty());
  std::string json = gpt2;
  json.replace(json.find("\"n_ctx\": 1024"), 13, "\"scale_attn_by_inverse_layer_idx\": true");
  EXPECT_THAT(model(json).only_predicted, testing::ElementsAre("scale_attn_by_inverse_layer_idx"));
  json = bert_base;
  json.replace(json.find("\"hidden_act\": \"gelu\""), 20, "\"is_decoder\": true");
  EXPECT_EQ(error(json).key, "is_decoder");
}

TEST_F(Config, GarbageIsAnError) {
  EXPECT_THAT(error("{\"model_type\": ").message, HasSubstr("not valid YAML"));
  EXPECT_THAT(error("[1, 2]").message, HasSubstr("not a map"));
}

}  // namespace
}  // namespace slipway::test
