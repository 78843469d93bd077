#include "scenarios/commands/growth/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/training/batch_rules.h"
#include "models/training/norm_test.h"
#include "scenarios/commands/growth/rule.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/check_scenario.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"
#include "schedules/rules/rules.h"

namespace slipway::scenarios {

namespace {

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string throughout(std::int64_t batch) {
  return "batch " + readable_count(static_cast<double>(batch)) + " throughout";
}

std::string name_of_rule(const BatchSchedule& batches) {
  return batches.rule == BatchRule::constant ? throughout(batches.rungs.front()) : rule_text(batches);
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
  Step measuring = scenario.step;
  measuring.worker_norms = true;
  return growth.eta > 0 && legal(measuring);
}

// The scenario's rule first, then the constant batches and all other rules that the scenario gives enough for.
std::vector<BatchSchedule> schedules_of(const Scenario& scenario, const std::vector<std::int64_t>& rungs) {
  std::vector<BatchSchedule> schedules{batch_schedule(scenario, *scenario.growth.rule, rungs)};
  const auto add = [&](BatchRule rule, const std::vector<std::int64_t>& own) {
    if (rule != *scenario.growth.rule && can_run(scenario, rule))
      schedules.push_back(batch_schedule(scenario, rule, own));
  };
  add(BatchRule::constant, rungs);
  if (rungs.size() > 1) schedules.push_back(batch_schedule(scenario, BatchRule::constant, {rungs.back()}));
  for (const BatchRule rule : {BatchRule::linear, BatchRule::stages, BatchRule::norm_test}) add(rule, rungs);
  return schedules;
}

// Dynamics for the range of times to the target; empty without a target.
std::vector<LossDynamics> dynamics_that_may_be(const Scenario& scenario, double sequence) {
  const GrowthChoice& growth = scenario.growth;
  const double known = static_cast<double>(scenario.step.global_batch) * sequence;
  std::vector<LossDynamics> all;
  if (growth.target_loss <= 0) return all;
  for (const double scale : {growth.noise_least, growth.noise_most})
    if (scale > 0) all.push_back(with_noise(growth.dynamics, scale, known, growth.target_loss));
  return all;
}

std::optional<double> seconds_to_target(const Course& course, const std::vector<RungStep>& rungs) {
  if (!course.target) return std::nullopt;
  return seconds_of(course, course.target->steps, [&](std::int64_t batch) { return step_time_between(rungs, batch); });
}

// Unset where a simulated step has no interval.
std::optional<TimeRange> interval_until(const Course& course, std::int64_t steps, const std::vector<RungStep>& rungs) {
  std::vector<RungStep> fastest = rungs, slowest = rungs;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (!rungs[i].step_low_s || !rungs[i].step_high_s) return std::nullopt;
    fastest[i].step_s = *rungs[i].step_low_s, slowest[i].step_s = *rungs[i].step_high_s;
  }
  const auto seconds = [&](const std::vector<RungStep>& by) {
    return seconds_of(course, steps, [&](std::int64_t batch) { return step_time_between(by, batch); });
  };
  return TimeRange{seconds(fastest), seconds(slowest)};
}

using CourseBy = std::function<Course(const BatchSchedule& batches, const LossDynamics& dynamics)>;

RuleAnswer answer_of(const Scenario& scenario, const BatchSchedule& batches, const GrowthAnswer& answer,
                     const std::vector<LossDynamics>& may_be, const CourseBy& course_by) {
  RuleAnswer rule{name_of_rule(batches), batches, course_by(batches, scenario.growth.dynamics), 0, {}, {}, {}, {}};
  const std::vector<RungStep>& rungs = answer.rungs_of(batches.rule);
  rule.end_s = seconds_of(rule.course, rule.course.end.steps,
                          [&](std::int64_t batch) { return step_time_between(rungs, batch); });
  rule.target_s = seconds_to_target(rule.course, rungs);
  rule.end_interval = interval_until(rule.course, rule.course.end.steps, rungs);
  if (rule.course.target) rule.target_interval = interval_until(rule.course, rule.course.target->steps, rungs);
  if (may_be.empty()) return rule;
  std::vector<std::optional<double>> times{rule.target_s};
  for (const LossDynamics& dynamics : may_be) times.push_back(seconds_to_target(course_by(batches, dynamics), rungs));
  for (const auto& time : times) {
    rule.always_reached = rule.always_reached && time.has_value();
    if (!time) continue;
    const TimeRange before = rule.target_range.value_or(TimeRange{*time, *time});
    rule.target_range = TimeRange{std::min(before.least_s, *time), std::max(before.most_s, *time)};
  }
  return rule;
}

// `since`: pieces of work completed since the last finished part.
using Report = std::function<void(double since, const std::string& detail)>;

// The first rule whose steps differ from those of the scenario's own rule, the first one's.
std::optional<BatchRule> rule_that_steps_otherwise(const std::vector<BatchSchedule>& schedules) {
  for (const BatchSchedule& batches : schedules)
    if (measures_norms(batches.rule) != measures_norms(schedules.front().rule)) return batches.rule;
  return std::nullopt;
}

// Simulated steps of these batches in a training by this rule.
std::vector<RungStep> rungs_by(BatchRule rule, Scenario scenario, const std::vector<std::int64_t>& batches,
                               const Report& report) {
  scenario.growth.rule = rule;
  derive_step(scenario);
  return simulated_rungs(scenario, batches, [&](double share, std::int64_t batch) {
    report(share * static_cast<double>(batches.size()), "step of " + readable_count(static_cast<double>(batch)));
  });
}

void check_own_ends(const Scenario& scenario, const RuleAnswer& own) {
  if (own.course.whole) return;
  throw UsageError(
      fmt::format("{}: training: by this scenario's rule ({}) the end is more than {} steps away; give a nearer end "
                  "(run.tokens, training.target_loss) or a larger schedule.global_batch",
                  scenario.path, own.name, readable_count(static_cast<double>(CourseEnd().most_steps))));
}

struct Answer {
  const Scenario& scenario;
  const GrowthAnswer& growth;
  Basis basis;
};
const GrowthAnswer& growth_in(const Answer& answer) { return answer.growth; }
const RuleAnswer& own_in(const Answer& answer) { return answer.growth.own(); }

// A moment of a course, and the time until then.
struct Moment {
  Milestone at;
  double time_s = 0;
  std::optional<TimeRange> interval = {};  // of the time
};

std::optional<double> low_of(const std::optional<TimeRange>& interval) {
  return interval ? std::optional(interval->least_s) : std::nullopt;
}
std::optional<double> high_of(const std::optional<TimeRange>& interval) {
  return interval ? std::optional(interval->most_s) : std::nullopt;
}

std::optional<Moment> end_of(const RuleAnswer& rule) {
  return rule.course.whole ? std::optional(Moment{rule.course.end, rule.end_s, rule.end_interval}) : std::nullopt;
}

std::optional<Moment> target_of(const RuleAnswer& rule) {
  return rule.target_s ? std::optional(Moment{*rule.course.target, *rule.target_s, rule.target_interval})
                       : std::nullopt;
}

std::optional<std::vector<double>> target_range_of(const RuleAnswer& rule) {
  if (!rule.target_range) return std::nullopt;
  return std::vector<double>{rule.target_range->least_s, rule.target_range->most_s};
}

std::optional<double> speedup_in(const Answer& answer) {
  const auto own = own_in(answer).target_s, first = answer.growth.first().target_s;
  return own && first ? std::optional(*first / *own) : std::nullopt;
}

// In sequences.
double noise_scale_in(const Answer& answer, double loss) {
  return noise_scale_at(answer.scenario.growth.dynamics, loss) / answer.growth.sequence;
}

Description<Moment> moment_keys() {
  return Description<Moment>()
      .key("steps", "count", "until then", [](const Moment& moment) { return moment.at.steps; })
      .key("sequences", "count", "until then", [](const Moment& moment) { return moment.at.samples; })
      .key("loss", "nats", "then", [](const Moment& moment) { return moment.at.loss; })
      .key("time_s", "s", "until then", &Moment::time_s)
      .key("time_low_s", "s",
           "90 of 100 measured trainings of as many steps are expected between it and time_high_s; present as "
           "step_time_low_s in simulate",
           [](const Moment& moment) { return low_of(moment.interval); })
      .key("time_high_s", "s", "the other end", [](const Moment& moment) { return high_of(moment.interval); });
}

Description<BatchSpan> span_keys() {
  return Description<BatchSpan>()
      .key("batch", "sequences", "of each step", &BatchSpan::batch)
      .key("from_sequence", "count", "sequences before its first step", &BatchSpan::from_samples)
      .key("from_loss", "nats", "before its first step", &BatchSpan::from_loss)
      .key("steps", "count", "of this batch", &BatchSpan::steps);
}

std::string count_text(double count) { return readable_count(std::round(count)); }
std::string batch_text(std::int64_t batch) { return readable_count(static_cast<double>(batch)); }
std::string loss_text(double loss) { return fmt::format("{:.4g}", loss); }

// "50.0 M steps": the limit of a course.
std::string most_steps_text() { return readable_count(static_cast<double>(CourseEnd().most_steps)) + " steps"; }

bool is_one_time(const TimeRange& range) {
  constexpr double same = 0.005;
  return range.most_s < (1 + same) * range.least_s;
}

// "36.2 min to 41.0 min"
std::string range_text(const TimeRange& range) {
  return readable_seconds(range.least_s) + (is_one_time(range) ? "" : " to " + readable_seconds(range.most_s));
}

// Within which a course must reach its target.
std::string limit_text(const Scenario& scenario) {
  return scenario.tokens > 0 ? tokens_text(scenario.tokens) : most_steps_text();
}

// "39.1 min", "39.1 min (36.2 min to 41.0 min)", "39.1 min (or not within 1.90 G tokens)",
// "not reached (or after 36.2 min)"
std::string time_to_target(const Scenario& scenario, const RuleAnswer& rule) {
  if (!rule.target_s)
    return (rule.course.whole ? "not reached" : "more than " + most_steps_text()) +
           (rule.target_range ? " (or after " + range_text(*rule.target_range) + ")" : "");
  const std::string time = readable_seconds(*rule.target_s);
  if (!rule.always_reached) return time + " (or not within " + limit_text(scenario) + ")";
  if (!rule.target_range || is_one_time(*rule.target_range)) return time;
  return time + " (" + range_text(*rule.target_range) + ")";
}

// "34.1 min to 44.7 min", "-"
std::string interval_cell(const std::optional<TimeRange>& interval) {
  return interval ? readable_seconds(interval->least_s) + " to " + readable_seconds(interval->most_s) : "-";
}

// " (90 % interval: 34.1 min to 44.7 min)"
std::string interval_words(const std::optional<TimeRange>& interval) {
  return interval ? " (90 % interval: " + interval_cell(interval) + ")" : "";
}

// A rule's course as the answer shows it: among the others.
struct RuleOf {
  const Scenario& scenario;
  const RuleAnswer& rule;
  bool is_own = false;

  bool has_target() const { return scenario.growth.target_loss > 0; }
  bool has_end() const { return scenario.tokens > 0; }
};

std::vector<RuleOf> rules_in(const Scenario& scenario, const GrowthAnswer& answer) {
  std::vector<RuleOf> rules;
  for (const RuleAnswer& rule : answer.rules) rules.push_back({scenario, rule, &rule == &answer.own()});
  return rules;
}

// `target`: its loss.
Description<RuleOf> rule_keys(const std::string& target) {
  const auto rule = [](auto get) { return of([](const RuleOf& row) -> const RuleAnswer& { return row.rule; }, get); };
  const auto at_target = [](auto text) {
    return [text](const RuleOf& row) {
      const auto& at = row.rule.course.target;
      return row.has_target() && at ? text(*at) : std::string("-");
    };
  };
  const auto at_end = [](auto text) {
    return [text](const RuleOf& row) {
      return row.has_end() && row.rule.course.whole ? text(row.rule) : std::string("-");
    };
  };
  return Description<RuleOf>()
      .key("name", "text", "the rule, or the batch that stays", rule(&RuleAnswer::name))
      .wide_column("rule", [](const RuleOf& row) { return row.rule.name + (row.is_own ? " *" : ""); })
      .object("target", "the same at the target; absent where it is not reached", rule(target_of), moment_keys())
      .listed_elsewhere()
      .wide_column("sequences", at_target([](const Milestone& at) { return count_text(at.samples); }))
      .if_any()
      .only_column("steps", at_target([](const Milestone& at) { return batch_text(at.steps); }))
      .if_any()
      .only_column("time to loss " + target,
                   [](const RuleOf& row) { return row.has_target() ? time_to_target(row.scenario, row.rule) : "-"; })
      .if_any()
      .only_column("90 % interval", [](const RuleOf& row) { return interval_cell(row.rule.target_interval); })
      .if_any()
      .object("end", "of the whole course; absent where it takes over 50 M steps", rule(end_of), moment_keys())
      .wide_column("steps in all",
                   [](const RuleOf& row) {
                     if (!row.has_end()) return std::string("-");
                     return row.rule.course.whole ? batch_text(row.rule.course.end.steps)
                                                  : "more than " + most_steps_text();
                   })
      .if_any()
      .only_column("time in all", at_end([](const RuleAnswer& of_rule) { return readable_seconds(of_rule.end_s); }))
      .if_any()
      .only_column("90 % interval",
                   at_end([](const RuleAnswer& of_rule) { return interval_cell(of_rule.end_interval); }))
      .if_any()
      .only_column("loss then", at_end([](const RuleAnswer& of_rule) { return loss_text(of_rule.course.end.loss); }))
      .if_any()
      .key("target_range_s", "s",
           "[least, most] over the noise scales that may be and reach the target; absent without "
           "training.noise.least or most, and where none reaches it",
           rule(target_range_of))
      .key("always_reached", "bool", "true if all of them reach it; absent as target_range_s is",
           rule(&RuleAnswer::always_reached))
      .when([](const RuleOf& row) { return row.rule.target_range.has_value(); })
      .list("spans", "consecutive steps of one batch",
            rule([](const RuleAnswer& of_rule) { return of_rule.course.spans; }), span_keys());
}

// The steps of a course with batches from one simulated rung to the next.
struct Stay {
  std::int64_t steps = 0;
  double seconds = 0, from_samples = 0, from_loss = 0;
};
Stay stay_at(const GrowthAnswer& answer, std::size_t rung) {
  const bool last = rung + 1 == answer.rungs.size();
  Stay stay;
  for (const BatchSpan& span : answer.own().course.spans) {
    if (span.batch < answer.rungs[rung].batch || (!last && span.batch >= answer.rungs[rung + 1].batch)) continue;
    if (stay.steps == 0) stay.from_samples = span.from_samples, stay.from_loss = span.from_loss;
    stay.steps += span.steps;
    stay.seconds += static_cast<double>(span.steps) * step_time_between(answer.rungs, span.batch);
  }
  return stay;
}

// A simulated batch as the table shows it: with its part of the course.
struct RungOf {
  const RungStep& rung;
  Stay stay;
};

// `rungs`: those of `answer`, by its own rule or by the others.
std::vector<RungOf> rungs_in(const std::vector<RungStep>& rungs, const GrowthAnswer& answer) {
  std::vector<RungOf> all;
  for (std::size_t i = 0; i < rungs.size(); ++i) all.push_back({rungs[i], stay_at(answer, i)});
  return all;
}

Description<RungOf> rung_keys() {
  const auto rung = [](auto get) { return of([](const RungOf& row) -> const RungStep& { return row.rung; }, get); };
  const auto of_stay = [](auto text) {
    return [text](const RungOf& row) { return row.stay.steps > 0 ? text(row.stay) : std::string("-"); };
  };
  return Description<RungOf>()
      .key("batch", "sequences", "of the step", rung(&RungStep::batch))
      .column("batch from", readable_count)
      .key("micro_batches", "count", "per pipeline", rung(&RungStep::micro_batches))
      .column("micro-batches", readable_count)
      .key("step_time_s", "s", "as in simulate", rung(&RungStep::step_s))
      .column("step", readable_seconds)
      .key("step_time_low_s", "s", "as in simulate", rung(&RungStep::step_low_s))
      .key("step_time_high_s", "s", "as in simulate", rung(&RungStep::step_high_s))
      .only_column("90 % interval",
                   [](const RungOf& row) {
                     if (!row.rung.step_low_s || !row.rung.step_high_s) return std::string("-");
                     return interval_cell(TimeRange{*row.rung.step_low_s, *row.rung.step_high_s});
                   })
      .if_any()
      .key("tokens_per_s", "1/s", "as in simulate", rung(&RungStep::tokens_per_s))
      .column("tokens/s", readable_count)
      .key("mfu", "0..1", "as in simulate", rung(&RungStep::mfu))
      .column("MFU", [](double mfu) { return mfu > 0 ? readable_share(mfu) : "-"; })
      .key("fits", "bool", "as in simulate", rung(&RungStep::fits))
      .column("fits", yes_no)
      .only_column("from sequence", of_stay([](const Stay& stay) { return count_text(stay.from_samples); }))
      .only_column("at loss", of_stay([](const Stay& stay) { return loss_text(stay.from_loss); }))
      .only_column("steps", of_stay([](const Stay& stay) { return batch_text(stay.steps); }))
      .only_column("time there", of_stay([](const Stay& stay) { return readable_seconds(stay.seconds); }));
}

Description<OutsideCurves> outside_keys() {
  return Description<OutsideCurves>()
      .key("here", "text", "what of the courses", &OutsideCurves::what)
      .key("fitted", "text", "what was fitted", &OutsideCurves::fitted);
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.scenario.name; })
          .key("rule", "text", "rule of the batch's growth", of(own_in, &RuleAnswer::name))
          .key("time_to_target_s", "s", "until training.target_loss; absent where it is not given or not reached",
               of(own_in, &RuleAnswer::target_s))
          .key("time_to_target_low_s", "s", "of it, as rules[].target.time_low_s",
               [](const Answer& a) { return low_of(own_in(a).target_interval); })
          .key("time_to_target_high_s", "s", "the other end",
               [](const Answer& a) { return high_of(own_in(a).target_interval); })
          .key("speedup", "-",
               "time to the target with the first batch throughout / time_to_target_s; absent without both", speedup_in)
          .key("time_s", "s", "of the whole course: run.tokens, without them until the target",
               of(own_in, &RuleAnswer::end_s))
          .key("time_low_s", "s", "of it, as rules[].end.time_low_s",
               [](const Answer& a) { return low_of(own_in(a).end_interval); })
          .key("time_high_s", "s", "the other end", [](const Answer& a) { return high_of(own_in(a).end_interval); })
          .key("last_loss", "nats", "at its end", [](const Answer& a) { return own_in(a).course.end.loss; })
          .list(
              "rules", "courses by rule: the scenario's, the first batch throughout, the others",
              [](const Answer& a) { return rules_in(a.scenario, a.growth); }, rule_keys("of the target"))
          .list(
              "rungs", "batches whose step was simulated, ascending",
              [](const Answer& a) { return rungs_in(a.growth.rungs, a.growth); }, rung_keys())
          .list(
              "other_rungs",
              "the same batches as rules step that measure norms where the scenario's does not, or do not where it "
              "does; absent without such rules",
              [](const Answer& a) { return rungs_in(a.growth.other_rungs, a.growth); }, rung_keys())
          .when([](const Answer& a) { return !a.growth.other_rungs.empty(); })
          .listed_elsewhere()
          .key("line_error", "0..1", "largest error of the line between neighbours at a simulated step time",
               of(growth_in, &GrowthAnswer::line_error))
          .key("noise_scale_first", "sequences", "gradient noise scale at the beginning",
               [](const Answer& a) { return noise_scale_in(a, a.scenario.growth.dynamics.start); })
          .key("noise_scale_last", "sequences", "the same at the end of the scenario's course",
               [](const Answer& a) { return noise_scale_in(a, own_in(a).course.end.loss); })
          .key("source", "text", "training.source: of the loss and the noise scale",
               [](const Answer& a) { return a.scenario.growth.source; })
          .list(
              "outside_curves", "values outside training.fitted",
              [](const Answer& a) { return outside_curves(a.scenario, a.growth); }, outside_keys())
          .include(time_basis_keys(), &Answer::basis);
  return description;
}

// "652,328 sequences in 138 steps"
std::string steps_text(const Milestone& at) {
  return counted(std::llround(at.samples), "sequence") + " in " + counted(at.steps, "step");
}

// "; 1.93 times as fast as batch 2,048 throughout (1.3 h), with 12.1 % more sequences"
std::string against(const RuleAnswer& own, const RuleAnswer& first) {
  if (&own == &first || !own.target_s) return "";
  if (!first.target_s)
    return "; " + first.name + (first.course.whole ? " does not reach it" : " takes more than " + most_steps_text());
  const double samples = own.course.target->samples / first.course.target->samples - 1;
  const std::string ratio = fmt::format("{:.3g}", *first.target_s / *own.target_s),
                    share = readable_share(std::abs(samples));
  return fmt::format("; {}as fast as {} ({}), with {} sequences", ratio == "1" ? "" : ratio + " times ", first.name,
                     readable_seconds(*first.target_s),
                     share == readable_share(0) ? "as many" : share + (samples < 0 ? " fewer" : " more"));
}

// The range of the time over the possible noise scales; empty where the table has none.
std::string noise_range_text(const Scenario& scenario, const RuleAnswer& own) {
  if (!own.always_reached)
    return "With another noise scale that may be, it is not reached within " + limit_text(scenario) + ".\n";
  if (!own.target_range || is_one_time(*own.target_range)) return "";
  return "Over the noise scales that may be: " + range_text(*own.target_range) + ".\n";
}

std::string headline_of(const Scenario& scenario, const GrowthAnswer& answer) {
  const RuleAnswer &own = answer.own(), &first = answer.first();
  std::string text;
  if (scenario.growth.target_loss > 0) {
    const std::string loss = loss_text(scenario.growth.target_loss);
    text = own.target_s
               ? fmt::format("Loss {} after {}{}, {}{}.\n", loss, readable_seconds(*own.target_s),
                             interval_words(own.target_interval), steps_text(*own.course.target), against(own, first)) +
                     noise_range_text(scenario, own)
               : fmt::format("Loss {} is not reached: it is {} after {}{}.\n", loss, loss_text(own.course.end.loss),
                             steps_text(own.course.end),
                             own.target_range
                                 ? "; with another noise scale in the range, after " + range_text(*own.target_range)
                                 : "");
  }
  if (scenario.tokens <= 0) return text;
  text += fmt::format("{}, {}, take {} and end at loss {}", tokens_text(scenario.tokens), steps_text(own.course.end),
                      readable_seconds(own.end_s) + interval_words(own.end_interval), loss_text(own.course.end.loss));
  if (&own != &first && first.course.whole)
    text +=
        fmt::format("; {}: {}, loss {}", first.name, readable_seconds(first.end_s), loss_text(first.course.end.loss));
  return text + ".\n";
}

// States whether any batches do not fit. The tables below mark them one by one.
std::string memory_text(const GrowthAnswer& answer) {
  const auto fits = [](const RungStep& rung) { return rung.fits; };
  const auto fitting = std::count_if(answer.rungs.begin(), answer.rungs.end(), fits);
  if (fitting == static_cast<std::ptrdiff_t>(answer.rungs.size())) return "";
  if (fitting == 0) return "None of these batches fits in memory (`slipway memory`).\n";
  return fmt::format("Batches do not fit in memory from {} on (`slipway memory`).\n",
                     batch_text(std::find_if_not(answer.rungs.begin(), answer.rungs.end(), fits)->batch));
}

std::string rules_text(const Scenario& scenario, const GrowthAnswer& answer) {
  return aligned_table(rule_rows(scenario, answer), "  ") + "  * this scenario's\n";
}

std::string error_text(double share) {
  constexpr double least = 1e-4;
  return share < least ? "less than 0.01 %" : fmt::format("at most {:.2g} %", 100 * share);
}

std::string rungs_text(const GrowthAnswer& answer) {
  std::string text = aligned_table(rung_rows(answer), "  ");
  if (answer.rungs_in_all > answer.rungs.size())
    text += fmt::format(
        "  Simulated {} of {} batches that the schedule can run; step times between two are on their "
        "line{}\n",
        answer.rungs.size(), answer.rungs_in_all,
        answer.rungs.size() > 2 ? " (error of a left-out batch: " + error_text(answer.line_error) + ")" : "");
  if (!answer.other_rungs.empty()) {
    const std::string other = "a step of " + batch_text(answer.other_rungs.front().batch) + " takes " +
                              readable_seconds(answer.other_rungs.front().step_s);
    text += measures_norms(answer.own_rule)
                ? "  these steps measure the norms of the norm test; by the other rules, which are timed "
                  "without, " +
                      other + "\n"
                : "  these steps measure no norms; by the norm test, which is timed with them, " + other + "\n";
  }
  return text;
}

std::string noise_text(const Scenario& scenario, const GrowthAnswer& answer) {
  const Course& course = answer.own().course;
  const double s = answer.sequence;
  const auto noise = [&](double loss) { return noise_scale_at(scenario.growth.dynamics, loss) / s; };
  const double begin = noise(scenario.growth.dynamics.start), end = noise(course.end.loss);
  std::string text = fmt::format(
      "\nGradient noise scale: {} sequences at loss {}, {} at {}. At the end a step of {} sequences gets "
      "{} "
      "as far as a noiseless one, a step of {} {}.\n",
      count_text(begin), loss_text(scenario.growth.dynamics.start), count_text(end), loss_text(course.end.loss),
      batch_text(answer.rungs.front().batch),
      readable_share(progress_of_step(static_cast<double>(answer.rungs.front().batch), end)),
      batch_text(answer.rungs.back().batch),
      readable_share(progress_of_step(static_cast<double>(answer.rungs.back().batch), end)));
  if (answer.own().batches.rule != BatchRule::norm_test) return text;
  return text + fmt::format(
                    "The norm test accepts batches from {} sequences on at the beginning, from {} on at the "
                    "end; the largest batch is {}.\n",
                    count_text(batch_content_with(begin, answer.own().batches.eta)),
                    count_text(batch_content_with(end, answer.own().batches.eta)),
                    batch_text(answer.rungs.back().batch));
}

std::string outside_text(const Scenario& scenario, const GrowthAnswer& answer) {
  std::string text;
  for (const OutsideCurves& each : outside_curves(scenario, answer))
    text += (text.empty() ? "" : ", ") + each.what + " (fitted: " + each.fitted + ")";
  return text.empty() ? "" : "Outside the runs that loss and noise scale were fitted to: " + text + ".\n";
}

// Lists the noise scales of the courses. Scales between them were not run and may have times outside the range.
std::string brackets_text(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  const bool least = growth.noise_least > 0, most = growth.noise_most > 0;
  std::string scales = readable_count(growth.dynamics.noise_tokens);
  if (least) scales = readable_count(growth.noise_least) + (most ? ", " : " and ") + scales;
  if (most) scales += " and " + readable_count(growth.noise_most);
  return fmt::format(
      "In brackets: with noise scales of {} tokens, for which batch {} throughout needs as many tokens to "
      "loss {}.\n",
      scales, batch_text(scenario.step.global_batch), loss_text(growth.target_loss));
}

std::string sources_text(const Scenario& scenario, const GrowthAnswer& answer) {
  const GrowthChoice& growth = scenario.growth;
  std::string text =
      "\nLoss and noise scale: " + (growth.source.empty() ? "of unknown origin (training.source)" : growth.source) +
      fmt::format("; noise scale {}{}; for the learning rate and schedule used there.\n",
                  power_text(growth.dynamics.noise_exponent),
                  growth.dynamics.noise_exponent == kaplan_noise_exponent ? " (Kaplan et al. 2020)" : "") +
      outside_text(scenario, answer);
  const bool brackets = std::any_of(answer.rules.begin(), answer.rules.end(), [&](const RuleAnswer& rule) {
    return time_to_target(scenario, rule).ends_with(')');
  });
  if (brackets) text += brackets_text(scenario);
  return text + without_empty_line(basis_text(without_memory(basis_of(scenario))));
}

}  // namespace

void check_growth_is_asked(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  check_rule_is_whole(scenario);
  if (!growth.missing_dynamics.empty())
    refuse_missing(scenario, joined(growth.missing_dynamics),
                   "no number of these holds for every model and data; measure them: `slipway growth --fit "
                   "CURVES.csv` fits them to losses of "
                   "runs with several batch sizes, such as scenarios/studies/lau-2024/curves.csv, and prints the lines "
                   "for the scenario");
  if (scenario.tokens <= 0 && growth.target_loss <= 0)
    refuse_missing(scenario, "run.tokens, training.target_loss",
                   "growth needs an end, one of the two, for example --set 'run.tokens=10 G'");
}

GrowthAnswer growth_of(const Scenario& scenario, int count,
                       const std::function<void(double, const std::string&)>& progress) {
  GrowthAnswer answer;
  answer.sequence = static_cast<double>(scenario.step.model->sequence);
  answer.own_rule = *scenario.growth.rule;
  const std::vector<std::int64_t> rungs = rungs_of(scenario);
  answer.rungs_in_all = rungs.size();
  const std::vector<std::int64_t> simulated = some_rungs(rungs, stage_batches(scenario), count);
  const std::vector<BatchSchedule> schedules = schedules_of(scenario, rungs);
  const std::vector<LossDynamics> may_be = dynamics_that_may_be(scenario, answer.sequence);
  const std::optional<BatchRule> other = rule_that_steps_otherwise(schedules);
  // A step and a course each count as one piece of work.
  double done = 0;
  const double pieces =
      static_cast<double>(simulated.size() * (other ? 2 : 1) + schedules.size() * (1 + may_be.size()));
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
  const CourseBy course_by = [&](const BatchSchedule& batches, const LossDynamics& dynamics) {
    const CourseEnd end{scenario.tokens / answer.sequence, scenario.growth.target_loss};
    Course course =
        course_of(batches, dynamics, answer.sequence, end, [&](double share) { report(share, name_of_rule(batches)); });
    ++done;
    return course;
  };
  for (const BatchSchedule& batches : schedules) {
    answer.rules.push_back(answer_of(scenario, batches, answer, may_be, course_by));
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
  // A course passes its target by a step, also a measured target.
  constexpr double rounding = 1e-3;
  if (growth.fitted_loss > 0 && lowest < growth.fitted_loss * (1 - rounding))
    outside.push_back({fmt::format("loss {:.4g}", lowest), fmt::format("down to {:.4g}", growth.fitted_loss)});
  return outside;
}

// The answer of `slipway growth` as JSON.

std::vector<AnswerKey> growth_keys() { return description().keys(); }

std::string growth_json(const Scenario& scenario, const GrowthAnswer& answer) {
  return description().text({scenario, answer, without_memory(basis_of(scenario))});
}

// The answer of `slipway growth` as a report.

std::vector<std::vector<std::string>> rule_rows(const Scenario& scenario, const GrowthAnswer& answer) {
  return rule_keys(loss_text(scenario.growth.target_loss)).table(rules_in(scenario, answer));
}

std::vector<std::vector<std::string>> rung_rows(const GrowthAnswer& answer) {
  return rung_keys().table(rungs_in(answer.rungs, answer));
}

std::string growth_text(const Scenario& scenario, const GrowthAnswer& answer) {
  return fmt::format("{}: {} on {}, batch {} to {} sequences by {}{}\n\n", scenario.name, scenario.step.model->name,
                     machines_text(scenario.cluster), batch_text(scenario.step.global_batch),
                     batch_text(scenario.growth.largest), answer.own().name, trainer_text(scenario)) +
         headline_of(scenario, answer) + memory_text(answer) + "\n" + rules_text(scenario, answer) + "\n" +
         rungs_text(answer) + noise_text(scenario, answer) + sources_text(scenario, answer);
}

}  // namespace slipway::scenarios
