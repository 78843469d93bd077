#include "scenarios/language/layer_lists.h"

#include <algorithm>
#include <charconv>

namespace slipway::scenarios {

namespace {

constexpr std::size_t most = 100'000;  // letters, or layers
constexpr int most_nested = 64;        // parentheses

// "*14" at the beginning: the number and its length.
std::optional<std::size_t> times(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), count);
  if (error != std::errc() || count > most) return std::nullopt;
  at = static_cast<std::size_t>(end - text.data());
  return count;
}

// The letters with all repetitions written out. `depth`: open parentheses.
std::optional<std::string> written_out(std::string_view text, std::size_t& at, int depth) {
  std::string out;
  if (depth > most_nested) return std::nullopt;
  while (at < text.size() && text[at] != ')') {
    std::string piece;
    if (text[at] == '(') {
      ++at;
      std::optional<std::string> inside = written_out(text, at, depth + 1);
      if (!inside || at >= text.size()) return std::nullopt;
      piece = std::move(*inside);
    } else if (std::string_view("Etm L|,").find(text[at]) != std::string_view::npos) {
      if (text[at] != ' ' && text[at] != ',') piece = text[at];
    } else {
      return std::nullopt;
    }
    ++at;
    const std::optional<std::size_t> count = times(text, at);
    if (!count || piece.size() * *count > most) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) out += piece;
    if (out.size() > most) return std::nullopt;
  }
  if (depth == 0 && at < text.size()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<PipelineStages> pipeline_stages(const std::string& text) {
  std::size_t at = 0;
  const std::optional<std::string> letters = written_out(text, at, 0);
  if (!letters || !letters->starts_with('E') || letters->find('L') == std::string::npos) return std::nullopt;
  PipelineStages stages{{0}, -1};
  for (const char letter : *letters) {
    if (letter == '|') stages.layers.push_back(0);
    if (letter == 't') ++stages.layers.back();
    if (letter == 'm') stages.prediction_stage = static_cast<int>(stages.layers.size()) - 1;
  }
  if (letters->ends_with('|')) stages.layers.pop_back();
  return stages;
}

std::string pipeline_layout(const std::vector<int>& layers, std::int64_t predicted_tokens) {
  std::string text = "E";
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    if (stage > 0) text += "|";
    if (layers[stage] > 0) text += layers[stage] == 1 ? "t" : "t*" + std::to_string(layers[stage]);
  }
  return text + std::string(static_cast<std::size_t>(predicted_tokens), 'm') + "L";
}

std::optional<std::vector<std::int64_t>> layer_pattern(const std::string& text, std::int64_t layers) {
  std::vector<std::int64_t> pattern;
  std::int64_t every = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (every < 1) return std::nullopt;
    for (std::int64_t i = 0; i < layers; ++i) pattern.push_back(i % every == 0 ? 1 : 0);
    return pattern;
  }
  std::string letters;
  std::copy_if(text.begin(), text.end(), std::back_inserter(letters),
               [](char c) { return std::string_view(" ()").find(c) == std::string_view::npos; });
  const std::string_view rest = letters;
  for (std::size_t at = 0; at < rest.size();) {
    if (rest[at] == '+') {
      ++at;
      continue;
    }
    if (rest[at] != '[') return std::nullopt;
    std::vector<std::int64_t> piece;
    for (++at; at < rest.size() && rest[at] != ']'; ++at) {
      if (rest[at] == ',') continue;
      if (rest[at] != '0' && rest[at] != '1') return std::nullopt;
      piece.push_back(rest[at] - '0');
    }
    if (at == rest.size()) return std::nullopt;
    ++at;
    const std::optional<std::size_t> count = times(rest, at);
    if (!count || piece.size() * *count > most) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) pattern.insert(pattern.end(), piece.begin(), piece.end());
  }
  return pattern;
}

}  // namespace slipway::scenarios
