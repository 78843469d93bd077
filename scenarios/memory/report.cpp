#include "scenarios/memory/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/answers/description.h"
#include "scenarios/answers/readable.h"
#include "scenarios/command_line/command.h"
#include "scenarios/step/verdict.h"

namespace slipway::scenarios {

bool MemoryReport::is_safe() const {
  return std::all_of(stages.begin(), stages.end(), [](const StageReport& s) { return s.is_safe(); });
}

MemoryReport memory_report(const PreparedStep& prepared, const Timeline& timeline, const PeriodicTimeline* periodic) {
  MemoryReport report;
  std::vector<MemoryParts> formula;
  try {
    formula = formula_memory(prepared.scenario);
  } catch (const std::invalid_argument& reason) {
    report.no_formula = reason.what();
  }
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
    if (!formula.empty()) row.formula = formula[stage];
    row.timeline = fullest.use.parts;
    row.estimate = estimated(counted[stage], prepared.scenario.trainer);
    row.estimate[MemoryPart::kept_for_bubble_work] = row.timeline[MemoryPart::kept_for_bubble_work];
    row.peak_task = fullest.use.peak_task;
    row.needs = needs[stage].bytes;
    row.fits = row.needs <= prepared.scenario.trainer.usable_share * row.capacity;
    row.fits_cautious = row.needs <= prepared.scenario.trainer.cautious_share * row.capacity;
  }
  report.verdict = verdict_of(prepared.scenario, needs);
  report.step_time_s = prepared.periodic ? replayed_step_s(prepared.scenario)
                                         : step_time_of(prepared.graph, replay(prepared.graph, prepared.durations, 3));
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
const MemoryConstants& trainer_in(const Answer& answer) { return answer.prepared.scenario.trainer; }

Description<MemoryParts> parts_keys() {
  Description<MemoryParts> description;
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    description.key(name_of(part), "bytes", words_for(part),
                    whole([part](const MemoryParts& parts) { return parts[part]; }));
  }
  return description.key("total", "bytes", "their sum", whole(sum));
}

bool has_formula(const StageReport& stage) { return stage.formula.has_value(); }

// `cautious_share`: of a GPU, the trainer's.
Description<StageReport> stage_keys(double cautious_share) {
  const auto total = [](MemoryParts StageReport::*parts) {
    return [parts](const StageReport& stage) { return readable_bytes(sum(stage.*parts)); };
  };
  return Description<StageReport>()
      .key("rank", "index", "its fullest rank", &StageReport::rank)
      .wide_column("pipeline rank",
                   [](const StageReport& stage) { return fmt::format("{} (rank {})", stage.stage, stage.rank); })
      .object("closed_form", "by part; null without a closed form", &StageReport::formula, parts_keys())
      .else_null()
      .wide_column("closed form",
                   [](const StageReport& stage) { return stage.formula ? readable_bytes(sum(*stage.formula)) : "-"; })
      .object("timeline", "the same on the simulated timeline", &StageReport::timeline, parts_keys())
      .listed_elsewhere()
      .wide_column("timeline", total(&StageReport::timeline))
      .object("estimate", "the same as the trainer takes it", &StageReport::estimate, parts_keys())
      .listed_elsewhere()
      .wide_column("estimate", total(&StageReport::estimate))
      .key("needs_bytes", "bytes", "the largest of closed form, timeline and estimate", whole(&StageReport::needs))
      .column("needs", readable_bytes)
      .key("capacity_bytes", "bytes", "memory of that rank's machine", whole(&StageReport::capacity))
      .wide_column("of a GPU's", [](const StageReport& stage) { return readable_bytes(stage.capacity) + stage.on; })
      .key("fits_cautious", "bool", "as fits_cautious, of this stage", &StageReport::fits_cautious)
      .column("within " + readable_share(cautious_share), yes_no)
      .key("fits", "bool", "as fits, of this stage", &StageReport::fits)
      .column("fits", yes_no)
      .key("fits_safe_share", "bool", "as fits_safe_share, of this stage", &StageReport::is_safe)
      .when(has_formula)
      .else_null()
      .key("peak_task", "text", "label of the task during which its memory peaks on the timeline",
           &StageReport::peak_task)
      .column("peaks in");
}

bool is_possible(const TriedChange& tried) { return tried.refused.empty(); }
bool makes_it_fit(const TriedChange& tried) { return is_possible(tried) && tried.verdict.fits; }
std::string change_name(const TriedChange& tried) { return name_of(tried.change); }

Description<TriedChange> change_keys() {
  return Description<TriedChange>()
      .key("change", "text", "what is changed", change_name)
      .column("change")
      .key("set", "list", "the same as options of --set",
           [](const TriedChange& tried) { return tried.change.overrides; })
      .key("refused", "text", "why it cannot be; null where it can", &TriedChange::refused)
      .when([](const TriedChange& tried) { return !is_possible(tried); })
      .else_null()
      .key("peak_bytes", "bytes", "as peak_bytes; null where it cannot be",
           whole([](const TriedChange& tried) { return tried.verdict.bytes; }))
      .when(is_possible)
      .else_null()
      .key("share", "0..1", "of the usable memory; null where it cannot be",
           [](const TriedChange& tried) { return tried.verdict.share(); })
      .when(is_possible)
      .else_null()
      .column("needs", readable_share)
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
          .key("stack", "text", "trainer whose constants make the estimate: cluster.stack, or \"book\"",
               of(trainer_in, &MemoryConstants::name))
          .key("stack_machine", "text", "machine on which they were found; null: the book's",
               of(trainer_in, &MemoryConstants::machine))
          .when([](const Answer& a) { return !trainer_in(a).machine.empty(); })
          .else_null()
          .key("fits", "bool",
               "the largest of closed form (with a trainer's own constants without it), timeline and estimate "
               "is within the GPU on every stage",
               of(verdict_in, &Verdict::fits))
          .key("fits_cautious", "bool", "the same within the trainer's cautious share of every GPU, 0.8 of the book",
               of(verdict_in, &Verdict::fits_cautious))
          .key("fits_safe_share", "bool",
               "the author's verdict (Fujii et al. 2024): closed form <= 80 % of the GPU on every stage; "
               "null without a closed form",
               of(report_in, &MemoryReport::is_safe))
          .when([](const Answer& a) { return a.report.no_formula.empty(); })
          .else_null()
          .key("fullest_stage", "index", "pipeline rank that needs the largest share of its GPU",
               of(verdict_in, &Verdict::fullest))
          .key("peak_bytes", "bytes", "what it needs: the largest of the three", whole(of(verdict_in, &Verdict::bytes)))
          .key("usable_bytes", "bytes", "memory of its GPU that a process gets",
               whole(of(verdict_in, &Verdict::usable)))
          .key("peak_task", "text", "label of the task during which its memory peaks on the timeline",
               [](const Answer& a) { return a.report.stages[a.report.verdict.fullest].peak_task; })
          .key("step_time_s", "s",
               "of the scenario, replayed without contention (not simulate's); changes are compared with it",
               of(report_in, &MemoryReport::step_time_s))
          .list("stages", "one object per pipeline rank", of(report_in, &MemoryReport::stages), stage_keys(0))
          .key("no_closed_form", "text", "why there is no closed form; present when there is none",
               of(report_in, &MemoryReport::no_formula))
          .when([](const Answer& a) { return !a.report.no_formula.empty(); })
          .list("changes",
                "changes tried, those that fit first, fastest first; present when it does not fit, or with --changes",
                changes_in, change_keys())
          .key("cheapest_change", "text", "the first of them that fits, null when none does; present with changes",
               cheapest_change)
          .when([](const Answer& a) { return a.report.search.has_value(); })
          .include(basis_keys(), &Answer::basis);
  return description;
}

}  // namespace

std::vector<AnswerKeys> memory_answers() { return {{"memory --json", description().keys()}}; }

std::string json_text(const PreparedStep& prepared, const MemoryReport& report) {
  return description().text({prepared, report, basis_of(prepared.scenario)});
}

// The answer of `slipway memory` as a report.

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string bytes_or_dash(double bytes) { return bytes > 0 ? readable_bytes(bytes) : "-"; }

std::string parts_table(const StageReport& stage) {
  Rows rows{{"part", "closed form", "timeline", "estimate"}};
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    const double formula = stage.formula ? (*stage.formula)[part] : 0;
    if (formula <= 0 && stage.timeline[part] <= 0 && stage.estimate[part] <= 0) continue;
    rows.push_back({words_for(part), bytes_or_dash(formula), bytes_or_dash(stage.timeline[part]),
                    bytes_or_dash(stage.estimate[part])});
  }
  rows.push_back({"total", stage.formula ? readable_bytes(sum(*stage.formula)) : "-",
                  readable_bytes(sum(stage.timeline)), readable_bytes(sum(stage.estimate))});
  return aligned_table(rows, "  ");
}

std::string verdict_text(const PreparedStep& prepared, const MemoryReport& report) {
  const Verdict& verdict = report.verdict;
  const std::string& task = report.stages[verdict.fullest].peak_task;
  std::string text = fmt::format(
      "{}: pipeline rank {} is fullest and needs {} of {}{} ({}), the largest of the three, {}; it peaks in {}.\n",
      verdict.fits ? "Fits" : "Does not fit", verdict.fullest, readable_bytes(verdict.bytes),
      readable_bytes(verdict.usable), on_machine(prepared.scenario, verdict.rank), readable_share(verdict.share()),
      way_text(prepared.scenario, verdict.way), task);
  const MemoryConstants& trainer = prepared.scenario.trainer;
  const bool book = trainer.machine.empty();
  text +=
      fmt::format("Cautiously, up to {} of each GPU{}: {}.\n", readable_share(trainer.cautious_share),
                  book ? " (the 80 % rule of Fujii et al. 2024)" : "", verdict.fits_cautious ? "fits" : "does not fit");
  if (!report.no_formula.empty()) return text + "No closed form: " + report.no_formula + ".\n";
  if (book) return text;
  return text + fmt::format("By the 80 % rule of Fujii et al. 2024 and its closed form: {}.\n",
                            report.is_safe() ? "fits" : "does not fit");
}

std::string slower_text(double step_s, double before_s) {
  return fmt::format("{:+.1f} %", 100 * (step_s / before_s - 1));
}

std::string change_rows(const MemoryReport& report) {
  std::vector<TriedChange> possible = report.search->tried;
  std::erase_if(possible, [](const TriedChange& tried) { return !is_possible(tried); });
  Rows rows = change_keys().table(possible);
  rows[0].emplace_back("against now");
  for (std::size_t i = 0; i < possible.size(); ++i) {
    const double step_s = possible[i].step_time_s;
    rows[i + 1].push_back(step_s > 0 ? slower_text(step_s, report.step_time_s) : "-");
  }
  return aligned_table(rows, "  ");
}

std::string refused_rows(const ChangeSearch& search) {
  std::string text;
  for (const TriedChange& tried : search.tried) {
    if (!tried.refused.empty()) text += "  not possible: " + name_of(tried.change) + " (" + tried.refused + ")\n";
  }
  return text;
}

std::string changes_text(const MemoryReport& report, const Basis& basis) {
  const std::vector<TriedChange>& tried = report.search->tried;
  std::string text =
      fmt::format("\nChanges that save memory ({}; step times replayed, now {}):\n",
                  report.search->changes_together > 1 ? counted(report.search->changes_together, "change") + " together"
                                                      : "one at a time",
                  readable_seconds(report.step_time_s));
  text += change_rows(report) + refused_rows(*report.search) + "\n" + basis_text(without_memory(basis));
  if (tried.empty() || !tried.front().verdict.fits || !tried.front().refused.empty())
    return text + "None of them makes it fit.\n";
  const TriedChange& best = tried.front();
  text += fmt::format("Cheapest that fits: {} ({}, step {}, {}):\n ", name_of(best.change),
                      readable_share(best.verdict.share()) + " of the GPU", readable_seconds(best.step_time_s),
                      slower_text(best.step_time_s, report.step_time_s));
  for (const std::string& each : best.change.overrides) text += " --set " + each;
  return text + "\n";
}

}  // namespace

std::string report_text(const PreparedStep& prepared, const MemoryReport& report) {
  const Basis basis = basis_of(prepared.scenario);
  std::string text = headline(prepared) + "\n\n" + verdict_text(prepared, report) + "\n" + memory_basis_text(basis) +
                     aligned_table(stage_keys(prepared.scenario.trainer.cautious_share).table(report.stages), "  ");
  for (std::size_t i = 0; i < report.stages.size(); ++i)
    text += fmt::format("\nPipeline rank {}, by part:\n", i) + parts_table(report.stages[i]);
  if (report.search) text += changes_text(report, basis);
  return text;
}

}  // namespace slipway::scenarios
