// The layouts of a search, in an order that lets estimates share their parts.
#include <algorithm>
#include <numeric>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/check_scenario.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/balanced_stages.h"
#include "scenarios/search/space.h"
#include "schedules/rules/rules.h"

namespace slipway::scenarios {
namespace {

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> list;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) list.push_back(static_cast<int>(d));
  return list;
}

// All steps of a space: shapes of the layout, then micro-batches and recomputation, then chunks, schedules and ZeRO.
// Each rule (schedules/rules/rules.h) is asked at the level at which the last of its keys is decided, so whole subtrees
// are left out.
class Walk {
 public:
  Walk(const Scenario& scenario, const SearchSpace& space, const std::function<void(const Step&)>& visit)
      : scenario_(scenario), space_(space), visit_(visit), choice_(scenario.step) {}

  void shapes() {
    const int gpus = rank_capacity(scenario_.cluster);
    for (const int tensor : space_.tensor)
      for (const bool sp : space_.sequence_parallel)
        for (const int context : space_.context)
          for (const int pipeline : space_.pipeline) {
            const std::int64_t others = std::int64_t{tensor} * context * pipeline;
            if (others > gpus || gpus % others != 0) continue;
            const int data = static_cast<int>(gpus / others);
            if (space_.data != 0 && space_.data != data) continue;
            choice_.layout = scenario_.step.layout;
            choice_.layout.tensor = tensor, choice_.layout.sequence_parallel = sp;
            choice_.layout.context = context, choice_.layout.pipeline = pipeline, choice_.layout.data = data;
            if (scenario_.step.layout.split == SplitKind::balanced)
              choice_.layout.split_list.clear();  // another layout's
            experts();
          }
  }

 private:
  void experts() {
    for (const int expert : space_.expert)
      for (const int cut : space_.expert_tensor) {
        if (cut == choice_.layout.tensor && space_.expert_tensor.size() > 1) continue;  // as 0
        choice_.layout.expert = expert, choice_.layout.expert_tensor = cut;
        if (legal(choice_, of_shapes_)) batches();
      }
  }

  void batches() {
    for (const std::int64_t micro_batch : space_.micro_batch) {
      choice_.micro_batch = micro_batch;
      const std::int64_t round = micro_batch * choice_.layout.data;
      if (space_.micro_batches != 0 && round * space_.micro_batches != choice_.global_batch) continue;
      for (const RecomputeChoice& recompute : space_.recompute) {
        choice_.recompute = recompute.kind;
        choice_.levers.recomputed = recompute.modules;
        if (legal(choice_, of_batches_)) chunks();
      }
    }
  }

  void chunks() {
    const int pipeline = choice_.layout.pipeline;
    const int most = choice_.actions ? space_.chunks.front()
                     : pipeline == 1 ? 1
                                     : static_cast<int>(layer_count(choice_.model) + 2) / pipeline;
    for (int chunks = 1; chunks <= most; ++chunks) {
      if (!space_.chunks.empty() && space_.chunks.front() != chunks) continue;
      choice_.layout.chunks = chunks;
      for (const Schedule* schedule : space_.schedules) {
        // Without a pipeline all schedules are the same, and without replicas all levels of ZeRO.
        if (pipeline == 1 && space_.schedules.size() > 1 && !schedule->is_default) continue;
        set_schedule(choice_, *schedule);
        if (!legal(choice_, of_schedules_)) continue;
        for (const int zero : space_.zero) {
          if (zero > 0 && choice_.layout.data * choice_.layout.context == 1 && space_.zero.size() > 1) continue;
          choice_.layout.zero = zero;
          if (legal(choice_, of_zero_) && runs_every_batch(scenario_.growth, choice_)) visit_(choice_);
        }
      }
    }
  }

  static constexpr std::string_view micro_batch_ = "schedule.micro_batch", recompute_ = "schedule.recompute",
                                    chunks_ = "layout.chunks", schedule_ = "schedule.name", zero_ = "layout.zero";

  const Scenario& scenario_;
  const SearchSpace& space_;
  const std::function<void(const Step&)>& visit_;
  const std::vector<const Rule*> of_shapes_ = rules_without({micro_batch_, recompute_, chunks_, schedule_, zero_}),
                                 of_batches_ = rules_of({micro_batch_, recompute_}, {chunks_, schedule_, zero_}),
                                 of_schedules_ = rules_of({chunks_, schedule_}, {zero_}), of_zero_ = rules_of({zero_});
  Step choice_;
};

// Members of a context group: with fewer tokens each, messages around the ring have next to nothing to carry, and a ring
// of a thousand members takes minutes to simulate.
std::int64_t most_context(std::int64_t sequence) {
  constexpr std::int64_t least_tokens = 256, of_short_sequences = 8;
  return std::max(of_short_sequences, sequence / least_tokens);
}

// Numbers of ranks among which the experts of every layer can be divided.
std::vector<int> expert_degrees(const Model& model, int gpus) {
  std::int64_t experts = 0;
  for (const BlockRun& run : model.runs) experts = std::gcd(experts, run.block.experts);
  return experts > 0 ? divisors(experts, gpus) : std::vector{1};
}

// Sets of modules, from the one that keeps most. Layers that recompute modules which they do not have are those of
// another set in disguise.
std::vector<SetOf<RecomputedModule>> searched_modules(const Model& model) {
  using enum RecomputedModule;
  if (!has_experts(model)) return {};
  const auto has = [&](RecomputedModule module) {
    return std::any_of(model.runs.begin(), model.runs.end(), [&](const BlockRun& run) {
      return run.block.kind == BlockKind::transformer && has_module(run.block, module);
    });
  };
  std::vector<SetOf<RecomputedModule>> sets;
  for (const std::vector<RecomputedModule>& wanted : {std::vector{moe_act},
                                                      {layernorm, moe_act},
                                                      {mla_up_proj},
                                                      {mla_up_proj, mlp},
                                                      {mla_up_proj, mlp, layernorm, moe_act}}) {
    SetOf<RecomputedModule> set;
    for (const RecomputedModule module : wanted) set.add(module);
    if (std::all_of(wanted.begin(), wanted.end(), has)) sets.push_back(set);
  }
  return sets;
}

}  // namespace

const std::vector<std::string>& searched_keys() {
  static const std::vector<std::string> keys = {"layout.tensor",
                                                "layout.sequence_parallel",
                                                "layout.pipeline",
                                                "layout.chunks",
                                                "layout.context",
                                                "layout.data",
                                                "layout.expert",
                                                "layout.expert_tensor",
                                                "layout.zero",
                                                "schedule.name",
                                                "schedule.micro_batch",
                                                "schedule.recompute",
                                                "schedule.recompute_modules",
                                                "layout.split",
                                                "layout.placement"};
  return keys;
}

void check_kept(const std::vector<std::string>& kept, const std::string& option) {
  const std::vector<std::string>& keys = searched_keys();
  std::string all;
  for (const std::string& key : keys) all += (all.empty() ? "" : ", ") + key;
  for (const std::string& key : kept) {
    const std::string name = key.substr(0, key.find('='));
    const bool is_known = std::find(keys.begin(), keys.end(), name) != keys.end();
    const std::string given = option + " " + key;
    if (is_known && name != key)
      throw UsageError(given + " has a value, but keeps that of the scenario; set " + key + " and give " + option +
                       " " + name);
    if (!is_known)
      throw UsageError(given + " is no key that plan searches" + suggestion(key, keys, option + " ") +
                       "; allowed: " + all);
  }
}

SearchSpace search_space(const Scenario& scenario, const std::vector<std::string>& kept) {
  const auto keeps = [&](const char* key) { return std::find(kept.begin(), kept.end(), key) != kept.end(); };
  const Layout& layout = scenario.step.layout;
  const int gpus = rank_capacity(scenario.cluster);
  SearchSpace space;
  space.tensor = keeps("layout.tensor") ? std::vector{layout.tensor} : divisors(gpus, gpus);
  space.sequence_parallel = {false, true};
  if (keeps("layout.sequence_parallel")) space.sequence_parallel = {layout.sequence_parallel};
  space.context = keeps("layout.context") ? std::vector{layout.context}
                                          : divisors(gpus, most_context(scenario.step.model->sequence));
  space.pipeline = keeps("layout.pipeline") ? std::vector{layout.pipeline} : divisors(gpus, gpus);
  if (keeps("layout.chunks")) space.chunks = {layout.chunks};
  if (keeps("layout.data")) space.data = layout.data;
  const bool experts = has_experts(scenario.step.model);
  space.expert = keeps("layout.expert") ? std::vector{layout.expert} : expert_degrees(scenario.step.model, gpus);
  space.expert_tensor = {layout.expert_tensor};
  if (experts && !keeps("layout.expert_tensor")) space.expert_tensor = {0, 1};
  space.splits = !keeps("layout.split") && layout.split != SplitKind::list;
  space.orders = !keeps("layout.placement");
  space.zero = keeps("layout.zero") ? std::vector{layout.zero} : std::vector{0, 1, 2, 3};
  const Block& block = scenario.step.model->runs[scenario.step.model->runs.size() / 2].block;
  for (const Schedule& schedule : all_schedules()) {
    if (keeps("schedule.name") ? schedule.name != scenario.step.schedule : !schedule.searched) continue;
    if (!schedule.needs_causal || block.causal) space.schedules.push_back(&schedule);
  }
  if (scenario.step.own_schedule) space.schedules = {scenario.step.own_schedule.get()};
  if (const auto& lists = scenario.step.actions) {
    space.pipeline = {static_cast<int>(lists->size())}, space.chunks = {layout.chunks};
    space.schedules = {&schedule_of(scenario.step)};
    space.micro_batches = micro_batches_in(*lists);
  }
  const std::int64_t batch = scenario.step.global_batch;
  space.micro_batch = {scenario.step.micro_batch};
  if (!keeps("schedule.micro_batch")) {
    space.micro_batch.clear();
    for (const int d : divisors(batch, most_micro_batches)) space.micro_batch.push_back(d);
  }
  // Selective recomputation makes attention scores again, which fused kernels never keep.
  space.recompute = {{Recompute::none}, {Recompute::full}};
  if (writes_scores(scenario.step.kernels)) space.recompute.insert(space.recompute.begin() + 1, {Recompute::selective});
  for (const SetOf<RecomputedModule>& modules : searched_modules(scenario.step.model))
    space.recompute.insert(space.recompute.end() - 1, {Recompute::none, modules});
  const SetOf<RecomputedModule>& own = scenario.step.levers.recomputed;
  if (keeps("schedule.recompute") || keeps("schedule.recompute_modules") || !own.empty())
    space.recompute = {{scenario.step.recompute, own}};
  return space;
}

void each_layout(const Scenario& scenario, const SearchSpace& space, const std::function<void(const Step&)>& visit) {
  Walk(scenario, space, visit).shapes();
}

Scenario with_layout(const Scenario& scenario, const Step& choice) {
  Scenario changed = scenario;
  changed.step = choice;
  changed.cluster.gpu_of_rank.clear();
  if (!choice.layout.placement.empty())
    changed.cluster.gpu_of_rank = gpus_in_order(changed.cluster, choice.layout.placement);
  balance_stages(changed);
  return changed;
}

std::vector<std::string> overrides_of(const Step& choice) {
  Scenario chosen;
  chosen.step = choice;
  std::vector<std::string> options;
  for (const std::string& key : searched_keys()) {
    if (key == "layout.split" && choice.layout.split != SplitKind::list) continue;
    if (key == "layout.placement" && choice.layout.placement.empty()) continue;
    if (key == "schedule.name" && choice.own_schedule) continue;  // it has no name that a scenario could be set to
    if (key == "schedule.recompute_modules" && choice.levers.recomputed.empty()) continue;
    if (key.starts_with("layout.expert") && !has_experts(choice.model)) continue;
    options.push_back(key + "=" + key_of(scenario_keys(), key)->bound.write(chosen));
  }
  return options;
}

}  // namespace slipway::scenarios
