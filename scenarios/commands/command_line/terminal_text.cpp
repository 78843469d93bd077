#include "scenarios/commands/command_line/terminal_text.h"

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

bool is_picture(std::string_view line) { return line.find("│") != std::string_view::npos; }

// Columns of tables stand two spaces apart.
bool is_table(std::string_view line) {
  const std::size_t indent = std::min(line.size(), line.find_first_not_of(' '));
  return line.find("  ", indent) != std::string_view::npos && !is_picture(line);
}

using Letters = std::vector<std::string_view>;  // one column of the terminal each

Letters letters_of(std::string_view line) {
  Letters letters;
  for (std::size_t at = 0, end = 0; at < line.size(); at = end) {
    for (end = at + 1; end < line.size() && continues(line[end]);) ++end;
    letters.push_back(line.substr(at, end - at));
  }
  return letters;
}

struct Span {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

std::string text_in(const Letters& letters, Span span) {
  std::string text;
  for (std::size_t i = span.begin; i < std::min(span.end, letters.size()); ++i) text += letters[i];
  text.append(span.end - std::max(span.begin, std::min(span.end, letters.size())), ' ');
  return text;
}

// The columns of a table: what lies between gaps of two and more spaces that all its lines have.
std::vector<Span> columns_of(const std::vector<Letters>& lines) {
  std::size_t width = 0;
  for (const Letters& line : lines) width = std::max(width, line.size());
  const auto is_free = [&](std::size_t at) {
    return std::all_of(lines.begin(), lines.end(),
                       [at](const Letters& line) { return at >= line.size() || line[at] == " "; });
  };
  std::vector<Span> columns;
  for (std::size_t at = 0; at < width; ++at) {
    if (is_free(at)) continue;
    if (columns.empty() || at > columns.back().end + 1) columns.push_back({at, at});
    columns.back().end = at + 1;
  }
  return columns;
}

std::string without_end(std::string text) { return text.erase(text.find_last_not_of(' ') + 1); }

// A line of the first column and of one that is wider than what is left: broken at words below its begin.
std::string broken_cell(const std::string& head, const std::string& cell, std::size_t width) {
  constexpr std::size_t narrowest = 16;
  const std::size_t words = std::min(cell.size(), cell.find_first_not_of(' '));
  const std::string text = without_end(cell.substr(words));
  if (head.size() + narrowest > width) {
    const std::size_t indent = std::min(head.size(), head.find_first_not_of(' '));
    const std::string below = broken_at_words(std::string(indent + 2, ' ') + text, static_cast<int>(width));
    return indent == head.size() ? below : without_end(head) + "\n" + below;
  }
  const std::string broken = broken_at_words(std::string(head.size(), ' ') + text, static_cast<int>(width));
  return without_end(head + broken.substr(std::min(broken.size(), head.size())));
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
  if (letters_in(line) <= width || indent >= width || is_table(line) || is_picture(line)) return std::string(line);
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

std::string table_in_parts(const std::vector<std::string>& lines, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (std::all_of(lines.begin(), lines.end(), [&](const auto& line) { return letters_in(line) <= width; })) return text;
  std::vector<Letters> rows;
  for (const std::string& line : lines) rows.push_back(letters_of(line));
  const std::vector<Span> spans = columns_of(rows);
  if (spans.size() < 2 || spans.front().end >= width) return text;
  text.clear();
  for (std::size_t next = 1; next < spans.size();) {
    const std::size_t first = next;
    std::size_t used = spans.front().end;
    do used += 2 + spans[next++].size();
    while (next < spans.size() && used + 2 + spans[next].size() <= width);
    if (first > 1) text += "\n";
    for (const Letters& row : rows) {
      std::string line = text_in(row, {0, spans.front().end}) + "  ";
      if (used > width) {
        text += broken_cell(line, text_in(row, spans[first]), width) + "\n";
        continue;
      }
      for (std::size_t i = first; i < next; ++i) line += (i > first ? "  " : "") + text_in(row, spans[i]);
      text += without_end(std::move(line)) + "\n";
    }
  }
  return text;
}

TerminalText::TerminalText(std::streambuf& terminal, int columns, bool utf8)
    : terminal_(terminal), columns_(columns), utf8_(utf8) {}

TerminalText::~TerminalText() { TerminalText::sync(); }

TerminalText::int_type TerminalText::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  if (traits_type::to_char_type(letter) == '\n') return end_line() ? letter : traits_type::eof();
  line_ += traits_type::to_char_type(letter);
  return letter;
}

int TerminalText::sync() {
  const std::string line = std::exchange(line_, {});
  const bool written = write_table() && write(broken_at_words(utf8_ ? line : as_ascii(line), columns_));
  return written && terminal_.pubsync() == 0 ? 0 : -1;
}

bool TerminalText::end_line() {
  std::string line = std::exchange(line_, {});
  const bool picture = is_picture(line);
  if (!utf8_) line = as_ascii(line);  // before lines are broken: it has letters of two columns
  if (is_table(line) && !picture) {
    table_.push_back(std::move(line));
    return true;
  }
  return write_table() && write((picture ? line : broken_at_words(line, columns_)) + "\n");
}

bool TerminalText::write_table() {
  if (table_.empty()) return true;
  return write(table_in_parts(std::exchange(table_, {}), columns_));
}

bool TerminalText::write(const std::string& text) {
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
