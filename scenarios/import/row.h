// One row per argument: what a trainer's argument means for a scenario. A new argument is one row of its trainer's
// table (megatron_arguments.cpp, torchtitan_arguments.cpp, hugging_face_config.cpp).
//
//   key("tensor-model-parallel-size", "layout.tensor")          its value is the key's
//   part("swiglu", "model.family")                              read with others, by the function below the table
//   none("log-interval", logging)                               no effect here; a line says so
//   near("moe-token-dispatcher-type", "priced as ...")          an effect that is priced by what is nearest; a line says so
//   refused("add-position-embedding", "...")                    an effect that is not modelled; exit status 2
//
// A row may name a key that this version of the language does not have (keys.cpp). Its argument is then refused, or
// noted where the row has words for it. The row needs no change when the key arrives.
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/arguments.h"

namespace slipway::scenarios {

enum class Effect : std::uint8_t { key, part, none, near, refused };

// The key's value from the argument's.
using Conversion = std::string (*)(const std::string& value);

struct Row {
  std::string_view argument;
  Effect effect = Effect::none;
  std::string_view key = {};    // of the scenario
  std::string_view words = {};  // why; of a key that is not there yet: how it is priced without it, empty: refused
  Conversion convert = nullptr;
  std::vector<std::string_view> harmless = {};  // values with which it has no effect
};

inline Row key(std::string_view argument, std::string_view to, Conversion convert = nullptr) {
  return {argument, Effect::key, to, {}, convert};
}
inline Row part(std::string_view argument, std::string_view of) { return {argument, Effect::part, of}; }
inline Row none(std::string_view argument, std::string_view why) { return {argument, Effect::none, {}, why}; }
inline Row near(std::string_view argument, std::string_view how) { return {argument, Effect::near, {}, how}; }
inline Row refused(std::string_view argument, std::string_view what) { return {argument, Effect::refused, {}, what}; }
// The same row, but these values have no effect.
inline Row unless(Row row, std::vector<std::string_view> harmless) {
  row.harmless = std::move(harmless);
  return row;
}
// A key that may not be there yet, and what is done without it.
inline Row or_near(Row row, std::string_view how) {
  row.words = how;
  return row;
}

}  // namespace slipway::scenarios
