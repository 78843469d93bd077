// `slipway confirm`: predicts cases that a calibration has not seen, executes them, and says how far off the
// predictions were. Beside each stands what one learns without a model: the baseline run's step scaled by
// the FLOPs that a rank has to do. Guarded by tests/command_confirm_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "scenarios/commands/command.h"
#include "scenarios/commands/options.h"
#include "scenarios/execution.h"
#include "scenarios/output_file.h"
#include "scenarios/plan.h"
#include "scenarios/rank_program.h"
#include "scenarios/readable.h"

namespace slipway {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> overrides;
};

struct Outcome {
  std::string name;
  double predicted_s = 0, measured_s = 0, scaled_s = 0;
  double error() const { return std::abs(predicted_s / measured_s - 1); }
  double scaled_error() const { return std::abs(scaled_s / measured_s - 1); }
};

// "tensor 2: layout.tensor=2 layout.pipeline=1"
Case case_from(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError("case \"" + text + "\": expected \"NAME: key=value key=value\"");
  }
  Case found{text.substr(0, colon), {}};
  std::istringstream words(text.substr(colon + 1));
  for (std::string word; words >> word;) found.overrides.push_back(word);
  return found;
}

double flops_per_rank(const Scenario& scenario) {
  return mfu_flops_per_token(scenario.model) * static_cast<double>(scenario.model.sequence) *
         static_cast<double>(scenario.schedule.global_batch) / rank_count(scenario.layout);
}

using CommandFunction = int (*)(const std::vector<std::string>&, std::ostream&, std::ostream&);

// The summary that another command prints with --json.
nlohmann::json summary_of(CommandFunction command, const std::string& path, const Case& one,
                          std::vector<std::string> arguments, std::ostream& err) {
  arguments.insert(arguments.begin(), {path, "--json"});
  for (const std::string& override : one.overrides) arguments.insert(arguments.end(), {"--set", override});
  std::ostringstream out;
  if (command(arguments, out, err) != status_done) {
    throw std::runtime_error("the run of \"" + one.name + "\" failed; its cause is above");
  }
  return nlohmann::json::parse(out.str());
}

// The middle one of all in the order of `error`; of an even number the larger of the middle two, so that it
// is one case's own.
template <typename Error>
Outcome middle_of(std::vector<Outcome> outcomes, Error error) {
  const auto middle = outcomes.begin() + static_cast<std::ptrdiff_t>(outcomes.size() / 2);
  std::nth_element(outcomes.begin(), middle, outcomes.end(),
                   [&](const Outcome& a, const Outcome& b) { return error(a) < error(b); });
  return *middle;
}

std::string readable(double seconds) { return fmt::format("{:.3f} s", seconds); }

void print(const std::vector<Outcome>& outcomes, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{
      {"unseen case", "predicted", "measured", "off by", "scaled by FLOPs", "off by"}};
  for (const Outcome& one : outcomes) {
    rows.push_back({one.name, readable(one.predicted_s), readable(one.measured_s), readable_share(one.error()),
                    readable(one.scaled_s), readable_share(one.scaled_error())});
  }
  const Outcome middle = middle_of(outcomes, [](const Outcome& one) { return one.error(); });
  const Outcome scaled = middle_of(outcomes, [](const Outcome& one) { return one.scaled_error(); });
  out << aligned_table(rows)
      << fmt::format("\nmedian error over {}{}: {}, of \"{}\" (scaling the baseline's step by FLOPs: {})\n",
                     counted(static_cast<std::int64_t>(outcomes.size()), "unseen case"),
                     outcomes.size() % 2 == 0 ? ", the larger of the middle two" : "",
                     readable_share(middle.error()), middle.name, readable_share(scaled.scaled_error()));
  out << fmt::format("predicted {}, measured {}, off by {:.1f} %\n", readable(middle.predicted_s),
                     readable(middle.measured_s), 100 * middle.error());
}

CommandOptions confirm_options() {
  CommandOptions options("confirm SCENARIO --baseline CASE --case CASE ... [options]",
                         "Predicts cases that the machine profile was not fitted to, executes them, and "
                         "compares. A CASE is 'NAME: key=value key=value'.",
                         "slipway confirm demo.yaml --set cluster.machine=machine.yaml --baseline 'pipeline 2:' "
                         "--case 'tensor 2: layout.pipeline=1 layout.tensor=2'");
  options.positional("scenario", 1, 1)
      .values("set", "KEY=VALUE", "override a key in every case; repeatable")
      .value("baseline", "CASE", "the run whose step is scaled by FLOPs for comparison; it is executed as well")
      .values("case", "CASE", "a case to predict and execute; repeatable")
      .value("out", "DIR", "folder for the runs (default: confirm.run)");
  return options;
}

// Everything that execute would refuse, of every case, before the first one runs.
std::vector<Scenario> checked_cases(const std::string& path, const std::vector<Case>& cases) {
  std::vector<Scenario> scenarios;
  for (const Case& one : cases) {
    try {
      scenarios.push_back(checked_scenario(path, one.overrides));
      refuse_what_cannot_run(scenarios.back());
      refuse_what_does_not_fit(plan_of(scenarios.back()));
    } catch (const UsageError& error) {
      throw UsageError("case \"" + one.name + "\": " + error.what());
    }
    if (scenarios.size() > 1 && scenarios.back().summary == scenarios.front().summary) {
      throw UsageError("case \"" + one.name +
                       "\" has the settings of the baseline, so it is not unseen; give it other settings");
    }
  }
  return scenarios;
}

}  // namespace

int confirm_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = confirm_options();
  if (!options.parse(args, out)) return status_done;
  const std::string& path = options.arguments().front();
  if (options.all("case").empty() || !options.has("baseline")) {
    throw UsageError("give one --baseline and at least one --case; see `slipway confirm --help`");
  }
  std::vector<Case> cases{case_from(*options.text("baseline"))};
  for (const std::string& text : options.all("case")) cases.push_back(case_from(text));
  for (Case& one : cases)
    one.overrides.insert(one.overrides.begin(), options.all("set").begin(), options.all("set").end());
  const std::vector<Scenario> scenarios = checked_cases(path, cases);
  const std::string runs = options.text("out").value_or("confirm.run");
  check_folder_writable(runs);
  rank_program();  // throws where there is none
  std::vector<Outcome> outcomes;
  double baseline_s = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    err << fmt::format("[{}/{}] {}: predicting, then executing {} on {}\n", i + 1, cases.size(), cases[i].name,
                       counted(scenarios[i].run.steps, "step"), counted(rank_count(scenarios[i].layout), "rank"));
    const std::string folder = fmt::format("{}/{}", runs, i);
    const auto predicted = summary_of(simulate_command, path, cases[i], {}, err);
    const auto measured = summary_of(execute_command, path, cases[i], {"--out", folder}, err);
    if (i == 0) {
      baseline_s = measured.at("step_time_s");
      continue;
    }
    outcomes.push_back({cases[i].name, predicted.at("step_time_s"), measured.at("step_time_s"),
                        baseline_s * flops_per_rank(scenarios[i]) / flops_per_rank(scenarios[0])});
  }
  print(outcomes, out);
  return status_done;
}

}  // namespace slipway
