#include "scenarios/commands/growth/ladder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace slipway::scenarios {

std::vector<std::int64_t> some_rungs(const std::vector<std::int64_t>& rungs, const std::vector<std::int64_t>& also,
                                     int count) {
  if (static_cast<int>(rungs.size()) <= count) return rungs;
  std::vector<std::int64_t> chosen = also;
  const auto first = static_cast<double>(rungs.front()), last = static_cast<double>(rungs.back());
  for (int i = 0; i < count; ++i)
    chosen.push_back(rung_of(rungs, std::floor(first * std::pow(last / first, static_cast<double>(i) / (count - 1)))));
  chosen.push_back(rungs.back());
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::vector<RungStep> simulated_rungs(const Scenario& scenario, const std::vector<std::int64_t>& batches,
                                      const std::function<void(double, std::int64_t)>& progress) {
  std::vector<RungStep> rungs;
  StepOptions options;
  options.makespan = false;
  for (const std::int64_t batch : batches) {
    const double before = static_cast<double>(rungs.size()), all = static_cast<double>(batches.size());
    Scenario own = scenario;
    own.step.global_batch = batch;
    const StepWorkers workers = plain_workers([&](double share) {
      if (progress) progress((before + share) / all, batch);
    });
    const SimulatedStep step = simulated_step(own, options, workers);
    const Prediction prediction = prediction_of(step);
    rungs.push_back({batch, micro_batches_of(step.prepared), prediction.step.step_time_s, prediction.tokens_per_s,
                     prediction.step.mfu, prediction.fits()});
    const auto interval = interval_of(step.prepared, prediction.step.step_time_s);
    if (interval) rungs.back().step_low_s = interval->low_s, rungs.back().step_high_s = interval->high_s;
  }
  return rungs;
}

namespace {

double on_line(const RungStep& a, const RungStep& b, std::int64_t batch) {
  const double share = static_cast<double>(batch - a.batch) / static_cast<double>(b.batch - a.batch);
  return a.step_s + share * (b.step_s - a.step_s);
}

}  // namespace

double step_time_between(const std::vector<RungStep>& rungs, std::int64_t batch) {
  const auto above = std::lower_bound(rungs.begin(), rungs.end(), batch,
                                      [](const RungStep& rung, std::int64_t than) { return rung.batch < than; });
  if (above == rungs.end() || (above == rungs.begin() && above->batch != batch))
    throw std::invalid_argument("a batch outside of the ladder has no step time");
  return above->batch == batch ? above->step_s : on_line(*(above - 1), *above, batch);
}

double line_error(const std::vector<RungStep>& rungs) {
  double most = 0;
  for (std::size_t i = 1; i + 1 < rungs.size(); ++i)
    most = std::max(most, std::abs(on_line(rungs[i - 1], rungs[i + 1], rungs[i].batch) / rungs[i].step_s - 1));
  return most;
}

}  // namespace slipway::scenarios
