#include "scenarios/search/scenario_to_search.h"

#include <algorithm>

#include "scenarios/predict/prepared_step.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {
namespace {

// Data parallel over all GPUs. Every file with a sound model and cluster loads with it.
std::vector<std::string> neutral_layout(const LoadResult& as_written) {
  std::vector<std::string> list = {"layout.tensor=1",        "layout.sequence_parallel=false",
                                   "layout.pipeline=1",      "layout.chunks=",
                                   "layout.context=1",       "layout.data=",
                                   "layout.zero=0",          "schedule.name=" + default_schedule().name,
                                   "schedule.micro_batch=1", "schedule.recompute=none"};
  if (!as_written.scenario.step.layout.split_list.empty()) list.emplace_back("layout.split=");
  return list;
}

// Data parallel over all GPUs may not divide the batch. Other layouts may, or the search reports that none does.
bool only_the_batch_is_uneven(const LoadResult& loaded) {
  const Step& step = loaded.scenario.step;
  return loaded.errors.size() == 1 && loaded.errors.front().key == "schedule.global_batch" &&
         step.global_batch % (step.micro_batch * std::max(1, step.layout.data)) != 0;
}

// The search leaves layouts out by bounds, which know neither bubble work nor block tables.
void refuse_unsearchable(const Scenario& scenario) {
  if (scenario.step.optimizer.name == "kfac" || scenario.step.fill != Fill::none)
    throw UsageError(scenario.path +
                     ": plan does not price K-FAC or bubble work yet; unset run.optimizer and schedule.fill, or "
                     "compare layouts with `slipway study`");
  if (!scenario.cluster.groups.front().machine.blocks.empty())
    throw UsageError(scenario.path +
                     ": plan does not price by a block table; unset cluster.block_times, or compare "
                     "layouts with `slipway study`");
}

LoadResult load_with(ScenarioSource source, const std::vector<std::string>& others) {
  source.overrides.insert(source.overrides.end(), others.begin(), others.end());
  return load_scenario(source);
}

// Loads with these values of layout and schedule. Keeps the global batch even if they do not divide it.
LoadResult load_neutral(const ScenarioSource& source, std::vector<std::string> neutral) {
  LoadResult loaded = load_with(source, neutral);
  if (!only_the_batch_is_uneven(loaded)) return loaded;
  const std::int64_t batch = loaded.scenario.step.global_batch;
  neutral.push_back("schedule.global_batch=" + std::to_string(batch * rank_capacity(loaded.scenario.cluster)));
  loaded = load_with(source, neutral);
  loaded.scenario.step.global_batch = batch;
  return loaded;
}

// Loads with the action lists of schedule.csv, which fix the pipeline and its micro-batches: on each degree of tensor and
// data parallelism that they leave, until the file loads.
LoadResult load_around_csv(const ScenarioSource& source, const std::vector<std::string>& kept, LoadResult as_written) {
  const auto keeps = [&](const std::string& key) { return std::count(kept.begin(), kept.end(), key) > 0; };
  const Step& step = as_written.scenario.step;
  const auto pipeline = static_cast<std::int64_t>(step.actions->size());
  const std::int64_t gpus = rank_capacity(as_written.scenario.cluster), batches = micro_batches_in(*step.actions);
  for (std::int64_t tensor = 1; pipeline * tensor <= gpus; ++tensor)
    for (std::int64_t context = 1; pipeline * tensor * context <= gpus; ++context) {
      const std::int64_t ranks = pipeline * tensor * context,
                         data = keeps("layout.data") ? step.layout.data : gpus / ranks;
      if (ranks * data != gpus || step.global_batch % (batches * data) != 0) continue;
      std::vector<std::string> options = {
          "layout.tensor=" + std::to_string(tensor),
          "layout.sequence_parallel=false",
          "layout.pipeline=" + std::to_string(pipeline),
          "layout.chunks=",
          "layout.context=" + std::to_string(context),
          "layout.data=",
          "layout.zero=0",
          "schedule.recompute=none",
          "schedule.micro_batch=" + std::to_string(step.global_batch / (batches * data))};
      std::erase_if(options, [&](const std::string& option) { return keeps(option.substr(0, option.find('='))); });
      LoadResult loaded = load_with(source, options);
      if (loaded.errors.empty()) return loaded;
    }
  return as_written;
}

// Loads the kept keys as written, and tries values for all others until the file loads.
LoadResult load_kept(const ScenarioSource& source, const std::vector<std::string>& kept, LoadResult as_written) {
  std::vector<std::string> free = neutral_layout(as_written);
  std::erase_if(free, [&](const std::string& option) {
    return std::count(kept.begin(), kept.end(), option.substr(0, option.find('='))) > 0;
  });
  const auto is_free = [&](const std::string& key) { return std::count(kept.begin(), kept.end(), key) == 0; };
  const auto degrees = [&](const std::string& key) {
    std::vector<std::string> values{""};  // the kept value
    if (!is_free(key)) return values;
    values.clear();
    for (int degree = 1; degree <= 64; degree *= 2) values.push_back(key + "=" + std::to_string(degree));
    return values;
  };
  // The other degrees matter only where the kept data degree leaves ranks over.
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
        LoadResult loaded = all ? load_with(source, neutral) : load_neutral(source, neutral);
        if (loaded.errors.empty()) return loaded;
      }
  return as_written;
}

}  // namespace

Scenario scenario_to_search(const ScenarioSource& source, const std::vector<std::string>& kept) {
  LoadResult as_written = load_scenario(source);
  const bool has_csv = as_written.scenario.step.actions != nullptr;
  if (!as_written.errors.empty() && has_csv)
    as_written = load_around_csv(source, kept, std::move(as_written));
  else if (!as_written.errors.empty() && !kept.empty())
    as_written = load_kept(source, kept, std::move(as_written));
  if (as_written.errors.empty() || has_csv || !kept.empty()) {
    if (!as_written.errors.empty()) throw ScenarioRefused(std::move(as_written.errors));
    refuse_unsearchable(as_written.scenario);
    refuse_uncalibrated(as_written.scenario);
    const bool keeps_stages = has_csv || std::count(kept.begin(), kept.end(), "layout.pipeline") > 0;
    if (as_written.scenario.step.layout.split == SplitKind::list && !keeps_stages) {
      as_written.scenario.step.layout.split = usual_split(as_written.scenario);
      as_written.scenario.step.layout.split_list.clear();
    }
    return std::move(as_written.scenario);
  }
  ScenarioSource neutral = source;
  neutral.schedule = nullptr;  // it may refuse to run without a pipeline
  LoadResult loaded = load_neutral(neutral, neutral_layout(as_written));
  if (!loaded.errors.empty()) throw ScenarioRefused(std::move(loaded.errors));
  refuse_unsearchable(loaded.scenario);
  refuse_uncalibrated(loaded.scenario);
  if (source.schedule) {
    loaded.scenario.step.own_schedule = source.schedule;
    set_schedule(loaded.scenario.step, *source.schedule);
  }
  return std::move(loaded.scenario);
}

}  // namespace slipway::scenarios
