#include "scenarios/language/load_model.h"

#include <algorithm>

#include "scenarios/embedded_files.h"

namespace slipway {
namespace {

bool shape_key(const Key& key) {
  return key.type == KeyType::integer || key.type == KeyType::number || key.type == KeyType::flag;
}

// Copies the shape keys that `settings` holds below `prefix`.
void read_shape(const Settings& settings, const std::string& prefix, ModelFields& fields) {
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    const std::string name(leaf_of(key->path));
    if (!shape_key(*key) || !settings.given(prefix + name)) continue;
    fields.numbers[name] = key->type == KeyType::flag ? (settings.flag(prefix + name) ? 1.0 : 0.0)
                                                      : settings.number(prefix + name);
  }
}

void set_if_absent(ModelFields& fields, const std::string& name, double value) {
  fields.numbers.emplace(name, value);
}

void fill_defaults(ModelFields& fields) {
  const auto has = [&](const char* name) { return fields.numbers.contains(name); };
  if (fields.family == "llama") {
    if (has("heads")) set_if_absent(fields, "kv_heads", fields.numbers["heads"]);
    set_if_absent(fields, "tied", 0);
    set_if_absent(fields, "rope_theta", 10000);
    set_if_absent(fields, "norm_epsilon", 1e-5);
    set_if_absent(fields, "head_dim", 0);
    set_if_absent(fields, "qkv_bias", 0);
    set_if_absent(fields, "qk_norm", 0);
    set_if_absent(fields, "experts", 0);
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
                    name + config + family == 0
                        ? "write for example 'model: llama-3.1-8b' (slipway list models)"
                        : "keep one; shapes such as layers may be set beside it");
    return std::nullopt;
  }
  if (name) return library_model(settings.text("model.name"), defects);
  if (config) {
    const Reference from{settings.origin("model.config"), "model.config", folder};
    return read_config(settings.text("model.config"), from, defects);
  }
  const std::string kind = settings.text("model.family");
  return ModelFields{"custom-" + kind, kind, {}};
}

// Everything that the families need, and nothing that they do not have.
bool check_fields(Settings& settings, const ModelFields& fields) {
  bool sound = true;
  for (const char* needed : {"sequence", "layers", "hidden", "ffn", "heads", "vocab"}) {
    const std::string path = std::string("model.") + needed;
    if (fields.numbers.contains(needed) || !settings.good({path})) continue;
    const Key& key = *key_of(scenario_keys(), path);
    settings.refuse(
        path,
        "this key is missing for a model of family " + fields.family + "; allowed: " + allowed_by(key),
        "add '" + std::string(needed) + ":' to model (" + std::string(key.meaning) + ")");
    sound = false;
  }
  const bool llama = fields.family == "llama";
  for (const char* name : {"kv_heads", "head_dim", "qkv_bias", "qk_norm", "experts", "experts_per_token", "rope_theta", "max_positions", "token_types"}) {
    const std::string path = std::string("model.") + name;
    const bool of_llama = path != "model.max_positions" && path != "model.token_types";
    const bool exists = path == "model.token_types" ? fields.family == "bert" : of_llama == llama;
    if (exists || !settings.given(path)) continue;
    settings.refuse(path,
                    "models of family " + fields.family + " have no " + name + "; allowed: leave it out",
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
    settings.refuse("model.experts_per_token", "there are no experts; allowed: leave it out", "remove it, or set model.experts");
  if (experts > 0 && each == 0)
    settings.refuse("model.experts_per_token", "this key is missing with " + several + "; allowed: 1 to " + std::to_string(experts),
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
  const double mlps = 3 * n("layers") * n("hidden") * n("ffn") * std::max(1.0, n("experts"));
  if (mlps > most)
    settings.refuse("model", "its MLPs have " + number_text(mlps) + " parameters, more than can be counted; allowed: up to 9e16",
                    "make model.layers, hidden, ffn or experts smaller");
}

// Shapes that no layout can make right.
bool check_shape(Settings& settings, const ModelFields& fields) {
  const std::int64_t hidden = whole(fields, "hidden"), heads = whole(fields, "heads");
  const std::int64_t kv_heads = whole(fields, "kv_heads"), sequence = whole(fields, "sequence");
  const std::size_t before = settings.refused();
  if (whole(fields, "head_dim") == 0 && hidden % heads != 0)
    settings.refuse(
        "model.heads",
        "heads = " + std::to_string(heads) + " does not divide hidden = " + std::to_string(hidden) +
            "; allowed: a divisor of hidden" + (fields.family == "llama" ? ", or give head_dim" : ""),
        "change model.heads or model.hidden");
  const std::int64_t width = whole(fields, "head_dim") > 0 ? whole(fields, "head_dim") : hidden / heads;
  if (fields.family == "llama" && width % 2 != 0 && hidden % heads == 0)
    settings.refuse(
        "model.head_dim",
        "heads of width " + std::to_string(width) + " cannot be rotated in pairs; allowed: even widths",
        "change model.heads, model.hidden or model.head_dim");
  check_experts(settings, fields);
  check_size(settings, fields);
  if (kv_heads > 0 && heads % kv_heads != 0)
    settings.refuse("model.kv_heads",
                    "kv_heads = " + std::to_string(kv_heads) + " does not divide heads = " +
                        std::to_string(heads) + "; allowed: a divisor of heads",
                    "change model.kv_heads or model.heads");
  if (fields.family != "llama" && sequence > whole(fields, "max_positions"))
    settings.refuse("model.sequence",
                    "sequence = " + std::to_string(sequence) + " is longer than the position table with " +
                        std::to_string(whole(fields, "max_positions")) + " rows; allowed: up to its rows",
                    "shorten model.sequence or set model.max_positions");
  if (const std::int64_t window = whole(fields, "window"); window > 0 && sequence > window)
    settings.refuse("model.sequence",
                    "sequence = " + std::to_string(sequence) + " is longer than the sliding window of " +
                        std::to_string(window) +
                        " tokens, which is not modelled; allowed: up to the window",
                    "set model.sequence to " + std::to_string(window) + " or less");
  return settings.refused() == before;
}

Model model_from(const ModelFields& fields) {
  const auto n = [&](std::string_view name) { return whole(fields, name); };
  const bool tied = n("tied") != 0;
  const double epsilon = fields.numbers.find("norm_epsilon")->second;
  if (fields.family == "gpt")
    return gpt(fields.name, {n("layers"), n("hidden"), n("ffn"), n("heads"), n("vocab"), n("max_positions"),
                             n("sequence"), tied, epsilon});
  if (fields.family == "bert")
    return bert(fields.name, {n("layers"), n("hidden"), n("ffn"), n("heads"), n("vocab"),
                              n("max_positions"), n("token_types"), n("sequence"), tied, epsilon});
  return llama(fields.name,
               {n("layers"), n("hidden"), n("ffn"), n("heads"), n("kv_heads"), n("vocab"), n("sequence"),
                tied, fields.numbers.find("rope_theta")->second, epsilon, n("head_dim"), n("qkv_bias") != 0, n("qk_norm") != 0, n("experts"),
                n("experts_per_token")});
}

std::vector<Key> library_table() {
  std::vector<Key> keys = {
      {.path = "name", .type = KeyType::text, .meaning = "the file's name"},
      {.path = "source", .type = KeyType::text, .meaning = "where the shapes are published"}};
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    if (!shape_key(*key) && key->path != "model.family") continue;
    keys.push_back(*key);
    keys.back().path = leaf_of(key->path);
    keys.back().required = key->path == "model.family";
  }
  return keys;
}

}  // namespace

std::span<const Key> library_keys() {
  static const std::vector<Key> keys = library_table();
  return keys;
}

std::optional<ModelFields> library_model(const std::string& name, Defects& defects) {
  const auto files = embedded_models();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& each) { return each.name == name; });
  if (file == files.end()) return std::nullopt;
  const std::size_t before = defects.size();
  std::optional<Value> document = parse_document(std::string(file->text), std::string(file->path), defects);
  if (!document) return std::nullopt;
  const Settings settings(std::move(*document), library_keys(), defects);
  if (defects.size() != before) return std::nullopt;
  ModelFields fields{name, settings.text("family"), {}};
  read_shape(settings, "", fields);
  return fields;
}

std::optional<Model> load_model(Settings& settings, const std::string& folder) {
  if (!settings.good({"model"})) return std::nullopt;
  std::optional<ModelFields> fields = referenced(settings, folder, settings.defects());
  if (!fields) return std::nullopt;
  bool known = true;
  for (const Key* key : keys_below(scenario_keys(), "model")) known = known && settings.good({key->path});
  read_shape(settings, "model.", *fields);
  fill_defaults(*fields);
  if (whole(*fields, "experts") == 0 && !settings.given("model.experts_per_token")) fields->numbers.erase("experts_per_token");
  if (!check_fields(settings, *fields) || !known || !check_shape(settings, *fields)) return std::nullopt;
  return model_from(*fields);
}

}  // namespace slipway
