// Machine profiles and models from files, against published parameter counts.
#include "scenarios/language/profiles.h"

#include <gmock/gmock.h>

#include "scenarios/files/embedded_files.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

Machine sound_machine(const std::string& text) {
  Defects defects;
  const std::optional<Machine> machine = machine_from_yaml(text, "m.yaml", defects);
  EXPECT_EQ(describe(defects), "");
  return machine.value_or(Machine{});
}

TEST(MachineProfile, NumbersArePlainOrCarryUnitAndSource) {
  const Machine machine = sound_machine(
      "name: h\nmemory_bytes: {value: 80 GB, source: data sheet, note: HBM3}\n"
      "peak_flops: {bfloat16: {value: 989.4 TFLOP/s, source: data sheet}, float32: "
      "66.9e12}\nmemory_bandwidth: 3.35 TB/s\n"
      "cores: 3\noverlap_slowdown: {value: 1.2, source: measured, date: 2025-01-02}\n");
  EXPECT_EQ(machine.memory_bytes, 80e9);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::bfloat16)], 989.4e12);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::float32)], 66.9e12);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::float64)], 0.0);
  EXPECT_EQ(machine.memory_bandwidth, 3.35e12);
  EXPECT_EQ(machine.cores, 3);
  EXPECT_EQ(machine.overlap_slowdown, 1.2);
  EXPECT_EQ(machine.gemm_efficiency, 1.0);
}

TEST(MachineProfile, SurvivesWritingAndReading) {
  Machine machine = sound_machine(test_machine());
  machine.gemm_efficiency = 1.0 / 3.0;
  machine.gemm_half = 17.25;
  machine.launch_overhead = 4.2e-6;
  machine.reduce_bandwidth = 1e9 / 7;
  machine.host_to_device = {"pcie5", 55e9 / 3, 8e-6, 0.9};
  machine.device_to_host.bandwidth = 5e10 / 7;
  machine.spread = 0.04;
  machine.deviations = {{"gemm_efficiency", {0.01, -0.002}}, {"node_link.latency", {-0.5, 0.25}}};
  machine.provenance = {"slipway calibrate: a \"quoted\" command", "2025-01-02", "host #1"};
  const std::string text = machine_to_yaml(machine);
  const Machine again = sound_machine(text);
  EXPECT_EQ(machine_to_yaml(again), text);
  EXPECT_EQ(again.gemm_efficiency, machine.gemm_efficiency);
  EXPECT_EQ(again.reduce_bandwidth, machine.reduce_bandwidth);
  EXPECT_EQ(again.host_to_device.bandwidth, machine.host_to_device.bandwidth);
  EXPECT_EQ(again.host_to_device.latency, 8e-6);
  EXPECT_EQ(again.device_to_host.bandwidth, machine.device_to_host.bandwidth);
  ASSERT_EQ(again.deviations.size(), 2);
  EXPECT_EQ(again.deviations[1].name, "node_link.latency");
  EXPECT_THAT(again.deviations[1].parts, testing::ElementsAre(-0.5, 0.25));
  EXPECT_EQ(again.peak_flops, machine.peak_flops);
  EXPECT_EQ(again.network_link.latency, machine.network_link.latency);
  EXPECT_EQ(again.provenance.source, machine.provenance.source);
  EXPECT_EQ(again.provenance.machine, machine.provenance.machine);
}

// NCCL all-reduce of 1 GiB on 2, 3 and 8 V100 of one node (vTrain, MICRO 2024): GB/s of bus bandwidth. DGX-2 has switches.
TEST(MachineProfile, V100IsJoinedByASwitchOnlyInNodesOfMoreThanEight) {
  const Machine& machine = built_in_machine("v100-32gb");
  const double port = machine.node_link.bandwidth * machine.node_link.efficiency;
  for (const auto& [members, measured] : {std::pair{2, 22.55e9}, {3, 45.14e9}, {8, 134.51e9}})
    EXPECT_NEAR(node_share({machine, 1, 8}, members) * port, measured, 0.02 * measured) << members;
  EXPECT_EQ(node_share({machine, 1, 16}, 2), 1);
}

TEST(MachineProfile, EveryMistakeIsReported) {
  Defects defects;
  EXPECT_FALSE(
      machine_from_yaml("name: h\nmemory_bytes: {value: 80 GB, sauce: x}\npeak_flops: {int8: 1}\ngemm_efficiency: 1.5\n"
                        "memory_bandwidth: -1\n",
                        "m.yaml", defects));
  EXPECT_EQ(defects.size(), 4U) << describe(defects);
}

TEST(MachineProfile, DeviationsAreOfFittedNumbersAndHaveAsManyParts) {
  const auto mistake = [](const std::string& deviations) {
    Defects defects;
    EXPECT_FALSE(
        machine_from_yaml("memory_bytes: 1 GB\ncores: 2\ndeviations: " + deviations + "\n", "m.yaml", defects));
    return describe(defects);
  };
  EXPECT_THAT(mistake("{cores: [0.1]}"), testing::HasSubstr("deviations.cores"));
  EXPECT_THAT(mistake("{gemm_efficiency: [0.1, x]}"), testing::HasSubstr("'x' is no number"));
  EXPECT_THAT(mistake("{gemm_efficiency: [0.1, 0.2], gemm_half: [0.1]}"), testing::HasSubstr("deviations.gemm_half"));
}

TEST(BuiltIns, AllLoadWithoutAnError) {
  Defects defects;
  for (const EmbeddedFile& file : embedded_machines()) {
    const auto machine = machine_from_yaml(std::string(file.text), std::string(file.path), defects);
    ASSERT_TRUE(machine) << describe(defects);
    EXPECT_EQ(machine->name, file.name);
  }
  for (const EmbeddedFile& file : embedded_models())
    EXPECT_TRUE(library_model(std::string(file.name), defects)) << describe(defects);
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
  EXPECT_THAT(found.message, HasSubstr("llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, phi3, gpt2, bert"));
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
  EXPECT_EQ(error(changed("\"norm_topk_prob\": true,", "\"norm_topk_prob\": false,")).key, "norm_topk_prob");
  EXPECT_EQ(error(changed("\"norm_topk_prob\": true,", "")).key, "norm_topk_prob");
  EXPECT_EQ(error(changed("\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2")).key, "decoder_sparse_step");
  EXPECT_EQ(error(changed("\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]")).key, "mlp_only_layers");
  EXPECT_EQ(error(changed("\"mlp_only_layers\": []", "\"mlp_only_layers\": 3")).key, "mlp_only_layers");
  EXPECT_EQ(
      error(changed("\"num_experts\": 128", "\"shared_expert_intermediate_size\": 512, \"num_experts\": 128")).key,
      "shared_expert_intermediate_size");
}

TEST_F(Config, OtherMixturesOfExpertsAndLatentAttentionAreNotModelled) {
  const ScenarioError shared = error(R"({"model_type": "qwen2_moe", "num_experts": 60, "num_hidden_layers": 24})");
  EXPECT_EQ(shared.key, "num_experts");
  EXPECT_THAT(shared.message, HasSubstr("mixtral and qwen3_moe"));
  const ScenarioError mla = error(R"({"model_type": "deepseek_v2", "kv_lora_rank": 512})");
  EXPECT_THAT(mla.message, HasSubstr("(mla) is reserved"));
}

TEST_F(Config, WhatWouldChangeTheBlocksIsNeverIgnored) {
  std::string biased = llama_3_1_8b;
  biased.replace(biased.find("\"attention_bias\": false"), 23, "\"attention_bias\": true ");
  EXPECT_EQ(error(biased).key, "attention_bias");
  std::string qwen = qwen_3_0_6b;
  qwen.replace(qwen.find("\"attention_bias\": false"), 23, "\"attention_bias\": true ");
  EXPECT_EQ(error(qwen).key, "attention_bias");
  qwen = qwen_3_0_6b;
  qwen.replace(qwen.find("\"use_sliding_window\": false"), 27, "\"use_sliding_window\": true ");
  qwen.replace(qwen.find("\"sliding_window\": null"), 22, "\"sliding_window\": 4096");
  EXPECT_THAT(error(qwen, "8192").message, HasSubstr("longer than the sliding window of 4096"));
  EXPECT_EQ(error(without(qwen_3_0_6b, "head_dim")).key, "head_dim") << "hidden / heads is not what others would take";
  EXPECT_THAT(error(mistral_7b, "8192").message, HasSubstr("longer than the sliding window of 4096"));
}

TEST_F(Config, GarbageIsAnError) {
  EXPECT_THAT(error("{\"model_type\": ").message, HasSubstr("not valid YAML"));
  EXPECT_THAT(error("[1, 2]").message, HasSubstr("not a map"));
}

}  // namespace
}  // namespace slipway::test
