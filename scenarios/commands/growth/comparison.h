// The answer of `slipway growth`: a training with the scenario's batch rule beside the same training with other rules,
// in steps, samples and time.
//
//   rungs ──► simulated steps ──► time of every batch (ladder.h) ─┐
//   rules ──► courses of batch and loss (models/training/growth.h) ────────┴─► time to the target, loss at the end
//
// It compares the rules that the scenario gives enough for: the first batch throughout, the largest throughout, linear
// warm-up, stages, norm test. Nothing is assumed for the others. With training.noise.least and .most, each course to a
// target also runs with these noise scales. They are such that the first batch throughout needs as many tokens for the
// target as before (with_noise).
// Guarded by tests/scenarios/growth_command_test.cpp and tests/scenarios/growth_reach_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/training/growth.h"
#include "scenarios/commands/growth/ladder.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct TimeRange {
  double least_s = 0, most_s = 0;
};

struct RuleAnswer {
  std::string name;  // "norm test", "batch 2,048 throughout"
  BatchSchedule batches;
  Course course;                   // whole for the scenario's rule, perhaps cut for the others
  double end_s = 0;                // time of the whole course
  std::optional<double> target_s;  // time to the target
  // 90 % intervals of both times. Steps of all batches err alike, because the same constants price them.
  std::optional<TimeRange> end_interval, target_interval;
  // The range of the time to the target over the scenario's noise scale and those of noise.least and .most that reach
  // it. Unset without such scales, or where none reaches it.
  std::optional<TimeRange> target_range;
  bool always_reached = true;  // by all noise scales
};

// Parts of the courses outside the runs that loss and noise scale were fitted to (training.fitted).
struct OutsideCurves {
  std::string what;    // "batch 8,192", "loss 2.61"
  std::string fitted;  // "2,048 to 6,144"
};

struct GrowthAnswer {
  std::vector<RungStep> rungs;  // simulated, ascending; by the scenario's rule
  // The same batches by the other rules. Only the norm test's steps measure norms. Empty where all rules have the same
  // steps.
  std::vector<RungStep> other_rungs;
  std::size_t rungs_in_all = 0;
  double line_error = 0;
  BatchRule own_rule = BatchRule::constant;
  std::vector<RuleAnswer> rules;  // the scenario's, the first batch throughout, then the others
  double sequence = 0;            // tokens of a sample
  const RuleAnswer& own() const { return rules.front(); }
  const std::vector<RungStep>& rungs_of(BatchRule rule) const {
    const bool alike = measures_norms(rule) == measures_norms(own_rule);
    return alike || other_rungs.empty() ? rungs : other_rungs;
  }
  // The constant first batch; own() if that is the scenario's rule.
  const RuleAnswer& first() const { return own().batches.rule == BatchRule::constant ? own() : rules[1]; }
};

// Empty where nothing lies outside, or where the scenario does not give the fitted runs.
std::vector<OutsideCurves> outside_curves(const Scenario& scenario, const GrowthAnswer& answer);

// Throws UsageError with the missing keys and the remedy.
void check_growth_is_asked(const Scenario& scenario);
// `progress`: the share of all work, and the current part. Throws UsageError where the scenario's rule needs more than
// CourseEnd::most_steps steps.
GrowthAnswer growth_of(const Scenario& scenario, int simulated_rungs,
                       const std::function<void(double, const std::string& detail)>& progress = {});

// Cells of its tables, headings first: a row per rule, and per simulated batch.
std::vector<std::vector<std::string>> rule_rows(const Scenario& scenario, const GrowthAnswer& answer);
std::vector<std::vector<std::string>> rung_rows(const GrowthAnswer& answer);
std::string growth_text(const Scenario& scenario, const GrowthAnswer& answer);
std::string growth_json(const Scenario& scenario, const GrowthAnswer& answer);
std::vector<AnswerKey> growth_keys();

}  // namespace slipway::scenarios
