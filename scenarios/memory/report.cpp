#include "scenarios/memory/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"
#include "scenarios/step/verdict.h"

namespace slipway::scenarios {

bool MemoryReport::is_safe() const {
  return std::all_of(stages.begin(), stages.end(), [](const StageReport& s) { return s.is_safe(); });
}

MemoryReport memory_report(const Plan& plan, const Timeline& timeline, const SteadyState* steady) {
  MemoryReport report;
  std::vector<MemoryParts> formula;
  try {
    formula = formula_memory(plan.scenario);
  } catch (const std::invalid_argument& reason) {
    report.no_formula = reason.what();
  }
  const std::vector<StageTerms> counted = counted_memory(plan.scenario);
  const std::vector<StageMemory> memory = stage_memory(plan, timeline, steady);
  const std::vector<StageNeed> needs = stage_needs(plan.scenario, on_timeline(memory));
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const StageMemory& fullest = memory[stage];
    StageReport& row = report.stages.emplace_back();
    row.rank = fullest.rank;
    row.capacity = fullest.capacity;
    row.on = fullest.on;
    if (!formula.empty()) row.formula = formula[stage];
    row.timeline = fullest.use.parts;
    row.estimate = estimated(counted[stage], plan.scenario.trainer);
    row.estimate[MemoryPart::kept_for_fillers] = row.timeline[MemoryPart::kept_for_fillers];
    row.peak_task = fullest.use.peak_task;
    row.needs = needs[stage].bytes;
    row.fits = row.needs <= plan.scenario.trainer.usable_share * row.capacity;
    row.fits_cautious = row.needs <= plan.scenario.trainer.cautious_share * row.capacity;
  }
  report.verdict = verdict_of(plan.scenario, needs);
  report.step_time_s =
      plan.shortened ? replayed_step_s(plan.scenario) : step_time_of(plan.graph, replay(plan.graph, plan.durations, 3));
  return report;
}

// The answer of `slipway memory --json`; keys: answers/json_summary.h.

namespace {

using nlohmann::json;

std::int64_t whole(double bytes) { return std::llround(bytes); }

json parts_json(const MemoryParts& parts) {
  json object = json::object();
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    object[name_of(part)] = whole(parts[part]);
  }
  object["total"] = whole(sum(parts));
  return object;
}

json stage_json(const StageReport& stage) {
  json object = json::object();
  object["rank"] = stage.rank;
  object["capacity_bytes"] = whole(stage.capacity);
  object["peak_task"] = stage.peak_task;
  object["needs_bytes"] = whole(stage.needs);
  object["fits"] = stage.fits;
  object["fits_cautious"] = stage.fits_cautious;
  object["fits_safe_share"] = stage.formula ? json(stage.is_safe()) : json();
  object["closed_form"] = stage.formula ? parts_json(*stage.formula) : json();
  object["timeline"] = parts_json(stage.timeline);
  object["estimate"] = parts_json(stage.estimate);
  return object;
}

json change_json(const TriedChange& tried) {
  const bool possible = tried.refused.empty();
  json object = json::object();
  object["change"] = name_of(tried.change);
  object["set"] = tried.change.overrides;
  object["refused"] = possible ? json() : json(tried.refused);
  object["fits"] = possible && tried.verdict.fits;
  object["peak_bytes"] = possible ? json(whole(tried.verdict.bytes)) : json();
  object["share"] = possible ? json(tried.verdict.share()) : json();
  object["step_time_s"] = tried.step_time_s > 0 ? json(tried.step_time_s) : json();
  return object;
}

}  // namespace

std::string json_text(const Plan& plan, const MemoryReport& report) {
  JsonSummary summary(memory_json_keys());
  const Verdict& verdict = report.verdict;
  summary.set("scenario", plan.scenario.name);
  const std::string& fitted_on = plan.scenario.trainer.machine;
  summary.set("stack", plan.scenario.trainer.name);
  summary.set("stack_machine", fitted_on.empty() ? json() : json(fitted_on));
  summary.set("fits", verdict.fits);
  summary.set("fits_cautious", verdict.fits_cautious);
  summary.set("fits_safe_share", report.no_formula.empty() ? json(report.is_safe()) : json());
  summary.set("fullest_stage", verdict.fullest);
  summary.set("peak_bytes", whole(verdict.bytes));
  summary.set("usable_bytes", whole(verdict.usable));
  summary.set("peak_task", report.stages[verdict.fullest].peak_task);
  summary.set("step_time_s", report.step_time_s);
  set_basis_keys(summary, basis_of(plan.scenario));
  json stages = json::array();
  for (const StageReport& stage : report.stages) stages.push_back(stage_json(stage));
  summary.set("stages", stages);
  if (!report.no_formula.empty()) summary.set("no_closed_form", report.no_formula);
  if (report.search) {
    json changes = json::array();
    for (const TriedChange& tried : report.search->tried) changes.push_back(change_json(tried));
    const bool some = !changes.empty() && changes.front()["fits"] == true;
    summary.set("changes", changes);
    summary.set("cheapest_change", some ? changes.front()["change"] : json());
  }
  return summary.text();
}

// The answer of `slipway memory` as a report.

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string yes_no(bool yes) { return yes ? "yes" : "no"; }

std::string bytes_or_dash(double bytes) { return bytes > 0 ? readable_bytes(bytes) : "-"; }

std::string summary_table(const Plan& plan, const MemoryReport& report) {
  Rows rows{{"pipeline rank", "closed form", "timeline", "estimate", "needs", "of a GPU's",
             "within " + readable_share(plan.scenario.trainer.cautious_share), "fits", "peaks in"}};
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageReport& stage = report.stages[i];
    rows.push_back(
        {fmt::format("{} (rank {})", i, stage.rank), stage.formula ? readable_bytes(sum(*stage.formula)) : "-",
         readable_bytes(sum(stage.timeline)), readable_bytes(sum(stage.estimate)), readable_bytes(stage.needs),
         readable_bytes(stage.capacity) + stage.on, yes_no(stage.fits_cautious), yes_no(stage.fits), stage.peak_task});
  }
  return aligned_table(rows, "  ");
}

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

std::string verdict_text(const Plan& plan, const MemoryReport& report) {
  const Verdict& verdict = report.verdict;
  const std::string& task = report.stages[verdict.fullest].peak_task;
  std::string text = fmt::format(
      "{}: pipeline rank {} is fullest and needs {} of {}{} ({}), the largest of the three, {}; it peaks in {}.\n",
      verdict.fits ? "Fits" : "Does not fit", verdict.fullest, readable_bytes(verdict.bytes),
      readable_bytes(verdict.usable), on_machine(plan.scenario, verdict.rank), readable_share(verdict.share()),
      way_text(plan.scenario, verdict.way), task);
  const MemoryConstants& trainer = plan.scenario.trainer;
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
  Rows rows{{"change", "needs", "fits", "step time", "against now"}};
  for (const TriedChange& tried : report.search->tried) {
    if (!tried.refused.empty()) continue;
    const bool priced = tried.step_time_s > 0;
    rows.push_back({name_of(tried.change), readable_share(tried.verdict.share()), yes_no(tried.verdict.fits),
                    priced ? readable_seconds(tried.step_time_s) : "-",
                    priced ? slower_text(tried.step_time_s, report.step_time_s) : "-"});
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

std::string report_text(const Plan& plan, const MemoryReport& report) {
  const Basis basis = basis_of(plan.scenario);
  std::string text = headline(plan) + "\n\n" + verdict_text(plan, report) + "\n" + memory_basis_text(basis) +
                     summary_table(plan, report);
  for (std::size_t i = 0; i < report.stages.size(); ++i)
    text += fmt::format("\nPipeline rank {}, by part:\n", i) + parts_table(report.stages[i]);
  if (report.search) text += changes_text(report, basis);
  return text;
}

}  // namespace slipway::scenarios
