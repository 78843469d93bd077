#include "scenarios/commands/compare/phase_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/commands/compare/compare_report.h"
#include "scenarios/commands/kineto/step_phases.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

std::string phase_error_text(const PhasePair& pair) {
  return pair.measured_s > 0 ? fmt::format("{:+.1f} %", 100 * (pair.predicted_s / pair.measured_s - 1)) : "-";
}

Description<PhasePair> phase_keys() {
  return Description<PhasePair>()
      .key("phase", "text", "\"forward\", \"backward\", \"tensor messages, exposed\", \"idle\", ...", &PhasePair::phase)
      .column("phase")
      .key("predicted_s", "s", "of the predicted step", &PhasePair::predicted_s)
      .column("predicted", readable_seconds)
      .key("measured_s", "s", "mean of the measured steps", &PhasePair::measured_s)
      .column("measured", readable_seconds)
      .only_column("error", phase_error_text);
}

void take(const StepPhases& of, double PhasePair::*side, std::vector<PhasePair>& pairs) {
  for (const PhaseTime& each : of.phases) {
    auto found =
        std::find_if(pairs.begin(), pairs.end(), [&](const PhasePair& pair) { return pair.phase == each.phase; });
    if (found == pairs.end()) found = pairs.insert(pairs.end(), {each.phase, 0, 0});
    (*found).*side = each.seconds;
  }
}

std::string colour_of(const std::string& phase) {
  if (phase == "idle") return "bubble";
  return phase.find("messages") == std::string::npos ? phase : "exposed";
}

Bar phases_bar(const PhaseComparison& c, const std::string& side, double PhasePair::*seconds, double step_s) {
  Bar bar{fmt::format("The step, {}: {}", side, readable_seconds(step_s)), "", {}};
  for (const PhasePair& pair : c.phases)
    bar.shares.push_back({pair.phase, readable_seconds(pair.*seconds), pair.*seconds / step_s, colour_of(pair.phase)});
  return bar;
}

// The phase of the largest difference.
std::string reason_of(const PhaseComparison& c) {
  const PhasePair& most = *std::ranges::max_element(
      c.phases, {}, [](const PhasePair& pair) { return std::abs(pair.measured_s - pair.predicted_s); });
  return fmt::format("The step took {}, and {} were predicted. Of its phases, {} differs most: {}, predicted {}.",
                     readable_seconds(c.measured_step_s), readable_seconds(c.predicted_step_s), most.phase,
                     readable_seconds(most.measured_s), readable_seconds(most.predicted_s));
}

}  // namespace

PhaseComparison compare_phases(const Trace& predicted, const KinetoTrace& measured) {
  const int rank = measured.rank < predicted.ranks ? measured.rank : 0;
  const StepPhases expected = phases_of(predicted, rank);
  const StepPhases found = phases_of(measured, only_axis_of(predicted, rank));
  PhaseComparison comparison;
  comparison.predicted_step_s = expected.step_s, comparison.measured_step_s = found.step_s;
  comparison.low_s = predicted.step_low_s, comparison.high_s = predicted.step_high_s;
  comparison.rank = rank, comparison.steps = found.steps;
  take(expected, &PhasePair::predicted_s, comparison.phases);
  take(found, &PhasePair::measured_s, comparison.phases);
  // Idle time last, whichever side has a phase that the other one lacks.
  std::stable_partition(comparison.phases.begin(), comparison.phases.end(),
                        [](const PhasePair& pair) { return pair.phase != "idle"; });
  return comparison;
}

const Description<PhaseComparison>& phase_description() {
  const auto has_interval = [](const PhaseComparison& c) { return c.high_s > 0; };
  static const Description<PhaseComparison> description =
      Description<PhaseComparison>()
          .key("predicted_step_s", "s", "period of the predicted trace's last step, on the rank",
               &PhaseComparison::predicted_step_s)
          .key("measured_step_s", "s", "mean distance of the first kernels of two steps",
               &PhaseComparison::measured_step_s)
          .key("step_error", "share", "predicted_step_s / measured_step_s - 1", &PhaseComparison::step_error)
          .key("step_time_low_s", "s",
               "from here to step_time_high_s 90 of 100 measured runs were expected; present where the prediction has "
               "an interval, like the next two",
               &PhaseComparison::low_s)
          .when(has_interval)
          .key("step_time_high_s", "s", "the other end", &PhaseComparison::high_s)
          .when(has_interval)
          .key("inside", "bool", "measured_step_s is in it", &PhaseComparison::is_inside)
          .when(has_interval)
          .key("rank", "number", "the rank whose step it is, from 0", &PhaseComparison::rank)
          .key("steps", "count", "measured steps that the means are of", &PhaseComparison::steps)
          .list("phases", "one object per phase; they sum to the step", &PhaseComparison::phases, phase_keys());
  return description;
}

Report report_of(const PhaseComparison& c, const std::string& scenario) {
  Report report;
  report.command = "compare";
  report.headline = fmt::format("{}: predicted beside a trace of PyTorch's profiler, rank {}", scenario, c.rank);
  report.reason = reason_of(c);
  report.cards = {
      {"measured step time", readable_seconds(c.measured_step_s),
       fmt::format("mean of {}, predicted {}", counted(c.steps, "step"), readable_seconds(c.predicted_step_s))},
      error_card(c.step_error(), c.is_inside(), c.low_s, c.high_s)};
  report.sections = {
      phases_bar(c, "predicted", &PhasePair::predicted_s, c.predicted_step_s),
      phases_bar(c, "measured", &PhasePair::measured_s, c.measured_step_s),
      ReportTable{"By phase", "A moment counts as the kernel that runs, else as the message, else as idle.",
                  phase_keys().table(c.phases)}};
  return report;
}

std::string report_text(const PhaseComparison& c) {
  std::vector<PhasePair> rows = c.phases;
  rows.insert(rows.begin(), {"step", c.predicted_step_s, c.measured_step_s});
  std::string text = aligned_table(phase_keys().table(rows), "  ");
  if (c.high_s > 0)
    text += fmt::format("  The measured step is {} the 90 % interval of the prediction, {} to {}.\n",
                        c.is_inside() ? "inside" : "outside", readable_seconds(c.low_s), readable_seconds(c.high_s));
  return text + fmt::format(
                    "\nRank {}: the last step of the prediction against the mean of {} of the profiler's trace.\n"
                    "A moment counts as the kernel that runs; without one as the message that moves or waits; else as "
                    "idle.\nBackward has recomputation in it. The profiler's own work makes the host slower.\n",
                    c.rank, counted(c.steps, "step"));
}

}  // namespace slipway::scenarios
