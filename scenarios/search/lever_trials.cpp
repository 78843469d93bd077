#include "scenarios/search/lever_trials.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "scenarios/predict/filling.h"
#include "scenarios/search/search.h"
#include "scenarios/search/workers.h"
#include "schedules/bound/estimate.h"

namespace slipway::scenarios {
namespace {

constexpr double rounding = 1 + 1e-6;  // SimGrid ends flows to nine digits each

// 0: unknown, for a schedule of a CSV, bubble work and tables of measured blocks, which bounds do not know. What cannot be
// priced has none either: its worker says why.
double bound_of(Scenario changed) {
  const auto has_table = [](const NodeGroup& group) { return !group.machine.blocks.empty(); };
  if (changed.step.actions != nullptr || has_bubble_work(changed) ||
      std::any_of(changed.cluster.groups.begin(), changed.cluster.groups.end(), has_table))
    return 0;
  try {
    return StepEstimator(changed.step, priced_cluster(changed), changed.memory).passes_bound(changed.step);
  } catch (const std::invalid_argument&) {
    return 0;
  }
}

// `limit_s`: for a step that fits; `limit_too_large_s`: for another.
Evaluation evaluated(const Scenario& changed, double bound_s, double limit_s, double limit_too_large_s) {
  return evaluate(changed, TimelineBy::simulation, [&](const MemoryNeed& need) {
    const double limit = need.fits() ? limit_s : limit_too_large_s;
    return bound_s > limit * rounding ? std::nullopt : std::optional(limit);
  });
}

// The steps of the fastest levers that fit: none that is slower than all of them is simulated.
class Fastest {
 public:
  Fastest(int count, double step_s) : count_(count), step_s_(step_s) {}
  void add(const Evaluation& result) {
    if (!result.has_timeline || !result.memory.fits()) return;
    steps_.insert(result.step.step_time_s);
    if (std::ssize(steps_) > count_) steps_.erase(std::prev(steps_.end()));
  }
  double limit() const { return std::ssize(steps_) < count_ ? step_s_ : std::min(step_s_, *steps_.rbegin()); }

 private:
  int count_;
  double step_s_;
  std::multiset<double> steps_;
};

// As if the limit had been known from the start, so that the answer does not depend on the order of the trials.
void note(const Evaluation& result, double bound_s, double step_s, double limit_s, LeverTrial& trial) {
  const double limit = result.estimated.fits() ? limit_s : step_s;
  trial.simulated = result.has_timeline && std::max(bound_s, result.replayed_s) <= limit * rounding;
  trial.step_s = trial.simulated ? result.step.step_time_s : bound_s > limit * rounding ? bound_s : result.replayed_s;
  trial.gain = 1 - trial.step_s / step_s;
  const MemoryNeed& memory = trial.simulated ? result.memory : result.estimated;
  trial.memory_bytes = memory.recommended_bytes, trial.memory_share = memory.recommended_share();
  trial.fit_probability = memory.fit_probability;
}

bool goes_before(const LeverTrial& a, const LeverTrial& b) {
  const auto place = [](const LeverTrial& trial) {
    return std::tuple(!trial.why_not.empty(), !trial.fits(), -trial.gain, trial.memory_bytes);
  };
  return place(a) < place(b);
}

}  // namespace

std::vector<LeverTrial> lever_trials(const Scenario& scenario, double step_s, const std::vector<Lever>& levers,
                                     const LeverOptions& options) {
  std::vector<LeverTrial> trials;
  std::vector<std::pair<std::size_t, Scenario>> jobs;  // trial, changed scenario
  std::set<std::vector<std::string>> seen{{}};
  for (const Lever& lever : levers) {
    VariedScenario change = changed_by(lever, scenario);
    if (change.scenario && !seen.insert(change.variation.overrides).second) continue;
    LeverTrial trial;
    trial.variation = std::move(change.variation), trial.why_not = std::move(change.why_not);
    if (change.scenario) jobs.emplace_back(trials.size(), std::move(*change.scenario));
    trials.push_back(std::move(trial));
  }
  std::vector<double> bounds;
  for (const auto& [trial, changed] : jobs) bounds.push_back(bound_of(changed));
  std::vector<int> order(jobs.size());  // the least bound first, so that the limit falls soon
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return bounds[static_cast<std::size_t>(a)] < bounds[static_cast<std::size_t>(b)];
  });
  std::vector<std::optional<Evaluation>> results(jobs.size());
  Fastest fastest(options.simulated, step_s);
  Workers workers(std::min(options.workers > 0 ? options.workers : core_count(), static_cast<int>(jobs.size())),
                  [&](int job, double limit_s) {
                    const auto at = static_cast<std::size_t>(job);
                    return nlohmann::json(evaluated(jobs[at].second, bounds[at], limit_s, step_s));
                  });
  const auto note_result = [&](const Workers::Outcome& outcome) {
    const auto at = static_cast<std::size_t>(outcome.job);
    if (outcome.failure) {
      trials[jobs[at].first].why_not = *outcome.failure;
      return;
    }
    results[at] = outcome.answer.get<Evaluation>();
    fastest.add(*results[at]);
  };
  Dealing how;
  how.limit = [&] { return fastest.limit(); };
  how.go_on = [&](int done) {
    if (options.progress) options.progress(done, static_cast<int>(jobs.size()) - done);
    return !(options.interrupted && options.interrupted());
  };
  deal(workers, order, note_result, how);
  for (std::size_t at = 0; at < jobs.size(); ++at)
    if (results[at]) note(*results[at], bounds[at], step_s, fastest.limit(), trials[jobs[at].first]);
  std::erase_if(trials,
                [](const LeverTrial& trial) { return trial.why_not.empty() && trial.step_s == 0; });  // interrupted
  std::stable_sort(trials.begin(), trials.end(), goes_before);
  return trials;
}

}  // namespace slipway::scenarios
