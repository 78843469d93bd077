// Text on a terminal. Answers are written as UTF-8 in lines of any length, the same bytes in every locale. A terminal gets
// its sentences broken at words, its tables in parts of as many columns as it has room for, and ASCII where its locale has
// no UTF-8. Files and pipes get the text as it is.
// There is no colour, so NO_COLOR has nothing to change.
// Guarded by tests/scenarios/terminal_text_test.cpp.
#pragma once

#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// "12 ms +- 3 %" for "12 ms ± 3 %"; letters without a likeness become '?'.
std::string as_ascii(std::string_view text);

// A line without its end. Longer than `columns` and a sentence (no table, no picture), it is broken at words; the lines
// after the first begin under the first word.
std::string broken_at_words(std::string_view line, int columns);

// A table of lines whose columns stand two spaces apart. If a line is longer than `columns`, the table becomes parts, one
// below the other with an empty line between, each with the first column and as many others as fit; a cell of text that
// does not fit is broken at words. Lines without a common gap stay as they are.
std::string table_in_parts(const std::vector<std::string>& lines, int columns);

// Passes lines on to `terminal`, as above: a sentence at its end, a table at the end of its last line. A flush writes all.
class TerminalText : public std::streambuf {
 public:
  TerminalText(std::streambuf& terminal, int columns, bool utf8);
  ~TerminalText() override;

 protected:
  int_type overflow(int_type letter) override;
  int sync() override;

 private:
  bool end_line();
  bool write(const std::string& text);
  bool write_table();
  std::streambuf& terminal_;
  int columns_;
  bool utf8_;
  std::string line_;                // not yet written
  std::vector<std::string> table_;  // lines of a table before it
};

// Does the locale of the environment say UTF-8?
bool locale_is_utf8();

}  // namespace slipway::scenarios
