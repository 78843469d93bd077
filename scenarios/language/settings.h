// A document held against a table of keys: after construction every value that `good` admits has the
// type and range of its key, and every mistake is in `defects` once.
//
//   document + keys ──► unknown keys, wrong types, ranges, missing keys ──► integer("layout.tensor")
//
// One mistake is one error: a key that was refused, is missing, or is the likely meaning of a misspelled
// one is "bad", and checks that build on it ask good() first and stay silent.
// Guarded by tests/scenarios/scenario_keys_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <initializer_list>
#include <set>

#include "scenarios/language/document.h"
#include "scenarios/language/keys.h"

namespace slipway::scenarios {

class Settings {
 public:
  // `defects` must outlive this object.
  Settings(Value document, std::span<const Key> table, Defects& defects);

  bool given(std::string_view path) const;  // present and good
  bool good(std::initializer_list<std::string_view> paths) const;
  std::size_t refused() const { return defects_.size(); }
  Defects& defects() { return defects_; }

  // The value, or its default in the table, or zero / empty when it has none or is bad.
  std::int64_t integer(std::string_view path) const;
  int small_integer(std::string_view path) const;  // for keys whose table maximum fits
  double number(std::string_view path) const;
  bool flag(std::string_view path) const;
  std::string text(std::string_view path) const;
  std::vector<int> integers(std::string_view path) const;  // empty when it is not a list
  std::vector<std::string> words(std::string_view path) const;
  int length(std::string_view path) const;  // items of a list; 0 when absent
  // Index of the value in a choice's table entry, -1 when it has none.
  int choice(std::string_view path) const;

  // The line of the value, or of the deepest part of its path that exists.
  Origin origin(std::string_view path) const;
  // One error at that place. `message` names the problem and what is allowed.
  void refuse(std::string_view path, std::string message, std::string remedy);
  void spoil(std::string_view path) { bad_.insert(std::string(path)); }

  // Writes down a derived value (for the resolved text), and all defaults, in table order.
  void set(const std::string& path, Value value);
  Value completed() const;

 private:
  const Value* find(std::string_view path) const;  // nullptr when absent, bad or below something bad
  void check(const Value& value, const Key& key, const std::string& path);
  void check_map(const Value& map, const std::string& path);
  void check_unknown(const Entry& entry, const std::string& section);

  Value root_;
  std::span<const Key> table_;
  Defects& defects_;
  std::set<std::string, std::less<>> bad_;
};

// The defect of `value` as a value of `key`; empty: none.
std::string wrong_with(const Key& key, const Value& value);

}  // namespace slipway::scenarios
