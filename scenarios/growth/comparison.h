// What `slipway growth` answers: a training with the scenario's batch rule beside the same one with the
// others, in steps, samples and time.
//
//   rungs ──► simulated steps ──► time of every batch (ladder.h) ─┐
//   rules ──► courses of batch and loss (models/training/growth.h) ────────┴─► time to the target, loss at the end
//
// Compared are the rules of which the scenario says all they need: the first batch throughout, the largest
// throughout, linear warm-up, stages, norm test. Nothing is assumed for the others. With
// training.noise.least and .most each course to a target is run with these noise scales, too, such that the
// first batch throughout needs as many tokens for the target as before (with_noise). Guarded by
// tests/scenarios/growth_command_test.cpp and tests/scenarios/growth_reach_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/answers/answer_keys.h"
#include "scenarios/growth/ladder.h"

namespace slipway::scenarios {

struct TimeRange {
  double least_s = 0, most_s = 0;
};

struct RuleAnswer {
  std::string name;  // "norm test", "batch 2,048 throughout"
  BatchPlan plan;
  Course course;                   // of the scenario's rule whole, of the others perhaps not
  double end_s = 0;                // time of the whole course
  std::optional<double> target_s;  // time to the target
  // Over the scenario's noise scale and those that may be: time to the target by those that reach it.
  // Nothing where there are no others, or none reaches it.
  std::optional<TimeRange> target_range;
  bool always_reached = true;  // the target, by all of them
};

// What of the courses lies outside the runs that loss and noise scale were fitted to (training.fitted).
struct OutsideCurves {
  std::string what;    // "batch 8,192", "loss 2.61"
  std::string fitted;  // "2,048 to 6,144"
};

struct GrowthAnswer {
  std::vector<RungStep> rungs;  // simulated, ascending; of the scenario's rule
  // The same batches as the other rules step: the norm test's steps measure norms, the others' do not. Empty where all
  // rules step alike.
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
  // The constant first batch; own() where that is the scenario's rule.
  const RuleAnswer& first() const { return own().plan.rule == BatchRule::constant ? own() : rules[1]; }
};

// Empty where nothing does, or where the scenario does not say what was fitted.
std::vector<OutsideCurves> outside_curves(const Scenario& scenario, const GrowthAnswer& answer);

// Throws UsageError that names the keys which are missing, with what to do.
void check_growth_is_asked(const Scenario& scenario);
// `progress`: share of all, and what is done. Throws UsageError where the scenario's rule needs more steps
// than are run (CourseEnd::most_steps).
GrowthAnswer growth_of(const Scenario& scenario, int simulated_rungs,
                       const std::function<void(double, const std::string& detail)>& progress = {});

std::string growth_text(const Scenario& scenario, const GrowthAnswer& answer);
std::string growth_json(const Scenario& scenario, const GrowthAnswer& answer);
std::vector<AnswerKey> growth_keys();

}  // namespace slipway::scenarios
