// Every key that a scenario, a machine profile or a built-in model may hold: one table each, and nothing
// about a key is written anywhere else. The tables drive unknown-key detection, type and range checks,
// defaults, `slipway list keys` and the reference in docs/scenario-reference.md.
//
//   path                  type      default   meaning
//   layout.tensor         integer   1         tensor parallel degree
//   cluster.groups.*.nodes                    * stands for the index of a list item
//
// Guarded by tests/scenarios/scenario_keys_test.cpp: every key refuses a wrong type with one error that names it,
// and the reference names every key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/quantity.h"

namespace slipway::models {
struct Machine;
}

namespace slipway::scenarios {

enum class KeyType : std::uint8_t {
  section,   // a map of further keys
  sections,  // a list of such maps
  integer,
  number,  // with `unit`
  text,
  flag,      // true or false
  choice,    // one of `choices`
  integers,  // a list of whole numbers
  split,     // one of `choices`, or a list of whole numbers
  words,     // a list of `choices`
};

// Default maxima of numbers and integers; the second is the largest double below 2^63.
constexpr double unbounded = 1e300, largest_int64 = 9223372036854774784.0;

class Settings;
struct Scenario;

// Access to the field of a Scenario (or a Machine) that holds a key's value: set from a value, and written as YAML
// (binding.h).
template <class Target>
struct BindingTo {
  void (*read)(const Settings& settings, std::string_view path, Target& target) = nullptr;
  std::string (*write)(const Target& target) = nullptr;  // empty: not set
};
using Binding = BindingTo<Scenario>;

struct Key {
  std::string_view path;
  KeyType type = KeyType::text;
  std::string_view meaning;        // one line
  std::string_view fallback = "";  // default as YAML; empty = none
  std::string_view derived = "";   // words: where an absent value comes from
  bool required = false;
  double min = 0, max = 2147483647;  // integer, number, integers; inclusive
  bool above_min = false;            // min itself is excluded
  Unit unit = Unit::pure;            // number
  bool wants_unit = false;           // number: a bare one is refused, because the base unit is never meant
  std::vector<std::string_view> (*choices)() = nullptr;
  // choice: the probable meaning of a word that is neither a choice nor spelled like one; empty: unknown.
  std::string (*hint)(std::string_view word) = nullptr;
  std::string_view shorthand = "";     // section: the key that a bare word stands for
  bool writes_derived = false;         // bound: the resolved text has the value also where the scenario did not give it
  bool names_file = false;             // text: names a file
  bool built_in = false;               // besides: a bare word names something built in
  Binding bound = {};                  // scalar keys of a scenario; models, clusters and files have separate loaders
  BindingTo<Machine> of_machine = {};  // keys of a machine profile
};

std::span<const Key> scenario_keys();
std::span<const Key> model_keys();        // a part of them: `model`
std::span<const Key> run_keys();          // another: `run`
std::span<const Key> degradation_keys();  // and another: what of the cluster is slow or fails
std::span<const Key> training_keys();     // and another: how the batch grows and the loss falls
std::span<const Key> machine_keys();      // models/machine/profiles/*.yaml and calibrated profiles
std::span<const Key> library_keys();      // models/model/library/*.yaml
std::span<const Key> block_table_keys();  // cluster.block_times

// True if a text is a path and not the name of a built-in item: "./h100.yaml", "config.json".
bool looks_like_path(std::string_view text);

// The table's key for a concrete path ("cluster.groups.0.nodes"); nullptr when there is none.
const Key* key_of(std::span<const Key> table, std::string_view path);
// Last part of a path: "nodes". And all keys directly below a section, in table order.
std::string_view leaf_of(std::string_view path);
std::vector<const Key*> keys_below(std::span<const Key> table, std::string_view section);

// "a whole number from 1 to 8", "one of: none, selective, full", ...
std::string allowed_by(const Key& key);
// 1000 as "1000", 1e300 as "1e+300", with the name of its base unit.
std::string bound_text(double bound, Unit unit);
// "required", the default, or where the value comes from.
std::string default_of(const Key& key);
std::string_view name_of(KeyType type);

}  // namespace slipway::scenarios
