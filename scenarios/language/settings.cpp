#include "scenarios/language/settings.h"

#include <algorithm>
#include <charconv>

#include "scenarios/language/layer_lists.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/overrides.h"

namespace slipway::scenarios {

namespace {

// Calls `visit(part)` for each part of "a.0.b" until it returns false.
template <typename Visit>
void each_part(std::string_view path, Visit visit) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    if (!visit(part)) return;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
}

const Value* below(const Value& value, std::string_view part) {
  if (value.kind != Value::Kind::list) return value.find(part);
  const std::optional<std::int64_t> index = whole_number(part);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= value.items.size()) return nullptr;
  return &value.items[*index];
}

Value sorted(const Value& value, std::span<const Key> table, const std::string& path) {
  Value result = value;
  result.items.clear();
  for (std::size_t i = 0; i < value.items.size(); ++i)
    result.items.push_back(sorted(value.items[i], table, path + "." + std::to_string(i)));
  if (value.kind != Value::Kind::map) return result;
  result.entries.clear();
  for (const Key* key : keys_below(table, path)) {
    const std::string name(leaf_of(key->path));
    const std::string full = path.empty() ? name : path + "." + name;
    if (const Value* found = value.find(name)) {
      result.entries.push_back({name, found->origin, sorted(*found, table, full)});
    } else if (!key->fallback.empty()) {
      result.entries.push_back({name, value.origin, scalar(std::string(key->fallback), value.origin)});
    } else if (key->type == KeyType::section && !key->required) {
      Value empty{.kind = Value::Kind::map, .origin = value.origin, .text = {}, .items = {}, .entries = {}};
      if (Value defaults = sorted(empty, table, full); !defaults.entries.empty())
        result.entries.push_back({name, value.origin, std::move(defaults)});
    }
  }
  return result;
}

// `allowed` omits a maximum that is only the type's. The error about a number above it prints it.
std::string out_of_range(const Key& key, const std::string& number, bool is_above) {
  if (!is_above || key.max < largest_int64) return number + " is out of range";
  const std::string most =
      key.type == KeyType::number ? bound_text(key.max, key.unit) : std::to_string(static_cast<std::int64_t>(key.max));
  return number + " is out of range (at most " + most + ")";
}

std::string not_whole(const Key& key, const Value& value) {
  if (value.kind != Value::Kind::scalar || value.quoted) return in_words(value) + " is not a whole number";
  const bool digits = value.text.find_first_not_of("+-0123456789") == std::string::npos;
  const std::optional<std::int64_t> number = whole_number(value.text);
  if (!number && !(digits && value.text.size() > 15)) return in_words(value) + " is not a whole number";
  if (!number || static_cast<double>(*number) < key.min || static_cast<double>(*number) > key.max)
    return out_of_range(key, value.text,
                        number ? static_cast<double>(*number) > key.max : !value.text.starts_with('-'));
  return "";
}

std::string not_number(const Key& key, const Value& value) {
  if (value.kind != Value::Kind::scalar || (value.quoted && key.unit == Unit::pure))
    return in_words(value) + " is not a number";
  const std::optional<double> number = quantity(value.text, key.unit);
  if (!number)
    return in_words(value) + (key.unit == Unit::pure ? " is not a number" : " is not a number with a fitting unit");
  if (key.wants_unit && quantity(value.text, Unit::pure)) return value.text + " has no unit";
  if (*number < key.min || *number > key.max || (key.above_min && *number <= key.min))
    return out_of_range(key, value.text, *number > key.max);
  return "";
}

std::string not_whole_numbers(const Key& key, const Value& value) {
  if (value.kind != Value::Kind::list) return in_words(value) + " is not a list";
  if (value.items.empty()) return "the list is empty";
  for (const Value& item : value.items)
    if (const std::string problem = not_whole(key, item); !problem.empty()) return problem;
  return "";
}

std::string not_chosen(const Key& key, const Value& value) {
  const std::vector<std::string_view> names = key.choices();
  const bool known =
      value.kind == Value::Kind::scalar && std::find(names.begin(), names.end(), value.text) != names.end();
  return known ? "" : in_words(value) + " is not known";
}

std::string not_words(const Key& key, const Value& value) {
  if (value.kind == Value::Kind::scalar) return not_chosen(key, value);  // a list of one
  if (value.kind != Value::Kind::list) return in_words(value) + " is not a list";
  for (const Value& item : value.items)
    if (std::string problem = not_chosen(key, item); !problem.empty()) return problem;
  return "";
}

// A layout names stages, so it is no word that was misspelled.
std::string not_a_split(const Key& key, const Value& value) {
  std::string problem = not_chosen(key, value);
  if (problem.empty() || value.kind != Value::Kind::scalar || value.text.find('|') == std::string::npos) return problem;
  const auto stages = pipeline_stages(value.text);
  if (!stages) return in_words(value) + " is no layout of stages as Et*4|(tttt|)*14tmL";
  const int last = static_cast<int>(stages->layers.size()) - 1;
  if (stages->prediction_stage >= 0 && stages->prediction_stage != last)
    return in_words(value) + " has multi-token prediction (m) before the last stage, which is not modelled";
  return "";
}

// The probable meaning of a word that is not a choice; empty: unknown.
std::string meant_by(const Key& key, const std::string& word) {
  std::string hint = key.hint != nullptr ? key.hint(word) : "";
  const std::vector<std::string_view> names = key.choices();
  return hint.empty() ? did_you_mean(nearest(word, {names.begin(), names.end()})) : hint;
}

std::string example_of(const Key& key, const Value& value) {
  const std::string name(leaf_of(key.path));
  if (key.type == KeyType::section) return "write '" + name + ":' and its keys indented below it";
  if (key.type == KeyType::sections) return "write '" + name + ":' and below it one '- {...}' per item";
  if (key.choices != nullptr && value.kind == Value::Kind::scalar)
    if (const std::string guess = meant_by(key, value.text); !guess.empty()) return guess;
  const std::string number =
      !key.fallback.empty() ? std::string(key.fallback) : number_text(key.above_min ? 1 : key.min);
  if (key.wants_unit && quantity(value.text, Unit::pure))
    return "write '" + name + ": " + value.text + " h' if these are hours";
  switch (key.type) {
    case KeyType::flag:
      return "write '" + name + ": true' or '" + name + ": false'";
    case KeyType::integers:
      return "write for example '" + name + ": [" + number_text(key.min) + "]'";
    case KeyType::words:
      return "write for example '" + name + ": [" + std::string(key.choices().front()) + "]'";
    case KeyType::integer:
    case KeyType::number:
      return "write for example '" + name + ": " + number + "'";
    case KeyType::text:
      return "write '" + name + ": some text'";
    default:
      return "choose one of the allowed values";
  }
}

}  // namespace

bool Settings::given(std::string_view path) const { return find(path) != nullptr; }

bool Settings::good(std::initializer_list<std::string_view> paths) const {
  return std::none_of(paths.begin(), paths.end(), [&](std::string_view path) {
    std::string prefix;
    bool bad = false;
    each_part(path, [&](std::string_view part) {
      prefix += (prefix.empty() ? "" : ".") + std::string(part);
      bad = bad_.contains(prefix);
      return !bad;
    });
    return bad;
  });
}

const Value* Settings::find(std::string_view path) const {
  if (!good({path})) return nullptr;
  const Value* at = &root_;
  each_part(path, [&](std::string_view part) { return (at = below(*at, part)) != nullptr; });
  return at;
}

std::string Settings::text(std::string_view path) const {
  if (const Value* value = find(path)) return value->text;
  const Key* key = key_of(table_, path);
  return key != nullptr ? std::string(key->fallback) : std::string();
}

std::int64_t Settings::integer(std::string_view path) const { return whole_number(text(path)).value_or(0); }

int Settings::small_integer(std::string_view path) const { return static_cast<int>(integer(path)); }

double Settings::number(std::string_view path) const {
  const Key* key = key_of(table_, path);
  return quantity(text(path), key != nullptr ? key->unit : Unit::pure).value_or(0);
}

bool Settings::flag(std::string_view path) const { return text(path) == "true"; }

std::vector<int> Settings::integers(std::string_view path) const {
  std::vector<int> numbers;
  if (const Value* value = find(path))
    for (const Value& item : value->items) numbers.push_back(static_cast<int>(whole_number(item.text).value_or(0)));
  return numbers;
}

std::vector<std::string> Settings::words(std::string_view path) const {
  std::vector<std::string> words;
  const Value* value = find(path);
  if (value == nullptr) return words;
  if (value->kind == Value::Kind::scalar) return {value->text};
  for (const Value& item : value->items) words.push_back(item.text);
  return words;
}

int Settings::length(std::string_view path) const {
  const Value* value = find(path);
  return value == nullptr ? 0 : static_cast<int>(value->items.size());
}

int Settings::choice(std::string_view path) const {
  const Key* key = key_of(table_, path);
  if (key == nullptr || key->choices == nullptr) return -1;
  const std::vector<std::string_view> names = key->choices();
  const auto found = std::find(names.begin(), names.end(), text(path));
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

Origin Settings::origin(std::string_view path) const {
  const Value* at = &root_;
  each_part(path, [&](std::string_view part) {
    const Value* next = below(*at, part);
    if (next != nullptr) at = next;
    return next != nullptr;
  });
  return at->origin;
}

void Settings::refuse(std::string_view path, std::string message, std::string remedy) {
  const Origin at = origin(path);
  defects_.push_back({at.file, at.line, std::string(path), std::move(message), std::move(remedy)});
  spoil(path);
}

void Settings::set(const std::string& path, Value value) {
  Value* at = &root_;
  each_part(path, [&](std::string_view part) {
    if (at->kind == Value::Kind::list) {
      at = const_cast<Value*>(below(*at, part));
      return at != nullptr;
    }
    at->kind = Value::Kind::map;
    if (at->find(part) == nullptr) at->entries.push_back({std::string(part), at->origin, Value{}});
    at = at->find(part);
    return true;
  });
  if (at != nullptr) *at = std::move(value);
}

Value Settings::completed() const { return sorted(root_, table_, ""); }

// Holding a document against its table: types, ranges, unknown and missing keys.

std::string wrong_with(const Key& key, const Value& value) {
  if (value.kind == Value::Kind::nothing) return "the key has no value";
  switch (key.type) {
    case KeyType::section:
      return value.kind == Value::Kind::map ? "" : in_words(value) + " is not a map";
    case KeyType::sections:
      if (value.kind != Value::Kind::list) return in_words(value) + " is not a list";
      return value.items.empty() ? "the list is empty" : "";
    case KeyType::integer:
      return not_whole(key, value);
    case KeyType::number:
      return not_number(key, value);
    case KeyType::text:
      return value.kind == Value::Kind::scalar && !value.text.empty() ? "" : in_words(value) + " is not text";
    case KeyType::flag: {
      const bool flag =
          value.kind == Value::Kind::scalar && !value.quoted && (value.text == "true" || value.text == "false");
      return flag ? "" : in_words(value) + " is neither true nor false";
    }
    case KeyType::choice:
      return not_chosen(key, value);
    case KeyType::integers:
      return not_whole_numbers(key, value);
    case KeyType::split:
      return value.kind == Value::Kind::list ? not_whole_numbers(key, value) : not_a_split(key, value);
    case KeyType::words:
      return not_words(key, value);
  }
  return "";
}

Settings::Settings(Value document, std::span<const Key> table, Defects& defects)
    : root_(std::move(document)), table_(table), defects_(defects) {
  if (root_.kind != Value::Kind::map) {
    defects_.push_back({root_.origin.file, root_.origin.line, "",
                        in_words(root_) + " is not a map; allowed: keys and values", "write 'key: value' lines"});
    for (const Key* key : keys_below(table_, "")) spoil(key->path);
    return;
  }
  check_map(root_, "");
}

void Settings::check(const Value& value, const Key& key, const std::string& path) {
  if (const std::string problem = wrong_with(key, value); !problem.empty()) {
    refuse(path, problem + "; allowed: " + allowed_by(key), example_of(key, value));
    return;
  }
  if (key.type == KeyType::section) check_map(value, path);
  if (key.type != KeyType::sections) return;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const std::string item = path + "." + std::to_string(i);
    if (value.items[i].kind == Value::Kind::map) {
      check_map(value.items[i], item);
    } else {
      refuse(item, in_words(value.items[i]) + " is not a map; allowed: a map of keys", "write '- {key: value, ...}'");
    }
  }
}

void Settings::check_map(const Value& map, const std::string& path) {
  for (const Entry& entry : map.entries) {
    const std::string full = path.empty() ? entry.key : path + "." + entry.key;
    const Key* key = key_of(table_, full);
    if (key == nullptr)
      check_unknown(entry, path);
    else
      check(entry.value, *key, full);
  }
  for (const Key* key : keys_below(table_, path)) {
    const std::string name(leaf_of(key->path));
    const std::string full = path.empty() ? name : path + "." + name;
    if (!key->required || map.find(name) != nullptr || !good({full})) continue;
    defects_.push_back(
        {map.origin.file, map.origin.line, full,
         "this required key is missing; allowed: " + allowed_by(*key) + " (" + std::string(key->meaning) + ")",
         "add '" + name + ":' " + (path.empty() ? "at the top level" : "to " + path)});
    spoil(full);
  }
}

void Settings::check_unknown(const Entry& entry, const std::string& section) {
  std::vector<std::string> names;
  std::string allowed;
  for (const Key* key : keys_below(table_, section)) {
    names.emplace_back(leaf_of(key->path));
    allowed += (allowed.empty() ? "" : ", ") + names.back();
  }
  const std::vector<std::string> guesses = nearest(entry.key, names);
  std::string remedy = "remove it or use one of the allowed keys";
  if (!guesses.empty()) {
    remedy = did_you_mean(guesses);
    for (const std::string& guess : guesses) spoil(section.empty() ? guess : section + "." + guess);
  } else {
    for (const Key& key : table_)
      if (leaf_of(key.path) == entry.key) remedy = "did you mean '" + std::string(key.path) + "'?";
  }
  defects_.push_back(
      {entry.origin.file, entry.origin.line, section.empty() ? entry.key : section + "." + entry.key,
       "unknown key; allowed " + (section.empty() ? "at the top level" : "in " + section) + ": " + allowed, remedy});
}

}  // namespace slipway::scenarios
