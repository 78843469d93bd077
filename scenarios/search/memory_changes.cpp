#include "scenarios/search/memory_changes.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"

namespace slipway::scenarios {
namespace {

std::string set(const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); }

void add_work_changes(const Scenario& scenario, std::vector<Change>& changes) {
  const Step& step = scenario.step;
  const bool unfused = writes_scores(step.kernels);
  if (step.recompute == Recompute::none && unfused)
    changes.push_back({{{"selective recompute"}}, {"schedule.recompute=selective"}});
  if (step.recompute != Recompute::full) changes.push_back({{{"full recompute"}}, {"schedule.recompute=full"}});
  if (step.micro_batch % 2 == 0)
    changes.push_back({{{"micro-batch", step.micro_batch / 2, step.micro_batch}},
                       {set("schedule.micro_batch", step.micro_batch / 2)}});
}

void add_layout_changes(const Layout& layout, std::vector<Change>& changes) {
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

struct Candidate {
  TriedChange tried;
  Scenario scenario;
};

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

Candidate tried(const Scenario& scenario, const std::vector<std::string>& overrides, Change change) {
  Candidate candidate{{std::move(change), "", {}, 0}, {}};
  LoadResult loaded = load_scenario(scenario.path, joined(overrides, candidate.tried.change.overrides));
  if (!loaded.errors.empty()) {
    candidate.tried.refused = loaded.errors.front().message;
    return candidate;
  }
  candidate.scenario = std::move(loaded.scenario);
  try {
    candidate.tried.verdict = verdict_of(candidate.scenario);
  } catch (const std::invalid_argument& error) {
    candidate.tried.refused = error.what();
  }
  return candidate;
}

// Each candidate with one more change. Each set of overrides is tried once.
std::vector<Candidate> one_more(const Scenario& origin, const std::vector<std::string>& overrides,
                                const std::vector<Candidate>& from) {
  std::vector<Candidate> result;
  std::set<std::set<std::string>> seen;
  for (const Candidate& base : from) {
    if (!base.tried.refused.empty()) continue;
    for (Change& change : changes_of(base.scenario)) {
      const auto all = without_overwritten(joined(base.tried.change.overrides, change.overrides));
      if (!seen.insert({all.begin(), all.end()}).second) continue;
      result.push_back(tried(origin, overrides, {merged(base.tried.change.steps, change.steps), all}));
    }
  }
  return result;
}

bool fits(const TriedChange& change) { return change.refused.empty() && change.verdict.fits; }

// Prices the candidates that fit by the estimate. Only these get a timeline, which may disagree.
bool some_fits_on_its_timeline(std::vector<Candidate>& level, const std::function<void(double)>& progress) {
  double done = 0;
  bool some = false;
  for (Candidate& candidate : level) {
    if (fits(candidate.tried)) price(candidate.scenario, candidate.tried);
    some |= fits(candidate.tried);
    progress(++done / static_cast<double>(level.size()));
  }
  return some;
}

bool ranks_before(const TriedChange& a, const TriedChange& b) {
  if (fits(a) != fits(b)) return fits(a);
  if (fits(a)) return a.step_time_s < b.step_time_s;
  if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
  return a.verdict.share() < b.verdict.share();
}

}  // namespace

std::string name_of(const Change& change) {
  std::string name;
  for (const Difference& step : change.steps) {
    name += (name.empty() ? "" : "; ") + step.what;
    if (step.now != step.before) name += " " + std::to_string(step.now) + " instead of " + std::to_string(step.before);
  }
  return name;
}

std::vector<Change> changes_of(const Scenario& scenario) {
  std::vector<Change> changes;
  add_work_changes(scenario, changes);
  add_layout_changes(scenario.step.layout, changes);
  return changes;
}

ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together) {
  ChangeSearch search;
  Candidate origin;
  origin.scenario = scenario;
  std::vector<Candidate> level{std::move(origin)};
  while (search.changes_together < most_together) {
    level = one_more(scenario, overrides, level);
    ++search.changes_together;
    if (level.empty() || some_fits_on_its_timeline(level, progress)) break;
  }
  for (Candidate& candidate : level) search.tried.push_back(std::move(candidate.tried));
  std::stable_sort(search.tried.begin(), search.tried.end(), ranks_before);
  return search;
}

void price(const Scenario& scenario, TriedChange& tried) {
  const SimulatedStep step = replayed_step(scenario);
  const auto memory = stage_memory(step.prepared, step.simulation.timeline, periodic_of(step));
  tried.verdict = verdict_of(stage_needs(scenario, on_timeline(memory)));
  tried.step_time_s = step_time_of(step.prepared.graph, step.simulation.timeline, periodic_of(step));
}

}  // namespace slipway::scenarios
