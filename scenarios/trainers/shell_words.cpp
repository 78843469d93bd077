#include <algorithm>
#include <cctype>
#include <optional>

#include "scenarios/files/usage_error.h"
#include "scenarios/trainers/shell_words.h"

namespace slipway::scenarios {

namespace {

constexpr std::size_t most_of_script = 64 << 20;  // characters of all its texts

// Marks in words until variables are replaced: a word that begins in double quotes, and a $ in single quotes.
constexpr char in_quotes = '\x01', dollar = '\x02';

struct Line {
  std::vector<std::string> words;
  int number = 0;
};

// Words of a script, command by command. Parentheses of an array are separate words.
class Splitter {
 public:
  explicit Splitter(const std::string& text) : text_(text) {}

  std::vector<Line> lines() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(lines_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] == '\n') {
        ++number_;
        end_word();
      } else {
        add(text_[at_ + 1]);
      }
      at_ += 2;
      return;
    }
    if (c == '\'' || c == '"') return quoted(c);
    ++at_;
    if (c == '#' && !in_word_) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '\n' || c == ';' || (c == '&' && !in_reference()) || (c == '|' && !in_reference())) {
      end_word();
      if (c == '\n') ++number_;
      if (!in_array_) end_command();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else if (c == '(' && in_word_ && word_.ends_with('=')) {
      in_array_ = true;
      end_word();
      current_.words.emplace_back("(");
    } else if (c == ')' && in_array_) {
      end_word();
      in_array_ = false;
      end_command();
    } else {
      add(c);
    }
  }

  bool in_reference() const { return word_.find("${") != std::string::npos && word_.find('}') == std::string::npos; }

  void quoted(char quote) {
    if (!in_word_ && quote == '"') word_ += in_quotes;
    in_word_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\n') ++number_;
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        if (text_[at_] == '\n') continue;
      }
      word_ += quote == '\'' && text_[at_] == '$' ? dollar : text_[at_];
    }
    ++at_;
  }

  void add(char c) {
    in_word_ = true;
    word_ += c;
  }

  void end_word() {
    if (in_word_) {
      if (current_.words.empty()) current_.number = number_;
      current_.words.push_back(word_);
    }
    word_.clear();
    in_word_ = false;
  }

  void end_command() {
    end_word();
    if (!current_.words.empty()) lines_.push_back(std::move(current_));
    current_ = {};
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int number_ = 1;
  std::string word_;
  bool in_word_ = false, in_array_ = false;
  Line current_;
  std::vector<Line> lines_;
};

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

// Takes the characters of a text from those that are left.
std::string counted(std::string text, std::size_t& left) {
  if (text.size() > left)
    throw UsageError("the variables of the script multiply to more than 64 MB of text; give the arguments without it");
  left -= text.size();
  return text;
}

std::string without_marks(std::string text) {
  std::erase(text, in_quotes);
  std::replace(text.begin(), text.end(), dollar, '$');
  return text;
}

// Words of one command, with variables replaced. A variable alone stands for all of its words, unless it is quoted and
// no array.
std::vector<std::string> expanded(const std::vector<std::string>& words, const Variables& variables,
                                  std::size_t& left) {
  std::vector<std::string> out;
  for (const std::string& marked : words) {
    const bool is_quoted = marked.starts_with(in_quotes) && marked.find("[@]") == std::string::npos;
    std::string word = marked;
    std::erase(word, in_quotes);
    const bool is_alone = variable_at(word).length == word.size() && !word.empty();
    const std::string text = counted(without_marks(with_variables(word, variables)), left);
    if (is_alone && !is_quoted && text != word) {
      for (std::string& each : split_at_spaces(text)) out.push_back(std::move(each));
    } else {
      out.push_back(text);
    }
  }
  return out;
}

// "NAME=value", "NAME+=value": the length of NAME; 0 for other words.
std::size_t assigned(const std::string& word) {
  const std::size_t length = variable_length(word);
  if (length == 0 || length >= word.size()) return 0;
  return word[length] == '=' || word.compare(length, 2, "+=") == 0 ? length : 0;
}

}  // namespace

std::vector<ShellCommand> shell_commands(const std::string& text, Variables& variables) {
  const Variables given = variables;  // they hold against the script's own
  std::vector<ShellCommand> commands;
  std::size_t left = most_of_script;
  for (Line& line : Splitter(text).lines()) {
    std::vector<std::string>& words = line.words;
    if (words[0] == "export" || words[0] == "local" || words[0] == "declare") words.erase(words.begin());
    std::size_t first = 0;
    for (; first < words.size() && assigned(words[first]) > 0; ++first) {
      const std::size_t length = assigned(words[first]);
      const std::string name = words[first].substr(0, length);
      const bool adds = words[first][length] == '+';
      std::string value = without_marks(with_variables(words[first].substr(length + (adds ? 2 : 1)), variables));
      if (first + 1 < words.size() && words[first + 1] == "(") {
        for (const std::string& word :
             expanded({words.begin() + static_cast<std::ptrdiff_t>(first) + 2, words.end()}, variables, left))
          value += (value.empty() ? "" : " ") + word;
        first = words.size() - 1;
      }
      if (given.contains(name)) continue;
      std::string& variable = variables[name];
      variable = counted(adds && !variable.empty() ? variable + " " + value : value, left);
    }
    if (first < words.size())
      commands.push_back(
          {expanded({words.begin() + static_cast<std::ptrdiff_t>(first), words.end()}, variables, left), line.number});
  }
  return commands;
}

}  // namespace slipway::scenarios
