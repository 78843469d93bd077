#include "scenarios/explain/lever_trials.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <tuple>

#include "scenarios/plan/ranking.h"
#include "scenarios/plan/search.h"

namespace slipway::scenarios {
namespace {

// What a worker sends back.
struct Priced {
  double step_s, memory_bytes, memory_share, fit_probability;
  bool simulated;
};
static_assert(sizeof(Priced) <= Workers::result_bytes);

Priced priced(const Scenario& changed, double limit_s) {
  const PricedLayout row = price_if_it_fits(changed, changed.step, std::numeric_limits<double>::infinity(), limit_s);
  return {row.simulated ? row.step_time_s : row.replayed_s, row.memory_bytes, row.memory_share, row.fit_probability,
          row.simulated};
}

void note(const Priced& result, double step_s, LeverTrial& trial) {
  trial.simulated = result.simulated;
  trial.step_s = result.step_s;
  trial.gain = 1 - result.step_s / step_s;
  trial.memory_bytes = result.memory_bytes, trial.memory_share = result.memory_share;
  trial.fit_probability = result.fit_probability;
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
    Change change = changed_by(lever, scenario);
    if (change.scenario && !seen.insert(change.settings).second) continue;
    LeverTrial trial;
    trial.lever = lever.name, trial.settings = change.settings, trial.why_not = change.why_not;
    if (change.scenario) jobs.emplace_back(trials.size(), std::move(*change.scenario));
    trials.push_back(std::move(trial));
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int count = std::min(options.workers > 0 ? options.workers : cores, static_cast<int>(jobs.size()));
  if (count > 0) {
    Workers workers(count, Workers::Work([&](int job, double limit_s, std::byte* result) {
                      const Priced of_job = priced(jobs[static_cast<std::size_t>(job)].second, limit_s);
                      std::memcpy(result, &of_job, sizeof of_job);
                    }));
    int given = 0, done = 0;
    const int all = static_cast<int>(jobs.size());
    while (done < all && !(options.interrupted && options.interrupted())) {
      while (given < all && workers.idle()) workers.give(given++, step_s);
      constexpr int patience_ms = 200;
      const auto outcome = workers.take(patience_ms);
      if (options.progress) options.progress(done, all - done);
      if (!outcome) continue;
      ++done;
      LeverTrial& trial = trials[jobs[static_cast<std::size_t>(outcome->job)].first];
      Priced result{};
      std::memcpy(&result, outcome->result, sizeof result);
      if (outcome->failed)
        trial.why_not = outcome->text;
      else
        note(result, step_s, trial);
    }
  }
  std::erase_if(trials,
                [](const LeverTrial& trial) { return trial.why_not.empty() && trial.step_s == 0; });  // interrupted
  std::stable_sort(trials.begin(), trials.end(), goes_before);
  return trials;
}

}  // namespace slipway::scenarios
