#include "scenarios/commands/execute/confirmation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/trace/statistics.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

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

std::string interval_text(const ConfirmedCase& one) {
  if (!one.inside()) return {};
  return fmt::format("{:.3f} to {}, {}", *one.low_s, readable(*one.high_s), *one.inside() ? "inside" : "outside");
}

// "3 of 4 within their 90 % interval."; empty without intervals.
std::string covered_text(const std::vector<ConfirmedCase>& cases) {
  const auto is = [](bool inside) { return [=](const ConfirmedCase& one) { return one.inside() == inside; }; };
  const auto inside = std::count_if(cases.begin(), cases.end(), is(true)),
             outside = std::count_if(cases.begin(), cases.end(), is(false));
  return inside + outside == 0 ? "" : fmt::format("{} of {} within their 90 % interval.\n", inside, inside + outside);
}

// `with_intervals`: the table has a column of them.
Description<ConfirmedCase> case_keys(bool with_intervals) {
  const auto error = [](double ConfirmedCase::*said) {
    return [said](const ConfirmedCase& one) { return readable_share(error_of(one.*said, one)); };
  };
  Description<ConfirmedCase> keys;
  keys.key("case", "text", "its name", &ConfirmedCase::name)
      .column("unseen case")
      .key("simulated_s", "s", "one step, by the profile", &ConfirmedCase::simulated_s)
      .column("simulated", readable)
      .key("predicted_s", "s", "baseline_measured_s * simulated_s / baseline_simulated_s", &ConfirmedCase::predicted_s)
      .column("predicted", readable)
      .key("measured_s", "s", "one step, median over the rounds", &ConfirmedCase::measured_s)
      .wide_column("measured", [](const ConfirmedCase& one) { return measured_text(one.measured_s, one.spread); })
      .key("spread", "share", "as baseline_spread", &ConfirmedCase::spread)
      .else_null()
      .key("error", "share", "predicted_s / measured_s - 1",
           [](const ConfirmedCase& one) { return one.predicted_s / one.measured_s - 1; })
      .wide_column("off by", error(&ConfirmedCase::predicted_s))
      .key("low_s", "s", "90 of 100 measured steps are expected between it and high_s; null without an interval",
           &ConfirmedCase::low_s)
      .else_null()
      .key("high_s", "s", "the other end", &ConfirmedCase::high_s)
      .else_null()
      .key("inside", "bool", "whether measured_s lies between them", &ConfirmedCase::inside)
      .else_null();
  if (with_intervals) keys.only_column("90 % interval", interval_text);
  keys.key("scaled_s", "s", "baseline_measured_s * FLOPs of the case / FLOPs of the baseline", &ConfirmedCase::scaled_s)
      .column("by FLOPs", readable)
      .only_column("off by", error(&ConfirmedCase::scaled_s));
  return keys;
}

struct Answer {
  const std::string& baseline;
  const Confirmation& confirmation;
};
const Confirmation& confirmation_in(const Answer& answer) { return answer.confirmation; }

const Description<Answer>& description() {
  const auto error = [](double ConfirmedCase::*said) {
    return [said](const Answer& a) { return median_error(a.confirmation.cases, said); };
  };
  static const Description<Answer> description =
      Description<Answer>()
          .key("median_error", "share",
               "|predicted / measured - 1| of the case in the middle (the larger of the middle two)",
               error(&ConfirmedCase::predicted_s))
          .key("median_case", "text", "name of that case",
               [](const Answer& a) { return middle_of(a.confirmation.cases, &ConfirmedCase::predicted_s).name; })
          .key("median_error_scaled", "share", "the same of the baseline's step scaled by FLOPs, without any model",
               error(&ConfirmedCase::scaled_s))
          .key("median_error_simulated", "share", "the same of the simulated step, without the baseline's measurement",
               error(&ConfirmedCase::simulated_s))
          .key("rounds", "count", "times that the baseline and every case were executed",
               of(confirmation_in, &Confirmation::rounds))
          .key("baseline", "text", "name of the run that predictions start from",
               [](const Answer& a) { return a.baseline; })
          .key("baseline_simulated_s", "s", "its step, by the profile",
               of(confirmation_in, &Confirmation::baseline_simulated_s))
          .key("baseline_measured_s", "s", "its step, median over the rounds",
               of(confirmation_in, &Confirmation::baseline_measured_s))
          .key("baseline_spread", "share", "half of (slowest - fastest round) / median; null of one round",
               of(confirmation_in, &Confirmation::baseline_spread))
          .else_null()
          .list("cases", "one object per case, in the order given", of(confirmation_in, &Confirmation::cases),
                case_keys(true));
  return description;
}

}  // namespace

Confirmation confirmation_of(const RunCase& baseline, const std::vector<RunCase>& cases) {
  Confirmation result{baseline.measured_s.size(),
                      baseline.simulated_s,
                      median(baseline.measured_s),
                      spread_of(baseline.measured_s),
                      {}};
  for (const RunCase& one : cases) {
    result.cases.push_back({one.name,
                            one.simulated_s,
                            result.baseline_measured_s * one.simulated_s / baseline.simulated_s,
                            result.baseline_measured_s * one.flops_per_rank / baseline.flops_per_rank,
                            median(one.measured_s),
                            spread_of(one.measured_s),
                            {},
                            {}});
    ConfirmedCase& last = result.cases.back();
    if (!(one.half_width > 0)) continue;
    last.low_s = last.predicted_s * std::exp(-one.half_width);
    last.high_s = last.predicted_s * std::exp(one.half_width);
  }
  return result;
}

std::vector<std::vector<std::string>> case_rows(const Confirmation& confirmation) {
  const std::vector<ConfirmedCase>& cases = confirmation.cases;
  return case_keys(cases.front().inside().has_value()).table(cases);
}

std::string confirmation_text(const std::string& baseline_name, const Confirmation& confirmation) {
  const std::vector<ConfirmedCase>& cases = confirmation.cases;
  const ConfirmedCase& middle = middle_of(cases, &ConfirmedCase::predicted_s);
  return aligned_table(case_rows(confirmation)) +
         fmt::format(
             "\nBoth start from \"{}\" as measured in the same rounds: {} (simulated {}; predicted = "
             "simulated × {:.3f}).\n{}",
             baseline_name, measured_text(confirmation.baseline_measured_s, confirmation.baseline_spread),
             readable(confirmation.baseline_simulated_s),
             confirmation.baseline_measured_s / confirmation.baseline_simulated_s,
             confirmation.baseline_spread
                 ? fmt::format("Measured: median of {} rounds; ± is half of their range.\n", confirmation.rounds)
                 : "") +
         fmt::format("Median error over {}{}: {}, of \"{}\"; by FLOPs {}; as simulated {}.\n",
                     counted(static_cast<std::int64_t>(cases.size()), "unseen case"),
                     cases.size() % 2 == 0 ? ", the larger of the middle two" : "",
                     readable_share(error_of(middle.predicted_s, middle)), middle.name,
                     readable_share(median_error(cases, &ConfirmedCase::scaled_s)),
                     readable_share(median_error(cases, &ConfirmedCase::simulated_s))) +
         covered_text(cases) +
         fmt::format("predicted {}, measured {}, off by {:.1f} %\n", readable(middle.predicted_s),
                     readable(middle.measured_s), 100 * error_of(middle.predicted_s, middle));
}

std::vector<AnswerKeys> confirm_answers() { return {{"confirm --json", description().keys()}}; }

std::string confirmation_json(const std::string& baseline_name, const Confirmation& confirmation) {
  return description().text({baseline_name, confirmation});
}

}  // namespace slipway::scenarios
