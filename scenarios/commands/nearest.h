// "Did you mean ...": the known word that takes the fewest single-letter edits from what was typed.
// Guarded by tests/command_line_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slipway {

// Insertions, deletions and substitutions from `a` to `b` (Levenshtein).
int edit_distance(std::string_view a, std::string_view b);
// Of `words` (not empty) the nearest to `typed`; a word that begins with `typed` wins; ties: first. Empty
// when even that one is more than three edits away.
std::string nearest_of(std::string_view typed, const std::vector<std::string>& words);
// "; did you mean '<before><nearest>'?", or nothing.
std::string suggestion(std::string_view typed, const std::vector<std::string>& words,
                       const std::string& before = "");

}  // namespace slipway
