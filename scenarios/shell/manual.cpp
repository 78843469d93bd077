#include "scenarios/shell/manual.h"

#include <fmt/format.h>

#include <sstream>

namespace slipway::scenarios {
namespace {

// Text as roff prints it: backslashes and dashes are escaped, a point at the start of a line is no request.
std::string escaped(std::string_view text) {
  std::string roff;
  bool line_begins = true;
  for (const char letter : text) {
    if (line_begins && (letter == '.' || letter == '\'')) roff += "\\&";
    if (letter == '\\') {
      roff += "\\e";
    } else if (letter == '-') {
      roff += "\\-";
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

std::string section(const CommandForm& form) {
  std::string roff = ".SS \"slipway " + escaped(form.usage) + "\"\n" + paragraphs(form.purpose);
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
