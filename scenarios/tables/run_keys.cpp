#include "scenarios/tables/run_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

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

// Letters and digits, small.
std::string simple(std::string_view written) {
  std::string name;
  for (const char c : written)
    if (std::isalnum(static_cast<unsigned char>(c))) name += static_cast<char>(std::tolower(c));
  return name;
}

// The words of a list, "[attn, moe_router]".
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : list) {
    if (c != '[' && c != ']' && c != ',' && c != ' ') {
      word += c;
      continue;
    }
    if (!word.empty()) words.push_back(word);
    word.clear();
  }
  if (!word.empty()) words.push_back(word);
  return words;
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
  wanted_[key] = value;
  const Key* known = key_of(scenario_keys(), key);
  if (known == nullptr) return refuse(effect.empty() ? key + ": " + value : std::string(effect));
  if (known->choices != nullptr && (known->type == KeyType::choice || known->type == KeyType::words)) {
    const std::vector<std::string_view> words = known->choices();
    for (const std::string& item : known->type == KeyType::words ? items_of(value) : std::vector{value})
      if (std::find(words.begin(), words.end(), item) == words.end())
        return refuse(effect.empty() ? key + ": " + value : std::string(effect));
  }
  values_[key] = value;
  if (known->type != KeyType::words) return;
  std::string list;
  for (const std::string& item : items_of(value)) list += (list.empty() ? "" : ", ") + item;
  values_[key] = "[" + list + "]";
}

void RunKeys::set(const std::string& key, std::int64_t value, std::string_view effect) {
  set(key, std::to_string(value), effect);
}

void RunKeys::refuse(const std::string& effect) { add_once(refused_, effect); }

void RunKeys::assume(const std::string& what) { assumed_ += (assumed_.empty() ? "" : "; ") + what; }

void set_scenario(PublishedRow& row, const RunKeys& keys) {
  row.keys = keys.wanted();
  row.assumed = keys.assumed();
  row.not_modelled = keys.refused();
  for (const std::string& effect : row.not_modelled)
    row.unpriceable += (row.unpriceable.empty() ? "not modelled: " : ", ") + effect;
  if (!row.not_modelled.empty()) return;
  set_scenario(row, yaml_of(keys.values()));
}

void set_scenario(PublishedRow& row, const std::string& yaml) {
  LoadResult loaded = load_scenario_text(yaml, "");
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
  if (row.step_s > 0) {
    const auto& peaks = group.machine.peak_flops;
    row.contradiction |= mfu_of(row, row.step_s, *std::max_element(peaks.begin(), peaks.end())) > 1;
  }
  row.scenario = std::make_shared<const Scenario>(std::move(loaded.scenario));
}

void set_pipeline(RunKeys& keys, const std::string& model, int pipeline, int chunks) {
  constexpr int layers = 61, most = 32;
  const std::int64_t stages = std::int64_t{pipeline} * chunks;
  // No recipe has more stages than layers.
  if (model != "deepseek-v3" || stages == 1 || stages > layers) return;
  // src/megatron/bridge/recipes/deepseek/deepseek_v3.py and scripts/performance of NVIDIA-NeMo/Megatron-Bridge:
  // 4, 8 and 16 stages have ⌈61/stages⌉ layers each, the last the rest; 32 are "Et|(tt|)*30mL".
  std::string list = "[";
  std::int64_t left = layers;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t each = stages == most ? (stage == 0         ? 1
                                                : stage < most - 1 ? 2
                                                                   : 0)
                                             : (layers + stages - 1) / stages;
    const std::int64_t here = std::min(left, each);
    list += (stage > 0 ? ", " : "") + std::to_string(here);
    left -= here;
  }
  keys.set("layout.split", list + "]");
  keys.assume("layers of stages as in NVIDIA's recipes of DeepSeek-V3");
}

void set_layout(RunKeys& keys, const RunLayout& layout) {
  // Megatron-Core gathers them, with the queries, over the tensor group.
  if (const std::int64_t heads = kv_heads_of(keys); heads > 0 && layout.tensor > heads)
    keys.assume("copies of key-value heads");
  keys.set("model.sequence", layout.sequence);
  keys.set("layout.tensor", layout.tensor);
  keys.set("layout.sequence_parallel", layout.tensor > 1 ? "true" : "false");
  keys.set("layout.context", layout.context);
  keys.set("layout.pipeline", layout.pipeline);
  if (layout.pipeline > 1 && layout.chunks > 1) {
    keys.set("layout.chunks", layout.chunks);
    keys.set("schedule.name", "interleaved-1f1b");
  }
  keys.set("layout.zero", layout.full_shards ? 3 : 1);
  keys.set("layout.vocab_multiple", 128);  // --make-vocab-size-divisible-by of Megatron-LM
  keys.set("schedule.micro_batch", layout.micro_batch);
  keys.set("schedule.global_batch", layout.global_batch);
}

void set_merged(RunKeys& keys) { keys.set("schedule.name", "1f1b-merged"); }

void set_experts(RunKeys& keys, int expert, int expert_tensor, const std::string& dispatcher) {
  if (expert > 1) keys.set("layout.expert", expert);
  if (expert_tensor > 0) keys.set("layout.expert_tensor", expert_tensor);
  const std::string word = simple(dispatcher);
  const bool deep = word.starts_with("deepep") || word == "flex",
             all = word.empty() || word.find("alltoall") != std::string::npos;
  keys.set("layout.dispatcher", deep ? "deepep" : all ? "alltoall" : word, "the dispatcher " + dispatcher);
  if (deep && word != "deepep" && word != "flex") keys.assume(dispatcher + " is as fast as the network");
}

bool lacks(PublishedRow& row, const Cells& cells, const std::vector<std::string_view>& columns) {
  for (const std::string_view column : columns)
    if (cells.empty(column)) row.unpriceable = fmt::format("column {}: its source does not say it", column);
  row.no_layout = !row.unpriceable.empty();
  return row.no_layout;
}

int degree(const Cells& cells, std::string_view column) {
  const std::string& text = cells.text(column);
  for (const char* none : {"", "n/a", "NA", "None", "null", "0"})
    if (text == none) return 1;
  return cells.count(column);
}

void set_cluster(RunKeys& keys, const std::string& machine, int gpus, int gpus_per_node) {
  keys.set("cluster.machine", machine);
  int per_node = std::min(gpus, gpus_per_node);
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
  if (words == std::vector<std::string>{"full"}) return keys.set("schedule.recompute", "full");
  std::sort(words.begin(), words.end());
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  keys.set("schedule.recompute_modules", "[" + list + "]", "recomputation of modules");
}

// scripts/performance/configs/deepseek/deepseek_llm_pretrain.py and gpt_oss_workload_base_configs.py.
void set_usual_recompute(RunKeys& keys, const std::string& model, const std::string& machine,
                         const std::string& precision) {
  if (model == "deepseek-v3")
    set_recompute(keys, machine.starts_with("h") ? "mla_up_proj mlp" : "mla_up_proj");
  else if (model == "gpt-oss-120b" && precision == "BF16")
    set_recompute(keys, "layernorm moe_act");
  else
    return set_recompute(keys, "");
  keys.assume("modules that NVIDIA's recipes of this model compute again");
}

// use_precision_aware_optimizer: src/megatron/bridge/recipes/deepseek/deepseek_v3.py and moonlight/moonlight_16b.py.
void set_usual_moments(RunKeys& keys, const std::string& model) {
  if (model != "deepseek-v3" && model != "moonlight-16b-a3b") return;
  keys.set("run.optimizer.moment_dtype", "bfloat16");
  keys.assume("Adam's moments in bfloat16 as in NVIDIA's recipes of this model");
}

void set_graphs(RunKeys& keys, const std::string& implementation, const std::string& scope) {
  if (implementation.empty() || implementation == "none") return;
  const bool whole = implementation == "full_iteration" || scope == "full_iteration";
  std::string list;
  for (const std::string& word : items_of(scope)) list += (list.empty() ? "" : ", ") + word;
  if (!whole && list.empty()) return keys.refuse("CUDA graphs of a scope that is not given");
  keys.set("schedule.cuda_graphs", "[" + (whole ? "full" : list) + "]", "CUDA graphs of a part of a layer");
}

void set_lora(RunKeys& keys, std::int64_t rank, const std::string& modules, const std::string& assumed) {
  keys.assume(assumed);
  keys.set("run.lora.rank", rank, lora);
  if (!modules.empty()) keys.set("run.lora.modules", "[" + modules + "]", lora);
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
