#include "scenarios/commands/growth/training_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace slipway::scenarios {
namespace {

// A text that YAML reads back whatever it contains: JSON's strings are YAML's quoted strings.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// "43.02 M", "612.4"
std::string tokens_value(double tokens) {
  return tokens < 1e6 ? fmt::format("{:.4g}", tokens) : fmt::format("{:.4g} M", tokens / 1e6);
}

}  // namespace

std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss,
                           const LossDynamics& d, const std::optional<Interval>& noise_range) {
  std::string text = fmt::format(
      "\nFor a scenario:\n\ntraining:\n  source: {}\n"
      "  fitted: {{batches: [{:.0f}, {:.0f}], lowest_loss: {:.4g}}}\n"
      "  loss: {{start: {:.5g}, floor: {:g}, offset: {:.4g}, exponent: {:.4g}}}\n  noise: {{scale: {}, at_loss: {:.4g}",
      quoted(source + ", by slipway growth --fit"), batches.least, batches.most, lowest_loss, d.start, d.floor,
      d.offset, d.exponent, tokens_value(d.noise_tokens), d.noise_loss);
  if (d.noise_exponent != kaplan_noise_exponent) text += fmt::format(", exponent: {:.4g}", d.noise_exponent);
  if (noise_range)
    text += fmt::format(", least: {}, most: {}", tokens_value(noise_range->least), tokens_value(noise_range->most));
  return text + "}\n";
}

}  // namespace slipway::scenarios
