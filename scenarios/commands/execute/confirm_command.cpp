// `slipway confirm`: predicts cases that a calibration has not seen, executes them, and prints the prediction errors.
// The baseline (the case that the profile was fitted to) and the cases run in turn. Rounds go back and forth with the
// baseline in the middle. So a machine that becomes slower or faster does so for all, and no case is far from the
// baseline that it is compared with. Guarded by tests/scenarios/confirm_command_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/execute/confirm_page.h"
#include "scenarios/commands/execute/confirmation.h"
#include "scenarios/commands/execute/execution.h"
#include "scenarios/commands/execute/learning_rate_end.h"
#include "scenarios/commands/execute/rank_program.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> overrides;
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

// "width 512" → "width-512"; characters that do not belong in a folder's name also become dashes.
std::string folder_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

double flops_per_rank(const Scenario& scenario) {
  return mfu_flops_per_token(scenario.step.model) * static_cast<double>(scenario.step.model->sequence) *
         static_cast<double>(scenario.step.global_batch) / rank_count(scenario.step.layout);
}

// Indices of one round: the baseline (0) between the two halves of the cases. Every other round is reversed.
std::vector<std::size_t> order_of_round(int round, std::size_t cases) {
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i < cases; ++i) order.push_back(i);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2), 0);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

// The summary that another command prints with --json.
nlohmann::json summary_of(std::string_view command, const std::string& path, const Case& one,
                          std::vector<std::string> arguments, std::ostream& err) {
  arguments.insert(arguments.begin(), {path, "--json"});
  for (const std::string& override : one.overrides) arguments.insert(arguments.end(), {"--set", override});
  std::ostringstream out;
  if (command_named(command)->run(arguments, out, err) != status_done) {
    throw std::runtime_error("the run of \"" + one.name + "\" failed; its cause is above");
  }
  return nlohmann::json::parse(out.str());
}

CommandOptions confirm_options() {
  CommandOptions options("confirm SCENARIO --baseline CASE --case CASE ... [options]",
                         "Predicts cases that the machine profile was not fitted to, executes them, and "
                         "compares. A CASE is 'NAME: key=value key=value'. The prediction is the baseline's "
                         "measured step, times the simulated step of the case over the simulated step of the "
                         "baseline.",
                         "slipway confirm demo.yaml --set cluster.machine=machine.yaml --baseline 'pipeline 2:' "
                         "--case 'tensor 2: layout.pipeline=1 layout.tensor=2'");
  options.positional("scenario", 1, 1)
      .values("set", "KEY=VALUE", "override a key in every case; repeatable")
      .value("baseline", "CASE", "the run that the profile was fitted to; predictions scale its measured step")
      .values("case", "CASE", "a case to predict and execute; repeatable")
      .value("rounds", "N", "rounds in which baseline and cases are executed in turn; medians count (default: 1)")
      .json_keys(confirm_answers)
      .value("report", "FILE", report_meaning)
      .flag("json", "print the comparison as JSON (`slipway list json-keys`)")
      .value("out", "DIR", "folder for the runs, which replace those of an earlier confirm (default: confirm.run)");
  return options;
}

// Loads all cases and throws for everything that execute would refuse, before the first one runs.
std::vector<Scenario> checked_cases(const std::string& path, const std::vector<Case>& cases) {
  std::vector<Scenario> scenarios;
  for (const Case& one : cases) {
    try {
      scenarios.push_back(checked_scenario(path, one.overrides));
      refuse_what_cannot_run(scenarios.back());
      if (scenarios.back().growth.given)
        throw UsageError(
            "training.growth: a step has no one time where the batch grows; remove it, or use `slipway execute "
            "--confirm`");
      refuse_warmup_beyond_end(scenarios.back(), {});
      const PreparedStep prepared = prepared_step(scenarios.back());
      refuse_what_does_not_fit(prepared);
    } catch (const UsageError& error) {
      throw UsageError("case \"" + one.name + "\": " + error.what());
    }
    const auto same_folder = [&](const Case& other) { return folder_name(other.name) == folder_name(one.name); };
    if (std::count_if(cases.begin(), cases.end(), same_folder) > 1) {
      throw UsageError("case \"" + one.name +
                       "\": another case's runs go to the same folder; give every case a name of its own");
    }
    if (scenarios.size() > 1 && scenarios.back().summary == scenarios.front().summary) {
      throw UsageError("case \"" + one.name +
                       "\" has the settings of the baseline, so it is not unseen; give it other settings");
    }
  }
  return scenarios;
}

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
  check_report(options, {path});
  const std::string runs = options.text("out").value_or("confirm.run");
  check_folder_writable(runs);
  rank_program();  // throws where there is none
  std::vector<RunCase> done;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto predicted = summary_of("simulate", path, cases[i], {}, err);
    RunCase one{cases[i].name, predicted.at("step_time_s"), {}, flops_per_rank(scenarios[i])};
    if (predicted.contains("step_time_low_s"))
      one.half_width = std::log(predicted["step_time_high_s"].get<double>() / one.simulated_s);
    done.push_back(std::move(one));
  }
  const int rounds = options.integer("rounds", 1, 1);
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t i : order_of_round(round, cases.size())) {
      err << fmt::format("[round {}/{}] {}: executing {} on {}\n", round + 1, rounds, cases[i].name,
                         counted(scenarios[i].run.steps, "step"),
                         counted(rank_count(scenarios[i].step.layout), "rank"));
      const std::string folder = fmt::format("{}/{}/round-{}", runs, folder_name(cases[i].name), round + 1);
      const auto measured = summary_of("execute", path, cases[i], {"--out", folder, "--overwrite"}, err);
      done[i].measured_s.push_back(measured.at("step_time_s"));
    }
  }
  const Confirmation confirmation = confirmation_of(done.front(), {done.begin() + 1, done.end()});
  if (const auto page = options.text("report")) write_report(*page, report_of(done.front().name, confirmation));
  out << (options.has("json") ? confirmation_json(done.front().name, confirmation)
                              : confirmation_text(done.front().name, confirmation));
  return status_done;
}

const RegisterCommand registered({.place = 13,
                                  .name = "confirm",
                                  .summary = "predict unseen cases, execute them, print the errors",
                                  .run = confirm_command,
                                  .answers = confirm_answers});

}  // namespace

}  // namespace slipway::scenarios
