#include "scenarios/growth/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/commands/command.h"
#include "scenarios/growth/rule.h"
#include "scenarios/language/rungs.h"
#include "scenarios/readable.h"

namespace slipway {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string throughout(std::int64_t batch) {
  return "batch " + readable_count(static_cast<double>(batch)) + " throughout";
}

std::string name_of_rule(const BatchPlan& plan) {
  return plan.rule == BatchRule::constant ? throughout(plan.rungs.front()) : rule_text(plan);
}

bool can_run(const Scenario& scenario, BatchRule rule) {
  const GrowthChoice& growth = scenario.growth;
  switch (rule) {
    case BatchRule::constant:
      return true;
    case BatchRule::linear:
      return growth.warmup > 0;
    case BatchRule::stages:
      return !growth.stages.empty();
    case BatchRule::norm_test:
      break;
  }
  return growth.eta > 0 && why_no_norm_test(step_cut(scenario)).empty();
}

// The scenario's rule first, then the constant batches and whatever else it says enough of.
std::vector<BatchPlan> plans_of(const Scenario& scenario, const std::vector<std::int64_t>& rungs) {
  std::vector<BatchPlan> plans{batch_plan(scenario, *scenario.growth.rule, rungs)};
  const auto add = [&](BatchRule rule, const std::vector<std::int64_t>& own) {
    if (rule != *scenario.growth.rule && can_run(scenario, rule))
      plans.push_back(batch_plan(scenario, rule, own));
  };
  add(BatchRule::constant, rungs);
  if (rungs.size() > 1) plans.push_back(batch_plan(scenario, BatchRule::constant, {rungs.back()}));
  for (const BatchRule rule : {BatchRule::linear, BatchRule::stages, BatchRule::norm_test})
    add(rule, rungs);
  return plans;
}

// They tell a range of times to the target: none without one.
std::vector<LossDynamics> dynamics_that_may_be(const Scenario& scenario, double sequence) {
  const GrowthChoice& growth = scenario.growth;
  const double known = static_cast<double>(scenario.schedule.global_batch) * sequence;
  std::vector<LossDynamics> all;
  if (growth.target_loss <= 0) return all;
  for (const double scale : {growth.noise_least, growth.noise_most})
    if (scale > 0) all.push_back(with_noise(growth.dynamics, scale, known, growth.target_loss));
  return all;
}

std::optional<double> seconds_to_target(const Course& course, const std::vector<RungStep>& rungs) {
  if (!course.target) return std::nullopt;
  return seconds_of(course, course.target->steps,
                    [&](std::int64_t batch) { return step_time_between(rungs, batch); });
}

using CourseBy = std::function<Course(const BatchPlan& plan, const LossDynamics& dynamics)>;

RuleAnswer answer_of(const Scenario& scenario, const BatchPlan& plan, const GrowthAnswer& answer,
                     const std::vector<LossDynamics>& may_be, const CourseBy& course_by) {
  RuleAnswer rule{name_of_rule(plan), plan, course_by(plan, scenario.growth.dynamics), 0, {}, {}};
  const std::vector<RungStep>& rungs = answer.rungs_of(plan.rule);
  rule.end_s = seconds_of(rule.course, rule.course.end.steps,
                          [&](std::int64_t batch) { return step_time_between(rungs, batch); });
  rule.target_s = seconds_to_target(rule.course, rungs);
  if (may_be.empty()) return rule;
  std::vector<std::optional<double>> times{rule.target_s};
  for (const LossDynamics& dynamics : may_be)
    times.push_back(seconds_to_target(course_by(plan, dynamics), rungs));
  for (const auto& time : times) {
    rule.always_reached = rule.always_reached && time.has_value();
    if (!time) continue;
    const TimeRange before = rule.target_range.value_or(TimeRange{*time, *time});
    rule.target_range = TimeRange{std::min(before.least_s, *time), std::max(before.most_s, *time)};
  }
  return rule;
}

// `since`: pieces of work, since those that were done before.
using Report = std::function<void(double since, const std::string& detail)>;

// Of the plans, whose first is the scenario's own.
std::optional<BatchRule> rule_that_steps_otherwise(const std::vector<BatchPlan>& plans) {
  for (const BatchPlan& plan : plans)
    if (measures_norms(plan.rule) != measures_norms(plans.front().rule)) return plan.rule;
  return std::nullopt;
}

// Steps of these batches in a training by this rule.
std::vector<RungStep> rungs_by(BatchRule rule, Scenario scenario, const std::vector<std::int64_t>& batches, const Report& report) {
  scenario.growth.rule = rule;
  return simulated_rungs(scenario, batches, [&](double share, std::int64_t batch) {
    report(share * static_cast<double>(batches.size()), "step of " + readable_count(static_cast<double>(batch)));
  });
}

void check_own_ends(const Scenario& scenario, const RuleAnswer& own) {
  if (own.course.whole) return;
  throw UsageError(fmt::format(
      "{}: training: by this scenario's rule ({}) the end is more than {} steps away; give a nearer end "
      "(run.tokens, training.target_loss) or a larger schedule.global_batch",
      scenario.path, own.name, readable_count(static_cast<double>(CourseEnd().most_steps))));
}

}  // namespace

void check_growth_is_asked(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  check_rule_is_whole(scenario);
  if (!growth.missing_dynamics.empty())
    refuse_missing(scenario, joined(growth.missing_dynamics),
            "no number of these holds for every model and data; measure them: `slipway growth --fit "
            "CURVES.csv` fits them to losses of "
            "runs with several batch sizes, such as scenarios/lau-2024/curves.csv, and prints the lines "
            "for the scenario");
  if (scenario.tokens <= 0 && growth.target_loss <= 0)
    refuse_missing(scenario, "run.tokens, training.target_loss",
            "growth needs an end, one of the two, for example --set 'run.tokens=10 G'");
}

GrowthAnswer growth_of(const Scenario& scenario, int count,
                       const std::function<void(double, const std::string&)>& progress) {
  GrowthAnswer answer;
  answer.sequence = static_cast<double>(scenario.model.sequence);
  answer.own_rule = *scenario.growth.rule;
  const std::vector<std::int64_t> rungs = rungs_of(scenario);
  answer.rungs_in_all = rungs.size();
  const std::vector<std::int64_t> simulated = some_rungs(rungs, stage_batches(scenario), count);
  const std::vector<BatchPlan> plans = plans_of(scenario, rungs);
  const std::vector<LossDynamics> may_be = dynamics_that_may_be(scenario, answer.sequence);
  const std::optional<BatchRule> other = rule_that_steps_otherwise(plans);
  // A step and a course each count as one piece of work.
  double done = 0;
  const double pieces = static_cast<double>(simulated.size() * (other ? 2 : 1) + plans.size() * (1 + may_be.size()));
  const Report report = [&](double since, const std::string& detail) {
    if (progress) progress((done + since) / pieces, detail);
  };
  answer.rungs = rungs_by(answer.own_rule, scenario, simulated, report);
  done += static_cast<double>(simulated.size());
  if (other) {
    answer.other_rungs = rungs_by(*other, scenario, simulated, report);
    done += static_cast<double>(simulated.size());
  }
  answer.line_error = line_error(answer.rungs);
  const CourseBy course_by = [&](const BatchPlan& plan, const LossDynamics& dynamics) {
    const CourseEnd end{scenario.tokens / answer.sequence, scenario.growth.target_loss};
    Course course = course_of(plan, dynamics, answer.sequence, end, [&](double share) { report(share, name_of_rule(plan)); });
    ++done;
    return course;
  };
  for (const BatchPlan& plan : plans) {
    answer.rules.push_back(answer_of(scenario, plan, answer, may_be, course_by));
    check_own_ends(scenario, answer.own());
  }
  return answer;
}

std::vector<OutsideCurves> outside_curves(const Scenario& scenario, const GrowthAnswer& answer) {
  const GrowthChoice& growth = scenario.growth;
  std::int64_t least = answer.rungs.back().batch, most = 0;
  double lowest = growth.dynamics.start;
  for (const RuleAnswer& rule : answer.rules) {
    least = std::min(least, rule.course.spans.front().batch);
    most = std::max(most, rule.course.spans.back().batch);
    lowest = std::min(lowest, rule.course.end.loss);
  }
  std::vector<OutsideCurves> outside;
  if (growth.fitted_batches.size() == 2) {
    const int from = growth.fitted_batches[0], to = growth.fitted_batches[1];
    for (const std::int64_t batch : {least, most})
      if (batch < from || batch > to)
        outside.push_back({"batch " + readable_count(static_cast<double>(batch)),
                           readable_count(from) + " to " + readable_count(to)});
    if (outside.size() == 2 && least == most) outside.pop_back();
  }
  // A target that was measured is passed by a step.
  constexpr double rounding = 1e-3;
  if (growth.fitted_loss > 0 && lowest < growth.fitted_loss * (1 - rounding))
    outside.push_back(
        {fmt::format("loss {:.4g}", lowest), fmt::format("down to {:.4g}", growth.fitted_loss)});
  return outside;
}

}  // namespace slipway
