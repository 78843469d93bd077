// The answer of `slipway growth` for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/norm_test.h"
#include "scenarios/basis.h"
#include "scenarios/growth/comparison.h"
#include "scenarios/plan.h"
#include "scenarios/readable.h"
#include "scenarios/training_words.h"

namespace slipway {
namespace {

std::string count_text(double count) { return readable_count(std::round(count)); }
std::string batch_text(std::int64_t batch) { return readable_count(static_cast<double>(batch)); }
std::string loss_text(double loss) { return fmt::format("{:.4g}", loss); }

// "50.0 M steps": as far as a course is run.
std::string most_steps_text() {
  return readable_count(static_cast<double>(CourseEnd().most_steps)) + " steps";
}

bool is_one_time(const TimeRange& range) {
  constexpr double same = 0.005;
  return range.most_s < (1 + same) * range.least_s;
}

// "36.2 min to 41.0 min"
std::string range_text(const TimeRange& range) {
  return readable_seconds(range.least_s) +
         (is_one_time(range) ? "" : " to " + readable_seconds(range.most_s));
}

// "39.1 min", "39.1 min (36.2 min to 41.0 min)", "39.1 min (or not within 1.90 G tokens)",
// "not reached (or after 36.2 min)"
std::string time_to_target(const Scenario& scenario, const RuleAnswer& rule) {
  if (!rule.target_s)
    return (rule.course.whole ? "not reached" : "more than " + most_steps_text()) +
           (rule.target_range ? " (or after " + range_text(*rule.target_range) + ")" : "");
  const std::string time = readable_seconds(*rule.target_s);
  if (!rule.always_reached)
    return time + " (or not within " +
           (scenario.tokens > 0 ? tokens_text(scenario.tokens) : most_steps_text()) + ")";
  if (!rule.target_range || is_one_time(*rule.target_range)) return time;
  return time + " (" + range_text(*rule.target_range) + ")";
}

// "652,328 sequences in 138 steps"
std::string steps_text(const Milestone& at) {
  return counted(std::llround(at.samples), "sequence") + " in " + counted(at.steps, "step");
}

// "; 1.93 times as fast as batch 2,048 throughout (1.3 h), with 12.1 % more sequences"
std::string against(const RuleAnswer& own, const RuleAnswer& first) {
  if (&own == &first || !own.target_s) return "";
  if (!first.target_s)
    return "; " + first.name +
           (first.course.whole ? " does not reach it" : " takes more than " + most_steps_text());
  const double samples = own.course.target->samples / first.course.target->samples - 1;
  const std::string ratio = fmt::format("{:.3g}", *first.target_s / *own.target_s),
                    share = readable_share(std::abs(samples));
  return fmt::format("; {}as fast as {} ({}), with {} sequences", ratio == "1" ? "" : ratio + " times ",
                     first.name, readable_seconds(*first.target_s),
                     share == readable_share(0) ? "as many" : share + (samples < 0 ? " fewer" : " more"));
}

std::string headline_of(const Scenario& scenario, const GrowthAnswer& answer) {
  const RuleAnswer &own = answer.own(), &first = answer.first();
  std::string text;
  if (scenario.growth.target_loss > 0) {
    const std::string loss = loss_text(scenario.growth.target_loss);
    text = own.target_s ? fmt::format("Loss {} after {}, {}{}.\n", loss, time_to_target(scenario, own),
                                      steps_text(*own.course.target), against(own, first))
                        : fmt::format("Loss {} is not reached: it is {} after {}{}.\n", loss,
                                      loss_text(own.course.end.loss), steps_text(own.course.end),
                                      own.target_range ? "; with another noise scale that may be, after " +
                                                             range_text(*own.target_range)
                                                       : "");
  }
  if (scenario.tokens <= 0) return text;
  text +=
      fmt::format("{}, {}, take {} and end at loss {}", tokens_text(scenario.tokens),
                  steps_text(own.course.end), readable_seconds(own.end_s), loss_text(own.course.end.loss));
  if (&own != &first && first.course.whole)
    text += fmt::format("; {}: {}, loss {}", first.name, readable_seconds(first.end_s),
                        loss_text(first.course.end.loss));
  return text + ".\n";
}

// Batches that do not fit are below among the others; that there are any belongs to the answer.
std::string memory_text(const GrowthAnswer& answer) {
  const auto fits = [](const RungStep& rung) { return rung.fits; };
  const auto fitting = std::count_if(answer.rungs.begin(), answer.rungs.end(), fits);
  if (fitting == static_cast<std::ptrdiff_t>(answer.rungs.size())) return "";
  if (fitting == 0) return "None of these batches fits in memory (`slipway memory`).\n";
  return fmt::format("Batches do not fit in memory from {} on (`slipway memory`).\n",
                     batch_text(std::find_if_not(answer.rungs.begin(), answer.rungs.end(), fits)->batch));
}

std::string rules_text(const Scenario& scenario, const GrowthAnswer& answer) {
  const bool target = scenario.growth.target_loss > 0, whole = scenario.tokens > 0;
  std::vector<std::vector<std::string>> rows{{"rule"}};
  std::vector<std::string>& head = rows.front();
  if (target)
    head.insert(head.end(),
                {"sequences", "steps", "time to loss " + loss_text(scenario.growth.target_loss)});
  if (whole) head.insert(head.end(), {"steps in all", "time in all", "loss then"});
  for (const RuleAnswer& rule : answer.rules) {
    std::vector<std::string> row{rule.name + (&rule == &answer.own() ? " *" : "")};
    if (target) {
      const auto& at = rule.course.target;
      row.insert(row.end(), {at ? count_text(at->samples) : "-", at ? batch_text(at->steps) : "-",
                             time_to_target(scenario, rule)});
    }
    if (whole && !rule.course.whole)
      row.insert(row.end(), {"more than " + most_steps_text(), "-", "-"});
    else if (whole)
      row.insert(row.end(), {batch_text(rule.course.end.steps), readable_seconds(rule.end_s),
                             loss_text(rule.course.end.loss)});
    rows.push_back(row);
  }
  return aligned_table(rows, "  ") + "  * this scenario's\n";
}

// Steps of a course with batches from one simulated rung to the next.
struct Stay {
  std::int64_t steps = 0;
  double seconds = 0, from_samples = 0, from_loss = 0;
};
Stay stay_at(const GrowthAnswer& answer, std::size_t rung) {
  const bool last = rung + 1 == answer.rungs.size();
  Stay stay;
  for (const BatchSpan& span : answer.own().course.spans) {
    if (span.batch < answer.rungs[rung].batch || (!last && span.batch >= answer.rungs[rung + 1].batch))
      continue;
    if (stay.steps == 0) stay.from_samples = span.from_samples, stay.from_loss = span.from_loss;
    stay.steps += span.steps;
    stay.seconds += static_cast<double>(span.steps) * step_time_between(answer.rungs, span.batch);
  }
  return stay;
}

std::string error_text(double share) {
  constexpr double least = 1e-4;
  return share < least ? "less than 0.01 %" : fmt::format("at most {:.2g} %", 100 * share);
}

std::string rungs_text(const GrowthAnswer& answer) {
  std::vector<std::vector<std::string>> rows{{"batch from", "micro-batches", "step", "tokens/s", "MFU",
                                              "fits", "from sequence", "at loss", "steps", "time there"}};
  for (std::size_t i = 0; i < answer.rungs.size(); ++i) {
    const RungStep& rung = answer.rungs[i];
    const Stay stay = stay_at(answer, i);
    const auto of_stay = [&](const std::string& text) { return stay.steps > 0 ? text : "-"; };
    rows.push_back({batch_text(rung.batch), batch_text(rung.micro_batches), readable_seconds(rung.step_s),
                    readable_count(rung.tokens_per_s), rung.mfu > 0 ? readable_share(rung.mfu) : "-",
                    rung.fits ? "yes" : "no", of_stay(count_text(stay.from_samples)),
                    of_stay(loss_text(stay.from_loss)), of_stay(batch_text(stay.steps)),
                    of_stay(readable_seconds(stay.seconds))});
  }
  std::string text = aligned_table(rows, "  ");
  if (answer.rungs_in_all > answer.rungs.size())
    text += fmt::format(
        "  {} of {} batches that the schedule can run are simulated; step times between two lie on their "
        "line{}\n",
        answer.rungs.size(), answer.rungs_in_all,
        answer.rungs.size() > 2 ? " (one of these left out: off by " + error_text(answer.line_error) + ")"
                                : "");
  if (!answer.other_rungs.empty()) {
    const std::string other = "a step of " + batch_text(answer.other_rungs.front().batch) + " takes " +
                              readable_seconds(answer.other_rungs.front().step_s);
    text += measures_norms(answer.own_rule)
                ? "  these steps measure the norms that the norm test asks for; by the other rules, which are timed without, " + other + "\n"
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
      count_text(begin), loss_text(scenario.growth.dynamics.start), count_text(end),
      loss_text(course.end.loss), batch_text(answer.rungs.front().batch),
      readable_share(progress_of_step(static_cast<double>(answer.rungs.front().batch), end)),
      batch_text(answer.rungs.back().batch),
      readable_share(progress_of_step(static_cast<double>(answer.rungs.back().batch), end)));
  if (answer.own().plan.rule != BatchRule::norm_test) return text;
  return text + fmt::format(
                    "The norm test is content from {} sequences on at the beginning, from {} on at the "
                    "end; the largest batch is {}.\n",
                    count_text(batch_content_with(begin, answer.own().plan.eta)),
                    count_text(batch_content_with(end, answer.own().plan.eta)),
                    batch_text(answer.rungs.back().batch));
}

std::string outside_text(const Scenario& scenario, const GrowthAnswer& answer) {
  std::string text;
  for (const OutsideCurves& each : outside_curves(scenario, answer))
    text += (text.empty() ? "" : ", ") + each.what + " (fitted: " + each.fitted + ")";
  return text.empty() ? "" : "Outside the runs that loss and noise scale were fitted to: " + text + ".\n";
}

// Courses between these noise scales were not run: the ends of a range need not be those of the time.
std::string brackets_text(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  const bool least = growth.noise_least > 0, most = growth.noise_most > 0;
  std::string scales = readable_count(growth.dynamics.noise_tokens);
  if (least) scales = readable_count(growth.noise_least) + (most ? ", " : " and ") + scales;
  if (most) scales += " and " + readable_count(growth.noise_most);
  return fmt::format(
      "In brackets: with noise scales of {} tokens, by which batch {} throughout takes as many tokens to "
      "loss {}.\n",
      scales, batch_text(scenario.schedule.global_batch), loss_text(growth.target_loss));
}

std::string sources_text(const Scenario& scenario, const GrowthAnswer& answer) {
  const GrowthChoice& growth = scenario.growth;
  std::string text =
      "\nLoss and noise scale: " +
      (growth.source.empty() ? "not said where they come from (training.source)" : growth.source) +
      fmt::format("; noise scale {}{}; learning rate and its schedule as there.\n",
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

std::string growth_text(const Scenario& scenario, const GrowthAnswer& answer) {
  return fmt::format("{}: {} on {}, batch {} to {} sequences by {}{}\n\n", scenario.name,
                     scenario.model.name, machines_text(scenario.cluster),
                     batch_text(scenario.schedule.global_batch), batch_text(scenario.growth.largest),
                     answer.own().name, pace_text(scenario)) +
         headline_of(scenario, answer) + memory_text(answer) + "\n" + rules_text(scenario, answer) + "\n" +
         rungs_text(answer) + noise_text(scenario, answer) + sources_text(scenario, answer);
}

}  // namespace slipway
