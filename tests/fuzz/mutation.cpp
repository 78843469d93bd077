#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace slipway::test {
namespace {

// Ends of ranges, what is next to them, and what is no number.
constexpr std::array<std::string_view, 32> numbers{"0",
                                                   "1",
                                                   "2",
                                                   "3",
                                                   "7",
                                                   "64",
                                                   "1000",
                                                   "1000000",
                                                   "1000000000",
                                                   "1000000001",
                                                   "-1",
                                                   "-2",
                                                   "2147483647",
                                                   "2147483648",
                                                   "-2147483648",
                                                   "4294967295",
                                                   "4294967296",
                                                   "9007199254740993",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "18446744073709551615",
                                                   "18446744073709551616",
                                                   "0.5",
                                                   "1e-320",
                                                   "1e18",
                                                   "1e19",
                                                   "1.7976931348623157e308",
                                                   "1e999",
                                                   "nan",
                                                   "inf",
                                                   "-inf"};

struct Span {
  std::size_t begin = 0, end = 0;
};

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-' || c == '+';
}

std::vector<Span> words_in(std::string_view text) {
  std::vector<Span> words;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < text.size() && is_word(text[i])) ++i;
    words.push_back({begin, i});
  }
  return words;
}

class Mutator {
 public:
  Mutator(std::string_view input, std::uint32_t seed) : text_(input), random_(seed) { random_.discard(3); }

  std::string mutated() {
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times; ++i) mutate();
    return std::move(text_);
  }

 private:
  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  Span piece(std::size_t longest) {
    const std::size_t begin = below(text_.size());
    return {begin, std::min(text_.size(), begin + 1 + below(longest))};
  }
  std::string text_of(Span span) const { return text_.substr(span.begin, span.end - span.begin); }
  void replace(Span span, std::string_view by) { text_.replace(span.begin, span.end - span.begin, by); }

  void mutate() {
    if (text_.empty()) text_ = "0";
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        return change_word(true);
      case 3:
        return change_word(false);
      case 4:
        return change_bytes();
      case 5:
        return replace(piece(below(4) == 0 ? 256 : 16), "");
      case 6:
        return repeat();
      default: {
        const std::string moved = text_of(piece(64));
        text_.insert(below(text_.size() + 1), moved);
      }
    }
  }

  void change_word(bool to_number) {
    std::vector<Span> words = words_in(text_);
    const auto is_number = [&](Span s) { return text_.find_first_of("0123456789", s.begin) < s.end; };
    if (to_number) std::erase_if(words, [&](Span s) { return !is_number(s); });
    if (words.empty()) return change_bytes();
    const Span at = words[below(words.size())];
    replace(at, to_number ? std::string(numbers[below(numbers.size())]) : text_of(words[below(words.size())]));
  }

  void change_bytes() {
    for (std::size_t count = 1 + below(4); count > 0; --count) {
      char& c = text_[below(text_.size())];
      c = below(2) == 0 ? static_cast<char>(c ^ (1 << below(8))) : static_cast<char>(below(256));
    }
  }

  // Deep nesting and long lists.
  void repeat() {
    const Span span = piece(16);
    const std::string once = text_of(span);
    std::string many;
    for (std::size_t count = std::size_t{2} << below(10); count > 0; --count) many += once;
    text_.insert(span.end, many);
  }

  std::string text_;
  std::minstd_rand random_;
};

}  // namespace

std::string mutated(std::string_view input, std::uint32_t seed, std::size_t most) {
  std::string text = Mutator(input, seed).mutated();
  if (text.size() > most) text.resize(most);
  return text;
}

std::string with_a_long_run(std::string_view input, std::uint32_t seed, std::size_t count) {
  if (input.empty()) return std::string(count, '0');
  std::minstd_rand random(seed);
  random.discard(3);
  const std::size_t at = random() % input.size();
  std::string text(input);
  return text.insert(at, count, input[at]);
}

}  // namespace slipway::test
