// A key and the field that holds its value, bound once. Reading, the default, overrides and the resolved text follow:
//
//   {.path = "layout.tensor", ..., .bound = field<&Scenario::step, &Step::layout, &Layout::tensor>}
//
// A key with a default is always read; another one only where the scenario gives it, else the field keeps its value.
// Guarded by tests/scenarios/scenario_keys_test.cpp: what a bound key writes is read back as the same value.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/model/names.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

namespace binding {

template <auto First, auto... Rest>
auto& member(auto& object) {
  if constexpr (sizeof...(Rest) == 0)
    return object.*First;
  else
    return member<Rest...>(object.*First);
}

template <std::integral T>
void read(const Settings& settings, std::string_view path, T& value) {
  value = static_cast<T>(settings.integer(path));
}
inline void read(const Settings& settings, std::string_view path, bool& value) { value = settings.flag(path); }
inline void read(const Settings& settings, std::string_view path, double& value) { value = settings.number(path); }
inline void read(const Settings& settings, std::string_view path, std::string& value) { value = settings.text(path); }
inline void read(const Settings& settings, std::string_view path, std::vector<int>& value) {
  value = settings.integers(path);
}
template <typename T>
void read(const Settings& settings, std::string_view path, std::optional<T>& value) {
  read(settings, path, value.emplace());
}

template <std::integral T>
std::string written(T value) {
  return std::to_string(value);
}
inline std::string written(bool value) { return value ? "true" : "false"; }
inline std::string written(double value) { return number_text(value); }
inline std::string written(const std::string& value) { return value; }
inline std::string written(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}
template <typename T>
std::string written(const std::optional<T>& value) {
  return value ? written(*value) : "";
}

}  // namespace binding

// The field that these members lead to from a Target.
template <class Target, auto... members>
inline constexpr BindingTo<Target> field_in{
    [](const Settings& settings, std::string_view path, Target& target) {
      binding::read(settings, path, binding::member<members...>(target));
    },
    [](const Target& target) { return binding::written(binding::member<members...>(target)); }};
template <auto... members>
inline constexpr Binding field = field_in<Scenario, members...>;
template <auto... members>
inline constexpr BindingTo<Machine> machine_field = field_in<Machine, members...>;

// The same for an enumeration (or an optional one) with this table of names.
template <const auto& names, auto... members>
inline constexpr Binding choice_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                        if (const auto value = value_in(names, settings.text(path)))
                                          binding::member<members...>(scenario) = *value;
                                      },
                                      [](const Scenario& scenario) {
                                        const std::optional value(binding::member<members...>(scenario));
                                        return value ? std::string(name_in(names, *value)) : std::string();
                                      }};

// The words of a table of names, for Key::choices.
template <const auto& names>
std::vector<std::string_view> words_of() {
  std::vector<std::string_view> words;
  for (const auto& each : names) words.push_back(each.name);
  return words;
}

}  // namespace slipway::scenarios
