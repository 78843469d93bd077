// The machine-readable answer of a command (--json), and the one table in which its keys are documented.
//
//   {"step_time_s": 0.41, "mfu": 0.45, ...}      keys in table order; numbers round-trip exactly
//
// A key that the table does not name cannot be emitted, and a key that is not optional cannot be forgotten:
// both throw std::logic_error when the summary is written. The tables drive `slipway list json-keys`.
// Guarded by tests/scenarios/answers_test.cpp and by the tests of each command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/namespaces.h"

namespace slipway::scenarios {

// A name like "kinds[].count" documents a field of the objects in the list "kinds": it is not set by itself.
struct JsonKey {
  std::string_view name, unit, meaning;
  bool optional = false;  // present only when the meaning says so
};

std::span<const JsonKey> simulate_json_keys();
std::span<const JsonKey> beside_json_keys();
std::span<const JsonKey> plan_json_keys();
std::span<const JsonKey> goodput_json_keys();
std::span<const JsonKey> growth_json_keys();
std::span<const JsonKey> growth_fit_json_keys();
std::span<const JsonKey> growth_run_fit_json_keys();
std::span<const JsonKey> study_json_keys();
std::span<const JsonKey> execute_json_keys();
std::span<const JsonKey> compare_json_keys();
std::span<const JsonKey> confirm_json_keys();
std::span<const JsonKey> memory_json_keys();
std::span<const JsonKey> validate_json_keys();

// The reference of one table, for people: name, unit, meaning in columns.
std::string describe(std::span<const JsonKey> keys);

class JsonSummary {
 public:
  explicit JsonSummary(std::span<const JsonKey> keys);
  ~JsonSummary();
  JsonSummary(const JsonSummary&) = delete;
  JsonSummary& operator=(const JsonSummary&) = delete;

  // Numbers that JSON cannot hold (NaN, infinity) become null.
  template <typename Value>
  void set(std::string_view key, const Value& value);
  // One object, indented, ending in a new line.
  std::string text() const;

 private:
  std::size_t index_of(std::string_view key) const;
  std::span<const JsonKey> keys_;
  std::vector<nlohmann::json> values_;  // null-type entry with !given_: not set
  std::vector<bool> given_;
};

}  // namespace slipway::scenarios
