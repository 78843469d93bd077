#include "scenarios/language/nearest.h"

#include <algorithm>
#include <functional>

namespace slipway::scenarios {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = static_cast<int>(i + j);
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

namespace {

constexpr std::size_t most_words = 4;  // more are no answer

// What a misspelling may take: a third of the letters.
int most_edits(std::string_view typed) { return std::max(1, static_cast<int>(typed.size()) / 3); }

// "bf16" in "bfloat16", the first letter the same. Two letters are in too many words.
bool abbreviates(std::string_view typed, std::string_view word) {
  if (typed.size() < 3 || word.empty() || typed.front() != word.front()) return false;
  for (const char letter : word)
    if (!typed.empty() && letter == typed.front()) typed.remove_prefix(1);
  return typed.empty();
}

// By so much that no number of edits below most_edits would do. A file of another kind may have a key of megabytes.
bool is_longer_than_all(std::string_view typed, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [&](const auto& word) { return typed.size() > 2 * word.size() + 2; });
}

std::vector<std::string> those(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& meant) {
  std::vector<std::string> found;
  std::copy_if(words.begin(), words.end(), std::back_inserter(found), meant);
  return found;
}

}  // namespace

std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& words) {
  if (typed.empty() || words.empty() || is_longer_than_all(typed, words)) return {};
  auto begun = those(words, [&](const std::string& word) { return word.starts_with(typed); });
  begun.resize(std::min(begun.size(), most_words));
  if (!begun.empty()) return begun;
  const auto closest = std::min_element(words.begin(), words.end(), [&](const std::string& x, const std::string& y) {
    return edit_distance(typed, x) < edit_distance(typed, y);
  });
  if (edit_distance(typed, *closest) <= most_edits(typed)) return {*closest};
  return those(words, [&](const std::string& word) { return abbreviates(typed, word); });
}

std::string did_you_mean(const std::vector<std::string>& words, const std::string& before) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "did you mean '" : i + 1 < words.size() ? ", '" : " or '") + before + words[i] + "'";
  return text.empty() ? "" : text + "?";
}

std::string suggestion(std::string_view typed, const std::vector<std::string>& words, const std::string& before) {
  const std::string guess = did_you_mean(nearest(typed, words), before);
  return guess.empty() ? "" : "; " + guess;
}

}  // namespace slipway::scenarios
