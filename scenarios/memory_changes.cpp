#include "scenarios/memory_changes.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "scenarios/memory_terms.h"
#include "scenarios/plan.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/metrics.h"

namespace slipway {
namespace {

std::string set(const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); }

std::string instead(const std::string& what, std::int64_t now, std::int64_t before) {
  return what + " " + std::to_string(now) + " instead of " + std::to_string(before);
}

void add_work_changes(const Scenario& scenario, std::vector<Change>& changes) {
  const ScheduleChoice& schedule = scenario.schedule;
  const bool unfused = schedule.kernels == Kernels::torch || schedule.kernels == Kernels::fused_softmax;
  if (schedule.recompute == Recompute::none && unfused)
    changes.push_back({"selective recompute", {"schedule.recompute=selective"}});
  if (schedule.recompute != Recompute::full)
    changes.push_back({"full recompute", {"schedule.recompute=full"}});
  if (schedule.micro_batch % 2 == 0)
    changes.push_back({instead("micro-batch", schedule.micro_batch / 2, schedule.micro_batch),
                       {set("schedule.micro_batch", schedule.micro_batch / 2)}});
}

void add_layout_changes(const Layout& layout, std::vector<Change>& changes) {
  if (layout.zero < 3 && layout.data * layout.context > 1)
    changes.push_back({instead("ZeRO", layout.zero + 1, layout.zero), {set("layout.zero", layout.zero + 1)}});
  if (layout.tensor > 1 && !layout.sequence_parallel)
    changes.push_back({"sequence parallel", {"layout.sequence_parallel=true"}});
  if (layout.data % 2 != 0) return;
  const std::string data = set("layout.data", layout.data / 2);
  changes.push_back({instead("tensor", 2 * layout.tensor, layout.tensor) + ", " +
                         instead("data", layout.data / 2, layout.data),
                     {set("layout.tensor", 2 * layout.tensor), data}});
  changes.push_back({instead("pipeline", 2 * layout.pipeline, layout.pipeline) + ", " +
                         instead("data", layout.data / 2, layout.data),
                     {set("layout.pipeline", 2 * layout.pipeline), data}});
  changes.push_back({instead("context", 2 * layout.context, layout.context) + ", " +
                         instead("data", layout.data / 2, layout.data),
                     {set("layout.context", 2 * layout.context), data}});
}

struct Candidate {
  TriedChange tried;
  Scenario scenario;
};

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The key of an override is all before its first '='; the last one of a key counts.
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

// One change more on top of each candidate; the same set of overrides is tried once.
std::vector<Candidate> one_more(const Scenario& origin, const std::vector<std::string>& overrides,
                                const std::vector<Candidate>& from) {
  std::vector<Candidate> result;
  std::set<std::set<std::string>> seen;
  for (const Candidate& base : from) {
    if (!base.tried.refused.empty()) continue;
    for (Change& change : changes_of(base.scenario)) {
      const auto all = without_overwritten(joined(base.tried.change.overrides, change.overrides));
      if (!seen.insert({all.begin(), all.end()}).second) continue;
      const std::string& before = base.tried.change.name;
      result.push_back(
          tried(origin, overrides, {before.empty() ? change.name : before + "; " + change.name, all}));
    }
  }
  return result;
}

bool fits(const TriedChange& change) { return change.refused.empty() && change.verdict.fits; }

bool ranks_before(const TriedChange& a, const TriedChange& b) {
  if (fits(a) != fits(b)) return fits(a);
  if (fits(a)) return a.step_time_s < b.step_time_s;
  if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
  return a.verdict.share() < b.verdict.share();
}

}  // namespace

std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<double>& kept_for_fillers) {
  const std::vector<StageTerms> terms = counted_memory(scenario);
  const std::vector<double> capacities = memory_capacities(scenario);
  const std::size_t per_stage = capacities.size() / terms.size();
  std::vector<StageNeed> needs;
  for (std::size_t stage = 0; stage < terms.size(); ++stage) {
    const auto first = capacities.begin() + static_cast<std::ptrdiff_t>(stage * per_stage);
    const auto least = std::min_element(first, first + static_cast<std::ptrdiff_t>(per_stage));
    const double kept = kept_for_fillers.empty() ? 0 : kept_for_fillers[stage];
    needs.push_back({static_cast<int>(least - capacities.begin()),
                     peak_bytes(terms[stage], scenario.trainer) + kept, *least});
  }
  return needs;
}

Verdict verdict_of(const Scenario& scenario, const std::vector<double>& kept_for_fillers) {
  const std::vector<StageNeed> needs = stage_needs(scenario, kept_for_fillers);
  Verdict verdict;
  for (std::size_t stage = 0; stage < needs.size(); ++stage) {
    const auto& [rank, bytes, capacity] = needs[stage];
    const double usable = capacity * scenario.trainer.usable_share;
    verdict.fits &= bytes <= usable;
    verdict.fits_cautious &= bytes <= capacity * scenario.trainer.cautious_share;
    if (stage > 0 && bytes * verdict.usable <= verdict.bytes * usable) continue;
    verdict.fullest = static_cast<int>(stage);
    verdict.rank = rank;
    verdict.bytes = bytes;
    verdict.usable = usable;
  }
  return verdict;
}

std::vector<Change> changes_of(const Scenario& scenario) {
  std::vector<Change> changes;
  add_work_changes(scenario, changes);
  add_layout_changes(scenario.layout, changes);
  return changes;
}

ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together) {
  ChangeSearch search;
  Candidate origin;
  origin.scenario = scenario;
  std::vector<Candidate> level{std::move(origin)};
  const auto some_fit = [&] {
    return std::any_of(level.begin(), level.end(), [](const Candidate& c) { return fits(c.tried); });
  };
  while (search.changes_together < most_together) {
    level = one_more(scenario, overrides, level);
    ++search.changes_together;
    if (level.empty() || some_fit()) break;
  }
  double done = 0;
  for (Candidate& candidate : level) {
    if (fits(candidate.tried)) candidate.tried.step_time_s = replayed_step_s(candidate.scenario);
    progress(++done / static_cast<double>(level.size()));
    search.tried.push_back(std::move(candidate.tried));
  }
  std::stable_sort(search.tried.begin(), search.tried.end(), ranks_before);
  return search;
}

double replayed_step_s(Scenario scenario) {
  set_pace(scenario);
  LoweringInput input = lowering_input(scenario);
  input.folding = folding_of(scenario);
  TaskGraph graph = lower(input);
  const Durations durations = order_and_price(graph, scenario.cluster);
  return step_time_of(graph, replay(graph, durations, 3));
}

}  // namespace slipway
