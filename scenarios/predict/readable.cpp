#include "scenarios/predict/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "scenarios/language/quantity.h"

namespace slipway::scenarios {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

// Three significant digits below 100, whole numbers from 100 on.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

template <std::size_t n>
std::string scaled(double value, const std::array<Scale, n>& descending) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  // 0.9995 of a unit rounds up to one of it.
  for (const Scale& scale : descending) {
    if (std::abs(value) >= 0.9995 * scale.factor) {
      return three_digits(value / scale.factor) + " " + scale.unit;
    }
  }
  return three_digits(value / descending.back().factor) + " " + descending.back().unit;
}

}  // namespace

std::string readable_seconds(double seconds) {
  static constexpr std::array<Scale, 4> scales{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
  if (seconds == 0) return "0 s";
  if (seconds >= 2 * day_s) return three_digits(seconds / day_s) + " days";
  if (seconds >= 2 * hour_s) return three_digits(seconds / hour_s) + " h";
  return scaled(seconds, scales);
}

std::string readable_bytes(double bytes) {
  static constexpr std::array<Scale, 5> scales{
      {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}};
  if (std::abs(bytes) < 0x1p10) return fmt::format("{:.0f} B", bytes);
  return scaled(bytes, scales);
}

std::string readable_share(double share) {
  const std::string text = fmt::format("{:.1f} %", 100 * share);
  return text == "-0.0 %" ? "0.0 %" : text;
}

std::string readable_count(double count) {
  if (std::abs(count) < 1e6) {
    std::string digits = fmt::format("{:.0f}", count);
    const std::size_t first = digits[0] == '-' ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
    return digits;
  }
  static constexpr std::array<Scale, 3> scales{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}}};
  return scaled(count, scales);
}

std::function<std::string(double)> or_dash(std::function<std::string(double)> text) {
  return [text = std::move(text)](double value) { return std::isnan(value) ? std::string("-") : text(value); };
}

std::string yes_no(bool yes) { return yes ? "yes" : "no"; }

std::string readable_flops(double flops_per_s) {
  static constexpr std::array<Scale, 5> scales{
      {{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}, {1, "FLOP/s"}}};
  return scaled(flops_per_s, scales);
}

std::string counted(std::int64_t count, const std::string& noun) {
  return readable_count(static_cast<double>(count)) + " " + noun +
         (count == 1             ? ""
          : noun.ends_with("ch") ? "es"
                                 : "s");
}

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // not a continuation byte
  }));
}

std::string aligned_table(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - display_width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (i == 0 ? row[i] + padding : padding + row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
  }
  return text;
}

}  // namespace slipway::scenarios
