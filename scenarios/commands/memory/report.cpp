#include "scenarios/commands/memory/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/verdict.h"

namespace slipway::scenarios {

MemoryReport memory_report(const PreparedStep& prepared, const Timeline& timeline, const PeriodicTimeline* periodic) {
  MemoryReport report;
  report.closed_form = closed_form_of(prepared.scenario, &report.no_closed_form);
  const std::vector<StageTerms> counted = counted_memory(prepared.scenario);
  const std::vector<StageMemory> memory = stage_memory(prepared, timeline, periodic);
  const std::vector<StageNeed> needs = stage_needs(prepared.scenario, on_timeline(memory));
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const StageMemory& fullest = memory[stage];
    StageReport& row = report.stages.emplace_back();
    row.stage = static_cast<int>(stage);
    row.rank = fullest.rank;
    row.capacity = fullest.capacity;
    row.on = fullest.on;
    row.timeline = fullest.use.parts;
    row.estimate = estimated(counted[stage], prepared.scenario.memory);
    row.estimate[MemoryPart::kept_for_bubble_work] = row.timeline[MemoryPart::kept_for_bubble_work];
    row.peak_task = fullest.use.peak_task;
    row.need = needs[stage];
  }
  report.verdict = verdict_of(needs);
  report.step_time_s = prepared.periodic ? replayed_step_s(prepared.scenario)
                                         : step_time_of(prepared.graph, replay(prepared.graph, prepared.durations, 3));
  report.interval = interval_of(prepared, report.step_time_s);
  return report;
}

// The answer of `slipway memory --json`.

namespace {

struct Answer {
  const PreparedStep& prepared;
  const MemoryReport& report;
  Basis basis;
};
const MemoryReport& report_in(const Answer& answer) { return answer.report; }
const Verdict& verdict_in(const Answer& answer) { return answer.report.verdict; }
const MemoryConstants& trainer_in(const Answer& answer) { return answer.prepared.scenario.memory; }

Description<MemoryParts> parts_keys() {
  Description<MemoryParts> description;
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    description.key(name_of(part), "bytes", words_for(part),
                    whole([part](const MemoryParts& parts) { return parts[part]; }));
  }
  return description.key("total", "bytes", "their sum", whole(sum));
}

Description<StageReport> stage_keys() {
  const auto total = [](MemoryParts StageReport::*parts) {
    return [parts](const StageReport& stage) { return readable_bytes(sum(stage.*parts)); };
  };
  const auto odds = [](double (MemoryOdds::*point)() const) {
    return whole([point](const StageReport& stage) { return (stage.need.odds.*point)(); });
  };
  return Description<StageReport>()
      .key("rank", "index", "its fullest rank", &StageReport::rank)
      .wide_column("pipeline rank",
                   [](const StageReport& stage) { return fmt::format("{} (rank {})", stage.stage, stage.rank); })
      .object("timeline", "by part, on the simulated timeline", &StageReport::timeline, parts_keys())
      .wide_column("timeline", total(&StageReport::timeline))
      .object("estimate", "the same as the trainer takes it", &StageReport::estimate, parts_keys())
      .listed_elsewhere()
      .wide_column("estimate", total(&StageReport::estimate))
      .key("needs_bytes", "bytes", "median of what it needs, the larger of timeline and estimate",
           whole([](const StageReport& stage) { return stage.need.odds.bytes; }))
      .column("needs", readable_bytes)
      .key("needs_least_bytes", "bytes", "5 % of needs are below it", odds(&MemoryOdds::least))
      .key("needs_most_bytes", "bytes", "5 % of needs are above it", odds(&MemoryOdds::most))
      .only_column("90 % of needs",
                   [](const StageReport& stage) {
                     return readable_bytes(stage.need.odds.least()) + " to " + readable_bytes(stage.need.odds.most());
                   })
      .key("capacity_bytes", "bytes", "memory of that rank's machine", whole(&StageReport::capacity))
      .wide_column("of a GPU's", [](const StageReport& stage) { return readable_bytes(stage.capacity) + stage.on; })
      .key("fit_probability", "0..1", "of fitting", [](const StageReport& stage) { return stage.need.probability; })
      .column("fits with", probability_text)
      .key("fits_cautious", "bool", "as fits_cautious, of this stage",
           [](const StageReport& stage) { return stage.need.fits_cautious(); })
      .key("fits", "bool", "as fits, of this stage", [](const StageReport& stage) { return stage.need.fits(); })
      .column("fits", yes_no)
      .key("peak_task", "text", "label of the task during which its memory peaks on the timeline",
           &StageReport::peak_task)
      .column("peaks in");
}

bool is_possible(const TriedChange& tried) { return tried.refused.empty(); }
bool makes_it_fit(const TriedChange& tried) { return is_possible(tried) && tried.memory.fits(); }
std::string change_name(const TriedChange& tried) { return tried.variation.words; }

Description<TriedChange> change_keys() {
  return Description<TriedChange>()
      .key("change", "text", "what is changed", change_name)
      .column("change")
      .key("set", "list", "the same as options of --set",
           [](const TriedChange& tried) { return tried.variation.overrides; })
      .key("refused", "text", "why it cannot be; null where it can", &TriedChange::refused)
      .when([](const TriedChange& tried) { return !is_possible(tried); })
      .else_null()
      .key("peak_bytes", "bytes", "as peak_bytes; null where it cannot be",
           whole([](const TriedChange& tried) { return tried.memory.bytes; }))
      .when(is_possible)
      .else_null()
      .key("share", "0..1", "of its GPU's memory; null where it cannot be",
           [](const TriedChange& tried) { return tried.memory.share(); })
      .when(is_possible)
      .else_null()
      .column("needs", readable_share)
      .key("fit_probability", "0..1", "as fit_probability; null where it cannot be",
           [](const TriedChange& tried) { return tried.memory.fit_probability; })
      .when(is_possible)
      .else_null()
      .column("fits with", probability_text)
      .key("fits", "bool", "as fits, of the changed scenario", makes_it_fit)
      .wide_column("fits", [](const TriedChange& tried) { return yes_no(makes_it_fit(tried)); })
      .key("step_time_s", "s", "as step_time_s; null where it was not priced", &TriedChange::step_time_s)
      .when([](const TriedChange& tried) { return tried.step_time_s > 0; })
      .else_null()
      .column("step time", or_dash(readable_seconds));
}

std::optional<std::vector<TriedChange>> changes_in(const Answer& answer) {
  return answer.report.search ? std::optional(answer.report.search->tried) : std::nullopt;
}

nlohmann::json cheapest_change(const Answer& answer) {
  const std::vector<TriedChange>& tried = answer.report.search->tried;
  return tried.empty() || !makes_it_fit(tried.front()) ? nlohmann::json() : nlohmann::json(change_name(tried.front()));
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.prepared.scenario.name; })
          .key("trainer", "text",
               "trainer whose facts and deviations make the estimate: cluster.trainer, or \"generic\"",
               of(trainer_in, &MemoryConstants::trainer))
          .key("trainer_machine", "text", "machine on which runs of it are known; null: none, so the interval is wider",
               of(trainer_in, &MemoryConstants::machine))
          .when([](const Answer& a) { return !trainer_in(a).machine.empty(); })
          .else_null()
          .key("fit_probability", "0..1", "of fitting, on the pipeline rank that is least likely to",
               of(verdict_in, &Verdict::probability))
          .key("fits", "bool", "more likely than not, on every stage", of(verdict_in, &Verdict::fits))
          .key("fits_cautious", "bool", "with a probability of at least 99 %", of(verdict_in, &Verdict::fits_cautious))
          .key("fullest_stage", "index", "pipeline rank that is least likely to fit", of(verdict_in, &Verdict::fullest))
          .key("peak_bytes", "bytes", "median of what it needs",
               whole([](const Answer& a) { return a.report.verdict.odds.bytes; }))
          .key("peak_least_bytes", "bytes", "5 % of needs are below it",
               whole([](const Answer& a) { return a.report.verdict.odds.least(); }))
          .key("peak_most_bytes", "bytes", "5 % of needs are above it",
               whole([](const Answer& a) { return a.report.verdict.odds.most(); }))
          .key("capacity_bytes", "bytes", "memory of its GPU", whole(of(verdict_in, &Verdict::capacity)))
          .key("peak_task", "text", "label of the task during which its memory peaks on the timeline",
               [](const Answer& a) { return a.report.stages[a.report.verdict.fullest].peak_task; })
          .key("step_time_s", "s",
               "of the scenario, replayed without contention (not simulate's); changes are compared with it",
               of(report_in, &MemoryReport::step_time_s))
          .include(interval_keys(), [](const Answer& a) { return a.report.interval; })
          .list("stages", "one object per pipeline rank", of(report_in, &MemoryReport::stages), stage_keys())
          .key("closed_form_bytes", "bytes",
               "the first pipeline rank in closed form (Fujii et al. 2024); null without one",
               whole([](const Answer& a) { return a.report.closed_form ? total_bytes(*a.report.closed_form) : 0; }))
          .when([](const Answer& a) { return a.report.closed_form.has_value(); })
          .else_null()
          .key("no_closed_form", "text", "why there is no closed form; present when there is none",
               of(report_in, &MemoryReport::no_closed_form))
          .when([](const Answer& a) { return !a.report.closed_form; })
          .list("changes",
                "changes tried, those that fit first, fastest first; present when it does not fit, or with --changes",
                changes_in, change_keys())
          .key("cheapest_change", "text", "the first of them that fits, null when none does; present with changes",
               cheapest_change)
          .when([](const Answer& a) { return a.report.search.has_value(); })
          .include(basis_keys(), &Answer::basis);
  return description;
}

using Rows = std::vector<std::vector<std::string>>;

std::string bytes_or_dash(double bytes) { return bytes > 0 ? readable_bytes(bytes) : "-"; }

std::string parts_table(const StageReport& stage) {
  Rows rows{{"part", "timeline", "estimate"}};
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    if (stage.timeline[part] <= 0 && stage.estimate[part] <= 0) continue;
    rows.push_back({words_for(part), bytes_or_dash(stage.timeline[part]), bytes_or_dash(stage.estimate[part])});
  }
  rows.push_back({"total", readable_bytes(sum(stage.timeline)), readable_bytes(sum(stage.estimate))});
  return aligned_table(rows, "  ");
}

std::string verdict_text(const PreparedStep& prepared, const MemoryReport& report) {
  const Verdict& verdict = report.verdict;
  const std::string& task = report.stages[verdict.fullest].peak_task;
  std::string text =
      fmt::format("{}: pipeline rank {} is least likely to fit. It needs {}.\n", verdict.fits ? "Fits" : "Does not fit",
                  verdict.fullest, odds_text(verdict, on_machine(prepared.scenario, verdict.rank)));
  text += fmt::format("That is {}; it peaks in {}. At 99 %: {}.\n", way_text(prepared.scenario, verdict.way), task,
                      verdict.fits_cautious ? "fits" : "does not fit");
  if (!report.closed_form) return text + "No closed form: " + report.no_closed_form + ".\n";
  const double closed = total_bytes(*report.closed_form), capacity = report.stages[0].capacity;
  return text + fmt::format("Beside it, rank 0 in the closed form of Fujii et al. 2024: {}; by its 80 % rule: {}.\n",
                            readable_bytes(closed), closed <= safe_share * capacity ? "fits" : "does not fit");
}

std::string slower_text(double step_s, double before_s) {
  return fmt::format("{:+.1f} %", 100 * (step_s / before_s - 1));
}

std::string refused_rows(const ChangeSearch& search) {
  std::string text;
  for (const TriedChange& tried : search.tried) {
    if (!tried.refused.empty()) text += "  not possible: " + tried.variation.words + " (" + tried.refused + ")\n";
  }
  return text;
}

std::string changes_text(const MemoryReport& report, const Basis& basis) {
  const std::vector<TriedChange>& tried = report.search->tried;
  std::string text =
      fmt::format("\nChanges that save memory ({}; step times replayed, now {}{}):\n",
                  report.search->changes_together > 1 ? counted(report.search->changes_together, "change") + " together"
                                                      : "one at a time",
                  readable_seconds(report.step_time_s), report.interval ? ", " + interval_note(report.interval) : "");
  text += aligned_table(change_table(report), "  ") + refused_rows(*report.search) + "\n" +
          basis_text(without_memory(basis));
  if (tried.empty() || !makes_it_fit(tried.front())) return text + "None of them makes it fit.\n";
  const TriedChange& best = tried.front();
  text += fmt::format("Cheapest that fits: {} ({}, step {}, {}):\n ", best.variation.words,
                      readable_share(best.memory.share()) + " of the GPU", readable_seconds(best.step_time_s),
                      slower_text(best.step_time_s, report.step_time_s));
  for (const std::string& each : best.variation.overrides) text += " --set " + each;
  return text + "\n";
}

}  // namespace

std::vector<AnswerKeys> memory_answers() { return {{"memory --json", description().keys()}}; }

std::string json_text(const PreparedStep& prepared, const MemoryReport& report) {
  return description().text({prepared, report, basis_of(prepared.scenario)});
}

// The answer of `slipway memory` as a report.

std::vector<std::vector<std::string>> stage_table(const MemoryReport& report) {
  return stage_keys().table(report.stages);
}

std::vector<std::vector<std::string>> change_table(const MemoryReport& report) {
  std::vector<TriedChange> possible = report.search->tried;
  std::erase_if(possible, [](const TriedChange& tried) { return !is_possible(tried); });
  Rows rows = change_keys().table(possible);
  rows[0].emplace_back("against now");
  for (std::size_t i = 0; i < possible.size(); ++i) {
    const double step_s = possible[i].step_time_s;
    rows[i + 1].push_back(step_s > 0 ? slower_text(step_s, report.step_time_s) : "-");
  }
  return rows;
}

std::string report_text(const PreparedStep& prepared, const MemoryReport& report) {
  const Basis basis = basis_of(prepared.scenario);
  std::string text = headline(prepared) + "\n\n" + verdict_text(prepared, report) + "\n" + memory_basis_text(basis) +
                     aligned_table(stage_table(report), "  ");
  for (std::size_t i = 0; i < report.stages.size(); ++i)
    text += fmt::format("\nPipeline rank {}, by part:\n", i) + parts_table(report.stages[i]);
  if (report.search) text += changes_text(report, basis);
  return text;
}

}  // namespace slipway::scenarios
