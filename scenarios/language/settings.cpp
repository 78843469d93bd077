#include "scenarios/language/settings.h"

#include <algorithm>
#include <charconv>

namespace slipway {
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
  return &value.items[static_cast<std::size_t>(*index)];
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
    for (const Value& item : value->items)
      numbers.push_back(static_cast<int>(whole_number(item.text).value_or(0)));
  return numbers;
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

}  // namespace slipway
