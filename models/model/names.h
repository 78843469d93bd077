// The names of an enumeration: one table beside it, read both ways.
//
//   enum class Recompute { none, selective, full };
//   inline constexpr std::array recompute_names{Named{Recompute::none, "none"}, ...};
//
//   name_in(recompute_names, Recompute::full) = "full"     value_in(recompute_names, "full") = Recompute::full
//
// Guarded by tests/models/names_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::models {

template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

template <typename Enum, std::size_t count>
constexpr const char* name_in(const std::array<Named<Enum>, count>& names, Enum value) {
  for (const Named<Enum>& each : names)
    if (each.value == value) return each.name;
  return "unknown";
}

// Empty where no value has this name.
template <typename Enum, std::size_t count>
constexpr std::optional<Enum> value_in(const std::array<Named<Enum>, count>& names, std::string_view name) {
  for (const Named<Enum>& each : names)
    if (each.name == name) return each.value;
  return std::nullopt;
}

// "packed, alternate-nodes, alternate-gpus"
template <typename Enum, std::size_t count>
std::string all_names(const std::array<Named<Enum>, count>& names) {
  std::string text;
  for (const Named<Enum>& each : names) text += (text.empty() ? "" : ", ") + std::string(each.name);
  return text;
}

}  // namespace slipway::models
