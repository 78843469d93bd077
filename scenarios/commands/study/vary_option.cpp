#include "scenarios/commands/study/vary_option.h"

#include <algorithm>
#include <vector>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"

namespace slipway::scenarios {
namespace {

// Cuts at `at` outside of brackets and of YAML's double quotes.
std::vector<std::string> cut(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : text) {
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = quoted && c == '\\' && !escaped;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == at && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void check_key(const std::string& option, const std::string& key) {
  if (key_of(scenario_keys(), key) != nullptr) return;
  std::vector<std::string> names;
  for (const Key& each : scenario_keys()) names.emplace_back(each.path);
  throw UsageError("--vary " + option + ": there is no key '" + key + "'" + suggestion(key, names) +
                   " (`slipway list keys`)");
}

}  // namespace

VariedKeys variation_from(const std::string& option) {
  VariedKeys variation;
  for (const std::string& part : cut(option, ' ')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals + 1 == part.size())
      throw UsageError("--vary " + option + ": '" + part + "' is no KEY=VALUE,VALUE,...");
    const std::string key = part.substr(0, equals);
    check_key(option, key);
    const std::vector<std::string> values = cut(part.substr(equals + 1), ',');
    if (std::find(values.begin(), values.end(), "") != values.end())
      throw UsageError("--vary " + option + ": a value of " + key + " is empty (write null to unset a key)");
    if (!variation.keys.empty() && values.size() != variation.values.size())
      throw UsageError("--vary " + option +
                       ": keys that move together need as many values each: " + variation.keys.front() + " has " +
                       std::to_string(variation.values.size()) + ", " + key + " " + std::to_string(values.size()));
    variation.values.resize(values.size());
    variation.keys.push_back(key);
    for (std::size_t i = 0; i < values.size(); ++i) variation.values[i].push_back(values[i]);
  }
  if (variation.keys.empty()) throw UsageError("--vary '" + option + "' names no key");
  return variation;
}

}  // namespace slipway::scenarios
