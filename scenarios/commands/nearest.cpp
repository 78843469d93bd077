#include "scenarios/commands/nearest.h"

#include <algorithm>
#include <numeric>

namespace slipway {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest_of(std::string_view typed, const std::vector<std::string>& words) {
  const auto begins = std::find_if(words.begin(), words.end(),
                                   [&](const std::string& word) { return word.starts_with(typed); });
  if (begins != words.end() && !typed.empty()) return *begins;
  const auto nearest =
      std::min_element(words.begin(), words.end(), [&](const std::string& x, const std::string& y) {
        return edit_distance(typed, x) < edit_distance(typed, y);
      });
  constexpr int most_edits = 3;  // beyond that it is no misspelling but something else
  return edit_distance(typed, *nearest) <= most_edits ? *nearest : "";
}

std::string suggestion(std::string_view typed, const std::vector<std::string>& words,
                       const std::string& before) {
  const std::string nearest = nearest_of(typed, words);
  return nearest.empty() ? "" : "; did you mean '" + before + nearest + "'?";
}

}  // namespace slipway
