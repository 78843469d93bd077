#include "scenarios/commands/study/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "scenarios/report/markup.h"

namespace slipway::scenarios {
namespace {

constexpr double width = 960, height = 480, left = 90, top = 56, bottom = 64, right = 24;
// Okabe and Ito's colours, which colour-blind readers can distinguish.
constexpr std::array<const char*, 7> colours{"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                             "#56B4E9", "#D55E00", "#999999"};

std::string text_at(double x, double y, const std::string& text, const char* anchor = "middle") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, in_markup(text));
}

std::string bar(double x, double from_y, double to_y, double bar_width, const std::string& colour, double opacity) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "fill-opacity=\"{}\"/>\n",
      x, to_y, bar_width, from_y - to_y, colour, opacity);
}

// Group and bar of each row; both in the order of first appearance.
struct Axes {
  std::vector<std::string> groups, series;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // per row
};

std::size_t index_in(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

Axes axes_of(const Study& study) {
  Axes axes;
  for (const StudyRow& row : study.rows) {
    std::string series;
    if (study.scenarios.size() > 1) series = std::filesystem::path(row.point.path).stem().string();
    for (std::size_t v = 0; v + 1 < study.first_keys.size(); ++v)
      series += (series.empty() ? "" : ", ") + row.point.values[study.first_keys[v]];
    const std::string group = study.first_keys.empty() ? "" : row.point.values[study.first_keys.back()];
    axes.places.emplace_back(index_in(axes.groups, group), index_in(axes.series, series));
  }
  return axes;
}

// A round number not below `most`: 1, 2 or 5 times a power of ten.
double axis_end(double most) {
  if (!(most > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most <= factor * power) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(const Study& study, const StudyColumn& figure) : study_(study), figure_(figure), axes_(axes_of(study)) {
    double most = 0;
    for (const StudyRow& row : study.rows) {
      const double value = row.number(figure.key.name);
      if (!std::isnan(value)) most = std::max(most, value);
    }
    end_ = figure.key.unit == "0..1" ? 1 : axis_end(most);
  }

  std::string draw() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        width, height);
    svg += text_at(
        width / 2, 20,
        (fills() ? "utilization" : figure_.column.heading) + (fills() ? " (dark: before filling; line: ceiling)" : ""));
    for (int tick = 0; tick <= 4; ++tick) {
      const double value = end_ * tick / 4;
      svg += fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n", left,
                         width - right, y_of(value));
      svg += text_at(left - 8, y_of(value) + 4, readable(figure_, value), "end");
    }
    for (std::size_t i = 0; i < study_.rows.size(); ++i) svg += bar_of(i);
    for (std::size_t g = 0; g < axes_.groups.size(); ++g)
      svg += text_at(left + (static_cast<double>(g) + 0.5) * group_width(), height - bottom + 20, axes_.groups[g]);
    if (!study_.first_keys.empty())
      svg += text_at(width / 2, height - bottom + 42, study_.keys[study_.first_keys.back()]);
    return svg + legend() + "</svg>\n";
  }

 private:
  double group_width() const { return (width - left - right) / static_cast<double>(axes_.groups.size()); }
  double bar_width() const { return group_width() * 0.8 / static_cast<double>(axes_.series.size()); }
  double y_of(double value) const { return height - bottom - value / end_ * (height - top - bottom); }
  bool fills() const { return figure_.key.name == "utilization"; }
  static const char* colour_of(std::size_t series) { return colours[series % colours.size()]; }

  std::string bar_of(std::size_t row) const {
    const auto [group, series] = axes_.places[row];
    const double x =
        left + (static_cast<double>(group) + 0.1) * group_width() + static_cast<double>(series) * bar_width();
    const double value = study_.rows[row].number(figure_.key.name), w = bar_width() * 0.92;
    if (std::isnan(value)) return text_at(x + w / 2, y_of(0) - 4, "×");
    if (!fills()) return bar(x, y_of(0), y_of(value), w, colour_of(series), 1);
    const double before = study_.rows[row].number("utilization_before"),
                 ceiling = study_.rows[row].number("utilization_ceiling");
    std::string svg = bar(x, y_of(0), y_of(value), w, colour_of(series), 0.45) +
                      bar(x, y_of(0), y_of(before), w, colour_of(series), 1);
    return svg + fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"black\"/>\n", x,
                             x + w, y_of(ceiling), y_of(ceiling));
  }

  std::string legend() const {
    if (axes_.series.size() == 1 && axes_.series[0].empty()) return "";
    std::string svg;
    double x = left;
    for (std::size_t s = 0; s < axes_.series.size(); ++s) {
      svg += bar(x, 42, 32, 12, colour_of(s), 1) + text_at(x + 18, 42, axes_.series[s], "start");
      x += 34 + 7.5 * static_cast<double>(axes_.series[s].size());
    }
    return svg;
  }

  const Study& study_;
  const StudyColumn& figure_;
  const Axes axes_;
  double end_ = 1;
};

}  // namespace

std::string study_svg(const Study& study, const StudyColumn& figure) { return Picture(study, figure).draw(); }

}  // namespace slipway::scenarios
