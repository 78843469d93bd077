#include "scenarios/language/nearest.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>

namespace slipway::scenarios {

int edit_distance(std::string_view a, std::string_view b) {
  const int far = static_cast<int>(a.size() + b.size());
  std::vector<int> above2(b.size() + 1, far), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    above2.swap(above), above.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return row.back();
}

namespace {

constexpr std::size_t most_words = 4;  // more are no answer

// The most edits of a misspelling: a third of the letters.
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
  const std::string* closest = nullptr;
  for (int fewest = most_edits(typed) + 1; const std::string& word : words) {
    if (std::abs(std::ssize(word) - std::ssize(typed)) >= fewest) continue;  // takes as many edits
    const int edits = edit_distance(typed, word);
    if (edits < fewest) closest = &word, fewest = edits;
  }
  if (closest != nullptr) return {*closest};
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
