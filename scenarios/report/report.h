// The page of `--report` as plain data. A command fills in a Report in its own room; write_report makes the page.
//
//   command ──► Report {reason, cards, sections} ──► JSON ──► one HTML file: page/*.{html,css,js}, uPlot, the data
//
// Nothing in here draws and nothing is computed in the page but pixels. So whatever a page shows, a test can read here.
// The page needs no network. Its data stand in it as JSON, times in seconds and sizes in bytes.
// Guarded by tests/scenarios/report_test.cpp; in a browser by tests/report/page_test.py.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "scenarios/commands/command_line/options.h"
#include "scenarios/report/timeline_view.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

enum class Tone : std::uint8_t { plain, good, bad };

// One number of the answer, in large type. The first card of a report is its answer.
struct Card {
  std::string name, value;
  std::string note = {};  // its interval, or what it is compared with
  Tone tone = Tone::plain;
};

// A bar cut into shares, for where the time goes.
struct Share {
  std::string name, value;  // value: as text, with its unit
  double share = 0;         // of the whole bar
  std::string colour = {};  // of page.css: "compute", "exposed", "bubble", or name_of(SpanColour)
};
struct Bar {
  std::string title, note;
  std::vector<Share> shares;
};

// Rows of cells, the headings first, as aligned_table takes them (scenarios/predict/readable.h).
struct ReportTable {
  std::string title, note;
  std::vector<std::vector<std::string>> rows;
};

enum class Mark : std::uint8_t { line, points, steps };

struct PlotSeries {
  std::string name;
  std::vector<double> x, y;
  Mark mark = Mark::line;
  std::vector<std::string> labels = {};  // per point, for the hover; may be empty
};

struct PlotAxis {
  std::string label;
  enum class Unit : std::uint8_t { number, seconds, bytes, share } unit = Unit::number;
  bool logarithmic = false;
};

struct Plot {
  std::string title, note;
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  bool diagonal = false;           // the line y = x: predicted equals measured
  std::vector<PlotSeries> levels;  // dashed, for example a capacity
};

struct TimelineSection {
  std::string title, note;
  TimelineView view;  // reduced (timeline_view.h)
};

using Section = std::variant<Bar, ReportTable, Plot, TimelineSection>;

struct Report {
  std::string command;   // "simulate"
  std::string headline;  // what was asked: model, machine, layout
  std::string reason;    // one sentence: what is slow, and why
  std::vector<Card> cards;
  std::vector<Section> sections;
};

// The meaning of --report FILE, for each command's help.
constexpr const char* report_meaning = "write the answer as one HTML page with plots; it needs no network";
// Checks the path of --report before any work. Throws UsageError as check_output does.
void check_report(const CommandOptions& options, const std::vector<std::string>& inputs);
// Writes the page whole or not at all. Throws std::runtime_error where it cannot.
void write_report(const std::string& path, const Report& report);

// The page as text.
std::string page_text(const Report& report);

// The name by which page.css has the colour.
const char* name_of(SpanColour colour);
// Ascending ranks: "0–3, 8".
std::string ranks_text(const std::vector<int>& ranks);

// Sections that several commands have.
TimelineSection timeline_section(TimelineView view, const std::string& title = "Timeline");
Bar path_bar(const TimelineView& view);
// Loss and batch over the steps of a training: one plot each, the second where the batch grew. Empty without losses.
std::vector<Plot> training_plots(const std::vector<LossPoint>& losses);
// The memory curves of a view as a plot, with the capacity of the fullest rank as a level where it is known.
Plot memory_plot(const TimelineView& view, const std::vector<double>& capacities);

}  // namespace slipway::scenarios
