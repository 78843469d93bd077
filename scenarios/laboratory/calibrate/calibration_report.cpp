#include "scenarios/laboratory/calibrate/calibration_report.h"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

std::string value_text(double value, const std::string& unit) {
  if (unit == "s") return readable_seconds(value);
  if (unit == "B/s") return value > 0 ? fmt::format("{:.3g} GB/s", value / 1e9) : "free";
  return fmt::format("{:.3g}", value);
}

std::string interval_text(const FittedParameter& parameter) {
  return std::isfinite(parameter.interval) ? "± " + value_text(parameter.interval, parameter.unit) : "-";
}

}  // namespace

std::string report_text(const Calibration& calibration) {
  std::vector<std::vector<std::string>> parameters{{"parameter", "value", "95 %", "how"}};
  for (const FittedParameter& parameter : calibration.parameters) {
    parameters.push_back(
        {parameter.name, value_text(parameter.value, parameter.unit), interval_text(parameter), parameter.note});
  }
  std::vector<std::vector<std::string>> kinds{{"kind of work", "rows", "median error", "worst", "which"}};
  for (const KindResidual& kind : calibration.residuals) {
    kinds.push_back({kind.kind, std::to_string(kind.count), readable_share(kind.median_error),
                     readable_share(kind.worst_error), kind.worst_name});
  }
  std::string text = aligned_table(parameters, "  ") + "\n" + aligned_table(kinds, "  ") + "\n";
  text += "median error of all rows: " + readable_share(calibration.in_sample_error) + " in sample";
  text += calibration.folds > 0
              ? fmt::format(", {} left out ({} folds)\n", readable_share(calibration.left_out_error), calibration.folds)
              : "; too few rows to leave any out\n";
  constexpr const char* groups[] = {"compute", "messages inside a node", "messages between nodes", "copies to the GPU",
                                    "copies from the GPU"};
  for (std::size_t i = 0; i < calibration.run_costs.size(); ++i) {
    const RunCost& cost = calibration.run_costs[i];
    if (cost.factor != 1 || cost.task_s > 0)
      text += fmt::format("{}: {:.2f} times as long in the run as in micro-benchmarks{}\n", groups[i], cost.factor,
                          cost.task_s > 0 ? ", and " + readable_seconds(cost.task_s) + " more for each task" : "");
  }
  return text;
}

std::string unfitted_text(const Calibration& calibration) {
  std::string text;
  for (const FittedParameter& parameter : calibration.parameters) {
    if (parameter.note != "fitted") text += (text.empty() ? "" : "; ") + parameter.name + " " + parameter.note;
  }
  return text;
}

}  // namespace slipway::scenarios
