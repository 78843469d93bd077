#include "scenarios/commands/goodput/goodput_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/trace/statistics.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/quantity.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"

namespace slipway::scenarios {
namespace {

int nodes_in_use(const Scenario& scenario) {
  std::set<int> nodes;
  for (int rank = 0; rank < rank_count(scenario.step.layout); ++rank)
    nodes.insert(place_of(scenario.cluster, rank).node);
  return static_cast<int>(nodes.size());
}

bool has_interval(const Scenario& scenario) {
  return scenario.faults.checkpoint_interval > 0 || scenario.run.checkpoint_steps > 0;
}

// `each` is called after each history.
MeanGoodput mean_of(const FaultyTraining& training, double horizon_s, int histories, std::uint64_t seed,
                    const std::function<void()>& each) {
  MeanGoodput mean;
  mean.histories = training.node_mtbf_s > 0 ? histories : 1;
  std::vector<double> shares, failures;
  for (int i = 0; i < mean.histories; ++i) {
    const Goodput one = simulate_faults(training, horizon_s, 0, seed + static_cast<std::uint64_t>(i));
    mean.share += one.share(), shares.push_back(one.share());
    mean.checkpoint += one.checkpoint_s / one.elapsed_s, mean.lost += one.lost_s / one.elapsed_s;
    mean.restart += one.restart_s / one.elapsed_s, mean.waiting += one.waiting_s / one.elapsed_s;
    mean.failures += static_cast<double>(one.failures), failures.push_back(static_cast<double>(one.failures));
    each();
  }
  const double n = mean.histories;
  for (double* sum : {&mean.share, &mean.checkpoint, &mean.lost, &mean.restart, &mean.waiting, &mean.failures})
    *sum /= n;
  mean.low = quantile(shares, 0.05), mean.high = quantile(shares, 0.95);
  mean.error = standard_error(shares), mean.failures_error = standard_error(failures);
  return mean;
}

IntervalRow row_of(FaultyTraining training, std::int64_t steps, const GoodputAnswer& answer, int histories,
                   std::uint64_t seed, const std::function<void()>& each) {
  training.steps_per_checkpoint = steps;
  return {steps, training.interval_s(), mean_of(training, answer.horizon_s, histories, seed, each),
          training.node_mtbf_s > 0 ? std::optional(daly_share(training)) : std::nullopt};
}

// Intervals from a quarter to four times `steps`.
std::set<std::int64_t> intervals_around(std::int64_t steps) {
  std::set<std::int64_t> all;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0})
    all.insert(std::max<std::int64_t>(1, std::llround(factor * static_cast<double>(steps))));
  return all;
}

// Durations of the column of intervals, in the unit of the longest one.
std::string in_column(const GoodputAnswer& answer, double seconds) {
  const double longest_s = answer.around.back().interval_s;
  if (longest_s >= 2 * day_s) return fmt::format("{:.2f} days", seconds / day_s);
  if (longest_s >= 2 * hour_s) return fmt::format("{:.2f} h", seconds / hour_s);
  return fmt::format("{:.0f} s", seconds);
}

// Two digits for any size of error: "0.013 %".
std::string readable_error(double share) { return fmt::format("{:.2g} %", 100 * share); }

// "2.88 ± 0.05 failures", "10,370 ± 7 failures"
std::string failures_text(const MeanGoodput& mean) {
  const auto number = [&](double value) {
    return mean.failures < 100 ? fmt::format("{:.{}f}", value, mean.failures_error ? 2 : 0) : readable_count(value);
  };
  return number(mean.failures) + (mean.failures_error ? " ± " + number(*mean.failures_error) : "") +
         (mean.failures == 1 ? " failure" : " failures");
}

// An interval as the table shows it: among the others.
struct IntervalOf {
  const GoodputAnswer& answer;
  const IntervalRow& row;
};

std::vector<IntervalOf> intervals_of(const GoodputAnswer& answer) {
  std::vector<IntervalOf> all;
  for (const IntervalRow& row : answer.around) all.push_back({answer, row});
  return all;
}

Description<IntervalOf> interval_row_keys() {
  const auto share = [](double MeanGoodput::*part) {
    return [part](const IntervalOf& at) { return readable_share(at.row.simulated.*part); };
  };
  return Description<IntervalOf>()
      .key("intervals_s", "s", "list: shorter and longer intervals, with this one",
           [](const IntervalOf& at) { return at.row.interval_s; })
      .wide_column("checkpoint every",
                   [](const IntervalOf& at) {
                     return in_column(at.answer, at.row.interval_s) + (at.row.steps == at.answer.own.steps ? " *" : "");
                   })
      .only_column("steps", [](const IntervalOf& at) { return readable_count(static_cast<double>(at.row.steps)); })
      .key("goodputs", "0..1", "list: the simulated goodput of each",
           [](const IntervalOf& at) { return at.row.simulated.share; })
      .column("goodput", readable_share)
      .only_column("closed form",
                   [](const IntervalOf& at) { return at.row.daly_share ? readable_share(*at.row.daly_share) : "-"; })
      .only_column("checkpoints", share(&MeanGoodput::checkpoint))
      .only_column("work lost", share(&MeanGoodput::lost))
      .only_column("restarts", share(&MeanGoodput::restart))
      .only_column("waiting", share(&MeanGoodput::waiting));
}

std::string nodes_text(const FaultyTraining& t) {
  std::string text = counted(t.nodes, "node");
  if (t.node_mtbf_s > 0)
    text += fmt::format(", each failing every {} on average: one of them every {}", readable_seconds(t.node_mtbf_s),
                        readable_seconds(t.mtbf_s()));
  if (!t.failures.empty())
    text += fmt::format("{}{}", t.node_mtbf_s > 0 ? "; besides " : ", ",
                        counted(static_cast<std::int64_t>(t.failures.size()), "planned failure"));
  return text + fmt::format("; {}, repair {}, restart {}, checkpoint {}", counted(t.spare_nodes, "spare node"),
                            readable_seconds(t.repair_s), readable_seconds(t.restart_s),
                            readable_seconds(t.checkpoint_s));
}

std::string best_text(const GoodputAnswer& answer) {
  if (!answer.daly_interval_s) return "";
  FaultyTraining best = answer.training;
  best.steps_per_checkpoint = steps_of(*answer.daly_interval_s, best.step_s);
  const std::string goodput = readable_share(daly_share(best));
  if (best.checkpoint_s == 0)
    return fmt::format(
        "\nA checkpoint costs nothing here (run.checkpoint_cost), so one after every step is best: goodput {} "
        "in closed form.\n",
        goodput);
  return fmt::format(
      "\nThe best interval between checkpoints is {} ({}; Daly 2006; Young 1974: {}): goodput {} in closed form.\n",
      in_column(answer, *answer.daly_interval_s), counted(best.steps_per_checkpoint, "step"),
      in_column(answer, *answer.young_interval_s), goodput);
}

struct Answer {
  const Scenario& scenario;
  const GoodputAnswer& goodput;
  Basis basis;
};
const GoodputAnswer& goodput_in(const Answer& answer) { return answer.goodput; }
const MeanGoodput& mean_in(const Answer& answer) { return answer.goodput.own.simulated; }

const Description<Answer>& description() {
  const auto at_random = [](const Answer& a) { return a.goodput.daly_interval_s.has_value(); };
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.scenario.name; })
          .key("days", "days", "of each history", [](const Answer& a) { return a.goodput.horizon_s / day_s; })
          .key("step_time_s", "s", "of the simulated step, without faults",
               [](const Answer& a) { return a.goodput.training.step_s; })
          .include(interval_keys(), of(goodput_in, &GoodputAnswer::step_interval))
          .key("nodes", "count", "nodes that hold ranks", [](const Answer& a) { return a.goodput.training.nodes; })
          .key("histories", "count", "that were simulated; 1 where all failures are planned",
               of(mean_in, &MeanGoodput::histories))
          .key("goodput", "0..1", "of the time: steps that were kept, mean over histories",
               of(mean_in, &MeanGoodput::share))
          .key("goodput_error", "0..1", "standard error of that mean; absent with one history",
               of(mean_in, &MeanGoodput::error))
          .key("goodput_low", "0..1", "90 of 100 histories lie between it and goodput_high",
               of(mean_in, &MeanGoodput::low))
          .key("goodput_high", "0..1", "the other end", of(mean_in, &MeanGoodput::high))
          .key("checkpoint_share", "0..1", "of the time: complete checkpoints; the shares and goodput add up to 1",
               of(mean_in, &MeanGoodput::checkpoint))
          .key("lost_share", "0..1", "steps and writing that a failure undid", of(mean_in, &MeanGoodput::lost))
          .key("restart_share", "0..1", "restarts", of(mean_in, &MeanGoodput::restart))
          .key("waiting_share", "0..1", "no node was left, training waited for a repair",
               of(mean_in, &MeanGoodput::waiting))
          .key("failures", "count", "nodes that failed in a history, mean", of(mean_in, &MeanGoodput::failures))
          .key("failures_error", "count", "standard error of that mean; absent with one history",
               of(mean_in, &MeanGoodput::failures_error))
          .key("tokens_per_day", "1/day", "of kept steps",
               [](const Answer& a) { return a.goodput.tokens_per_s * day_s * mean_in(a).share; })
          .key("tokens_per_day_low", "1/day",
               "90 of 100 trainings are expected between it and tokens_per_day_high; present as step_time_low_s",
               [](const Answer& a) {
                 const auto tokens = tokens_per_day_interval(a.goodput);
                 return tokens ? std::optional(tokens->low) : std::nullopt;
               })
          .key("tokens_per_day_high", "1/day", "the other end",
               [](const Answer& a) {
                 const auto tokens = tokens_per_day_interval(a.goodput);
                 return tokens ? std::optional(tokens->high) : std::nullopt;
               })
          .key("checkpoint_interval_s", "s", "between two checkpoints, in whole steps",
               [](const Answer& a) { return a.goodput.own.interval_s; })
          .key("checkpoint_steps", "count", "the same in steps", [](const Answer& a) { return a.goodput.own.steps; })
          .key("closed_form_goodput", "0..1",
               "expectation of Daly 2006, with enough spares; this and the next two are present with "
               "cluster.mtbf_per_node",
               [](const Answer& a) { return a.goodput.own.daly_share; })
          .when(at_random)
          .key("best_interval_s", "s", "of Daly 2006; 0 where checkpoints cost nothing: save after every step",
               of(goodput_in, &GoodputAnswer::daly_interval_s))
          .key("young_interval_s", "s", "of Young 1974", of(goodput_in, &GoodputAnswer::young_interval_s))
          .lists(of(goodput_in, intervals_of), interval_row_keys())
          .include(time_basis_keys(), &Answer::basis);
  return description;
}

}  // namespace

FaultyTraining training_of(const Scenario& scenario, double step_s) {
  const FaultModel& faults = scenario.faults;
  const auto missing = [&](const char* key, const char* what) {
    throw UsageError(scenario.path + ": " + key + " is missing; goodput needs " + what);
  };
  FaultyTraining training = faults.training;
  const bool at_random = training.node_mtbf_s > 0;
  if (!at_random && training.failures.empty())
    missing("cluster.mtbf_per_node", "it, for example --set 'cluster.mtbf_per_node=50000 h', or cluster.failures");
  if (!faults.checkpoint_cost)
    missing("run.checkpoint_cost",
            "the time that a checkpoint stops training, for example --set 'run.checkpoint_cost=30 s'");
  if (!has_interval(scenario) && !at_random)
    missing("run.checkpoint_interval",
            "it where failures are planned and not drawn, for example --set 'run.checkpoint_interval=1 h'");
  training.step_s = step_s;
  training.checkpoint_s = *faults.checkpoint_cost;
  training.nodes = nodes_in_use(scenario);
  const double interval = faults.checkpoint_interval > 0 ? faults.checkpoint_interval
                                                         : daly_interval_s(training.mtbf_s(), training.checkpoint_s);
  training.steps_per_checkpoint = faults.checkpoint_interval <= 0 && scenario.run.checkpoint_steps > 0
                                      ? scenario.run.checkpoint_steps
                                      : steps_of(interval, step_s);
  return training;
}

void check_histories(const FaultyTraining& training, double days, int histories) {
  if (training.node_mtbf_s <= 0) return;
  constexpr double most_failures = 1e9, intervals = 5;
  const double failures = days * day_s / training.mtbf_s() * histories * intervals;
  if (failures <= most_failures) return;
  throw UsageError(fmt::format(
      "cluster.mtbf_per_node = {} on {} is a failure every {}: {:.2g} failures in {:.4g} days of {} histories at {} "
      "intervals between checkpoints; allowed: up to 1e9; raise cluster.mtbf_per_node, or lower --days or --histories",
      readable_seconds(training.node_mtbf_s), counted(training.nodes, "node"), readable_seconds(training.mtbf_s()),
      failures, days, histories, intervals));
}

GoodputAnswer goodput_of(const PreparedStep& prepared, double step_s, double days, int histories,
                         const std::function<void(int, int)>& progress) {
  const Scenario& scenario = prepared.scenario;
  GoodputAnswer answer;
  answer.training = training_of(scenario, step_s);
  answer.horizon_s = days * day_s;
  answer.tokens_per_s = tokens_per_step(scenario) / step_s;
  answer.step_interval = interval_of(prepared, step_s);
  answer.interval_is_given = has_interval(scenario);
  if (answer.training.node_mtbf_s > 0) {
    answer.daly_interval_s = daly_interval_s(answer.training.mtbf_s(), answer.training.checkpoint_s);
    answer.young_interval_s = young_interval_s(answer.training.mtbf_s(), answer.training.checkpoint_s);
  }
  const std::int64_t own = answer.training.steps_per_checkpoint;
  const std::set<std::int64_t> intervals = intervals_around(own);
  const int all = static_cast<int>(intervals.size()) * (answer.training.node_mtbf_s > 0 ? histories : 1);
  int done = 0;
  const auto each = [&] { progress(++done, all); };
  for (const std::int64_t steps : intervals) {
    answer.around.push_back(row_of(answer.training, steps, answer, histories, scenario.run.seed, each));
    if (steps == own) answer.own = answer.around.back();
  }
  return answer;
}

std::optional<TokensPerDay> tokens_per_day_interval(const GoodputAnswer& answer) {
  const MeanGoodput& own = answer.own.simulated;
  if (!answer.step_interval || own.low <= 0) return std::nullopt;
  const double tokens = answer.tokens_per_s * day_s * own.share, step = answer.step_interval->half_width();
  return TokensPerDay{tokens * std::exp(-std::hypot(step, std::log(own.share / own.low))),
                      tokens * std::exp(std::hypot(step, std::log(own.high / own.share)))};
}

std::string tokens_note(const TokensPerDay& tokens) {
  return fmt::format("90 % interval: {} to {}", readable_count(tokens.low), readable_count(tokens.high));
}

std::string histories_text(const MeanGoodput& mean) {
  return fmt::format("90 % of histories: {} to {}", readable_share(mean.low), readable_share(mean.high));
}

std::vector<std::vector<std::string>> interval_rows(const GoodputAnswer& answer) {
  return interval_row_keys().table(intervals_of(answer));
}

std::string goodput_text(const Scenario& scenario, const GoodputAnswer& answer) {
  const FaultyTraining& t = answer.training;
  const MeanGoodput& own = answer.own.simulated;
  const auto tokens = tokens_per_day_interval(answer);
  std::string text =
      fmt::format("{}: {} of training, a step takes {}{}, on {}\n\n", scenario.name, readable_seconds(answer.horizon_s),
                  readable_seconds(t.step_s),
                  answer.step_interval ? " (" + interval_note(answer.step_interval) + ")" : "", nodes_text(t));
  text += fmt::format(
      "Goodput {}{} with a checkpoint every {} ({}{}): {} tokens a day{} instead of {}; {}", readable_share(own.share),
      own.error ? " (" + histories_text(own) + ")" : "", in_column(answer, answer.own.interval_s),
      counted(answer.own.steps, "step"), answer.interval_is_given ? "" : ", the best by Daly 2006",
      readable_count(answer.tokens_per_s * day_s * own.share), tokens ? " (" + tokens_note(*tokens) + ")" : "",
      readable_count(answer.tokens_per_s * day_s), failures_text(own));
  text += own.error ? fmt::format(" (means over {} histories; standard error of the goodput {})\n\n", own.histories,
                                  readable_error(*own.error))
                    : "\n\n";
  text += aligned_table(interval_rows(answer), "  ") +
          "  * this scenario's; closed form: Daly 2006, with enough spares\n" + best_text(answer);
  if (scenario.tokens > 0 && own.share > 0)
    text += fmt::format("\nTraining on {} takes {:.4g} days instead of {:.4g}.\n", whole_training_text(scenario),
                        scenario.tokens / answer.tokens_per_s / own.share / day_s,
                        scenario.tokens / answer.tokens_per_s / day_s);
  return text + empty_line_first(basis_text(without_memory(basis_of(scenario))));
}

std::vector<AnswerKeys> goodput_answers() { return {{"goodput --json", description().keys()}}; }

std::string goodput_json(const Scenario& scenario, const GoodputAnswer& answer) {
  return description().text({scenario, answer, without_memory(basis_of(scenario))});
}

}  // namespace slipway::scenarios
