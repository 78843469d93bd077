// Explanation as text of 80 columns and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/terminal_text.h"
#include "scenarios/commands/explain/explanation_text.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/search/explanation.h"

namespace slipway::scenarios {
namespace {

constexpr int columns = 80;

std::string wrapped(const std::string& line) { return broken_at_words(line, columns) + '\n'; }

// Each line of a text for itself.
std::string each_line_wrapped(const std::string& text) {
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all += wrapped(line);
  return all;
}

std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

Description<SpentOn> spent_keys() {
  return Description<SpentOn>()
      .key("part", "text", "kind of work or of waiting", &SpentOn::part)
      .key("rank_s", "s", "of a step, mean over ranks; all parts sum to step_time_s", &SpentOn::rank_s)
      .key("path_s", "s", "on the critical path; all parts sum to replayed_s. It is never idle, so it has no bubble",
           &SpentOn::path_s);
}

Description<FasterRate> faster_keys() {
  return Description<FasterRate>()
      .key("rate", "text", "what of the machine is twice as fast", &FasterRate::name)
      .column("twice as fast")
      .key("id", "text", "its short name", &FasterRate::id)
      .key("step_s", "s", "replayed step with it", &FasterRate::step_s)
      .column("step", readable_seconds)
      .key("change", "share", "step_s / replayed_s - 1", &FasterRate::change)
      .column("change", percent);
}

Description<LeverTrial> lever_keys() {
  const auto tried = [](const LeverTrial& trial) { return trial.why_not.empty(); };
  return Description<LeverTrial>()
      .key("lever", "text", "the single change", [](const LeverTrial& trial) { return trial.variation.words; })
      .column("lever")
      .key("settings", "list", "the same as options of --set, or habits of the trainer; empty where it was not tried",
           [](const LeverTrial& trial) { return trial.variation.overrides; })
      .key("why_not", "text", "present where the lever cannot be tried, without the keys below", &LeverTrial::why_not)
      .when([](const LeverTrial& trial) { return !trial.why_not.empty(); })
      .key("step_s", "s", "step with it", &LeverTrial::step_s)
      .when(tried)
      .column("step", readable_seconds)
      .key("simulated", "bool",
           "else step_s is a lower bound, which is slower already than the step or than the fastest that fit",
           &LeverTrial::simulated)
      .when(tried)
      .key("gain", "share", "1 - step_s / step_time_s; where it was not simulated, at most", &LeverTrial::gain)
      .when(tried)
      .column("saves", percent)
      .key("memory_bytes", "bytes", "what 99 % of needs stay below, on the rank that is least likely to fit",
           whole(&LeverTrial::memory_bytes))
      .when(tried)
      .column("memory", readable_bytes)
      .key("memory_share", "0..1", "of that rank's GPU", &LeverTrial::memory_share)
      .when(tried)
      .key("fit_probability", "0..1", "of fitting, as in `slipway memory`", &LeverTrial::fit_probability)
      .when(tried)
      .wide_column("fits", [](const LeverTrial& trial) { return probability_text(trial.fit_probability); });
}

Description<Cause> cause_keys() {
  return Description<Cause>()
      .key("cause", "text", "what of the machine alone would have to differ", &Cause::name)
      .column("cause")
      .key("id", "text", "its short name", &Cause::id)
      .key("speed", "factor", "over what is predicted", &Cause::speed)
      .wide_column("would have to be", [](const Cause& cause) { return speed_text(cause.speed); })
      .key("deviation", "-", "|ln speed| over how far runs differ in it: the smaller, the likelier", &Cause::deviation)
      .column("deviations", [](double deviation) { return fmt::format("{:.1f}", deviation); });
}

Description<TraceCause> trace_cause_keys() {
  return Description<TraceCause>()
      .key("cause", "text", "what differs from the profile", &TraceCause::name)
      .column("cause")
      .key("id", "text",
           "its short name: that of a rate, gpu:RANK, node:N, pipeline_rank:P, port:FABRIC:NODE[:GPU], nodes:A-B",
           &TraceCause::id)
      .key("speed", "factor", "over what is predicted, fitted to the tasks", &TraceCause::speed)
      .wide_column("is", [](const TraceCause& cause) { return speed_text(cause.speed); })
      .key("explained", "share", "of difference_s that goes away", &TraceCause::explained)
      .column("explains", readable_share)
      .key("of_its_own", "share", "the same of the tasks that it changes; noise is what remains",
           &TraceCause::of_its_own)
      .column("of its tasks", readable_share)
      .key("deviation", "-", "|ln speed| over how far runs differ in it", &TraceCause::deviation)
      .column("deviations", [](double deviation) { return fmt::format("{:.1f}", deviation); });
}

Description<MeasuredStep> measured_keys() {
  return Description<MeasuredStep>()
      .key("step_s", "s", "the measured step", &MeasuredStep::step_s)
      .key("inside", "bool", "within the 90 % interval; present where the prediction has one", &MeasuredStep::inside)
      .when([](const MeasuredStep& measured) { return measured.has_interval; })
      .list("causes", "what alone would explain it, the likeliest first", &MeasuredStep::causes, cause_keys())
      .key("no_causes", "list", "what cannot explain it alone, at any speed", &MeasuredStep::no_causes);
}

Description<TraceFindings> trace_keys() {
  return Description<TraceFindings>()
      .key("compared", "count", "tasks in both, a message of all its members counted once", &TraceFindings::compared)
      .key("missing", "count", "records of the trace without a predicted task", &TraceFindings::missing)
      .key("predicted_s", "s", "sum over these tasks", &TraceFindings::predicted_s)
      .key("difference_s", "s", "sum of |measured - predicted|", &TraceFindings::difference_s)
      .key("predicted_step_s", "s", "the simulated step", &TraceFindings::predicted_step_s)
      .key("measured_step_s", "s", "median period of the trace's steps", &TraceFindings::measured_step_s)
      .key("agrees", "bool", "the difference is at most 0.1 % of the sum, and the steps are within 1 %",
           &TraceFindings::agrees)
      .list("causes", "what alone explains a good part of the tasks that it changes, the most of difference_s first",
            &TraceFindings::causes, trace_cause_keys());
}

// The three largest parts of a GPU's time: "matrix products (38 %), bubble (18 %) and attention (9 %)".
std::string largest_parts(const Explanation& e) {
  std::vector<SpentOn> parts = e.spent;
  std::stable_sort(parts.begin(), parts.end(), [](const SpentOn& a, const SpentOn& b) { return a.rank_s > b.rank_s; });
  constexpr std::size_t most = 3;
  parts.resize(std::min(most, parts.size()));
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == parts.size() ? " and "
                                     : ", ") +
            fmt::format("{} ({:.0f} %)", parts[i].part, 100 * parts[i].rank_s / e.step_s);
  return text;
}

std::string best_lever(const Explanation& e) {
  constexpr double little = 0.002;
  if (e.levers.empty() || !e.levers.front().fits() || e.levers.front().gain < little)
    return "No lever that fits makes it faster.";
  const LeverTrial& best = e.levers.front();
  return fmt::format("The best lever that fits is \"{}\": {:.1f} % less.", best.variation.words, 100 * best.gain);
}

std::string answer_to_trace(const TraceFindings& trace) {
  if (trace.agrees()) return "The tasks of the trace take as long as predicted.";
  if (trace.causes.empty())
    return fmt::format(
        "The tasks of the trace are {:.1f} % apart from the predicted ones, and no single cause explains it.",
        100 * trace.difference_s / trace.predicted_s);
  const TraceCause& cause = trace.causes.front();
  if (cause.explained == 0)
    return fmt::format("The tasks are as predicted, but start later: {} {} explain it.", cause.name,
                       speed_text(cause.speed));
  return fmt::format(
      "{}: {}. This explains {:.0f} % of how far the trace's tasks are from the predicted ones, and "
      "{:.0f} % in the tasks that it changes.",
      cause.name, speed_text(cause.speed), 100 * cause.explained, 100 * cause.of_its_own);
}

std::string answer_to_measurement(const Explanation& e) {
  const MeasuredStep& measured = *e.measured;
  const double off = measured.step_s / e.step_s - 1;
  std::string text = fmt::format("{} measured is {:.0f} % {} than the predicted {}", readable_seconds(measured.step_s),
                                 100 * std::abs(off), off < 0 ? "less" : "more", readable_seconds(e.step_s));
  if (measured.has_interval)
    text +=
        fmt::format(", {} its 90 % interval ({})", measured.inside ? "inside" : "outside", interval_text(*e.interval));
  text += ".";
  if (measured.inside || measured.causes.empty()) return text;
  const Cause& first = measured.causes.front();
  return text + fmt::format(" The likeliest single cause: {} {}.", first.name, speed_text(first.speed));
}

std::string spent_text(const Explanation& e) {
  const auto share = [](double part, double whole) { return fmt::format("{:.1f} %", 100 * part / whole); };
  std::vector<std::vector<std::string>> rows{{"Where a step goes", "a GPU", "", "critical path", ""}};
  double ranks = 0, path = 0;
  for (const SpentOn& part : e.spent) {
    const auto cell = [](double seconds) { return seconds == 0 ? std::string("-") : readable_seconds(seconds); };
    rows.push_back({"  " + part.part, cell(part.rank_s), part.rank_s == 0 ? "" : share(part.rank_s, e.step_s),
                    cell(part.path_s), part.path_s == 0 ? "" : share(part.path_s, e.replayed_s)});
    ranks += part.rank_s, path += part.path_s;
  }
  rows.push_back({"  step", readable_seconds(ranks), "", readable_seconds(path), ""});
  std::string text = aligned_table(rows);
  constexpr double little = 0.001;
  if (std::abs(e.step_s - e.replayed_s) > little * e.step_s)
    text += wrapped(fmt::format("  The path is that of a replay; contention for links adds {}.",
                                readable_seconds(e.step_s - e.replayed_s)));
  return text + "\n";
}

std::string faster_text(const Explanation& e) {
  constexpr double shown = 5e-4;
  std::vector<FasterRate> rows;
  for (const FasterRate& rate : e.faster)
    if (std::abs(rate.change) >= shown) rows.push_back(rate);
  if (rows.empty()) return "";
  return "If one rate of the machine were twice as high (replayed):\n" +
         aligned_table(faster_keys().table(rows), "  ") + "\n";
}

std::string settings_text(const LeverTrial& trial) {
  std::string text;
  for (const std::string& setting : trial.variation.overrides)
    text += (text.empty() ? "" : " ") + (setting.find('=') == std::string::npos ? setting : "--set '" + setting + "'");
  return text;
}

std::string levers_text(const Explanation& e, int most) {
  std::vector<LeverTrial> rows;
  int fitting = 0, hidden = 0, refused = 0, faster_but_large = 0;
  for (const LeverTrial& trial : e.levers) {
    if (!trial.why_not.empty()) {
      ++refused;
    } else if (trial.fits()) {
      if (fitting++ < most)
        rows.push_back(trial);
      else
        ++hidden;
    } else if (trial.gain > 0 && faster_but_large++ < 3) {
      rows.push_back(trial);
    } else {
      ++hidden;
    }
  }
  std::string text = "Levers, each alone:\n";
  if (rows.empty()) text = "No lever could be tried.\n";
  if (!rows.empty()) text += aligned_table(lever_keys().table(rows), "  ");
  constexpr int shown_settings = 3;
  for (int i = 0; i < std::min(shown_settings, static_cast<int>(rows.size())); ++i)
    if (rows[static_cast<std::size_t>(i)].gain > 0)
      text += wrapped("  " + rows[static_cast<std::size_t>(i)].variation.words + ": " +
                      settings_text(rows[static_cast<std::size_t>(i)]));
  if (hidden + refused > 0)
    text += wrapped(fmt::format("  {} more were tried, and {} cannot be here (--json has all, with the reasons).",
                                hidden, refused));
  if (!e.all_levers_tried) text += "  Interrupted: not every lever was tried.\n";
  return text + "\n";
}

std::string measured_text(const MeasuredStep& measured) {
  if (!measured.causes_sought) return "Interrupted: what would explain it was not found.\n\n";
  constexpr std::size_t most = 8;
  std::vector<Cause> rows = measured.causes;
  rows.resize(std::min(most, rows.size()));
  std::string text = "What alone would explain it, by how far runs differ in it:\n";
  if (rows.empty()) return "No single rate of the machine explains it.\n\n";
  text += aligned_table(cause_keys().table(rows), "  ");
  std::string cannot;
  for (const std::string& name : measured.no_causes) cannot += (cannot.empty() ? "" : ", ") + name;
  if (!cannot.empty()) text += wrapped("  Cannot explain it alone: " + cannot + ".");
  return text + "\n";
}

std::string trace_text(const TraceFindings& trace) {
  if (trace.agrees() || trace.causes.empty()) return "";
  std::string text = fmt::format("Causes by task ({}, {} apart in {}):\n", counted(trace.compared, "task"),
                                 readable_seconds(trace.difference_s), readable_seconds(trace.predicted_s));
  text += aligned_table(trace_cause_keys().table(trace.causes), "  ");
  if (trace.missing > 0)
    text += wrapped(fmt::format("  {} of the trace are not in the prediction.", counted(trace.missing, "record")));
  return text + "\n";
}

}  // namespace

const Description<Explanation>& explanation_description() {
  static const Description<Explanation> description =
      Description<Explanation>()
          .key("scenario", "text", "name of the scenario", &Explanation::scenario)
          .key("answer", "text", "the answer in a sentence or two", answer_of)
          .key("step_time_s", "s", "simulated step, as `slipway simulate` has it", &Explanation::step_s)
          .include(interval_keys(), &Explanation::interval)
          .key("replayed_s", "s", "the same without contention for links", &Explanation::replayed_s)
          .key("tokens_per_s", "1/s", "global batch x sequence / step_time_s", &Explanation::tokens_per_s)
          .key("mfu", "0..1", "as `slipway simulate` has it", &Explanation::mfu)
          .key("fit_probability", "0..1", "of fitting, on the rank that is least likely to",
               [](const Explanation& e) { return e.verdict.probability; })
          .list("spent", "where a step goes, in kinds of work and of waiting", &Explanation::spent, spent_keys())
          .list("faster", "each rate of the machine twice as fast, the largest change first", &Explanation::faster,
                faster_keys())
          .list("levers",
                "single changes of the scenario: those that fit, then those that do not, then those that "
                "cannot be tried; the largest gain first",
                &Explanation::levers, lever_keys())
          .object("measured", "present with --measured and --run", &Explanation::measured, measured_keys())
          .object("trace", "present with --run", &Explanation::trace, trace_keys())
          .include(time_basis_keys(), &Explanation::basis);
  return description;
}

std::vector<AnswerKeys> explain_answers() { return {{"explain --json", explanation_description().keys()}}; }

std::string answer_of(const Explanation& e) {
  std::string text;
  if (e.trace) text += answer_to_trace(*e.trace) + " ";
  if (e.measured) text += answer_to_measurement(e) + " ";
  if (!text.empty()) return text + best_lever(e);
  text = "A step takes " + readable_seconds(e.step_s);
  if (e.interval) text += " (90 %: " + interval_text(*e.interval) + ")";
  return text + ". Most of a GPU's time is " + largest_parts(e) + ". " + best_lever(e);
}

std::string explanation_text(const Explanation& e, int most_levers) {
  std::string text = wrapped(answer_of(e)) + "\n" + wrapped(e.headline) + "\n";
  if (e.trace) text += trace_text(*e.trace);
  if (e.measured) text += measured_text(*e.measured);
  text += spent_text(e) + faster_text(e) + levers_text(e, most_levers);
  return text + each_line_wrapped(without_empty_line(basis_text(without_memory(e.basis))));
}

}  // namespace slipway::scenarios
