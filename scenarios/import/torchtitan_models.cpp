#include "scenarios/import/torchtitan_models.h"

#include <algorithm>

#include "scenarios/import/import.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

// Llama 4: experts are as wide as two thirds of four times the hidden size, times the multiplier, divided among the chosen
// and the shared one, rounded up (torchtitan/models/llama4/model/model.py). Flavors named irope have chunks of attention.
Pairs llama4(std::string_view experts, std::string_view every) {
  return {{"family", "llama"},
          {"layers", "48"},
          {"hidden", "5120"},
          {"heads", "40"},
          {"kv_heads", "8"},
          {"ffn", "8192"},
          {"vocab", "202048"},
          {"experts", experts},
          {"experts_per_token", "1"},
          {"shared_ffn", "8192"},
          {"experts_every", every},
          {"dense_ffn", "16384"},
          {"router_scores", "sigmoid"},
          {"normalised_scores", "false"},
          {"rope_theta", "500000"},
          {"tied", "false"}};
}

Pairs preset(std::string_view local_batch, std::string_view sequence, std::string_view steps, std::string_view lr,
             std::string_view warmup, std::string_view recompute = "selective", std::string_view tensor = "1") {
  return {{"training.local_batch_size", local_batch},
          {"training.seq_len", sequence},
          {"training.steps", steps},
          {"optimizer.lr", lr},
          {"lr_scheduler.warmup_steps", warmup},
          {"activation_checkpoint.mode", recompute},
          {"parallelism.tensor_parallel_degree", tensor}};
}

// The MLP of llama3's debug model: two thirds of 4 x 256, rounded up to a multiple of 256.
const std::vector<TorchtitanModel>& models() {
  static const std::vector<TorchtitanModel> all{
      {"llama3",
       "debugmodel",
       "llama3_debugmodel",
       {{"family", "llama"},
        {"layers", "6"},
        {"hidden", "256"},
        {"heads", "16"},
        {"ffn", "768"},
        {"vocab", "2048"},
        {"rope_theta", "500000"},
        {"tied", "false"}},
       preset("8", "2048", "10", "8e-4", "2")},
      {"llama3", "8B", "llama3_8b", {{"name", "llama-3.1-8b"}}, preset("1", "8192", "1000", "3e-4", "200")},
      {"llama3",
       "70B",
       "llama3_70b",
       {{"name", "llama-3.1-70b"}},
       preset("8", "8192", "1000", "1.5e-4", "200", "full", "8")},
      {"llama3", "405B", "", {{"name", "llama-3.1-405b"}}, {}},
      {"qwen3", "0.6B", "qwen3_0_6b", {{"name", "qwen3-0.6b"}}, preset("4", "4096", "10", "3e-4", "2")},
      {"qwen3", "1.7B", "qwen3_1_7b", {{"name", "qwen3-1.7b"}}, preset("4", "4096", "100", "8e-4", "20")},
      {"qwen3", "4B", "", {{"name", "qwen3-4b"}}, {}},
      {"qwen3", "8B", "", {{"name", "qwen3-8b"}}, {}},
      {"qwen3", "14B", "qwen3_14b", {{"name", "qwen3-14b"}}, preset("4", "4096", "3000", "8e-4", "600", "full")},
      {"qwen3", "32B", "qwen3_32b", {{"name", "qwen3-32b"}}, preset("2", "4096", "3000", "8e-4", "600", "full")},
      {"qwen3",
       "30B-A3B",
       "qwen3_30b_a3b",
       {{"name", "qwen3-30b-a3b"}},
       preset("2", "4096", "3000", "8e-4", "600", "full")},
      {"qwen3", "235B-A22B", "", {{"name", "qwen3-235b-a22b"}}, {}},
      {"qwen3",
       "debugmodel",
       "qwen3_debugmodel",
       {{"family", "llama"},
        {"layers", "8"},
        {"hidden", "256"},
        {"heads", "16"},
        {"kv_heads", "8"},
        {"head_dim", "128"},
        {"ffn", "3072"},
        {"vocab", "2048"},
        {"qk_norm", "true"},
        {"rope_theta", "1000000"},
        {"tied", "true"}},
       preset("8", "2048", "10", "8e-4", "2")},
      {"qwen3",
       "debugmodel_moe",
       "qwen3_moe_debug",
       {{"family", "llama"},
        {"layers", "8"},
        {"hidden", "256"},
        {"heads", "16"},
        {"kv_heads", "8"},
        {"head_dim", "128"},
        {"ffn", "768"},
        {"experts", "64"},
        {"experts_per_token", "8"},
        {"vocab", "2048"},
        {"qk_norm", "true"},
        {"rope_theta", "1000000"},
        {"tied", "false"}},
       preset("4", "4096", "10", "3e-4", "2")},
      {"deepseek_v3",
       "debugmodel",
       "deepseek_v3_debugmodel",
       {{"family", "llama"},
        {"layers", "6"},
        {"hidden", "256"},
        {"heads", "16"},
        {"ffn", "256"},
        {"vocab", "2048"},
        {"kv_latent", "512"},
        {"q_latent", "0"},
        {"qk_head_dim", "128"},
        {"rope_head_dim", "64"},
        {"v_head_dim", "128"},
        {"experts", "8"},
        {"experts_per_token", "3"},
        {"shared_ffn", "512"},
        {"normalised_scores", "false"},
        {"dense_layers", "1"},
        {"dense_ffn", "1024"},
        {"rope_theta", "10000"},
        {"tied", "false"}},
       preset("8", "2048", "10", "8e-4", "2")},
      // DeepSeek-V3 without its module of multi-token prediction.
      {"deepseek_v3",
       "671B",
       "deepseek_v3_671b",
       {{"name", "deepseek-v3"}, {"predicted_tokens", "0"}},
       preset("4", "4096", "10000", "2.2e-4", "2000")},
      {"llama4",
       "debugmodel",
       "",
       {{"family", "llama"},
        {"layers", "6"},
        {"hidden", "256"},
        {"heads", "16"},
        {"ffn", "512"},
        {"vocab", "2048"},
        {"experts", "8"},
        {"experts_per_token", "1"},
        {"shared_ffn", "512"},
        {"experts_every", "2"},
        {"dense_ffn", "768"},
        {"router_scores", "sigmoid"},
        {"normalised_scores", "false"},
        {"rope_theta", "500000"},
        {"tied", "false"}},
       {}},
      {"llama4", "17bx16e", "", llama4("16", "1"), {}},
      {"llama4", "17bx128e", "", llama4("128", "2"), {}},
  };
  return all;
}

template <typename Wanted>
const TorchtitanModel* first(Wanted wanted) {
  const auto found = std::find_if(models().begin(), models().end(), wanted);
  return found == models().end() ? nullptr : &*found;
}

std::int64_t number_of(const std::string& built_in, const char* field, std::int64_t otherwise) {
  Defects ignored;
  const std::optional<ModelFields> fields = built_in.empty() ? std::nullopt : library_model(built_in, ignored);
  if (!fields || !fields->numbers.contains(field)) return otherwise;
  return static_cast<std::int64_t>(fields->numbers.find(field)->second);
}

}  // namespace

const TorchtitanModel* torchtitan_model(std::string_view name, std::string_view flavor) {
  return first([&](const TorchtitanModel& m) { return m.name == name && m.flavor == flavor; });
}

const TorchtitanModel* torchtitan_config(std::string_view module, std::string_view config) {
  return first([&](const TorchtitanModel& m) { return m.name == module && m.config == config; });
}

const TorchtitanModel* torchtitan_entry_of(std::string_view built_in) {
  return first([&](const TorchtitanModel& m) {
    return !m.config.empty() && m.shape.size() == 1 && m.shape[0].first == "name" && m.shape[0].second == built_in;
  });
}

std::string torchtitan_model_names() {
  std::string text;
  for (const TorchtitanModel& m : models())
    text += (text.empty() ? "" : ", ") + std::string(m.name) + " " + std::string(m.flavor);
  return text;
}

std::int64_t model_layers(const std::string& built_in, std::int64_t otherwise) {
  return number_of(built_in, "layers", otherwise);
}

bool is_mixture(const std::string& built_in, std::int64_t experts) {
  return number_of(built_in, "experts", experts) > 0;
}

void add_torchtitan_registry(Arguments& arguments, Defects& defects) {
  const auto given = [&](std::string_view name) -> const Argument* {
    const auto found =
        std::find_if(arguments.list.begin(), arguments.list.end(), [&](const Argument& a) { return a.name == name; });
    return found == arguments.list.end() ? nullptr : &*found;
  };
  const auto text = [](const Argument* argument) {
    return argument == nullptr || argument->values.empty() ? "" : argument->values[0];
  };
  const std::string module = text(given("module")), config = text(given("config"));
  if (module.empty() && config.empty()) return;
  const Origin origin = (given("config") != nullptr ? given("config") : given("module"))->origin;
  const TorchtitanModel* found = torchtitan_config(module, config);
  if (found == nullptr) {
    defects.push_back({origin.file, origin.line, "--config",
                       "the config '" + config + "' of module '" + module +
                           "' is unknown to import; allowed: configs of " + torchtitan_model_names(),
                       "choose one of them, or give the settings as a TOML"});
    return;
  }
  const auto add = [&](std::string_view name, std::string_view value) {
    if (given(name) == nullptr) arguments.list.push_back({std::string(name), {std::string(value)}, origin});
  };
  add("model.name", found->name);
  add("model.flavor", found->flavor);
  for (const auto& [name, value] : found->presets) add(name, value);
}

}  // namespace slipway::scenarios
