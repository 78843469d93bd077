#include "scenarios/search_screen.h"

#include <stdexcept>

namespace slipway {
namespace {

void note_too_large(const LayoutChoice& choice, const StepEstimate& estimate, Screening& screening) {
  ++screening.too_large;
  std::optional<PricedLayout>& best = screening.best_too_large;
  if (best && best->step_time_s <= estimate.bound_s) return;
  best.emplace();
  best->choice = choice;
  best->estimate = estimate;
  best->step_time_s = estimate.bound_s;
  best->memory_bytes = estimate.memory_bytes;
  best->memory_share = estimate.memory_share;
}

}  // namespace

Screening screen(const Scenario& scenario, const SearchSpace& space, double memory_share,
                 StepEstimator& estimator, const std::function<bool()>& interrupted) {
  Screening screening;
  std::string refusal;
  bool stopped = false;
  each_layout(scenario, space, [&](const LayoutChoice& choice) {
    stopped = stopped || ((screening.legal & 1023) == 0 && interrupted());
    if (stopped) return;
    StepEstimate estimate;
    try {
      estimate = estimator.estimate(choice);
    } catch (const std::invalid_argument& reason) {  // no fabric joins these ranks
      if (refusal.empty()) refusal = reason.what();
      return;
    }
    ++screening.legal;
    if (estimate.memory_share > memory_share)
      note_too_large(choice, estimate, screening);
    else
      screening.candidates.push_back(
          {choice, estimate.bound_s, estimate.memory_bytes, estimate.memory_share});
  });
  if (screening.legal == 0 && !stopped)
    throw std::invalid_argument("no layout of this model on this cluster is possible" +
                                (refusal.empty() ? std::string() : ": " + refusal));
  return screening;
}

}  // namespace slipway
