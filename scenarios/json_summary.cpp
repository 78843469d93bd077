#include "scenarios/json_summary.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "scenarios/readable.h"

namespace slipway {

namespace {

bool is_of_list(const JsonKey& key) { return key.name.find("[].") != std::string_view::npos; }

}  // namespace

JsonSummary::JsonSummary(std::span<const JsonKey> keys)
    : keys_(keys), values_(keys.size()), given_(keys.size()) {}
JsonSummary::~JsonSummary() = default;

std::size_t JsonSummary::index_of(std::string_view key) const {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const JsonKey& k) { return k.name == key; });
  if (found == keys_.end()) {
    throw std::logic_error("JSON key '" + std::string(key) + "' is not documented in json_keys.cpp");
  }
  return static_cast<std::size_t>(found - keys_.begin());
}

template <typename Value>
void JsonSummary::set(std::string_view key, const Value& value) {
  const std::size_t index = index_of(key);
  values_[index] = value;
  given_[index] = true;
}

template void JsonSummary::set(std::string_view, const double&);
template void JsonSummary::set(std::string_view, const bool&);
template void JsonSummary::set(std::string_view, const int&);
template void JsonSummary::set(std::string_view, const std::int64_t&);
template void JsonSummary::set(std::string_view, const std::uint64_t&);
template void JsonSummary::set(std::string_view, const std::string&);
template void JsonSummary::set(std::string_view, const std::vector<double>&);
template void JsonSummary::set(std::string_view, const std::vector<std::int64_t>&);
template void JsonSummary::set(std::string_view, const std::vector<std::string>&);
template void JsonSummary::set(std::string_view, const nlohmann::json&);

std::string JsonSummary::text() const {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (given_[i]) {
      object[std::string(keys_[i].name)] = values_[i];
    } else if (!keys_[i].optional && !is_of_list(keys_[i])) {
      throw std::logic_error("JSON key '" + std::string(keys_[i].name) + "' was not set");
    }
  }
  return object.dump(2) + '\n';
}

std::string describe(std::span<const JsonKey> keys) {
  std::size_t name = 0, unit = 0;
  for (const JsonKey& key : keys) {
    name = std::max(name, key.name.size());
    unit = std::max(unit, display_width(std::string(key.unit)));
  }
  std::string text;
  for (const JsonKey& key : keys) {
    text += "  " + std::string(key.name) + std::string(name + 2 - key.name.size(), ' ');
    text += std::string(key.unit) + std::string(unit + 2 - display_width(std::string(key.unit)), ' ');
    text += std::string(key.meaning) + '\n';
  }
  return text;
}

}  // namespace slipway
