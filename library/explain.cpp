#include "scenarios/search/explanation.h"

#include "library/loading.h"
#include "slipway/explain.h"

namespace slipway {

Explanation explain(const Scenario& scenario, const ExplainOptions& options) {
  return translated([&] {
    scenarios::ExplainOptions how;
    how.measured_s = options.measured_s;
    how.levers.workers = options.workers;
    how.levers.interrupted = options.watch.interrupted;
    if (options.watch.progress) how.progress = [&](const std::string&, double share) { options.watch.progress(share); };
    const scenarios::Explanation found = scenarios::explanation_of(loaded(scenario), how);
    if (!found.all_levers_tried) throw Interrupted("the explanation was interrupted");
    Explanation answer;
    answer.step_time_s = found.step_s;
    answer.interval = interval_of(found.interval);
    for (const scenarios::SpentOn& spent : found.spent)
      answer.spent.push_back({spent.part, spent.rank_s, spent.path_s});
    for (const scenarios::FasterRate& rate : found.faster)
      answer.faster.push_back({rate.name, rate.id, rate.step_s, rate.change});
    for (const scenarios::LeverTrial& lever : found.levers)
      answer.levers.push_back({.name = lever.variation.words,
                               .settings = lever.variation.overrides,
                               .step_s = lever.step_s,
                               .gain = lever.gain,
                               .simulated = lever.simulated,
                               .memory_bytes = lever.memory_bytes,
                               .fit_probability = lever.fit_probability,
                               .why_not = lever.why_not});
    if (!found.measured) return answer;
    for (const scenarios::Cause& cause : found.measured->causes)
      answer.causes.push_back({cause.name, cause.id, cause.speed, cause.deviation});
    if (found.measured->has_interval) answer.inside = found.measured->inside;
    return answer;
  });
}

}  // namespace slipway
