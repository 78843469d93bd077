// Models by the names that today's trainers give them, as keys of a scenario. The library has most (models/model/library);
// the others are written here, from their config.json. A key that the language does not have refuses the row by its
// effect.
#include <algorithm>
#include <cctype>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/profiles.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

struct KnownModel {
  const char* word;     // the written name begins with it, but for all that is no letter or digit; the longest decides
  const char* name;     // plain; of the library, or of `shapes`
  const char* refused;  // what it has that no key says; empty: nothing
};
constexpr const char *mamba = "hybrid layers (Mamba)", *delta = "hybrid layers (gated delta net)",
                     *vision = "a vision encoder beside the language model";
constexpr KnownModel known_models[] = {
    {"deepseekv3", "deepseek-v3", ""},
    {"moonlight16ba3b", "moonlight-16b-a3b", ""},
    {"gptoss120b", "gpt-oss-120b", ""},
    {"gptoss20b", "gpt-oss-20b", ""},
    {"qwen330ba3b", "qwen3-30b-a3b", ""},
    {"qwen3moe30b", "qwen3-30b-a3b", ""},
    {"qwen3235ba22b", "qwen3-235b-a22b", ""},
    {"qwen3next", "qwen3-next", delta},
    {"qwen35", "qwen3.5", delta},
    {"qwen36", "qwen3.6", delta},
    {"qwen38", "qwen3.8", delta},
    {"qwen38b", "qwen3-8b", ""},
    {"qwen34b", "qwen3-4b", ""},
    {"qwen314b", "qwen3-14b", ""},
    {"qwen332b", "qwen3-32b", ""},
    {"qwen306b", "qwen3-0.6b", ""},
    {"qwen317b", "qwen3-1.7b", ""},
    {"qwen15moea27b", "qwen1.5-moe-a2.7b", ""},
    {"qwen257b", "qwen2.5-7b", ""},
    {"qwen2505b", "qwen2.5-0.5b", ""},
    {"qwen2514b", "qwen2.5-14b", ""},
    {"qwen2532b", "qwen2.5-32b", ""},
    {"qwen2572b", "qwen2.5-72b", ""},
    {"qwen25vl", "qwen2.5-vl", vision},
    {"qwen25omni", "qwen2.5-omni", vision},
    {"qwen3vl", "qwen3-vl", vision},
    {"qwen3omni", "qwen3-omni", vision},
    {"internvl", "internvl", vision},
    {"internlm7b", "internlm-7b", ""},
    {"gemma4", "gemma-4", vision},
    {"nemotron3", "nemotron-3", mamba},
    {"nemotronv3", "nemotron-3", mamba},
    {"nvidianemotron3", "nemotron-3", mamba},
    {"nemotronh", "nemotron-h", mamba},
    {"nemotron415b", "nemotron-4-15b", ""},
    {"nemotron4340b", "nemotron-4-340b", ""},
    {"llama38b", "llama-3.1-8b", ""},
    {"llama370b", "llama-3.1-70b", ""},
    {"llama318b", "llama-3.1-8b", ""},
    {"llama3170b", "llama-3.1-70b", ""},
    {"llama31405b", "llama-3.1-405b", ""},
    {"llama270b", "llama-2-70b", ""},
    {"llama27b", "llama-2-7b", ""},
    {"llama213b", "llama-2-13b", ""},
    {"mixtral8x7b", "mixtral-8x7b", ""},
    {"mixtral8x22b", "mixtral-8x22b", ""},
    {"gpt3175b", "gpt3-175b", ""},
    {"grok1", "grok-1", ""},
};

using Keys = std::vector<std::pair<std::string, std::string>>;

Keys operator+(Keys first, const Keys& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Keys shape(int layers, int hidden, int ffn, int heads, int kv_heads, int vocab) {
  const auto text = [](int number) { return std::to_string(number); };
  return {{"family", "llama"},    {"layers", text(layers)},     {"hidden", text(hidden)}, {"ffn", text(ffn)},
          {"heads", text(heads)}, {"kv_heads", text(kv_heads)}, {"vocab", text(vocab)}};
}

Keys experts(int count, int per_token, int shared_ffn) {
  return {{"experts", std::to_string(count)},
          {"experts_per_token", std::to_string(per_token)},
          {"shared_ffn", std::to_string(shared_ffn)}};
}

// Of config.json of each repository at Hugging Face; InternLM-7B: InternLM/InternEvo configs/7B_sft.py, with biases of
// attention's Linears (internlm/model/modules/multi_head_attention.py) and an MLP of a multiple of 256 (mlp.py); Grok-1:
// xai-org/grok-1 run.py (its experts are gated, by GELU).
const std::map<std::string, Keys, std::less<>>& shapes() {
  static const std::map<std::string, Keys, std::less<>> all = {
      {"qwen2.5-14b", shape(48, 5120, 13824, 40, 8, 152064) + Keys{{"qkv_bias", "true"}}},
      {"qwen1.5-moe-a2.7b", shape(24, 2048, 1408, 16, 16, 151936) + experts(60, 4, 5632) + Keys{{"qkv_bias", "true"}}},
      {"internlm-7b", shape(32, 4096, 11008, 32, 32, 103168) + Keys{{"qkv_bias", "true"}, {"out_bias", "true"}}},
      {"grok-1", shape(64, 6144, 32768, 48, 8, 131072) + experts(8, 2, 0) + Keys{{"mlp", "geglu"}}},
  };
  return all;
}

std::string_view effect_of(const std::string& key) {
  static const std::map<std::string, std::string_view, std::less<>> effects = {
      {"kv_latent", "latent attention"},
      {"q_latent", "latent attention"},
      {"qk_head_dim", "latent attention"},
      {"rope_head_dim", "latent attention"},
      {"v_head_dim", "latent attention"},
      {"dense_layers", "dense layers before those with experts"},
      {"dense_ffn", "dense layers before those with experts"},
      {"predicted_tokens", "multi-token prediction"},
      {"expert_groups", "groups of experts"},
      {"groups_per_token", "groups of experts"},
      {"router_scores", "a router of sigmoids"},
      {"window", "sliding windows"},
      {"full_every", "sliding windows"},
      {"sinks", "attention sinks"},
      {"bias", "biases of Linears"},
      {"mlp", "an MLP with squared ReLU"},
      {"norm", "LayerNorm with rotary positions"}};
  const auto found = effects.find(key);
  return found == effects.end() ? std::string_view() : found->second;
}

bool in_library(std::string_view name) {
  const auto models = embedded_models();
  return std::any_of(models.begin(), models.end(), [&](const EmbeddedFile& file) { return file.name == name; });
}

// Small letters and digits, without the owner: "Qwen/Qwen3-8B", "Llama-3-70B SFT".
std::string simple(std::string_view model) {
  const std::size_t slash = model.find('/');
  if (slash != std::string_view::npos && slash < model.find(' ')) model.remove_prefix(slash + 1);
  std::string name;
  for (const char c : model)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::string set_model(RunKeys& keys, const std::string& written) {
  const std::string name = simple(written);
  const KnownModel* known = nullptr;
  const auto length = [](const KnownModel* model) { return std::string_view(model->word).size(); };
  for (const KnownModel& each : known_models)
    if (name.starts_with(each.word) && (known == nullptr || length(&each) > length(known))) known = &each;
  if (known == nullptr) {
    keys.refuse("the model " + written);
    return written;
  }
  const auto own = shapes().find(known->name);
  if (*known->refused != 0)
    keys.refuse(known->refused);
  else if (in_library(known->name))
    keys.set("model.name", known->name);
  else if (own != shapes().end())
    for (const auto& [key, value] : own->second) keys.set("model." + key, value, effect_of(key));
  else
    keys.refuse(std::string("the model ") + known->name);
  return known->name;
}

std::int64_t kv_heads_of(const RunKeys& keys) {
  const auto value = [&](const char* key) {
    const auto found = keys.values().find(key);
    return found == keys.values().end() ? std::string() : found->second;
  };
  if (const std::string heads = value("model.kv_heads"); !heads.empty()) return std::stoll(heads);
  Defects defects;
  const std::optional<ModelFields> fields = library_model(value("model.name"), defects);
  if (!fields) return 0;
  const auto heads = fields->numbers.find("kv_heads");
  return heads == fields->numbers.end() ? 0 : static_cast<std::int64_t>(heads->second);
}

}  // namespace slipway::scenarios
