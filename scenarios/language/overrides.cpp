#include "scenarios/language/overrides.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace slipway::scenarios {

namespace {

void set_origin(Value& value, const Origin& origin) {
  value.origin = origin;
  for (Value& item : value.items) set_origin(item, origin);
  for (Entry& entry : value.entries) {
    entry.origin = origin;
    set_origin(entry.value, origin);
  }
}

void expand(Value& value, const Key& key) {
  if (key.shorthand.empty() || value.kind != Value::Kind::scalar) return;
  // "model: ./config.json" is a path, "model: llama-3.1-8b" a name.
  const bool path = key.path == "model" && looks_like_path(value.text);
  Value map;
  map.kind = Value::Kind::map;
  map.origin = value.origin;
  map.entries.push_back({path ? "config" : std::string(key.shorthand), value.origin, value});
  value = std::move(map);
}

struct Option {
  std::string key, text;
  Origin origin;
};

void refuse(const Option& option, const std::string& message, const std::string& remedy, Defects& defects) {
  defects.push_back({option.origin.file, 0, option.key, message, remedy});
}

// The item of a list that an index names; nullptr after an error.
Value* item_at(Value& list, const std::string& part, const std::string& path, const Option& option, Defects& defects) {
  const std::optional<std::int64_t> index = whole_number(part);
  if (index && *index >= 0 && static_cast<std::size_t>(*index) < list.items.size()) return &list.items[*index];
  refuse(option,
         "'" + part + "' is no item of " + path + "; allowed: 0 to " + std::to_string(list.items.size()) + " - 1",
         "count the items from 0", defects);
  return nullptr;
}

// Takes the key out again: what "key=" and "key=null" mean.
void unset(Value& document, std::string_view key) {
  Value* at = &document;
  while (at != nullptr && key.find('.') != std::string_view::npos) {
    const std::string_view part = key.substr(0, key.find('.'));
    if (at->kind == Value::Kind::list) {
      const std::optional<std::int64_t> index = whole_number(part);
      at = index ? &at->items[*index] : nullptr;
    } else {
      at = at->find(part);
    }
    key.remove_prefix(part.size() + 1);
  }
  if (at != nullptr) std::erase_if(at->entries, [&](const Entry& entry) { return entry.key == key; });
}

// Does the option name an item of a list that has none? A list is given as one value.
bool names_item_of_nothing(const Value& at, const std::string& path, const std::string& part,
                           std::span<const Key> table) {
  const Key* key = key_of(table, path);
  const bool nothing = at.items.empty() && at.entries.empty() && at.text.empty();
  return key != nullptr && key->type == KeyType::sections && nothing && whole_number(part).has_value();
}

// The place that option.key names, made where it does not exist; nullptr after an error.
Value* place_of_key(Value& document, const Option& option, std::span<const Key> table, Defects& defects) {
  Value* at = &document;
  std::string path, rest = option.key;
  while (!rest.empty()) {
    const std::string part = rest.substr(0, rest.find('.'));
    rest.erase(0, std::min(rest.size(), part.size() + 1));
    if (names_item_of_nothing(*at, path, part, table)) {
      const std::string item = rest.empty() ? "{...}" : "{" + rest + ": " + option.text + "}";
      refuse(option, path + " has no items yet", "give the list, for example --set '" + path + "=[" + item + "]'",
             defects);
      unset(document, path);  // an empty one would be a second mistake
      return nullptr;
    }
    if (at->kind == Value::Kind::list) {
      at = item_at(*at, part, path, option, defects);
      if (at == nullptr) return nullptr;
    } else if (at->kind == Value::Kind::scalar) {
      refuse(option, path + " is a plain value and has no keys below it", "set " + path + " itself", defects);
      return nullptr;
    } else {
      at->kind = Value::Kind::map;
      if (at->find(part) == nullptr) {
        at->entries.push_back({part, option.origin, Value{}});
        at->entries.back().value.origin = option.origin;
      }
      at = at->find(part);
    }
    path += (path.empty() ? "" : ".") + part;
    if (const Key* key = key_of(table, path); key != nullptr && !rest.empty()) expand(*at, *key);
  }
  return at;
}

// A path typed at the prompt is meant from where the user stands, not from where the scenario lies.
void anchor(Value& value, std::span<const Key> table, const std::string& path) {
  const Key* key = key_of(table, path);
  const bool file = key != nullptr && key->names_file && value.kind == Value::Kind::scalar &&
                    value.origin.file.starts_with("--set ") && !value.text.empty();
  if (file && (!key->built_in || looks_like_path(value.text)))
    value.text = std::filesystem::absolute(value.text).lexically_normal().string();
  for (std::size_t i = 0; i < value.items.size(); ++i) anchor(value.items[i], table, path + "." + std::to_string(i));
  for (Entry& entry : value.entries) anchor(entry.value, table, path.empty() ? entry.key : path + "." + entry.key);
}

void expand_at(Value& value, std::string_view rest, const Key& key) {
  if (rest.empty()) return expand(value, key);
  const std::string_view part = rest.substr(0, rest.find('.'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  if (part == "*") {
    for (Value& item : value.items) expand_at(item, rest, key);
  } else if (Value* inner = value.find(part)) {
    expand_at(*inner, rest, key);
  }
}

}  // namespace

void anchor_paths(Value& document, std::span<const Key> table) { anchor(document, table, ""); }

void expand_shorthands(Value& document, std::span<const Key> table) {
  for (const Key& key : table)
    if (!key.shorthand.empty()) expand_at(document, key.path, key);
}

void apply_override(const std::string& text, std::span<const Key> table, Value& document, Defects& defects) {
  const std::size_t equals = text.find('=');
  Option option{
      text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1), {"--set " + text, 0}};
  const bool empty_part = option.key.empty() || option.key.front() == '.' || option.key.back() == '.' ||
                          option.key.find("..") != std::string::npos;
  if (equals == std::string::npos || empty_part) {
    refuse(option, "this is not key=value", "write for example --set layout.tensor=4", defects);
    return;
  }
  if (option.text.find_first_not_of(' ') == std::string::npos || option.text == "null" || option.text == "~") {
    if (place_of_key(document, option, table, defects) != nullptr) unset(document, option.key);
    return;
  }
  Defects of_value;
  std::optional<Value> value = parse_document(option.text, option.origin.file, of_value);
  for (ScenarioError& defect : of_value) {
    defect.line = 0;
    defect.key = option.key + (defect.key.empty() ? "" : "." + defect.key);
    defects.push_back(defect);
  }
  if (!value) return;
  set_origin(*value, option.origin);
  if (Value* at = place_of_key(document, option, table, defects)) *at = std::move(*value);
}

}  // namespace slipway::scenarios
