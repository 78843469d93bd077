#include "scenarios/search/memory_changes.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "scenarios/search/workers.h"

namespace slipway::scenarios {
namespace {

// "pipeline 4 instead of 2"; with both 0 a change without degrees: "full recompute".
struct Difference {
  std::string what;
  std::int64_t now = 0, before = 0;
};
struct MemoryChange {
  std::vector<Difference> steps;       // for several changes of one setting: the first `before`, the last `now`
  std::vector<std::string> overrides;  // "layout.pipeline=4", as for --set
};

std::string set(const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); }

void add_work_changes(const Scenario& scenario, std::vector<MemoryChange>& changes) {
  const Step& step = scenario.step;
  const bool unfused = writes_scores(step.kernels);
  if (step.recompute == Recompute::none && unfused)
    changes.push_back({{{"selective recompute"}}, {"schedule.recompute=selective"}});
  if (step.recompute != Recompute::full) changes.push_back({{{"full recompute"}}, {"schedule.recompute=full"}});
  if (step.micro_batch % 2 == 0)
    changes.push_back({{{"micro-batch", step.micro_batch / 2, step.micro_batch}},
                       {set("schedule.micro_batch", step.micro_batch / 2)}});
}

void add_layout_changes(const Layout& layout, std::vector<MemoryChange>& changes) {
  if (layout.zero < 3 && layout.data * layout.context > 1)
    changes.push_back({{{"ZeRO", layout.zero + 1, layout.zero}}, {set("layout.zero", layout.zero + 1)}});
  if (layout.tensor > 1 && !layout.sequence_parallel)
    changes.push_back({{{"sequence parallel"}}, {"layout.sequence_parallel=true"}});
  if (layout.data % 2 != 0) return;
  const Difference data{"data", layout.data / 2, layout.data};
  const std::string half = set("layout.data", layout.data / 2);
  const auto doubled = [&](const char* what, const char* key, int degree) {
    changes.push_back({{{what, 2 * degree, degree}, data}, {set(key, 2 * degree), half}});
  };
  doubled("tensor", "layout.tensor", layout.tensor);
  doubled("pipeline", "layout.pipeline", layout.pipeline);
  doubled("context", "layout.context", layout.context);
}

// Every change to this scenario, possible or not.
std::vector<MemoryChange> changes_of(const Scenario& scenario) {
  std::vector<MemoryChange> changes;
  add_work_changes(scenario, changes);
  add_layout_changes(scenario.step.layout, changes);
  return changes;
}

// Two changes of the same degree are one.
std::vector<Difference> merged(std::vector<Difference> steps, const std::vector<Difference>& later) {
  for (const Difference& step : later) {
    if (step.what == "full recompute")
      std::erase_if(steps, [](const Difference& s) { return s.what == "selective recompute"; });
    const auto same =
        std::find_if(steps.begin(), steps.end(), [&](const Difference& s) { return s.what == step.what; });
    if (same == steps.end())
      steps.push_back(step);
    else
      same->now = step.now;
  }
  return steps;
}

struct Combination {
  std::vector<Difference> steps;
  TriedChange tried;
  Scenario scenario;
};

// "ZeRO 2 instead of 0; full recompute"
std::string words_of(const std::vector<Difference>& steps) {
  std::string words;
  for (const Difference& step : steps) {
    words += (words.empty() ? "" : "; ") + step.what;
    if (step.now != step.before) words += " " + std::to_string(step.now) + " instead of " + std::to_string(step.before);
  }
  return words;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The last value of each overridden key. The key of an override is the text before its first '='.
std::set<std::string> meaning_of(const std::vector<std::string>& overrides) {
  std::set<std::string> last, keys;
  for (auto each = overrides.rbegin(); each != overrides.rend(); ++each) {
    if (keys.insert(each->substr(0, each->find('='))).second) last.insert(*each);
  }
  return last;
}

std::vector<std::string> without_overwritten(const std::vector<std::string>& overrides) {
  const std::set<std::string> last = meaning_of(overrides);
  return {last.begin(), last.end()};
}

Combination tried(const Scenario& origin, const std::vector<std::string>& overrides, MemoryChange change) {
  VariedScenario changed = varied(origin, overrides, {words_of(change.steps), std::move(change.overrides)});
  Combination combination{
      std::move(change.steps), {std::move(changed.variation), std::move(changed.why_not), {}, 0}, {}};
  if (!changed.scenario) return combination;
  combination.scenario = std::move(*changed.scenario);
  try {
    const auto no_timeline = [](const MemoryNeed&) { return std::nullopt; };
    combination.tried.memory = evaluate(combination.scenario, TimelineBy::replay, no_timeline).memory;
  } catch (const std::invalid_argument& error) {
    combination.tried.refused = error.what();
  }
  return combination;
}

// Each combination with one more change. Each set of overrides is tried once.
std::vector<Combination> one_more(const Scenario& origin, const std::vector<std::string>& overrides,
                                  const std::vector<Combination>& from) {
  std::vector<Combination> result;
  std::set<std::set<std::string>> seen;
  for (const Combination& base : from) {
    if (!base.tried.refused.empty()) continue;
    for (MemoryChange& change : changes_of(base.scenario)) {
      const auto all = without_overwritten(joined(base.tried.variation.overrides, change.overrides));
      if (!seen.insert({all.begin(), all.end()}).second) continue;
      result.push_back(tried(origin, overrides, {merged(base.steps, change.steps), all}));
    }
  }
  return result;
}

bool fits(const TriedChange& change) { return change.refused.empty() && change.memory.fits(); }

// Prices the candidates that fit by the estimate. Only these get a timeline, which may disagree.
bool some_fits_on_its_timeline(std::vector<Combination>& level, const std::function<void(double)>& progress) {
  std::vector<int> jobs;
  for (std::size_t i = 0; i < level.size(); ++i)
    if (fits(level[i].tried)) jobs.push_back(static_cast<int>(i));
  Workers workers(std::min(core_count(), static_cast<int>(jobs.size())), [&](int job, double limit_s) {
    const auto always = [&](const MemoryNeed&) { return std::optional(limit_s); };
    return nlohmann::json(evaluate(level[static_cast<std::size_t>(job)].scenario, TimelineBy::replay, always));
  });
  const auto note = [&](const Workers::Outcome& outcome) {
    TriedChange& change = level[static_cast<std::size_t>(outcome.job)].tried;
    if (outcome.failure) {
      change.refused = *outcome.failure;
      return;
    }
    const auto found = outcome.answer.get<Evaluation>();
    change.memory = found.memory, change.step_time_s = found.step.step_time_s;
  };
  Dealing how;
  how.go_on = [&](int done) {
    progress(done / static_cast<double>(std::max<std::size_t>(1, jobs.size())));
    return true;
  };
  deal(workers, jobs, note, how);
  return std::ranges::any_of(level, [](const Combination& combination) { return fits(combination.tried); });
}

bool ranks_before(const TriedChange& a, const TriedChange& b) {
  if (fits(a) != fits(b)) return fits(a);
  if (fits(a)) return a.step_time_s < b.step_time_s;
  if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
  return a.memory.share() < b.memory.share();
}

}  // namespace

ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together) {
  ChangeSearch search;
  Combination origin;
  origin.scenario = scenario;
  std::vector<Combination> level{std::move(origin)};
  while (search.changes_together < most_together) {
    level = one_more(scenario, overrides, level);
    ++search.changes_together;
    if (level.empty() || some_fits_on_its_timeline(level, progress)) break;
  }
  for (Combination& combination : level) search.tried.push_back(std::move(combination.tried));
  std::stable_sort(search.tried.begin(), search.tried.end(), ranks_before);
  return search;
}

}  // namespace slipway::scenarios
