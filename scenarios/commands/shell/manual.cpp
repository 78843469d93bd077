#include "scenarios/commands/shell/manual.h"

#include <fmt/format.h>

#include <sstream>

namespace slipway::scenarios {
namespace {

// A letter beyond ASCII at `at`, which is moved behind it: \[u00B5]. groff alone reads bytes as Latin-1.
std::string beyond_ascii(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const int following = byte(at) >= 0xF0 ? 3 : byte(at) >= 0xE0 ? 2 : 1;
  unsigned letter = byte(at) & (0x3FU >> following);
  for (int i = 0; i < following; ++i) letter = letter << 6 | (byte(++at) & 0x3FU);
  return fmt::format("\\[u{:04X}]", letter);
}

// UTF-8 as roff prints it: backslashes and dashes are escaped, a point at the start of a line is no request.
std::string escaped(std::string_view text) {
  std::string roff;
  bool line_begins = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (line_begins && (letter == '.' || letter == '\'')) roff += "\\&";
    if (letter == '\\') {
      roff += "\\e";
    } else if (letter == '-') {
      roff += "\\-";
    } else if (static_cast<unsigned char>(letter) >= 0x80) {
      roff += beyond_ascii(text, at);
    } else {
      roff += letter;
    }
    line_begins = letter == '\n';
  }
  return roff;
}

// Lines that begin with spaces stay as they are (.nf); the others flow.
std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string roff;
  bool as_is = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with(' ');
    if (indented != as_is) roff += indented ? ".nf\n" : ".fi\n";
    as_is = indented;
    roff += line.empty() ? ".PP\n" : escaped(line) + "\n";
  }
  return roff + (as_is ? ".fi\n" : "");
}

// A heading of each form; `usage` has those after the first as "\n       slipway growth --fit ...".
std::string headings(const std::string& usage) {
  std::istringstream lines("slipway " + usage);
  std::string roff;
  for (std::string line; std::getline(lines, line);)
    roff += ".SS \"" + escaped(line.substr(line.find_first_not_of(' '))) + "\"\n";
  return roff;
}

std::string section(const CommandForm& form) {
  std::string roff = headings(form.usage) + paragraphs(form.purpose);
  for (const OptionForm& option : form.options) {
    const std::string letter = option.letter.empty() ? "" : "\\fB\\-" + option.letter + "\\fR, ";
    const std::string value = option.placeholder.empty() ? "" : " \\fI" + escaped(option.placeholder) + "\\fR";
    roff += ".TP\n" + letter + "\\fB\\-\\-" + escaped(option.name) + "\\fR" + value + "\n" + paragraphs(option.meaning);
  }
  if (!form.notes.empty()) roff += ".PP\n" + paragraphs(form.notes);
  return roff + ".PP\nExample:\n" + paragraphs("  " + form.example);
}

}  // namespace

std::string manual(const std::vector<CommandForm>& forms, std::string_view version) {
  std::string roff = fmt::format(R"(.\" Made by `slipway man` from the help of the commands.
.TH SLIPWAY 1 "" "slipway {}" "User Commands"
.SH NAME
slipway \- plans, simulates and executes LLM training from one task graph
.SH SYNOPSIS
.B slipway
.I COMMAND
[arguments]
.br
.B slipway help
.I COMMAND
.SH DESCRIPTION
A scenario (YAML) describes a model, a cluster, a layout, a schedule and the training.
Slipway makes one task graph of it, predicts its step time and memory, and executes it.
.SH COMMANDS
)",
                                 version);
  for (const CommandForm& form : forms) roff += section(form);
  return roff + R"(.SH EXIT STATUS
.TP
0
The work was done.
.TP
1
It failed or was interrupted.
.TP
2
The usage or the scenario is wrong; nothing was started and nothing was written.
.SH ENVIRONMENT
.TP
COLUMNS
The width of tables and timelines; otherwise the terminal's.
.TP
SLIPWAY_RANK
The rank program of
.B slipway execute
and
.BR "slipway calibrate \-\-measure" ;
otherwise slipway\-rank beside slipway.
)";
}

}  // namespace slipway::scenarios
