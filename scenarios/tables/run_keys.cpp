#include "scenarios/tables/run_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/document.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/scenario.h"
#include "scenarios/tables/csv.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {

namespace {

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// The keys as YAML. Sorted by path, so the keys of a section stand together.
std::string yaml_of(const std::map<std::string, std::string>& values) {
  std::string text;
  std::vector<std::string> open;  // sections
  for (const auto& [path, value] : values) {
    std::vector<std::string> parts;
    std::istringstream in(path);
    for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
    std::size_t same = 0;
    while (same < open.size() && same + 1 < parts.size() && open[same] == parts[same]) ++same;
    open.assign(parts.begin(), parts.end() - 1);
    for (std::size_t i = same; i < parts.size(); ++i)
      text += std::string(2 * i, ' ') + parts[i] + ":" + (i + 1 < parts.size() ? "\n" : " " + value + "\n");
  }
  return text;
}

}  // namespace

void RunKeys::set(const std::string& key, const std::string& value, std::string_view effect) {
  const Key* known = key_of(scenario_keys(), key);
  if (known == nullptr) return refuse(fmt::format("{} ({})", effect.empty() ? value : effect, key));
  if (known->choices != nullptr && known->type == KeyType::choice) {
    const std::vector<std::string_view> words = known->choices();
    if (std::find(words.begin(), words.end(), value) == words.end())
      return refuse(fmt::format("{} ({}: {})", effect.empty() ? "it" : effect, key, value));
  }
  values_[key] = value;
}

void RunKeys::set(const std::string& key, std::int64_t value, std::string_view effect) {
  set(key, std::to_string(value), effect);
}

void RunKeys::refuse(const std::string& effect) { add_once(refused_, effect); }

void RunKeys::assume(const std::string& what) { assumed_ += (assumed_.empty() ? "" : "; ") + what; }

void set_scenario(PublishedRow& row, const RunKeys& keys) {
  row.assumed = keys.assumed();
  row.not_modelled = keys.refused();
  for (const std::string& effect : row.not_modelled)
    row.unpriceable += (row.unpriceable.empty() ? "not modelled: " : ", ") + effect;
  if (!row.not_modelled.empty()) return;
  LoadResult loaded = load_scenario_text(yaml_of(keys.values()), "");
  if (!loaded.errors.empty()) {
    for (const ScenarioError& error : loaded.errors)
      row.unpriceable += fmt::format("{}{}: {}", row.unpriceable.empty() ? "" : "; ", error.key, error.message);
    return;
  }
  const Scenario& scenario = loaded.scenario;
  const NodeGroup& group = scenario.cluster.groups[0];
  row.step = scenario.step;
  row.trainer = scenario.trainer.name;
  row.gpus = group.nodes * group.gpus_per_node;
  row.gpus_per_node = group.gpus_per_node;
  row.fp8 = scenario.step.narrow != NarrowRecipe::none;
  if (keys.launches_graphs()) loaded.scenario.trainer.cuda_graphs = true;
  if (row.step_s > 0) {
    const auto& peaks = group.machine.peak_flops;
    row.contradiction |= mfu_of(row, row.step_s, *std::max_element(peaks.begin(), peaks.end())) > 1;
  }
  row.scenario = std::make_shared<const Scenario>(std::move(loaded.scenario));
}

namespace {

std::string simple(const std::string& written) {
  std::string name;
  for (const char c : written.substr(written.find('/') == std::string::npos ? 0 : written.find('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c))) name += static_cast<char>(std::tolower(c));
  return name;
}

struct KnownModel {
  const char* word;     // the written name without all but letters and digits begins with it; the longest decides
  const char* name;     // of the library
  const char* feature;  // why the library might not have it
};
constexpr const char *latent = "latent attention and multi-token prediction",
                     *sinks = "sliding windows, attention sinks and biases", *mamba = "hybrid layers (Mamba)",
                     *delta = "hybrid layers (gated delta net)", *vision = "a vision encoder beside the language model",
                     *squared = "an MLP with squared ReLU";
constexpr KnownModel known_models[] = {
    {"deepseekv3", "deepseek-v3", latent},
    {"moonlight16ba3b", "moonlight-16b-a3b", latent},
    {"gptoss120b", "gpt-oss-120b", sinks},
    {"gptoss20b", "gpt-oss-20b", sinks},
    {"qwen330ba3b", "qwen3-30b-a3b", ""},
    {"qwen3235ba22b", "qwen3-235b-a22b", ""},
    {"qwen3next", "", delta},
    {"qwen35", "", delta},
    {"qwen36", "", delta},
    {"qwen38", "", delta},
    {"qwen38b", "qwen3-8b", ""},
    {"qwen34b", "qwen3-4b", ""},
    {"qwen314b", "qwen3-14b", ""},
    {"qwen332b", "qwen3-32b", ""},
    {"qwen306b", "qwen3-0.6b", ""},
    {"qwen317b", "qwen3-1.7b", ""},
    {"qwen257b", "qwen2.5-7b", ""},
    {"qwen2505b", "qwen2.5-0.5b", ""},
    {"qwen2532b", "qwen2.5-32b", ""},
    {"qwen2572b", "qwen2.5-72b", ""},
    {"qwen25vl", "", vision},
    {"qwen25omni", "", vision},
    {"qwen3vl", "", vision},
    {"qwen3omni", "", vision},
    {"internvl", "", vision},
    {"gemma4", "gemma-4-26b-a4b", vision},
    {"nemotron3", "", mamba},
    {"nemotronh", "", mamba},
    {"nvidianemotron3", "", mamba},
    {"nemotron415b", "nemotron-4-15b", squared},
    {"nemotron4340b", "nemotron-4-340b", squared},
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

bool in_library(std::string_view name) {
  const auto models = embedded_models();
  return std::any_of(models.begin(), models.end(), [&](const EmbeddedFile& file) { return file.name == name; });
}

// Grok-1: xai-org/grok-1 run.py. Its experts are gated, as those of the Llama family, by GELU.
void set_grok(RunKeys& keys) {
  keys.set("model.family", "llama");
  for (const auto& [key, value] : std::map<std::string, std::int64_t>{{"layers", 64},
                                                                      {"hidden", 6144},
                                                                      {"ffn", 32768},
                                                                      {"heads", 48},
                                                                      {"kv_heads", 8},
                                                                      {"vocab", 131072},
                                                                      {"experts", 8},
                                                                      {"experts_per_token", 2}})
    keys.set("model." + key, value);
}

}  // namespace

std::string set_model(RunKeys& keys, const std::string& written) {
  const std::string name = simple(written);
  const KnownModel* known = nullptr;
  for (const KnownModel& each : known_models)
    if (name.starts_with(each.word) &&
        (known == nullptr || std::string_view(each.word).size() > std::string_view(known->word).size()))
      known = &each;
  if (known == nullptr) {
    keys.refuse("the model " + written);
    return written;
  }
  const std::string library = known->name, feature = known->feature;
  if (library.empty())
    keys.refuse(feature);
  else if (in_library(library))
    keys.set("model.name", library);
  else if (library == "grok-1")
    set_grok(keys);
  else
    keys.refuse(feature.empty() ? "the model " + library : feature);
  return library.empty() ? known->word : library;
}

void set_pipeline(RunKeys& keys, const std::string& model, int pipeline, int chunks) {
  const int stages = pipeline * chunks;
  if (model != "deepseek-v3" || stages == 1) return;
  // src/megatron/bridge/recipes/deepseek/deepseek_v3.py and scripts/performance of NVIDIA-NeMo/Megatron-Bridge:
  // 4, 8 and 16 stages have ⌈61/stages⌉ layers each, the last the rest; 32 are "Et|(tt|)*30mL".
  constexpr int layers = 61, most = 32;
  std::string list = "[";
  for (int stage = 0, left = layers; stage < stages; ++stage) {
    const int each = stages == most ? (stage == 0 ? 1 : stage < most - 1 ? 2 : 0) : (layers + stages - 1) / stages;
    const int here = std::min(left, each);
    list += (stage > 0 ? ", " : "") + std::to_string(here);
    left -= here;
  }
  keys.set("layout.split", list + "]");
  keys.assume("layers of stages as in NVIDIA's recipes of DeepSeek-V3");
}

void set_cluster(RunKeys& keys, const std::string& machine, int gpus) {
  keys.set("cluster.machine", machine);
  int per_node = std::min(gpus, 8);
  if (machine.starts_with("gb")) {
    // An NVLink domain is what nodes are elsewhere: messages inside it do not use the network.
    constexpr int domain = 72;
    per_node = gpus;
    for (int nodes = 1; per_node > domain || gpus % nodes != 0; ++nodes) per_node = gpus / (nodes + 1);
    keys.assume("the GPUs lie in NVLink domains of " + std::to_string(per_node));
  }
  if (gpus % per_node != 0) return keys.refuse(fmt::format("{} GPUs that do not fill nodes of {}", gpus, per_node));
  keys.set("cluster.gpus_per_node", per_node);
  keys.set("cluster.nodes", gpus / per_node);
}

void set_recompute(RunKeys& keys, const std::string& modules) {
  std::istringstream in(modules);
  std::string list;
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.empty()) return keys.set("schedule.recompute", "none");
  if (words == std::vector<std::string>{"core_attn"}) return keys.set("schedule.recompute", "selective");
  if (words == std::vector<std::string>{"full"}) return keys.set("schedule.recompute", "full");
  std::sort(words.begin(), words.end());
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  keys.set("schedule.recompute_modules", "[" + list + "]", "recomputation of modules");
}

void set_graphs(RunKeys& keys, const std::string& implementation, const std::string& scope) {
  if (implementation.empty() || implementation == "none") return;
  const bool whole = implementation == "full_iteration" || scope == "full_iteration";
  if (whole && key_of(scenario_keys(), "schedule.cuda_graphs") == nullptr) return keys.launch_graphs();
  keys.set("schedule.cuda_graphs", whole ? "full" : "[" + scope + "]",
           whole ? "CUDA graphs of whole steps" : "CUDA graphs of a part of a layer");
}

void set_precision(RunKeys& keys, const std::string& written) {
  const std::string word = simple(written);
  static const std::map<std::string, std::string> recipes = {
      {"bf16", "none"},           {"fp8mx", "mxfp8"},          {"mxfp8", "mxfp8"}, {"fp8cs", "tensorwise"},
      {"fp8", "delayed"},         {"fp8ds", "delayed"},        {"nvfp4", "nvfp4"}, {"fp8sc", "blockwise"},
      {"blockwise", "blockwise"}, {"tensorwise", "tensorwise"}};
  const auto found = recipes.find(word);
  if (found == recipes.end()) return keys.refuse("the precision " + written);
  keys.set("run.fp8", found->second, "products in " + written);
}

}  // namespace slipway::scenarios
