#include "scenarios/language/load_model.h"

#include <algorithm>
#include <filesystem>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

namespace {

bool shape_key(const Key& key) {
  return key.type == KeyType::integer || key.type == KeyType::number || key.type == KeyType::flag;
}

// Copies the shape keys that `settings` holds below `prefix`.
void read_shape(const Settings& settings, const std::string& prefix, ModelFields& fields) {
  for (const Key* key : keys_below(scenario_keys(), "model")) {
    const std::string name(leaf_of(key->path));
    if (!shape_key(*key) || !settings.given(prefix + name)) continue;
    fields.numbers[name] =
        key->type == KeyType::flag ? (settings.flag(prefix + name) ? 1.0 : 0.0) : settings.number(prefix + name);
  }
}

void set_if_absent(ModelFields& fields, const std::string& name, double value) { fields.numbers.emplace(name, value); }

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
    set_if_absent(fields, "shared_ffn", 0);
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
  return ModelFields{"custom-" + kind, kind, {}};
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
  const bool llama = fields.family == "llama";
  for (const char* name : {"kv_heads", "head_dim", "qkv_bias", "qk_norm", "experts", "experts_per_token", "shared_ffn",
                           "rope_theta", "max_positions", "token_types"}) {
    const std::string path = std::string("model.") + name;
    const bool of_llama = path != "model.max_positions" && path != "model.token_types";
    const bool exists = path == "model.token_types" ? fields.family == "bert" : of_llama == llama;
    if (exists || !settings.given(path)) continue;
    settings.refuse(path, "models of family " + fields.family + " have no " + name + "; allowed: leave it out",
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
  const double mlps = 3 * n("layers") * n("hidden") * (n("ffn") * std::max(1.0, n("experts")) + n("shared_ffn"));
  if (mlps > most)
    settings.refuse("model",
                    "its MLPs have " + number_text(mlps) + " parameters, more than can be counted; allowed: up to 9e16",
                    "make model.layers, hidden, ffn or experts smaller");
}

// Shapes that no layout can make right.
bool check_shape(Settings& settings, const ModelFields& fields) {
  const std::int64_t hidden = whole(fields, "hidden"), heads = whole(fields, "heads");
  const std::int64_t kv_heads = whole(fields, "kv_heads"), sequence = whole(fields, "sequence");
  const std::size_t before = settings.refused();
  if (whole(fields, "head_dim") == 0 && hidden % heads != 0)
    settings.refuse("model.heads",
                    "heads = " + std::to_string(heads) + " does not divide hidden = " + std::to_string(hidden) +
                        "; allowed: a divisor of hidden" + (fields.family == "llama" ? ", or give head_dim" : ""),
                    "change model.heads or model.hidden");
  const std::int64_t width = whole(fields, "head_dim") > 0 ? whole(fields, "head_dim") : hidden / heads;
  if (fields.family == "llama" && width % 2 != 0 && hidden % heads == 0)
    settings.refuse("model.head_dim",
                    "heads of width " + std::to_string(width) + " cannot be rotated in pairs; allowed: even widths",
                    "change model.heads, model.hidden or model.head_dim");
  check_experts(settings, fields);
  check_size(settings, fields);
  if (kv_heads > 0 && heads % kv_heads != 0)
    settings.refuse("model.kv_heads",
                    "kv_heads = " + std::to_string(kv_heads) + " does not divide heads = " + std::to_string(heads) +
                        "; allowed: a divisor of heads",
                    "change model.kv_heads or model.heads");
  if (fields.family != "llama" && sequence > whole(fields, "max_positions"))
    settings.refuse("model.sequence",
                    "sequence = " + std::to_string(sequence) + " is longer than the position table with " +
                        std::to_string(whole(fields, "max_positions")) + " rows; allowed: up to its rows",
                    "shorten model.sequence or set model.max_positions");
  if (const std::int64_t window = whole(fields, "window"); window > 0 && sequence > window)
    settings.refuse("model.sequence",
                    "sequence = " + std::to_string(sequence) + " is longer than the sliding window of " +
                        std::to_string(window) + " tokens, which is not modelled; allowed: up to the window",
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
    return bert(fields.name, {n("layers"), n("hidden"), n("ffn"), n("heads"), n("vocab"), n("max_positions"),
                              n("token_types"), n("sequence"), tied, epsilon});
  return llama(fields.name,
               {n("layers"), n("hidden"), n("ffn"), n("heads"), n("kv_heads"), n("vocab"), n("sequence"), tied,
                fields.numbers.find("rope_theta")->second, epsilon, n("head_dim"), n("qkv_bias") != 0,
                n("qk_norm") != 0, n("experts"), n("experts_per_token"), n("shared_ffn")});
}

std::vector<Key> library_table() {
  std::vector<Key> keys = {{.path = "name", .type = KeyType::text, .meaning = "the file's name"},
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
  if (whole(*fields, "experts") == 0 && !settings.given("model.experts_per_token"))
    fields->numbers.erase("experts_per_token");
  if (!check_fields(settings, *fields) || !known || !check_shape(settings, *fields)) return std::nullopt;
  return model_from(*fields);
}

// Hugging Face config.json: the fields of a few families, read through the same tree as everything else
// (JSON is YAML), so that errors have lines.

namespace {

struct Field {
  std::string_view ours, theirs;
  bool required = true;
};

// `family` is ours, `type` is their model_type.
struct Dialect {
  std::string_view type, family;
  std::vector<Field> fields;
  std::string_view feature = {};  // of ours, that it has without a field for it
};

const std::vector<Field> llama_fields = {{"layers", "num_hidden_layers"},
                                         {"hidden", "hidden_size"},
                                         {"ffn", "intermediate_size"},
                                         {"heads", "num_attention_heads"},
                                         {"kv_heads", "num_key_value_heads", false},
                                         {"head_dim", "head_dim", false},
                                         {"vocab", "vocab_size"},
                                         {"sequence", "max_position_embeddings"},
                                         {"rope_theta", "rope_theta", false},
                                         {"norm_epsilon", "rms_norm_eps", false},
                                         {"tied", "tie_word_embeddings", false}};

// Where a config leaves these two out, others take 128 and 32, which are no model's own.
const std::vector<Field> qwen3_fields = [] {
  std::vector<Field> fields = llama_fields;
  for (Field& field : fields) field.required |= field.ours == "head_dim" || field.ours == "kv_heads";
  return fields;
}();

std::vector<Field> with_experts(std::vector<Field> fields, std::string_view width, std::string_view experts) {
  for (Field& field : fields)
    if (field.ours == "ffn") field.theirs = width;
  fields.push_back({"experts", experts});
  fields.push_back({"experts_per_token", "num_experts_per_tok"});
  return fields;
}

const Dialect dialects[] = {
    {"llama", "llama", llama_fields},
    {"mistral", "llama", llama_fields},
    {"mixtral", "llama", with_experts(llama_fields, "intermediate_size", "num_local_experts")},
    {"qwen2", "llama", llama_fields, "qkv_bias"},
    {"qwen3", "llama", qwen3_fields, "qk_norm"},
    {"qwen3_moe", "llama", with_experts(qwen3_fields, "moe_intermediate_size", "num_experts"), "qk_norm"},
    {"phi3", "llama", llama_fields},  // its packed matrices hold the same numbers
    {"gpt2",
     "gpt",
     {{"layers", "n_layer"},
      {"hidden", "n_embd"},
      {"ffn", "n_inner", false},
      {"heads", "n_head"},
      {"vocab", "vocab_size"},
      {"max_positions", "n_positions"},
      {"norm_epsilon", "layer_norm_epsilon", false},
      {"tied", "tie_word_embeddings", false}}},
    {"bert",
     "bert",
     {{"layers", "num_hidden_layers"},
      {"hidden", "hidden_size"},
      {"ffn", "intermediate_size"},
      {"heads", "num_attention_heads"},
      {"vocab", "vocab_size"},
      {"max_positions", "max_position_embeddings"},
      {"token_types", "type_vocab_size", false},
      {"norm_epsilon", "layer_norm_eps", false},
      {"tied", "tie_word_embeddings", false}}},
};

// What would change the blocks and is not modelled: `field` may only have one of these values.
struct Restriction {
  std::string_view of, field;  // a family of ours, or a model_type
  std::vector<std::string_view> supported;
  bool required = false;  // what is meant where it is missing is something else
};

const Restriction restrictions[] = {
    {"llama", "hidden_act", {"silu", "swish"}},
    {"llama", "attention_bias", {"false"}},
    {"llama", "mlp_bias", {"false"}},
    {"llama", "partial_rotary_factor", {"1", "1.0"}},
    {"qwen3_moe", "norm_topk_prob", {"true"}, true},
    {"qwen3_moe", "decoder_sparse_step", {"1"}},
    {"qwen3_moe", "shared_expert_intermediate_size", {"0"}},
    {"mixtral", "router_jitter_noise", {"0", "0.0"}},
    {"gpt", "activation_function", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}},
    {"gpt", "add_cross_attention", {"false"}},
    {"bert", "hidden_act", {"gelu", "gelu_new"}},
    {"bert", "position_embedding_type", {"absolute"}},
    {"bert", "add_cross_attention", {"false"}},
};

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

void refuse(const Value& at, std::string_view key, const std::string& message, const std::string& remedy,
            Defects& defects) {
  defects.push_back({at.origin.file, at.origin.line, std::string(key), message, remedy});
}

const Dialect* dialect_named(const Value* type) {
  if (type == nullptr) return nullptr;
  const Dialect* found = std::find_if(std::begin(dialects), std::end(dialects),
                                      [&](const Dialect& dialect) { return type->text == dialect.type; });
  return found == std::end(dialects) ? nullptr : found;
}

bool has_experts(const Dialect& dialect) {
  return std::any_of(dialect.fields.begin(), dialect.fields.end(),
                     [](const Field& field) { return field.ours == "experts"; });
}

// Other mixtures of experts have shared ones, groups of them or other routers; latent attention has a reserved name and
// no code yet. True if found.
bool refuse_unknown_blocks(const Value& config, Defects& defects) {
  const std::pair<std::string_view, std::string_view> marks[] = {
      {"num_local_experts", "moe"}, {"n_routed_experts", "moe"}, {"num_experts", "moe"}, {"kv_lora_rank", "mla"}};
  const Dialect* dialect = dialect_named(config.find("model_type"));
  for (const auto& [field, kind] : marks) {
    const Value* value = config.find(field);
    if (kind == "moe" && dialect != nullptr && has_experts(*dialect)) continue;
    if (value == nullptr || whole_number(value->text).value_or(0) <= 0) continue;
    if (kind == "moe")
      refuse(*value, field,
             "mixtures of experts of this model_type are not modelled; allowed: those of mixtral and qwen3_moe",
             "use one of these, or a model without experts", defects);
    else
      refuse(*value, field,
             "multi-head latent attention (mla) is reserved and not modelled yet; allowed: other attention",
             "use a model of another family", defects);
    return true;
  }
  return false;
}

const Dialect* dialect_of(const Value& config, Defects& defects) {
  const std::string allowed = "allowed model_type: llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, phi3, gpt2, bert";
  const Value* type = config.find("model_type");
  if (type == nullptr) {
    refuse(config, "model_type", "the field is missing; " + allowed, "add it, or give model.family and the shapes",
           defects);
    return nullptr;
  }
  if (const Dialect* dialect = dialect_named(type)) return dialect;
  refuse(*type, "model_type", "the family " + in_words(*type) + " is not known; " + allowed,
         "give model.family and the shapes if its blocks are the same as one of these", defects);
  return nullptr;
}

void read_field(const Value& config, const Field& field, ModelFields& fields, Defects& defects) {
  const Value* value = config.find(field.theirs);
  if (value == nullptr || value->kind == Value::Kind::nothing) {
    if (field.required)
      refuse(
          value == nullptr ? config : *value, field.theirs,
          "the field is missing; allowed: " + allowed_by(*key_of(scenario_keys(), "model." + std::string(field.ours))),
          "add it to the config", defects);
    return;
  }
  const Key& key = *key_of(scenario_keys(), "model." + std::string(field.ours));
  if (const std::string problem = wrong_with(key, *value); !problem.empty()) {
    refuse(*value, field.theirs, problem + "; allowed: " + allowed_by(key), "correct the config", defects);
    return;
  }
  fields.numbers[std::string(field.ours)] =
      key.type == KeyType::flag ? (value->text == "true" ? 1.0 : 0.0) : quantity(value->text, Unit::pure).value_or(0);
}

void check_restrictions(const Value& config, const Dialect& dialect, Defects& defects) {
  for (const Restriction& rule : restrictions) {
    const Value* value = config.find(rule.field);
    if (rule.of != dialect.family && rule.of != dialect.type) continue;
    if (value == nullptr || value->kind == Value::Kind::nothing) {
      if (rule.required)
        refuse(config, rule.field, "the field is missing; allowed: " + listed(rule.supported), "add it to the config",
               defects);
      continue;
    }
    if (std::find(rule.supported.begin(), rule.supported.end(), value->text) == rule.supported.end())
      refuse(*value, rule.field, in_words(*value) + " is not modelled; allowed: " + listed(rule.supported),
             "use a model without it", defects);
  }
}

void check_layers_without_experts(const Value& config, const Dialect& dialect, Defects& defects) {
  const Value* plain = config.find("mlp_only_layers");
  if (plain == nullptr || plain->kind == Value::Kind::nothing || !has_experts(dialect)) return;
  if (plain->kind != Value::Kind::list || !plain->items.empty())
    refuse(*plain, "mlp_only_layers",
           "layers without experts among those with them cannot be read; allowed: an empty list",
           "use a model without them", defects);
}

// Attention looks back `window` tokens; only a sequence that fits into it is full attention.
void read_window(const Value& config, ModelFields& fields) {
  const Value* window = config.find("sliding_window");
  const Value* used = config.find("use_sliding_window");
  if (window == nullptr || (used != nullptr && used->text == "false")) return;
  if (const std::optional<std::int64_t> tokens = whole_number(window->text))
    fields.numbers["window"] = static_cast<double>(*tokens);
}

// Newer configs keep the base of the rotary angles in a map of its own.
void read_rope_parameters(const Value& config, ModelFields& fields, Defects& defects) {
  const Value* rope = config.find("rope_parameters");
  if (rope != nullptr && fields.family == "llama")
    read_field(*rope, {"rope_theta", "rope_theta", false}, fields, defects);
}

// "meta-llama/config.json" → "meta-llama"; "gpt2.json" → "gpt2".
std::string name_from(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().filename().string();
  return file.stem() == "config" && !folder.empty() ? folder : file.stem().string();
}

}  // namespace

std::optional<ModelFields> read_config(const std::string& path, const Reference& from, Defects& defects) {
  const std::size_t before = defects.size();
  const std::string file = resolve_path(from.folder, path);
  const std::optional<Value> config = read_document(file, from.origin, from.key, defects);
  if (!config) return std::nullopt;
  if (config->kind != Value::Kind::map) {
    refuse(*config, "", in_words(*config) + " is not a map; allowed: a Hugging Face config.json",
           "give the path of the model's config.json", defects);
    return std::nullopt;
  }
  if (refuse_unknown_blocks(*config, defects)) return std::nullopt;
  const Dialect* dialect = dialect_of(*config, defects);
  if (dialect == nullptr) return std::nullopt;
  ModelFields fields;
  fields.name = name_from(file);
  fields.family = dialect->family;
  for (const Field& field : dialect->fields) read_field(*config, field, fields, defects);
  if (!dialect->feature.empty()) fields.numbers[std::string(dialect->feature)] = 1;
  check_restrictions(*config, *dialect, defects);
  check_layers_without_experts(*config, *dialect, defects);
  read_window(*config, fields);
  read_rope_parameters(*config, fields, defects);
  if (defects.size() != before) return std::nullopt;
  return fields;
}

}  // namespace slipway::scenarios
