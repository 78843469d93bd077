#include "scenarios/search_screen.h"

#include <algorithm>
#include <stdexcept>

namespace slipway {
namespace {

void note_too_large(const LayoutChoice& choice, const StepEstimate& estimate, Screening& screening) {
  ++screening.too_large;
  std::optional<PricedLayout>& best = screening.best_too_large;
  if (best && best->bound_s <= estimate.bound_s) return;
  best.emplace();
  best->choice = choice;
  best->bound_s = best->step_time_s = estimate.bound_s;
  best->memory_bytes = estimate.memory_bytes;
  best->memory_share = estimate.memory_share;
}

// Keeps those that need the least, least first.
void note_smallest(const Candidate& candidate, std::vector<Candidate>& smallest) {
  constexpr std::size_t most = 24;
  if (smallest.size() == most && candidate.memory_share >= smallest.back().memory_share) return;
  const auto at =
      std::upper_bound(smallest.begin(), smallest.end(), candidate.memory_share,
                       [](double share, const Candidate& other) { return share < other.memory_share; });
  smallest.insert(at, candidate);
  if (smallest.size() > most) smallest.pop_back();
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
    const Candidate candidate{choice, estimate.bound_s, estimate.memory_bytes, estimate.memory_share};
    note_smallest(candidate, screening.smallest);
    if (estimate.memory_share > memory_share)
      note_too_large(choice, estimate, screening);
    else
      screening.candidates.push_back(candidate);
  });
  if (screening.legal == 0 && !stopped)
    throw std::invalid_argument("no layout of this model on this cluster is possible" +
                                (refusal.empty() ? std::string() : ": " + refusal));
  return screening;
}

}  // namespace slipway
