#include "scenarios/confirmation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/statistics.h"
#include "scenarios/readable.h"

namespace slipway {
namespace {

std::string readable(double seconds) { return fmt::format("{:.3f} s", seconds); }

double error_of(double said_s, const ConfirmedCase& one) { return std::abs(said_s / one.measured_s - 1); }

// The case in the middle of all in the order of the error of what `said` says of it.
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

}  // namespace

Confirmation confirmation_of(const RunCase& baseline, const std::vector<RunCase>& cases) {
  Confirmation result{baseline.simulated_s, median(baseline.measured_s), {}};
  for (const RunCase& one : cases) {
    result.cases.push_back({one.name, one.simulated_s,
                            result.baseline_measured_s * one.simulated_s / baseline.simulated_s,
                            result.baseline_measured_s * one.flops_per_rank / baseline.flops_per_rank,
                            median(one.measured_s)});
  }
  return result;
}

std::string confirmation_text(const std::string& baseline_name, const Confirmation& confirmation) {
  const std::vector<ConfirmedCase>& cases = confirmation.cases;
  std::vector<std::vector<std::string>> rows{
      {"unseen case", "simulated", "predicted", "measured", "off by", "by FLOPs", "off by"}};
  for (const ConfirmedCase& one : cases) {
    rows.push_back({one.name, readable(one.simulated_s), readable(one.predicted_s),
                    readable(one.measured_s), readable_share(error_of(one.predicted_s, one)),
                    readable(one.scaled_s), readable_share(error_of(one.scaled_s, one))});
  }
  const ConfirmedCase& middle = middle_of(cases, &ConfirmedCase::predicted_s);
  return aligned_table(rows) +
         fmt::format(
             "\nBoth start from \"{}\" as measured in the same rounds: {} (simulated {}; predicted = "
             "simulated × {:.3f}).\n",
             baseline_name, readable(confirmation.baseline_measured_s),
             readable(confirmation.baseline_simulated_s),
             confirmation.baseline_measured_s / confirmation.baseline_simulated_s) +
         fmt::format("Median error over {}{}: {}, of \"{}\"; by FLOPs {}; as simulated {}.\n",
                     counted(static_cast<std::int64_t>(cases.size()), "unseen case"),
                     cases.size() % 2 == 0 ? ", the larger of the middle two" : "",
                     readable_share(error_of(middle.predicted_s, middle)), middle.name,
                     readable_share(median_error(cases, &ConfirmedCase::scaled_s)),
                     readable_share(median_error(cases, &ConfirmedCase::simulated_s))) +
         fmt::format("predicted {}, measured {}, off by {:.1f} %\n", readable(middle.predicted_s),
                     readable(middle.measured_s), 100 * error_of(middle.predicted_s, middle));
}

}  // namespace slipway
