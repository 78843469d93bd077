// Hugging Face config.json. What its fields mean is data, one file a model_type (models/model/families/<model_type>.yaml),
// read through the same tree as everything else (JSON is YAML), so that errors have lines:
//
//   like:     another family, whose file is read first
//   family:   ours
//   reads:    {our key: their field}                      must be there
//   optional: {our key: their field}                      may be missing
//             "a * b" and "a * 4" are products, "a + 2" is a sum
//   sets:     {our key: value}                            where nothing is read
//   when:     [{field: f, is: v, sets: {...}}]            also reads: and allows:; with `missing: true` also where there is
//             no such field
//   allows:   {their field: [values]}                     others change blocks in a way that is not modelled;
//             "=other" allows what that field has
//   requires: [their fields]                              that must be there beside those of `reads`
//   numbers:  {their field: [values]}                     others change numbers, not a step's time or memory
//
// Guarded by tests/scenarios/hugging_face_test.cpp: parameter counts as transformers counts them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/profiles.h"
#include "scenarios/language/quantity.h"

namespace slipway::scenarios {

namespace {

void refuse(const Value& at, std::string_view key, const std::string& message, const std::string& remedy,
            Defects& defects) {
  defects.push_back({at.origin.file, at.origin.line, std::string(key), message, remedy});
}

bool is_missing(const Value* value) { return value == nullptr || value->kind == Value::Kind::nothing; }

// The families.

std::string all_families() {
  std::string text;
  for (const EmbeddedFile& file : embedded_families()) text += (text.empty() ? "" : ", ") + std::string(file.name);
  return text;
}

const EmbeddedFile* family_named(std::string_view type) {
  const auto files = embedded_families();
  const auto found = std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& f) { return f.name == type; });
  return found == files.end() ? nullptr : &*found;
}

// Maps of `over` are laid over those of `base`, its rules come behind, and nothing (~) takes an entry away.
void lay_over(Value& base, const Value& over) {
  for (const Entry& entry : over.entries) {
    Value* known = base.find(entry.key);
    if (entry.value.kind == Value::Kind::nothing)
      std::erase_if(base.entries, [&](const Entry& each) { return each.key == entry.key; });
    else if (known == nullptr)
      base.entries.push_back(entry);
    else if (known->kind == Value::Kind::map)
      lay_over(*known, entry.value);
    else if (known->kind == Value::Kind::list && entry.key == "when")
      known->items.insert(known->items.end(), entry.value.items.begin(), entry.value.items.end());
    else
      *known = entry.value;
  }
}

// The file of an existing family. These files are part of the program, so a mistake in one is a defect of Slipway.
Value family_file(std::string_view type) {
  const EmbeddedFile* file = family_named(type);
  if (file == nullptr) throw std::logic_error("no family " + std::string(type));
  Defects defects;
  std::optional<Value> document = parse_document(std::string(file->text), std::string(file->path), defects);
  if (!document || !defects.empty()) throw std::logic_error(std::string(file->path) + " does not parse");
  const Value* like = document->find("like");
  if (like == nullptr) return *document;
  Value base = family_file(like->text);
  lay_over(base, *document);
  return base;
}

const std::vector<Entry>& entries_of(const Value& map, std::string_view key) {
  static const std::vector<Entry> none;
  const Value* value = map.find(key);
  return value == nullptr ? none : value->entries;
}

const std::vector<Value>& items_of(const Value& map, std::string_view key) {
  static const std::vector<Value> none;
  const Value* value = map.find(key);
  return value == nullptr ? none : value->items;
}

std::string listed(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values)
    text += (text.empty() ? "" : ", ") + (value.text.starts_with('=') ? "that of " + value.text.substr(1) : value.text);
  return text;
}

// "1" and "1.0" are one number.
bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = quantity(a, Unit::pure), y = quantity(b, Unit::pure);
  return x && y && *x == *y;
}

// Reads one config.
class ConfigReader {
 public:
  ConfigReader(const Value& config, Value family, Defects& defects)
      : config_(config), family_(std::move(family)), defects_(defects) {}

  ModelFields read(std::string name) {
    fields_.name = std::move(name);
    fields_.family = family_.find("family")->text;
    for (const Entry& entry : entries_of(family_, "sets")) set(entry.key, entry.value.text);
    for (const Value& rule : items_of(family_, "when")) apply(rule);
    for (const Entry& entry : entries_of(family_, "reads")) read_field(entry.key, entry.value.text, true);
    for (const Entry& entry : entries_of(family_, "optional")) read_field(entry.key, entry.value.text, false);
    for (const Value& field : items_of(family_, "requires"))
      if (is_missing(config_.find(field.text)))
        refuse(config_, field.text, "the field is missing; allowed: any value of it", "add it to the config", defects_);
    for (const Entry& entry : entries_of(family_, "allows")) check_allowed(entry);
    for (const Entry& entry : entries_of(family_, "numbers")) note_numbers(entry);
    read_rope();
    read_layer_types();
    read_layers_without_positions();
    read_layers_without_experts();
    return std::move(fields_);
  }

 private:
  void set(const std::string& key, const std::string& text) {
    const Key* known = key_of(scenario_keys(), "model." + key);
    if (known == nullptr) throw std::logic_error("a family sets model." + key + ", which is no key");
    if (known->type == KeyType::choice)
      fields_.words[key] = text;
    else
      fields_.numbers[key] =
          known->type == KeyType::flag ? (text == "true" ? 1.0 : 0.0) : quantity(text, Unit::pure).value_or(0);
  }

  bool is(const Value& rule) const {
    const Value* value = config_.find(rule.find("field")->text);
    if (is_missing(value)) return rule.find("missing") != nullptr && rule.find("missing")->text == "true";
    return same(value->text, rule.find("is")->text);
  }

  void apply(const Value& rule) {
    if (!is(rule)) return;
    for (const Entry& entry : entries_of(rule, "sets")) set(entry.key, entry.value.text);
    for (const Entry& entry : entries_of(rule, "reads")) read_field(entry.key, entry.value.text, true);
    for (const Entry& entry : entries_of(rule, "allows")) check_allowed(entry);
  }

  // `theirs`: "a", "a * b", "a * 4" or "a + 2".
  void read_field(const std::string& ours, const std::string& theirs, bool required) {
    const std::size_t space = theirs.find(' ');
    const std::string first = theirs.substr(0, space);
    const std::optional<std::string> text = checked(ours, first, required);
    if (!text) return;
    if (space == std::string::npos) return set(ours, *text);
    const std::string second = theirs.substr(space + 3);
    const double a = quantity(*text, Unit::pure).value_or(0);
    const std::optional<double> number = quantity(second, Unit::pure);
    if (theirs[space + 1] == '+') return set(ours, number_text(a + number.value_or(0)));
    if (number) return set(ours, number_text(a * *number));
    const std::optional<std::string> factor = checked(ours, second, required);
    if (factor) set(ours, number_text(a * quantity(*factor, Unit::pure).value_or(0)));
  }

  // The field's text, if it is there and may be a value of our key. Errors name their field.
  std::optional<std::string> checked(const std::string& ours, const std::string& theirs, bool required) {
    const Value* value = config_.find(theirs);
    const Key& key = *key_of(scenario_keys(), "model." + ours);
    if (is_missing(value)) {
      if (required)
        refuse(value == nullptr ? config_ : *value, theirs, "the field is missing; allowed: " + allowed_by(key),
               "add it to the config", defects_);
      return std::nullopt;
    }
    if (const std::string problem = wrong_with(key, *value); !problem.empty()) {
      refuse(*value, theirs, problem + "; allowed: " + allowed_by(key), "correct the config", defects_);
      return std::nullopt;
    }
    return value->text;
  }

  void check_allowed(const Entry& entry) {
    const Value* value = config_.find(entry.key);
    if (is_missing(value)) return;
    for (const Value& allowed : entry.value.items) {
      if (!allowed.text.starts_with('=') && same(allowed.text, value->text)) return;
      if (!allowed.text.starts_with('=')) continue;
      const Value* other = config_.find(allowed.text.substr(1));
      if (is_missing(other) || same(other->text, value->text)) return;
    }
    refuse(*value, entry.key, in_words(*value) + " is not modelled; allowed: " + listed(entry.value.items),
           "use a model without it", defects_);
  }

  void note_numbers(const Entry& entry) {
    const Value* value = config_.find(entry.key);
    if (is_missing(value)) return;
    const auto& neutral = entry.value.items;
    if (value->kind == Value::Kind::scalar &&
        std::any_of(neutral.begin(), neutral.end(), [&](const Value& each) { return same(each.text, value->text); }))
      return;
    fields_.only_predicted.push_back(entry.key);
  }

  // Newer configs keep the base of the rotary angles in a separate map, or in one map for each kind of layer.
  void read_rope() {
    for (const char* field : {"partial_rotary_factor", "rotary_pct"})
      if (const Value* share = config_.find(field); !is_missing(share)) read_fraction(*share);
    const bool rotary = fields_.family == "llama" && !fields_.words.contains("positions");
    const Value* rope = config_.find("rope_parameters");
    if (rotary && rope != nullptr && rope->kind == Value::Kind::map) {
      const Value* full = rope->find("full_attention");
      const Value* sliding = rope->find("sliding_attention");
      read_rope_of(full != nullptr ? *full : *rope, "rope_theta");
      if (sliding != nullptr) read_rope_of(*sliding, "window_rope_theta");
    }
    const Value* scaling = config_.find("rope_scaling");
    if (rotary && scaling != nullptr && scaling->kind == Value::Kind::map) note_scaling(*scaling, "rope_scaling");
    // The turned share of a head; 1 is all of it.
    if (fraction_ >= 1) return;
    const double hidden = fields_.numbers["hidden"], heads = std::max(1.0, fields_.numbers["heads"]);
    const double width =
        fields_.numbers.contains("head_dim") ? fields_.numbers["head_dim"] : std::floor(hidden / heads);
    fields_.numbers["rope_head_dim"] = std::floor(width * fraction_);
  }

  void read_rope_of(const Value& rope, const std::string& ours) {
    if (const Value* theta = rope.find("rope_theta"); !is_missing(theta)) {
      const Key& key = *key_of(scenario_keys(), "model." + ours);
      if (const std::string problem = wrong_with(key, *theta); !problem.empty())
        return refuse(*theta, "rope_theta", problem + "; allowed: " + allowed_by(key), "correct the config", defects_);
      set(ours, theta->text);
    }
    note_scaling(rope, "rope_parameters");
    if (const Value* fraction = rope.find("partial_rotary_factor"); !is_missing(fraction)) read_fraction(*fraction);
  }

  void note_scaling(const Value& rope, const char* field) {
    const Value* kind = rope.find("rope_type");
    if (is_missing(kind)) kind = rope.find("type");
    if (is_missing(kind) || kind->text == "default") return;
    if (std::find(fields_.only_predicted.begin(), fields_.only_predicted.end(), field) == fields_.only_predicted.end())
      fields_.only_predicted.emplace_back(field);
  }

  void read_fraction(const Value& value) {
    const std::optional<double> number = quantity(value.text, Unit::pure);
    if (!number || *number <= 0 || *number > 1)
      return refuse(value, "partial_rotary_factor", in_words(value) + " is no share; allowed: above 0 and up to 1",
                    "correct the config", defects_);
    fraction_ = *number;
  }

  // Layers with a window among those without one: of every `full_every` the last is without.
  void read_layer_types() {
    const Value* types = config_.find("layer_types");
    if (is_missing(types) || types->kind != Value::Kind::list) return;
    std::vector<bool> full;
    for (const Value& type : types->items) {
      const bool windowed = type.text == "sliding_attention" || type.text == "chunked_attention";
      if (!windowed && type.text != "full_attention")
        return refuse(
            type, "layer_types",
            in_words(type) + " is not modelled; allowed: full_attention, sliding_attention, chunked_attention",
            "use a model without it", defects_);
      full.push_back(!windowed);
    }
    read_pattern(full, *types, "layer_types");
  }

  void read_pattern(const std::vector<bool>& full, const Value& at, const char* field) {
    const std::optional<std::int64_t> every = period_of_last(full);
    if (!every)
      return refuse(at, field, "layers without a window are not the last of every so many; allowed: a period",
                    "use a model with one", defects_);
    if (*every > 1) {
      fields_.numbers["full_every"] = static_cast<double>(*every);
      return;
    }
    fields_.numbers.erase("full_every");
    if (*every == 1)
      for (const char* key : {"window", "window_rope_theta"}) fields_.numbers.erase(key);
  }

  // Llama 4: layers that are 0 here have no positions and see everything.
  void read_layers_without_positions() {
    const Value* layers = config_.find("no_rope_layers");
    if (is_missing(layers) || layers->items.empty() || !fields_.words.contains("full_positions")) return;
    std::vector<bool> full;
    for (const Value& each : layers->items) full.push_back(each.text == "0");
    read_pattern(full, *layers, "no_rope_layers");
  }

  void read_layers_without_experts() {
    const Value* plain = config_.find("mlp_only_layers");
    if (!is_missing(plain) && (plain->kind != Value::Kind::list || !plain->items.empty()))
      refuse(*plain, "mlp_only_layers",
             "layers without experts among those with them cannot be read; allowed: an empty list",
             "use a model without them", defects_);
    const Value* with = config_.find("moe_layers");
    if (is_missing(with) || with->items.empty()) return;
    const auto every = static_cast<std::int64_t>(std::max(1.0, fields_.numbers["experts_every"]));
    for (std::size_t i = 0; i < with->items.size(); ++i)
      if (whole_number(with->items[i].text) != static_cast<std::int64_t>(i + 1) * every - 1)
        return refuse(*with, "moe_layers", "they are not the last of every interleave_moe_layer_step; allowed: these",
                      "use a model without other ones", defects_);
  }

  const Value& config_;
  Value family_;
  Defects& defects_;
  ModelFields fields_;
  double fraction_ = 1;
};

// Contents of blocks that are not modelled, by a field that only they have. They are reported before the model_type is
// looked up, because the reason is more useful than an unknown name.
const std::pair<std::string_view, std::string_view> unknown_blocks[] = {
    {"hybrid_override_pattern", "layers of state spaces (Mamba) beside attention"},
    {"ssm_state_size", "layers of state spaces (Mamba)"},
    {"linear_num_value_heads", "linear attention (gated delta nets)"},
    {"hc_mult", "hyper-connections"},
    {"index_topk", "sparse attention with an indexer"},
    {"enable_moe_block", "experts beside an MLP in each layer"},
};

bool refuse_unknown_blocks(const Value& config, Defects& defects) {
  for (const auto& [field, words] : unknown_blocks) {
    const Value* value = config.find(field);
    if (is_missing(value) || value->text == "false") continue;
    refuse(*value, field, "not modelled: " + std::string(words) + "; allowed: Transformer layers with attention",
           "use a model of another family", defects);
    return true;
  }
  return false;
}

const Value* type_of(const Value& config, Defects& defects) {
  const std::string allowed = "allowed model_type: " + all_families();
  const Value* type = config.find("model_type");
  if (type == nullptr) {
    refuse(config, "model_type", "the field is missing; " + allowed, "add it, or give model.family and the shapes",
           defects);
    return nullptr;
  }
  if (family_named(type->text) != nullptr) return type;
  const std::pair<std::string_view, std::string_view> marks[] = {{"num_local_experts", "mixtures of experts"},
                                                                 {"n_routed_experts", "mixtures of experts"},
                                                                 {"num_experts", "mixtures of experts"},
                                                                 {"kv_lora_rank", "latent attention"}};
  for (const auto& [field, words] : marks)
    if (const Value* value = config.find(field); !is_missing(value) && whole_number(value->text).value_or(0) > 0) {
      refuse(*value, field,
             std::string(words) + " of the unknown model_type " + in_words(*type) + " cannot be read; " + allowed,
             "give model.family and the shapes, if its blocks are among those of model.*", defects);
      return nullptr;
    }
  refuse(*type, "model_type", "the family " + in_words(*type) + " is not known; " + allowed,
         "give model.family and the shapes if its blocks are the same as one of these", defects);
  return nullptr;
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
  const std::optional<Value> document = read_document(file, from.origin, from.key, defects);
  if (!document) return std::nullopt;
  if (document->kind != Value::Kind::map) {
    refuse(*document, "", in_words(*document) + " is not a map; allowed: a Hugging Face config.json",
           "give the path of the model's config.json", defects);
    return std::nullopt;
  }
  const Value* text = document->find("text_config");
  const bool inside = text != nullptr && text->kind == Value::Kind::map;
  const Value& config = inside ? *text : *document;
  if (refuse_unknown_blocks(config, defects)) return std::nullopt;
  const Value* type = type_of(config, defects);
  if (type == nullptr) return std::nullopt;
  ModelFields fields = ConfigReader(config, family_file(type->text), defects).read(name_from(file));
  if (defects.size() != before) return std::nullopt;
  return fields;
}

}  // namespace slipway::scenarios
