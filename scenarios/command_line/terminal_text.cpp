#include "scenarios/command_line/terminal_text.h"

#include <langinfo.h>
#include <locale.h>

#include <algorithm>
#include <array>
#include <utility>

namespace slipway::scenarios {
namespace {

// All letters beyond ASCII that answers use.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> likenesses{{
    {"│", "|"},  {"·", "."},  {"±", "+-"},    {"×", "x"},     {"–", "-"},    {"—", "-"},     {"…", "..."},
    {"→", "->"}, {"≤", "<="}, {"≥", ">="},    {"≈", "~"},     {"−", "-"},    {"²", "^2"},    {"³", "^3"},
    {"µ", "u"},  {"μ", "u"},  {"σ", "sigma"}, {"α", "alpha"}, {"β", "beta"}, {"γ", "gamma"}, {"∞", "inf"},
    {"’", "'"},  {"▏", "|"},  {"█", "#"},     {"─", "-"},     {"√", "sqrt"},
}};

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t letters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

// Columns of tables stand two spaces apart, and pictures have bars.
bool is_sentence(std::string_view words) {
  return words.find("  ") == std::string_view::npos && words.find("│") == std::string_view::npos;
}

}  // namespace

std::string as_ascii(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && continues(text[end])) ++end;
    const std::string_view letter = text.substr(at, end - at);
    const bool ascii = letter.size() == 1 && static_cast<unsigned char>(letter[0]) < 0x80;
    const auto* const found =
        std::find_if(likenesses.begin(), likenesses.end(), [&](const auto& pair) { return pair.first == letter; });
    if (ascii) {
      plain += letter;
    } else {
      plain += found == likenesses.end() ? "?" : found->second;
    }
    at = end;
  }
  return plain;
}

std::string broken_at_words(std::string_view line, int columns) {
  const std::size_t indent = std::min(line.size(), line.find_first_not_of(' '));
  std::string_view words = line.substr(indent);
  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  if (letters_in(line) <= width || indent >= width || !is_sentence(words)) return std::string(line);
  std::string text(indent, ' ');
  std::size_t used = indent;
  for (bool first = true; !words.empty(); first = false) {
    const std::string_view word = words.substr(0, words.find(' '));
    const std::size_t size = letters_in(word);
    if (!first && used + 1 + size > width) {
      text += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      text += ' ';
      ++used;
    }
    text += word;
    used += size;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return text;
}

TerminalText::TerminalText(std::streambuf& terminal, int columns, bool utf8)
    : terminal_(terminal), columns_(columns), utf8_(utf8) {}

TerminalText::~TerminalText() { TerminalText::sync(); }

TerminalText::int_type TerminalText::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  if (traits_type::to_char_type(letter) == '\n') return write("\n") ? letter : traits_type::eof();
  line_ += traits_type::to_char_type(letter);
  return letter;
}

int TerminalText::sync() { return write("") && terminal_.pubsync() == 0 ? 0 : -1; }

bool TerminalText::write(std::string_view end) {
  std::string text = broken_at_words(line_, columns_) + std::string(end);
  if (!utf8_) text = as_ascii(text);
  line_.clear();
  const auto size = static_cast<std::streamsize>(text.size());
  return terminal_.sputn(text.data(), size) == size;
}

bool locale_is_utf8() {
  const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) return false;
  const std::string_view codeset = ::nl_langinfo_l(CODESET, locale);
  const bool utf8 = codeset == "UTF-8" || codeset == "utf8";
  ::freelocale(locale);
  return utf8;
}

}  // namespace slipway::scenarios
