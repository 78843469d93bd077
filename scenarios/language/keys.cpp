#include "scenarios/language/keys.h"

#include <algorithm>
#include <cstddef>

#include "models/machine/topology.h"
#include "models/model/dtype.h"

namespace slipway::scenarios {

namespace {

// Same path up to list indices: "cluster.groups.*.nodes" is the key of "cluster.groups.0.nodes".
bool matches(std::string_view pattern, std::string_view path) {
  // Nearly all keys differ early, and in no index.
  const auto differs = std::mismatch(pattern.begin(), pattern.end(), path.begin(), path.end());
  if (differs.first == pattern.end() || differs.second == path.end()) return pattern.size() == path.size();
  if (*differs.first != '*') return false;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view a = pattern.substr(0, pattern.find('.'));
    const std::string_view b = path.substr(0, path.find('.'));
    const bool index = a == "*" && !b.empty() && b.find_first_not_of("0123456789") == std::string_view::npos;
    if (a != b && !index) return false;
    pattern.remove_prefix(std::min(pattern.size(), a.size() + 1));
    path.remove_prefix(std::min(path.size(), b.size() + 1));
  }
  return pattern.empty() && path.empty();
}

std::string range_of(const Key& key) {
  const bool open = key.max >= largest_int64;
  if (key.above_min)
    return open ? " above " + bound_text(key.min, key.unit)
                : " above " + bound_text(key.min, key.unit) + " and up to " + bound_text(key.max, key.unit);
  if (open) return " of at least " + bound_text(key.min, key.unit);
  return " from " + bound_text(key.min, key.unit) + " to " + bound_text(key.max, key.unit);
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace

std::string bound_text(double bound, Unit unit) {
  const std::string_view name = name_of(unit);
  const std::string number = bound < 1e9 && bound == static_cast<double>(static_cast<std::int64_t>(bound))
                                 ? std::to_string(static_cast<std::int64_t>(bound))
                                 : number_text(bound);
  return name.empty() ? number : number + " " + std::string(name);
}

const Key* key_of(std::span<const Key> table, std::string_view path) {
  for (const Key& key : table)
    if (matches(key.path, path)) return &key;
  return nullptr;
}

bool looks_like_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         text.ends_with(".json");
}

std::string_view leaf_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::vector<const Key*> keys_below(std::span<const Key> table, std::string_view section) {
  std::vector<const Key*> found;
  for (const Key& key : table) {
    const std::size_t dot = key.path.rfind('.');
    const std::string_view parent = dot == std::string_view::npos ? "" : key.path.substr(0, dot);
    if (parent.empty() ? section.empty() : matches(parent, section)) found.push_back(&key);
  }
  return found;
}

std::string allowed_by(const Key& key) {
  switch (key.type) {
    case KeyType::section:
      return key.shorthand.empty() ? "a map of keys" : "a map of keys, or the " + std::string(key.shorthand) + " alone";
    case KeyType::sections:
      return "a list of maps";
    case KeyType::integer:
      return "a whole number" + range_of(key);
    case KeyType::number: {
      const std::string range = key.max >= largest_int64 && key.min < -largest_int64 ? "" : range_of(key);
      if (key.wants_unit) return "a number" + range + " with its unit, as '30 min', '2000 h' or '90 days'";
      return "a number" + range + (key.unit == Unit::pure ? "" : ", as " + std::string(examples_of(key.unit)));
    }
    case KeyType::text:
      return "text";
    case KeyType::flag:
      return "true or false";
    case KeyType::choice:
      return "one of: " + listed(key.choices());
    case KeyType::integers:
      return "a list of whole numbers" + range_of(key);
    case KeyType::split:
      return "one of: " + listed(key.choices()) + "; a list of whole numbers" + range_of(key) +
             "; or a layout of stages (E, t, m, L)";
    case KeyType::words:
      return "a list of: " + listed(key.choices());
  }
  return "";
}

std::string default_of(const Key& key) {
  if (key.required) return "required";
  if (!key.fallback.empty()) return std::string(key.fallback);
  return key.derived.empty() ? "unset" : std::string(key.derived);
}

std::string_view name_of(KeyType type) {
  switch (type) {
    case KeyType::section:
      return "map";
    case KeyType::sections:
      return "list of maps";
    case KeyType::integer:
      return "integer";
    case KeyType::number:
      return "number";
    case KeyType::text:
      return "text";
    case KeyType::flag:
      return "true/false";
    case KeyType::choice:
      return "choice";
    case KeyType::integers:
      return "list of integers";
    case KeyType::split:
      return "choice or list";
    case KeyType::words:
      return "list of choices";
  }
  return "";
}

}  // namespace slipway::scenarios
