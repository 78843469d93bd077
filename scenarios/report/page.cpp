#include "scenarios/report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/files/output_file.h"
#include "scenarios/report/embedded_page.h"
#include "scenarios/report/markup.h"
#include "scenarios/report/packed.h"
#include "scenarios/report/sections.h"

namespace slipway::scenarios {
namespace {

using Json = nlohmann::json;

// JSON has no infinity and no NaN: the page shows nothing there.
Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(std::isfinite(value) ? Json(value) : Json());
  return list;
}

Json as_json(const Card& card) {
  constexpr std::array<const char*, 3> tones{"plain", "good", "bad"};
  return {{"name", card.name},
          {"value", card.value},
          {"note", card.note},
          {"tone", tones.at(static_cast<std::size_t>(card.tone))}};
}

Json as_json(const PlotAxis& axis) {
  constexpr std::array<const char*, 4> units{"number", "seconds", "bytes", "share"};
  return {{"label", axis.label}, {"unit", units.at(static_cast<std::size_t>(axis.unit))}, {"log", axis.logarithmic}};
}

Json as_json(const PlotSeries& series) {
  constexpr std::array<const char*, 3> marks{"line", "points", "steps"};
  return {{"name", series.name},
          {"x", numbers(series.x)},
          {"y", numbers(series.y)},
          {"mark", marks.at(static_cast<std::size_t>(series.mark))},
          {"labels", series.labels}};
}

Json list_of(const std::vector<PlotSeries>& series) {
  Json list = Json::array();
  for (const PlotSeries& each : series) list.push_back(as_json(each));
  return list;
}

Json as_json(const Bar& bar) {
  Json shares = Json::array();
  for (const Share& share : bar.shares)
    shares.push_back({{"name", share.name}, {"value", share.value}, {"share", share.share}, {"colour", share.colour}});
  return {{"type", "bar"}, {"title", bar.title}, {"note", bar.note}, {"shares", shares}};
}

Json as_json(const ReportTable& table) {
  return {{"type", "table"}, {"title", table.title}, {"note", table.note}, {"rows", table.rows}};
}

Json as_json(const Plot& plot) {
  return {{"type", "plot"},
          {"title", plot.title},
          {"note", plot.note},
          {"x", as_json(plot.x)},
          {"y", as_json(plot.y)},
          {"series", list_of(plot.series)},
          {"levels", list_of(plot.levels)},
          {"diagonal", plot.diagonal}};
}

// Seconds are stored as whole ticks. 2^26 of them are a view: of a step of five seconds, one is 75 ns.
constexpr double ticks_per_view = 1 << 26;

// The data of a view for page/timeline.js, which unpacks it. A label is two parts, "2F0" and ".L5.mlp": few of each.
class PackedView {
 public:
  explicit PackedView(const TimelineView& view) : view_(view), per_second_(ticks_per_view / view.seconds) {}

  Json json() {
    std::int64_t number = 0;
    std::vector<std::int64_t> place(view_.spans.size());  // in the order of rows and lanes
    for (const RankView& row : view_.rows)
      for (const LaneView& lane : row.lanes)
        for (const std::uint32_t i : lane.spans) place[i] = number++;
    Json rows = Json::array();
    for (const RankView& row : view_.rows) {
      Json lanes = Json::array();
      for (const LaneView& lane : row.lanes)
        lanes.push_back({{"name", lane.name},
                         {"computes", lane.computes},
                         {"count", lane.spans.size()},
                         {"data", packed(lane, place)}});
      rows.push_back({{"ranks", ranks_text(row.ranks)},
                      {"count", row.ranks.size()},
                      {"lanes", lanes},
                      {"exposed", packed(row.exposed)}});
    }
    Json kinds = Json::array(), path = Json::array();
    for (const std::string& kind : view_.kinds)
      kinds.push_back({{"name", kind}, {"colour", name_of(colour_of_kind(kind))}});
    return {{"seconds", view_.seconds}, {"ticks", ticks_per_view}, {"step", view_.step}, {"ranks", view_.ranks},
            {"tasks", view_.tasks},     {"kinds", kinds},          {"heads", heads_},    {"tails", tails_},
            {"sizes", sizes_},          {"rows", std::move(rows)}};
  }

 private:
  std::int64_t ticks(double seconds) const { return std::llround(seconds * per_second_); }

  static std::int64_t number_of(const std::string& text, std::map<std::string, std::int64_t>& numbers, Json& texts) {
    const auto [at, is_new] = numbers.try_emplace(text, static_cast<std::int64_t>(texts.size()));
    if (is_new) texts.push_back(text);
    return at->second;
  }

  // Per span: start after the last start, duration, wait, flags and Wait, kind, head, tail, size, cause before it; of several
  // tasks as one, also their number and seconds.
  std::string packed(const LaneView& lane, const std::vector<std::int64_t>& place) {
    Packed packed;
    std::int64_t before = 0;
    for (const std::uint32_t i : lane.spans) {
      const TaskSpan& span = view_.spans[i];
      const std::int64_t start = ticks(span.start_s);
      packed.add(start - before), before = start;
      packed.add(ticks(span.end_s) - start);
      packed.add(ticks(span.wait_s));
      packed.add((span.critical ? 1 : 0) + (span.tasks > 1 ? 2 : 0) + 4 * static_cast<std::int64_t>(span.wait_for));
      packed.add(span.kind);
      const std::string& label = view_.labels[span.label];
      const std::size_t dot = std::min(label.find('.'), label.size());
      packed.add(number_of(label.substr(0, dot), head_numbers_, heads_));
      packed.add(number_of(label.substr(dot), tail_numbers_, tails_));
      packed.add(size_of(span.bytes));
      packed.add(span.cause < 0 ? 0 : place[i] - place[static_cast<std::size_t>(span.cause)]);
      if (span.tasks > 1) packed.add(span.tasks), packed.add(ticks(span.busy_s));
    }
    return packed.base64();
  }

  std::string packed(const std::vector<IdleView>& idle) {
    Packed packed;
    for (const IdleView& part : idle) packed.add(ticks(part.start_s)), packed.add(ticks(part.end_s - part.start_s));
    return packed.base64();
  }

  std::int64_t size_of(double bytes) {
    const auto [at, is_new] = size_numbers_.try_emplace(bytes, static_cast<std::int64_t>(sizes_.size()));
    if (is_new) sizes_.push_back(bytes);
    return at->second;
  }

  const TimelineView& view_;
  double per_second_;
  std::map<std::string, std::int64_t> head_numbers_, tail_numbers_;
  std::map<double, std::int64_t> size_numbers_;
  Json heads_ = Json::array(), tails_ = Json::array(), sizes_ = Json::array();
};

Json as_json(const TimelineSection& section) {
  return {{"type", "timeline"},
          {"title", section.title},
          {"note", section.note},
          {"view", PackedView(section.view).json()}};
}

Json as_json(const Report& report) {
  Json cards = Json::array(), sections = Json::array();
  for (const Card& card : report.cards) cards.push_back(as_json(card));
  for (const Section& section : report.sections)
    sections.push_back(std::visit([](const auto& each) { return as_json(each); }, section));
  return {{"command", report.command},
          {"headline", report.headline},
          {"reason", report.reason},
          {"cards", cards},
          {"sections", sections}};
}

std::string_view page_file(std::string_view name) {
  for (const EmbeddedFile& file : embedded_page())
    if (file.name == name) return file.text;
  throw std::logic_error("the program has no page file " + std::string(name));
}

// "</script>" must not occur in a script; "<\/" is the same text for JSON and JavaScript.
std::string in_script(std::string text) {
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.insert(at + 1, "\\");
  return text;
}

}  // namespace

// page.html has a place for each part: {{name}}.
std::string page_text(const Report& report) {
  const std::map<std::string_view, std::string> parts = {
      {"title", in_markup("slipway " + report.command + ": " + report.headline)},
      {"style", std::string(page_file("uPlot.min.css")) + std::string(page_file("page.css"))},
      {"data", in_script(as_json(report).dump(-1, ' ', false, Json::error_handler_t::replace))},
      {"uplot", in_script(std::string(page_file("uPlot.iife.min.js")))},
      {"uplot_licence", std::string(page_file("LICENSE"))},
      {"script", in_script(std::string(page_file("numbers.js")) + std::string(page_file("timeline.js")) +
                           std::string(page_file("plots.js")) + std::string(page_file("page.js")))}};
  const std::string_view page = page_file("page.html");
  std::string text;
  std::size_t done = 0;
  for (std::size_t at; (at = page.find("{{", done)) != std::string_view::npos;) {
    const std::size_t end = page.find("}}", at);
    text += page.substr(done, at - done);
    text += parts.at(page.substr(at + 2, end - at - 2));
    done = end + 2;
  }
  return text.append(page.substr(done));
}

void write_report(const std::string& path, const Report& report) {
  const std::string text = page_text(report);
  OutputFile file(path);
  file.stream() << text;
  file.commit();
}

void check_report(const CommandOptions& options, const std::vector<std::string>& inputs) {
  if (const auto path = options.text("report")) check_output("--report", *path, inputs);
}

}  // namespace slipway::scenarios
