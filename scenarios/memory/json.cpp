// `slipway memory --json`; keys: json_keys.cpp.
#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/json_summary.h"
#include "scenarios/memory/report.h"

namespace slipway {
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
  summary.set("peak_task", report.stages[static_cast<std::size_t>(verdict.fullest)].peak_task);
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

}  // namespace slipway
