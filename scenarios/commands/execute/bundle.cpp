#include "scenarios/commands/execute/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/growth/rule.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

namespace {

// A rule without training.growth.sizes can give a ladder that is finer than intended.
void refuse_long_ladder(const Scenario& scenario, std::size_t batches) {
  if (batches <= most_step_programs) return;
  throw UsageError(
      fmt::format("{}: training.growth leads through {} batches from {} to {}, each with a step program of its own; "
                  "allowed: up to {}; set training.growth.sizes, for example --set training.growth.sizes=16",
                  scenario.path, batches, scenario.step.global_batch, scenario.growth.largest, most_step_programs));
}

}  // namespace

BatchSchedule ladder_of(const Scenario& scenario) {
  if (!scenario.growth.given) return {};
  return batch_schedule(scenario, *scenario.growth.rule, rungs_that_run(scenario));
}

void check_ladder(const Scenario& scenario) {
  if (!scenario.growth.given) return;
  check_rule_is_whole(scenario);
  refuse_long_ladder(scenario, rungs_that_run(scenario).size());
}

std::vector<PreparedStep> larger_steps(const PreparedStep& prepared,
                                       const std::function<void(double, std::int64_t)>& progress) {
  const BatchSchedule ladder = ladder_of(prepared.scenario);
  const std::vector<std::int64_t>& rungs = ladder.rungs;
  std::vector<PreparedStep> larger;
  for (std::size_t i = 1; i < rungs.size(); ++i) {
    if (progress) progress(static_cast<double>(i - 1) / static_cast<double>(rungs.size() - 1), rungs[i]);
    Scenario own = prepared.scenario;
    own.step.global_batch = rungs[i];
    larger.push_back(prepared_step(std::move(own)));
  }
  std::vector<const TaskGraph*> programs{&prepared.graph};
  for (const PreparedStep& each : larger) programs.push_back(&each.graph);
  if (const std::string defect = ladder_defect(ladder, programs); !defect.empty())
    throw UsageError(prepared.scenario.path + ": the batch cannot grow during training: " + defect +
                     "; write layout.split as a list of layers, or remove training.growth");
  return larger;
}

std::vector<PreparedStep> larger_steps(const PreparedStep& prepared, std::ostream& err) {
  ProgressLine progress(err, "lowering " + prepared.scenario.name);
  return larger_steps(prepared, [&](double share, std::int64_t batch) {
    progress.report(share, "batch " + readable_count(static_cast<double>(batch)));
  });
}

Bundle bundle_of(const PreparedStep& prepared, const std::vector<PreparedStep>& larger) {
  Bundle bundle{prepared.scenario.name, prepared.graph, prepared.scenario.run, ladder_of(prepared.scenario), {}};
  for (const PreparedStep& each : larger) bundle.larger.push_back(each.graph);
  return bundle;
}

std::string ladder_text(const BatchSchedule& batches) {
  const std::vector<std::int64_t>& rungs = batches.rungs;
  constexpr std::size_t most_named = 8;
  std::vector<std::int64_t> named(rungs.begin(),
                                  rungs.begin() + static_cast<std::ptrdiff_t>(std::min(most_named, rungs.size())));
  std::string text = fmt::format("batches {}", fmt::join(named, ", "));
  if (named.size() < rungs.size()) text += fmt::format(" ... {}", rungs.back());
  text += ", " + rule_text(batches);
  return text + fmt::format(" ({})", counted(static_cast<std::int64_t>(rungs.size()), "step program"));
}

}  // namespace slipway::scenarios
