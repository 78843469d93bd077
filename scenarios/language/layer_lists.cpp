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

// A value of Python: a whole number, or a list of them.
struct Listed {
  bool is_list = false;
  std::int64_t number = 0;
  std::vector<std::int64_t> list;
};

// Sums of products of numbers, lists and parentheses.
class ListExpression {
 public:
  explicit ListExpression(std::string_view text) : text_(text) {}

  std::optional<Listed> value() {
    std::optional<Listed> value = sum(0);
    skip_spaces();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  std::optional<Listed> sum(int depth) {
    std::optional<Listed> left = product(depth);
    while (left && next('+')) {
      const std::optional<Listed> right = product(depth);
      if (!right || left->is_list != right->is_list || left->list.size() + right->list.size() > most)
        return std::nullopt;
      left->list.insert(left->list.end(), right->list.begin(), right->list.end());
      left->number += right->number;
      if (left->number > static_cast<std::int64_t>(most)) return std::nullopt;
    }
    return left;
  }

  std::optional<Listed> product(int depth) {
    std::optional<Listed> left = atom(depth);
    while (left && next('*')) {
      std::optional<Listed> right = atom(depth);
      if (!right || (left->is_list && right->is_list)) return std::nullopt;
      const auto times = static_cast<std::size_t>(right->is_list ? left->number : right->number);
      if (right->is_list) left = std::move(right);
      if (left->is_list ? left->list.size() * times > most : static_cast<std::size_t>(left->number) * times > most)
        return std::nullopt;
      const std::vector<std::int64_t> once = std::move(left->list);
      left->list.clear();
      if (!once.empty())
        for (std::size_t i = 0; i < times; ++i) left->list.insert(left->list.end(), once.begin(), once.end());
      left->number *= right->number;
    }
    return left;
  }

  std::optional<Listed> atom(int depth) {
    if (depth > most_nested) return std::nullopt;
    if (next('(')) {
      std::optional<Listed> inside = sum(depth + 1);
      return next(')') ? inside : std::nullopt;
    }
    if (next('[')) return items(depth);
    Listed number;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number.number);
    if (error != std::errc() || number.number < 0 || number.number > static_cast<std::int64_t>(most))
      return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }

  // Behind [. Python takes a comma behind the last item too.
  std::optional<Listed> items(int depth) {
    Listed list;
    list.is_list = true;
    while (!next(']')) {
      const std::optional<Listed> item = sum(depth + 1);
      if (!item || item->is_list) return std::nullopt;
      list.list.push_back(item->number);
      if (next(',')) continue;
      return next(']') ? std::optional(std::move(list)) : std::nullopt;
    }
    return list;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool next(char symbol) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != symbol) return false;
    ++at_;
    skip_spaces();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Parses a list of zeros and ones. Where the text is one number, `with_period(layer)` returns true for the ones; layers
// count from 0.
template <typename WithPeriod>
std::optional<std::vector<std::int64_t>> pattern_of(const std::string& text, std::int64_t layers,
                                                    WithPeriod with_period) {
  const std::optional<Listed> read = ListExpression(text).value();
  if (!read) return std::nullopt;
  if (read->is_list) {
    const bool is_mask = std::all_of(read->list.begin(), read->list.end(), [](auto i) { return i == 0 || i == 1; });
    return is_mask ? std::optional(read->list) : std::nullopt;
  }
  if (read->number < 1) return std::nullopt;
  std::vector<std::int64_t> pattern;
  for (std::int64_t layer = 0; layer < layers; ++layer) pattern.push_back(with_period(layer, read->number) ? 1 : 0);
  return pattern;
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
  return pattern_of(text, layers, [](std::int64_t layer, std::int64_t every) { return layer % every == 0; });
}

std::optional<std::vector<std::int64_t>> window_pattern(const std::string& text, std::int64_t layers) {
  return pattern_of(text, layers, [](std::int64_t layer, std::int64_t every) { return (layer + 1) % every != 0; });
}

std::optional<std::int64_t> period_of_last(const std::vector<bool>& marked) {
  const auto first = std::find(marked.begin(), marked.end(), true);
  if (first == marked.end()) return 0;
  const auto every = static_cast<std::size_t>(first - marked.begin()) + 1;
  for (std::size_t i = 0; i < marked.size(); ++i)
    if (marked[i] != ((i + 1) % every == 0)) return std::nullopt;
  return static_cast<std::int64_t>(every);
}

}  // namespace slipway::scenarios
