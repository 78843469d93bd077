// The scenario that a search starts from: model and cluster as they are written, layout and schedule any that load.
#include <algorithm>

#include "scenarios/commands/command.h"
#include "scenarios/plan.h"
#include "scenarios/search/answer.h"

namespace slipway {
namespace {

// One rank's work on all GPUs: what any file loads with whose model and cluster are sound.
std::vector<std::string> neutral_layout(const LoadResult& as_written) {
  std::vector<std::string> list = {"layout.tensor=1",        "layout.sequence_parallel=false",
                                   "layout.pipeline=1",      "layout.chunks=",
                                   "layout.context=1",       "layout.data=",
                                   "layout.zero=0",          "schedule.name=1f1b",
                                   "schedule.micro_batch=1", "schedule.recompute=none"};
  if (!as_written.scenario.layout.split_list.empty()) list.emplace_back("layout.split=even");
  return list;
}

// Data parallel over all GPUs may not divide the batch; other layouts do, or the search says that none
// does.
bool only_the_batch_is_uneven(const std::vector<ScenarioError>& errors) {
  return errors.size() == 1 && errors.front().key == "schedule.global_batch" &&
         errors.front().message.find("is not divisible by") != std::string::npos;
}

[[noreturn]] void refuse(const std::vector<ScenarioError>& errors) {
  throw UsageError("the scenario cannot be used:\n" + describe(errors));
}

// Filled bubbles and block tables are no part of the bounds by which a search leaves layouts out.
void refuse_unsearchable(const Scenario& scenario) {
  if (scenario.run.optimizer.name == "kfac" || scenario.schedule.fill != FillChoice::none)
    throw UsageError(scenario.path +
                     ": plan does not price K-FAC or filled bubbles yet; unset run.optimizer and schedule.fill, or "
                     "compare layouts with `slipway study`");
  if (!scenario.cluster.groups.front().machine.blocks.empty())
    throw UsageError(scenario.path + ": plan does not price by a block table; unset cluster.block_times, or compare "
                                     "layouts with `slipway study`");
  if (scenario.schedule.actions)
    throw UsageError(scenario.path +
                     ": schedule.csv fixes what plan searches; remove it, or use `slipway simulate`");
}

LoadResult load_with(const std::string& path, std::vector<std::string> overrides,
                     const std::vector<std::string>& others) {
  overrides.insert(overrides.end(), others.begin(), others.end());
  return load_scenario(path, overrides);
}

// With these values of the layout and the schedule; the global batch as it was, although they may not divide it.
LoadResult load_neutral(const std::string& path, std::vector<std::string> overrides,
                        const std::vector<std::string>& neutral) {
  LoadResult loaded = load_with(path, overrides, neutral);
  if (!only_the_batch_is_uneven(loaded.errors)) return loaded;
  const std::int64_t batch = loaded.scenario.schedule.global_batch;
  overrides.insert(overrides.end(), neutral.begin(), neutral.end());
  overrides.push_back("schedule.global_batch=" + std::to_string(batch * rank_capacity(loaded.scenario.cluster)));
  loaded = load_scenario(path, overrides);
  loaded.scenario.schedule.global_batch = batch;
  return loaded;
}

// What is kept as it is written; of all else some values with which the file loads, if there are such.
LoadResult load_kept(const std::string& path, const std::vector<std::string>& overrides,
                     const std::vector<std::string>& kept, LoadResult as_written) {
  std::vector<std::string> free = neutral_layout(as_written);
  std::erase_if(free, [&](const std::string& option) {
    return std::count(kept.begin(), kept.end(), option.substr(0, option.find('='))) > 0;
  });
  const auto is_free = [&](const std::string& key) { return std::count(kept.begin(), kept.end(), key) == 0; };
  const auto degrees = [&](const std::string& key) {
    std::vector<std::string> values{""};  // as it is kept
    if (!is_free(key)) return values;
    values.clear();
    for (int degree = 1; degree <= 64; degree *= 2)
      values.push_back(key + "=" + std::to_string(degree));
    return values;
  };
  // Only where the kept data degree leaves ranks over do the others matter.
  const bool all = !is_free("layout.data");
  const auto some = [&](const std::string& key) {
    std::vector<std::string> values = degrees(key);
    if (!all) values.resize(1);
    return values;
  };
  for (const std::string& context : some("layout.context"))
    for (const std::string& tensor : some("layout.tensor"))
      for (const std::string& pipeline : degrees("layout.pipeline")) {
        std::vector<std::string> neutral = free;
        for (const std::string& option : {context, tensor, pipeline})
          if (!option.empty()) neutral.push_back(option);
        LoadResult loaded = all ? load_with(path, overrides, neutral) : load_neutral(path, overrides, neutral);
        if (loaded.errors.empty()) return loaded;
      }
  return as_written;
}

}  // namespace

Scenario scenario_to_search(const std::string& path, const std::vector<std::string>& overrides,
                            const std::vector<std::string>& kept) {
  LoadResult as_written = load_scenario(path, overrides);
  if (!as_written.errors.empty() && !kept.empty()) as_written = load_kept(path, overrides, kept, std::move(as_written));
  if (as_written.errors.empty() || !kept.empty()) {
    if (!as_written.errors.empty()) refuse(as_written.errors);
    refuse_unsearchable(as_written.scenario);
    refuse_uncalibrated(as_written.scenario);
    const bool keeps_stages = std::count(kept.begin(), kept.end(), "layout.pipeline") > 0;
    if (as_written.scenario.layout.split == SplitKind::list && !keeps_stages) {
      as_written.scenario.layout.split = SplitKind::even;
      as_written.scenario.layout.split_list.clear();
    }
    return std::move(as_written.scenario);
  }
  LoadResult loaded = load_neutral(path, overrides, neutral_layout(as_written));
  if (!loaded.errors.empty()) refuse(loaded.errors);
  refuse_unsearchable(loaded.scenario);
  refuse_uncalibrated(loaded.scenario);
  return std::move(loaded.scenario);
}

}  // namespace slipway
