// "Did you mean ...": of the known words those that were probably meant.
//
//   h100       → h100-80gb, h100-94gb     words that begin with what was typed, all of them
//   simulat    → simulate                 else the one that takes the fewest edits, at most a third of its letters
//   megatron   → (begins) megatron-core, megatron-deepspeed, megatron-lm
//   bf16       → bfloat16                 else those that have the typed letters in this order, first letter included
//
// Guarded by tests/scenarios/command_line_test.cpp and tests/scenarios/scenario_keys_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// Insertions, deletions, substitutions and swaps of neighbours from `a` to `b`.
int edit_distance(std::string_view a, std::string_view b);

// In the order of `words`; empty: none is like it.
std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);
// "did you mean 'h100-80gb' or 'h100-94gb'?", each with `before` in front; empty for no words.
std::string did_you_mean(const std::vector<std::string>& words, const std::string& before = "");
// "; did you mean ...?" of the nearest, or nothing.
std::string suggestion(std::string_view typed, const std::vector<std::string>& words, const std::string& before = "");

}  // namespace slipway::scenarios
