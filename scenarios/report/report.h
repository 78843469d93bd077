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

#include "scenarios/report/timeline_view.h"

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

}  // namespace slipway::scenarios
