// Writes a Report as one HTML page: page/*.{html,css,js}, uPlot and the data.
// Guarded by tests/scenarios/report_test.cpp; in a browser by tests/report/page_test.py.
#pragma once

#include <string>
#include <vector>

#include "scenarios/commands/command_line/options.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// The meaning of --report FILE, for each command's help.
constexpr const char* report_meaning = "write the answer as one HTML page with plots; it needs no network";
// Checks the path of --report before any work. Throws UsageError as check_output does.
void check_report(const CommandOptions& options, const std::vector<std::string>& inputs);
// Writes the page whole or not at all. Throws std::runtime_error where it cannot.
void write_report(const std::string& path, const Report& report);

// The page as text.
std::string page_text(const Report& report);

}  // namespace slipway::scenarios
