#include "scenarios/language/plain_yaml.h"

#include <yaml-cpp/mark.h>

#include <algorithm>
#include <string>
#include <vector>

namespace slipway::scenarios {
namespace {

constexpr std::size_t longest_key = 1000;  // yaml-cpp takes no longer ones for keys

struct NotPlain {};

bool is_plain_character(char c) { return c == '\n' || (c >= ' ' && c <= '~'); }

bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./+(<=$").find(c) != std::string_view::npos;
}

class Reader {
 public:
  Reader(std::string_view text, YAML::EventHandler& to) : text_(text), to_(to) {}

  void read() {
    if (!std::ranges::all_of(text_, is_plain_character)) throw NotPlain();
    for (const char* marker : {"---", "...", "%"})
      if (text_.starts_with(marker)) throw NotPlain();
    next_line();
    if (at_end() || column() != 0) throw NotPlain();
    block(0, false);
    if (!at_end()) throw NotPlain();
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char here() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  char ahead(std::size_t by) const { return at_ + by < text_.size() ? text_[at_ + by] : '\n'; }
  std::size_t column() const { return at_ - line_begin_; }
  static bool is_blank(char c) { return c == ' ' || c == '\n'; }

  YAML::Mark mark() const {
    YAML::Mark mark;
    mark.line = line_;
    return mark;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void begin_line() {
    line_begin_ = ++at_, ++line_;
    for (const char* marker : {"---", "...", "%"})
      if (text_.substr(at_).starts_with(marker)) throw NotPlain();
  }

  // Behind a value: nothing but a comment may follow in its line.
  void end_line() {
    skip_spaces();
    if (here() == '#' && text_[at_ - 1] == ' ') skip_comment();
    if (here() != '\n') throw NotPlain();
  }

  // To the first character of the next line that says something.
  void next_line() {
    for (;; begin_line()) {
      skip_spaces();
      if (here() == '#') skip_comment();
      if (at_end() || here() != '\n') return;
    }
  }

  // A word up to its end in this line; in flow, also up to a bracket or comma.
  std::string_view plain_word(bool in_flow) {
    const bool negative = here() == '-' && !is_blank(ahead(1)) && begins_word(ahead(1));
    if (!begins_word(here()) && !negative) throw NotPlain();
    const std::size_t begin = at_;
    for (; here() != '\n'; ++at_) {
      const char c = here();
      if (c == ':' && is_blank(ahead(1))) break;
      if (c == '#' && text_[at_ - 1] == ' ') break;
      if (!in_flow) continue;
      if (c == ',' || c == ']' || c == '}') break;
      if (c == '[' || c == '{' || c == '?') throw NotPlain();
      if (c == ':' && std::string_view(",[]{}").find(ahead(1)) != std::string_view::npos) throw NotPlain();
    }
    std::string_view word = text_.substr(begin, at_ - begin);
    while (word.back() == ' ') word.remove_suffix(1);
    return word;
  }

  const std::string& quoted_word() {
    const char quote = here();
    quoted_.clear();
    for (++at_;; ++at_) {
      const char c = here();
      if (c == '\n') throw NotPlain();  // it goes on in the next line, or never ends
      if (c == quote && quote == '\'' && ahead(1) == quote) {
        ++at_;
      } else if (c == quote) {
        break;
      } else if (c == '\\' && quote == '"') {
        ++at_;
        if (here() == 'n' || here() == 't') {
          quoted_ += here() == 'n' ? '\n' : '\t';
          continue;
        }
        if (here() != '"' && here() != '\\' && here() != '/') throw NotPlain();
      }
      quoted_ += here();
    }
    ++at_;
    return quoted_;
  }

  bool at_quote() const { return here() == '"' || here() == '\''; }

  void emit(bool quoted, std::string_view word, const YAML::Mark& of) {
    static const std::string quoted_tag = "!", plain_tag = "?";
    if (!quoted && (word == "null" || word == "Null" || word == "NULL")) return to_.OnNull(of, 0);
    text_of_event_.assign(word);
    to_.OnScalar(of, quoted ? quoted_tag : plain_tag, 0, text_of_event_);
  }

  // A word, which is emitted. `is_key`: what follows is a colon.
  void word(bool in_flow, bool is_key) {
    const std::size_t begin = at_;
    const bool quoted = at_quote();
    const std::string_view found = quoted ? std::string_view(quoted_word()) : plain_word(in_flow);
    if (is_key) {
      if (at_ - begin > longest_key || (!quoted && (found == "null" || found == "Null" || found == "NULL")))
        throw NotPlain();
      if (quoted) skip_spaces();
      if (here() != ':' || !is_blank(ahead(1))) throw NotPlain();
    }
    emit(quoted, found, mark());
    if (is_key) ++at_;
  }

  // True if the line says "word: ...".
  bool at_key() {
    const std::size_t begin = at_;
    if (here() == '[' || here() == '{') return false;
    if (at_quote())
      quoted_word(), skip_spaces();
    else
      plain_word(false);
    const bool is_key = here() == ':';
    at_ = begin;
    return is_key;
  }

  // What stands at this column; afterwards at the next line. `in_list`: behind a dash.
  void block(std::size_t indent, bool in_list) {
    if (++depth_ > 64) throw NotPlain();
    if (here() == '-' && ahead(1) == ' ') {
      if (in_list) throw NotPlain();
      block_list(indent);
    } else if (at_key()) {
      block_map(indent);
    } else {
      line_of_value();
    }
    --depth_;
  }

  void block_list(std::size_t indent) {
    to_.OnSequenceStart(mark(), "?", 0, YAML::EmitterStyle::Block);
    while (!at_end() && column() == indent && here() == '-' && ahead(1) == ' ') {
      ++at_;
      skip_spaces();
      if (here() == '#' || here() == '\n') throw NotPlain();
      block(column(), true);
      if (!at_end() && column() > indent) throw NotPlain();
    }
    if (!at_end() && column() == indent) throw NotPlain();
    to_.OnSequenceEnd();
  }

  void block_map(std::size_t indent) {
    to_.OnMapStart(mark(), "?", 0, YAML::EmitterStyle::Block);
    while (!at_end() && column() == indent) {
      word(false, true);
      skip_spaces();
      if (here() == '\n' || here() == '#') {
        const YAML::Mark of = mark();
        end_line();
        next_line();
        if (!at_end() && column() > indent)
          block(column(), false);
        else if (!at_end() && column() == indent && here() == '-')
          throw NotPlain();  // a list that is not indented
        else
          to_.OnNull(of, 0);
      } else {
        line_of_value();
      }
      if (!at_end() && column() > indent) throw NotPlain();
    }
    to_.OnMapEnd();
  }

  // A word or a flow collection to the end of its line, or a later one.
  void line_of_value() {
    if (here() == '[' || here() == '{')
      flow();
    else
      word(false, false);
    end_line();
    next_line();
  }

  // To the next word or bracket of a flow collection.
  void skip_in_flow() {
    for (;; begin_line()) {
      skip_spaces();
      if (here() == '#') {
        if (column() > 0 && text_[at_ - 1] != ' ') throw NotPlain();
        skip_comment();
      }
      if (at_end()) throw NotPlain();
      if (here() != '\n') return;
    }
  }

  void flow() {
    if (++depth_ > 64) throw NotPlain();
    const bool is_map = here() == '{';
    const char closing = is_map ? '}' : ']';
    if (is_map)
      to_.OnMapStart(mark(), "?", 0, YAML::EmitterStyle::Flow);
    else
      to_.OnSequenceStart(mark(), "?", 0, YAML::EmitterStyle::Flow);
    ++at_;
    skip_in_flow();
    if (here() == closing) {
      ++at_;
    } else {
      for (;;) {
        if (is_map) {
          if (here() == '[' || here() == '{') throw NotPlain();
          word(true, true);
          skip_in_flow();
        }
        if (here() == '[' || here() == '{')
          flow();
        else
          word(true, false);
        skip_in_flow();
        const char c = here();
        ++at_;
        if (c == closing) break;
        if (c != ',') throw NotPlain();
        skip_in_flow();
      }
    }
    if (is_map)
      to_.OnMapEnd();
    else
      to_.OnSequenceEnd();
    --depth_;
  }

  std::string_view text_;
  YAML::EventHandler& to_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 0, depth_ = 0;
  std::string quoted_, text_of_event_;
};

}  // namespace

bool read_plain_yaml(std::string_view text, YAML::EventHandler& to) {
  try {
    Reader(text, to).read();
    return true;
  } catch (const NotPlain&) {
    return false;
  }
}

}  // namespace slipway::scenarios
