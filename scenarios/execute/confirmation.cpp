#include "scenarios/execute/confirmation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/trace/statistics.h"
#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"

namespace slipway::scenarios {
namespace {

std::string readable(double seconds) { return fmt::format("{:.3f} s", seconds); }

double error_of(double said_s, const ConfirmedCase& one) { return std::abs(said_s / one.measured_s - 1); }

// The median case by the error of the prediction `said`.
const ConfirmedCase& middle_of(const std::vector<ConfirmedCase>& cases, double ConfirmedCase::*said) {
  std::vector<const ConfirmedCase*> sorted;
  for (const ConfirmedCase& one : cases) sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const ConfirmedCase* a, const ConfirmedCase* b) {
    return error_of(a->*said, *a) < error_of(b->*said, *b);
  });
  return *sorted[sorted.size() / 2];
}

double median_error(const std::vector<ConfirmedCase>& cases, double ConfirmedCase::*said) {
  const ConfirmedCase& middle = middle_of(cases, said);
  return error_of(middle.*said, middle);
}

std::optional<double> spread_of(const std::vector<double>& measured_s) {
  if (measured_s.size() < 2) return std::nullopt;
  const auto [fastest, slowest] = std::minmax_element(measured_s.begin(), measured_s.end());
  return (*slowest - *fastest) / 2 / median(measured_s);
}

std::string measured_text(double seconds, const std::optional<double>& spread) {
  return readable(seconds) + (spread ? fmt::format(" ± {:.0f} %", 100 * *spread) : "");
}

}  // namespace

Confirmation confirmation_of(const RunCase& baseline, const std::vector<RunCase>& cases) {
  Confirmation result{baseline.measured_s.size(),
                      baseline.simulated_s,
                      median(baseline.measured_s),
                      spread_of(baseline.measured_s),
                      {}};
  for (const RunCase& one : cases) {
    result.cases.push_back({one.name, one.simulated_s,
                            result.baseline_measured_s * one.simulated_s / baseline.simulated_s,
                            result.baseline_measured_s * one.flops_per_rank / baseline.flops_per_rank,
                            median(one.measured_s), spread_of(one.measured_s)});
  }
  return result;
}

std::string confirmation_text(const std::string& baseline_name, const Confirmation& confirmation) {
  const std::vector<ConfirmedCase>& cases = confirmation.cases;
  std::vector<std::vector<std::string>> rows{
      {"unseen case", "simulated", "predicted", "measured", "off by", "by FLOPs", "off by"}};
  for (const ConfirmedCase& one : cases) {
    rows.push_back({one.name, readable(one.simulated_s), readable(one.predicted_s),
                    measured_text(one.measured_s, one.spread), readable_share(error_of(one.predicted_s, one)),
                    readable(one.scaled_s), readable_share(error_of(one.scaled_s, one))});
  }
  const ConfirmedCase& middle = middle_of(cases, &ConfirmedCase::predicted_s);
  return aligned_table(rows) +
         fmt::format(
             "\nBoth start from \"{}\" as measured in the same rounds: {} (simulated {}; predicted = "
             "simulated × {:.3f}).\n{}",
             baseline_name, measured_text(confirmation.baseline_measured_s, confirmation.baseline_spread),
             readable(confirmation.baseline_simulated_s),
             confirmation.baseline_measured_s / confirmation.baseline_simulated_s,
             confirmation.baseline_spread
                 ? fmt::format("Measured: median of {} rounds; ± is half of what they range over.\n",
                               confirmation.rounds)
                 : "") +
         fmt::format("Median error over {}{}: {}, of \"{}\"; by FLOPs {}; as simulated {}.\n",
                     counted(static_cast<std::int64_t>(cases.size()), "unseen case"),
                     cases.size() % 2 == 0 ? ", the larger of the middle two" : "",
                     readable_share(error_of(middle.predicted_s, middle)), middle.name,
                     readable_share(median_error(cases, &ConfirmedCase::scaled_s)),
                     readable_share(median_error(cases, &ConfirmedCase::simulated_s))) +
         fmt::format("predicted {}, measured {}, off by {:.1f} %\n", readable(middle.predicted_s),
                     readable(middle.measured_s), 100 * error_of(middle.predicted_s, middle));
}

std::string confirmation_json(const std::string& baseline_name, const Confirmation& confirmation) {
  const auto or_null = [](const std::optional<double>& share) {
    return share ? nlohmann::json(*share) : nlohmann::json(nullptr);
  };
  nlohmann::json cases = nlohmann::json::array();
  for (const ConfirmedCase& one : confirmation.cases) {
    cases.push_back({{"case", one.name},
                     {"simulated_s", one.simulated_s},
                     {"predicted_s", one.predicted_s},
                     {"scaled_s", one.scaled_s},
                     {"measured_s", one.measured_s},
                     {"spread", or_null(one.spread)},
                     {"error", one.predicted_s / one.measured_s - 1}});
  }
  const ConfirmedCase& middle = middle_of(confirmation.cases, &ConfirmedCase::predicted_s);
  JsonSummary json(confirm_json_keys());
  json.set("median_error", error_of(middle.predicted_s, middle));
  json.set("median_case", middle.name);
  json.set("median_error_scaled", median_error(confirmation.cases, &ConfirmedCase::scaled_s));
  json.set("median_error_simulated", median_error(confirmation.cases, &ConfirmedCase::simulated_s));
  json.set("rounds", confirmation.rounds);
  json.set("baseline", baseline_name);
  json.set("baseline_simulated_s", confirmation.baseline_simulated_s);
  json.set("baseline_measured_s", confirmation.baseline_measured_s);
  json.set("baseline_spread", or_null(confirmation.baseline_spread));
  json.set("cases", cases);
  return json.text();
}

}  // namespace slipway::scenarios
