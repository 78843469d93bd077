#include "scenarios/language/load_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/aliases.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

namespace {

bool shape_key(const Key& key) {
  return key.type == KeyType::integer || key.type == KeyType::number || key.type == KeyType::flag ||
         (key.type == KeyType::choice && key.path != "model.name" && key.path != "model.family");
}

// Copies the shape keys that `settings` holds below `prefix`.
void read_shape(const Settings& settings, const std::string& prefix, ModelFields& fields) {
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    const std::string name(leaf_of(key->path));
    if (!shape_key(*key) || !settings.given(prefix + name)) continue;
    if (key->type == KeyType::choice)
      fields.words[name] = settings.text(prefix + name);
    else
      fields.numbers[name] =
          key->type == KeyType::flag ? (settings.flag(prefix + name) ? 1.0 : 0.0) : settings.number(prefix + name);
  }
}

void set_if_absent(ModelFields& fields, const std::string& name, double value) { fields.numbers.emplace(name, value); }

void fill_defaults(ModelFields& fields) {
  const auto has = [&](const char* name) { return fields.numbers.contains(name); };
  if (fields.family == "llama") {
    if (has("heads")) set_if_absent(fields, "kv_heads", fields.numbers["heads"]);
    set_if_absent(fields, "rope_theta", 10000);
    set_if_absent(fields, "norm_epsilon", 1e-5);
    if (has("sequence")) set_if_absent(fields, "max_positions", fields.numbers["sequence"]);
    return;
  }
  if (has("hidden")) set_if_absent(fields, "ffn", 4 * fields.numbers["hidden"]);
  if (has("max_positions")) set_if_absent(fields, "sequence", fields.numbers["max_positions"]);
  if (has("sequence")) set_if_absent(fields, "max_positions", fields.numbers["sequence"]);
  set_if_absent(fields, "tied", 1);
  set_if_absent(fields, "norm_epsilon", fields.family == "bert" ? 1e-12 : 1e-5);
  if (fields.family == "bert") set_if_absent(fields, "token_types", 2);
}

// The scenario's reference to a model: exactly one of name, config and family.
std::optional<ModelFields> referenced(Settings& settings, const std::string& folder, Defects& defects) {
  const bool name = settings.given("model.name"), config = settings.given("model.config");
  const bool family = settings.given("model.family");
  if (!settings.good({"model.name", "model.config", "model.family"})) return std::nullopt;
  if (name + config + family != 1) {
    settings.refuse("model",
                    std::string(name + config + family == 0 ? "none" : "more than one") +
                        " of name, config and family is given; allowed: exactly one of them",
                    name + config + family == 0 ? "write for example 'model: llama-3.1-8b' (slipway list models)"
                                                : "keep one; shapes such as layers may be set beside it");
    return std::nullopt;
  }
  if (name) return library_model(settings.text("model.name"), defects);
  if (config) {
    const Reference from{settings.origin("model.config"), "model.config", folder};
    return read_config(settings.text("model.config"), from, defects);
  }
  const std::string kind = settings.text("model.family");
  return ModelFields{.name = "custom-" + kind, .family = kind};
}

// Everything that the families need, and nothing that they do not have.
bool check_fields(Settings& settings, const ModelFields& fields) {
  bool sound = true;
  for (const char* needed : {"sequence", "layers", "hidden", "ffn", "heads", "vocab"}) {
    const std::string path = std::string("model.") + needed;
    if (fields.numbers.contains(needed) || !settings.good({path})) continue;
    const Key& key = *key_of(scenario_keys(), path);
    settings.refuse(path,
                    "this key is missing for a model of family " + fields.family + "; allowed: " + allowed_by(key),
                    "add '" + std::string(needed) + ":' to model (" + std::string(key.meaning) + ")");
    sound = false;
  }
  // Beside these, shapes of the llama family are its own: gpt and bert are what their papers say.
  const std::set<std::string_view> common{"sequence", "layers", "hidden",       "ffn",          "heads",
                                          "vocab",    "tied",   "norm_epsilon", "max_positions"};
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    const std::string name(leaf_of(key->path));
    const std::string_view needs = name == "token_types" ? "bert" : "llama";
    if (!shape_key(*key) || common.contains(name) || fields.family == needs || !settings.given(key->path)) continue;
    settings.refuse(key->path, "models of family " + fields.family + " have no " + name + "; allowed: leave it out",
                    "remove it");
    sound = false;
  }
  return sound;
}

std::int64_t whole(const ModelFields& fields, std::string_view name) {
  const auto found = fields.numbers.find(name);
  return found == fields.numbers.end() ? 0 : static_cast<std::int64_t>(found->second);
}

void check_experts(Settings& settings, const ModelFields& fields) {
  const std::int64_t experts = whole(fields, "experts"), each = whole(fields, "experts_per_token");
  const std::string several = "experts = " + std::to_string(experts);
  if (experts == 0 && each > 0)
    settings.refuse("model.experts_per_token", "there are no experts; allowed: leave it out",
                    "remove it, or set model.experts");
  if (experts == 0 && whole(fields, "shared_ffn") > 0)
    settings.refuse("model.shared_ffn", "there are no experts beside shared ones; allowed: leave it out",
                    "remove it, or set model.experts");
  if (experts > 0 && each == 0)
    settings.refuse("model.experts_per_token",
                    "this key is missing with " + several + "; allowed: 1 to " + std::to_string(experts),
                    "add 'experts_per_token:' to model (how many of them a token goes through)");
  if (experts > 0 && each > experts)
    settings.refuse("model.experts_per_token",
                    "experts_per_token = " + std::to_string(each) + " is more than " + several + "; allowed: 1 to " +
                        std::to_string(experts),
                    "change one of them");
}

// Parameters are counted as 64-bit integers, with factors below a hundred on them.
void check_size(Settings& settings, const ModelFields& fields) {
  constexpr double most = 9e16;
  const auto n = [&](const char* name) { return static_cast<double>(whole(fields, name)); };
  const double width = std::max(n("dense_ffn"), n("ffn") * std::max(1.0, n("experts")) + n("shared_ffn"));
  const double heads =
      n("heads") * std::max({n("head_dim"), n("qk_head_dim"), n("v_head_dim")}) + n("q_latent") + n("kv_latent");
  const double weights = 3 * n("layers") * n("hidden") * (width + heads);
  if (weights > most)
    settings.refuse(
        "model",
        "its layers have " + number_text(weights) + " parameters, more than can be counted; allowed: up to 9e16",
        "make model.layers, hidden, ffn or experts smaller");
}

bool is_latent(const ModelFields& fields) { return whole(fields, "kv_latent") > 0; }
std::string word(const ModelFields& fields, std::string_view name, std::string_view fallback) {
  const auto found = fields.words.find(name);
  return std::string(found == fields.words.end() ? fallback : found->second);
}

// Width of a query's head, turned numbers included; 0 where nothing says it.
std::int64_t width_of_heads(const ModelFields& fields) {
  if (is_latent(fields)) return whole(fields, "qk_head_dim") + whole(fields, "rope_head_dim");
  if (whole(fields, "head_dim") > 0) return whole(fields, "head_dim");
  const std::int64_t hidden = whole(fields, "hidden"), heads = whole(fields, "heads");
  return hidden % heads == 0 ? hidden / heads : 0;
}

void check_latents(Settings& settings, const ModelFields& fields) {
  if (!is_latent(fields)) {
    for (const char* name : {"q_latent", "qk_head_dim"})
      if (whole(fields, name) > 0)
        settings.refuse("model." + std::string(name), "it belongs to latent attention; allowed: with kv_latent",
                        "remove it, or set model.kv_latent");
    return;
  }
  for (const char* name : {"qk_head_dim", "rope_head_dim"})
    if (whole(fields, name) == 0)
      settings.refuse("model." + std::string(name), "latent attention needs it; allowed: 1 to 1000000",
                      "set it (DeepSeek-V3: qk_head_dim 128, rope_head_dim 64)");
  const auto refuse = [&](const std::string& name, const std::string& why) {
    settings.refuse("model." + name, why + "; allowed: leave it out", "remove it");
  };
  if (whole(fields, "head_dim") > 0)
    refuse("head_dim", "with latent attention heads are qk_head_dim + rope_head_dim wide");
  if (whole(fields, "kv_heads") != whole(fields, "heads"))
    settings.refuse("model.kv_heads", "with latent attention each head has keys of its own; allowed: as many as heads",
                    "remove it");
  if (whole(fields, "qk_norm") != 0) refuse("qk_norm", "latent attention has norms of its latents");
  if (whole(fields, "qkv_bias") != 0) refuse("qkv_bias", "biases of latent attention are not modelled");
  if (whole(fields, "bias") != 0) refuse("bias", "biases of latent attention are not modelled");
}

void check_heads(Settings& settings, const ModelFields& fields) {
  const std::int64_t hidden = whole(fields, "hidden"), heads = whole(fields, "heads");
  const std::int64_t kv_heads = whole(fields, "kv_heads"), width = width_of_heads(fields);
  const bool llama = fields.family == "llama";
  if (width == 0 && !is_latent(fields))
    settings.refuse("model.heads",
                    "heads = " + std::to_string(heads) + " does not divide hidden = " + std::to_string(hidden) +
                        "; allowed: a divisor of hidden" + (llama ? ", or give head_dim" : ""),
                    "change model.heads or model.hidden");
  const std::int64_t turned = whole(fields, "rope_head_dim") > 0 ? whole(fields, "rope_head_dim") : width;
  if (llama && word(fields, "positions", "rotary") == "rotary" && turned % 2 != 0)
    settings.refuse(whole(fields, "rope_head_dim") > 0 ? "model.rope_head_dim" : "model.head_dim",
                    "heads of width " + std::to_string(turned) + " cannot be rotated in pairs; allowed: even widths",
                    "change model.heads, model.hidden or model.head_dim");
  if (turned > width && width > 0)
    settings.refuse("model.rope_head_dim",
                    std::to_string(turned) + " numbers cannot be turned of heads of " + std::to_string(width) +
                        "; allowed: up to their width",
                    "change one of them");
  if (kv_heads > 0 && heads % kv_heads != 0)
    settings.refuse("model.kv_heads",
                    "kv_heads = " + std::to_string(kv_heads) + " does not divide heads = " + std::to_string(heads) +
                        "; allowed: a divisor of heads",
                    "change model.kv_heads or model.heads");
}

// Refuses keys of features that the model does not have, and contradictions.
void check_features(Settings& settings, const ModelFields& fields) {
  const auto refuse = [&](const std::string& name, const std::string& why, const std::string& allowed,
                          const std::string& remedy) {
    settings.refuse("model." + name, why + "; allowed: " + allowed, remedy);
  };
  const auto given = [&](const char* name) { return whole(fields, name) > 0 || fields.words.contains(name); };
  for (const char* name : {"window_chunks", "full_every", "window_rope_theta"})
    if (given(name) && !given("window"))
      refuse(name, "no layer has a window", "with window", "remove it, or set model.window");
  if (given("full_positions") && !given("full_every"))
    refuse("full_positions", "no layer is without a window among those with one", "with full_every",
           "remove it, or set model.full_every");
  const std::int64_t experts = whole(fields, "experts"),
                     groups = std::max<std::int64_t>(1, whole(fields, "expert_groups"));
  if (experts == 0)
    for (const char* name :
         {"dense_layers", "dense_ffn", "experts_every", "expert_groups", "groups_per_token", "score_scale"})
      if (given(name) && settings.given("model." + std::string(name)))
        refuse(name, "there are no experts", "leave it out", "remove it, or set model.experts");
  if (experts > 0 && experts % groups != 0)
    refuse("expert_groups",
           "expert_groups = " + std::to_string(groups) + " does not divide experts = " + std::to_string(experts),
           "a divisor of experts", "change one of them");
  const std::int64_t chosen = std::max<std::int64_t>(1, whole(fields, "groups_per_token"));
  if (chosen > groups)
    refuse("groups_per_token", std::to_string(chosen) + " groups cannot be chosen of " + std::to_string(groups),
           "1 to " + std::to_string(groups), "change one of them");
  else if (groups > 1 && experts % groups == 0 && whole(fields, "experts_per_token") > chosen * (experts / groups))
    refuse("experts_per_token",
           std::to_string(whole(fields, "experts_per_token")) + " experts are not in " + std::to_string(chosen) +
               " groups of " + std::to_string(experts / groups),
           "up to " + std::to_string(chosen * (experts / groups)), "change one of them");
  if (whole(fields, "dense_layers") > whole(fields, "layers"))
    refuse("dense_layers", "there are " + std::to_string(whole(fields, "layers")) + " layers", "up to that many",
           "change one of them");
  if (word(fields, "parallel", "none") != "none" && experts > 0)
    refuse("parallel", "experts beside attention are not modelled", "none", "remove it");
  if (word(fields, "parallel", "none") != "none" && word(fields, "norms", "input") != "input")
    refuse("parallel", "attention and MLP side by side read normed inputs", "with norms: input", "remove one of them");
  if (whole(fields, "qk_norm") == 0 && fields.words.contains("qk_norm_over"))
    refuse("qk_norm_over", "there are no such norms", "with qk_norm", "remove it, or set model.qk_norm");
}

// Shapes that no layout can make right.
bool check_shape(Settings& settings, const ModelFields& fields) {
  const std::int64_t sequence = whole(fields, "sequence");
  const std::size_t before = settings.refused();
  check_heads(settings, fields);
  check_latents(settings, fields);
  check_experts(settings, fields);
  check_features(settings, fields);
  check_size(settings, fields);
  const bool has_table = fields.family != "llama" || word(fields, "positions", "rotary") == "learned";
  if (has_table && sequence > whole(fields, "max_positions"))
    settings.refuse("model.sequence",
                    "sequence = " + std::to_string(sequence) + " is longer than the position table with " +
                        std::to_string(whole(fields, "max_positions")) + " rows; allowed: up to its rows",
                    "shorten model.sequence or set model.max_positions");
  return settings.refused() == before;
}

template <typename Enum, std::size_t count>
Enum choice(const ModelFields& fields, std::string_view name, const std::array<models::Named<Enum>, count>& names) {
  return models::value_in(names, word(fields, name, names.front().name)).value_or(names.front().value);
}

// The common features of a decoder's blocks.
Block features_of(const ModelFields& fields) {
  const auto n = [&](std::string_view name) { return whole(fields, name); };
  Block block;
  block.hidden = n("hidden"), block.ffn = n("ffn");
  block.heads = n("heads"), block.kv_heads = n("kv_heads"), block.head_dim = width_of_heads(fields);
  block.v_head_dim = n("v_head_dim");
  block.rope_head_dim = n("rope_head_dim") == block.head_dim ? 0 : n("rope_head_dim");
  block.kv_latent = n("kv_latent"), block.q_latent = n("q_latent");
  if (block.kv_latent > 0 && block.v_head_dim == 0) block.v_head_dim = n("qk_head_dim");
  if (block.v_head_dim == block.head_dim) block.v_head_dim = 0;
  block.sinks = n("sinks") != 0;
  block.vocab = n("vocab");
  block.tied = n("tied") != 0;
  block.norm = choice(fields, "norm", models::norm_names);
  block.mlp = choice(fields, "mlp", models::mlp_names);
  block.positions = choice(fields, "positions", models::positions_names);
  if (block.positions == Positions::learned) block.max_positions = n("max_positions");
  block.norms = choice(fields, "norms", models::norm_place_names);
  block.parallel = choice(fields, "parallel", models::parallel_names);
  block.qk_norm_over = choice(fields, "qk_norm_over", models::qk_norm_names);
  block.bias = n("bias") != 0, block.qkv_bias = n("qkv_bias") != 0;
  block.out_bias = n("out_bias") != 0, block.mlp_bias = n("mlp_bias") != 0;
  block.qk_norm = n("qk_norm") != 0, block.embedding_norm = n("embedding_norm") != 0;
  block.predicted_tokens = n("predicted_tokens");
  block.rope_theta = fields.numbers.find("rope_theta")->second;
  block.norm_epsilon = fields.numbers.find("norm_epsilon")->second;
  return block;
}

void set_experts(Block& layer, const ModelFields& fields) {
  const auto n = [&](std::string_view name) { return whole(fields, name); };
  layer.experts = n("experts"), layer.experts_per_token = n("experts_per_token"), layer.shared_ffn = n("shared_ffn");
  layer.scores = choice(fields, "router_scores", models::router_scores_names);
  layer.normalises_scores = !fields.numbers.contains("normalised_scores") || n("normalised_scores") != 0;
  if (fields.numbers.contains("score_scale")) layer.score_scale = fields.numbers.find("score_scale")->second;
  layer.expert_groups = std::max<std::int64_t>(1, n("expert_groups"));
  layer.groups_per_token = std::max<std::int64_t>(1, n("groups_per_token"));
}

Model decoder_of(const ModelFields& fields) {
  const auto n = [&](std::string_view name) { return whole(fields, name); };
  const Block features = features_of(fields);
  const std::int64_t experts_every = std::max<std::int64_t>(1, n("experts_every")), full_every = n("full_every");
  std::vector<Block> layers(static_cast<std::size_t>(n("layers")), features);
  for (std::int64_t i = 0; i < n("layers"); ++i) {
    Block& layer = layers[static_cast<std::size_t>(i)];
    if (n("experts") > 0 && i >= n("dense_layers") && (i + 1) % experts_every == 0)
      set_experts(layer, fields);
    else if (n("dense_ffn") > 0)
      layer.ffn = n("dense_ffn");
    const bool full = n("window") == 0 || (full_every > 0 && (i + 1) % full_every == 0);
    if (!full) {
      // A window that no sequence fills is none.
      if (n("window") < n("sequence")) layer.window = n("window"), layer.window_chunks = n("window_chunks") != 0;
      if (fields.numbers.contains("window_rope_theta"))
        layer.rope_theta = fields.numbers.find("window_rope_theta")->second;
    } else if (fields.words.contains("full_positions")) {
      layer.positions = choice(fields, "full_positions", models::positions_names);
      if (layer.positions == Positions::none) layer.qk_norm = false;
    }
    if (layer.positions != Positions::rotary && layer.kv_latent == 0) layer.rope_head_dim = 0;
  }
  Model model = models::decoder(fields.name, models::Family::llama, n("sequence"), features, layers);
  model.runs.back().block.bias = n("head_bias") != 0;
  return model;
}

Model model_from(const ModelFields& fields) {
  const auto n = [&](std::string_view name) { return whole(fields, name); };
  const bool tied = n("tied") != 0;
  const double epsilon = fields.numbers.find("norm_epsilon")->second;
  if (fields.family == "gpt")
    return gpt(fields.name, {n("layers"), n("hidden"), n("ffn"), n("heads"), n("vocab"), n("max_positions"),
                             n("sequence"), tied, epsilon});
  if (fields.family == "bert")
    return bert(fields.name, {n("layers"), n("hidden"), n("ffn"), n("heads"), n("vocab"), n("max_positions"),
                              n("token_types"), n("sequence"), tied, epsilon});
  return decoder_of(fields);
}

std::vector<Key> library_table() {
  std::vector<Key> keys = {{.path = "name", .type = KeyType::text, .meaning = "the file's name"},
                           {.path = "source", .type = KeyType::text, .meaning = "where the shapes are published"},
                           {.path = "rope_scaling", .type = KeyType::text, .meaning = "rope_type of its config.json"}};
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    if (!shape_key(*key) && key->path != "model.family") continue;
    keys.push_back(*key);
    keys.back().path = leaf_of(key->path);
    keys.back().required = key->path == "model.family";
  }
  return keys;
}

std::optional<ModelFields> read_library_model(const EmbeddedFile& file, Defects& defects) {
  const std::string name(file.name);
  const std::size_t before = defects.size();
  std::optional<Value> document = parse_document(std::string(file.text), std::string(file.path), defects);
  if (!document) return std::nullopt;
  drop_aliases(*document);
  const Settings settings(std::move(*document), library_keys(), defects);
  if (defects.size() != before) return std::nullopt;
  ModelFields fields{.name = name, .family = settings.text("family")};
  read_shape(settings, "", fields);
  if (!settings.text("rope_scaling").empty()) fields.only_predicted.emplace_back("rope_scaling");
  return fields;
}

// A scenario that takes a model's experts, window or latents away means what belongs to them too.
void drop_what_was_cut(const Settings& settings, ModelFields& fields) {
  const std::pair<const char*, std::vector<const char*>> parts[] = {
      {"experts",
       {"experts_per_token", "shared_ffn", "dense_layers", "dense_ffn", "experts_every", "expert_groups",
        "groups_per_token", "score_scale", "normalised_scores"}},
      {"window", {"window_chunks", "full_every", "window_rope_theta", "full_positions"}},
      {"kv_latent", {"q_latent", "qk_head_dim"}}};
  for (const auto& [owner, owned] : parts) {
    if (whole(fields, owner) > 0) continue;
    for (const char* name : owned)
      if (!settings.given("model." + std::string(name))) fields.numbers.erase(name), fields.words.erase(name);
  }
}

}  // namespace

std::span<const Key> library_keys() {
  static const std::vector<Key> keys = library_table();
  return keys;
}

std::optional<ModelFields> library_model(const std::string& name, Defects& defects) {
  static std::mutex held;  // rows of a table are loaded in parallel
  static std::map<std::string, ModelFields, std::less<>> known;
  const std::lock_guard lock(held);
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const auto files = embedded_models();
  const auto file = std::ranges::find(files, std::string_view(name), &EmbeddedFile::name);
  if (file == files.end()) return std::nullopt;
  std::optional<ModelFields> fields = read_library_model(*file, defects);
  if (fields) known.emplace(name, *fields);
  return fields;
}

std::optional<Model> load_model(Settings& settings, const std::string& folder) {
  if (!settings.good({"model"})) return std::nullopt;
  std::optional<ModelFields> fields = referenced(settings, folder, settings.defects());
  if (!fields) return std::nullopt;
  bool known = true;
  for (const Key* key : keys_below(scenario_keys(), "model")) known = known && settings.good({key->path});
  read_shape(settings, "model.", *fields);
  drop_what_was_cut(settings, *fields);
  fill_defaults(*fields);
  if (!check_fields(settings, *fields) || !known || !check_shape(settings, *fields)) return std::nullopt;
  Model model = model_from(*fields);
  model.only_predicted = fields->only_predicted;
  return model;
}

}  // namespace slipway::scenarios
