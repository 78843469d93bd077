#include "scenarios/plan/screen.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::scenarios {
namespace {

void note_too_large(const Step& choice, const StepEstimate& estimate, Screening& screening) {
  ++screening.too_large;
  std::optional<PricedLayout>& best = screening.best_too_large;
  if (best && best->bound_s <= estimate.bound_s) return;
  best.emplace();
  best->choice = choice;
  best->bound_s = best->step_time_s = estimate.bound_s;
  best->memory_bytes = estimate.memory_bytes;
  best->memory_share = estimate.memory_share;
}

// Calls visit for the choice itself, and for splits balanced by time where stages sit on different machines: several
// splits where memory is short. A choice with split `balanced` stays so: its loader balances by the verdict, not by the
// bound.
template <class Visit>
void each_split(const Step& choice, bool splits, double memory_share, StepEstimator& estimator, const Visit& visit) {
  const SplitKind kind = choice.layout.split;
  if (kind != SplitKind::balanced) visit(choice);
  if (kind == SplitKind::list || (kind == SplitKind::even && !splits)) return;
  std::vector<std::vector<int>> balanced = estimator.balanced_splits(choice, memory_share);
  if (balanced.empty()) {
    if (kind == SplitKind::balanced) visit(choice);
    return;
  }
  if (!splits) balanced.resize(1);
  Step changed = choice;
  if (splits) changed.layout.split = SplitKind::list;
  for (std::vector<int>& layers : balanced) {
    changed.layout.split_list = std::move(layers);
    visit(changed);
  }
}

Candidate candidate_of(const Step& choice, const StepEstimate& estimate) {
  return {choice, estimate.bound_s, estimate.memory_bytes, estimate.memory_share};
}

// Keeps the candidates with the least memory, ascending.
void note_smallest(const Step& choice, const StepEstimate& estimate, std::vector<Candidate>& smallest) {
  constexpr std::size_t most = 24;
  if (smallest.size() == most && estimate.memory_share >= smallest.back().memory_share) return;
  const auto at = std::upper_bound(smallest.begin(), smallest.end(), estimate.memory_share,
                                   [](double share, const Candidate& other) { return share < other.memory_share; });
  smallest.insert(at, candidate_of(choice, estimate));
  if (smallest.size() > most) smallest.pop_back();
}

}  // namespace

Screening screen(const Scenario& scenario, const SearchSpace& space, double memory_share, StepEstimator& estimator,
                 const std::function<bool()>& interrupted) {
  Screening screening;
  std::string refusal;
  bool stopped = false;
  const auto note = [&](const Step& choice) {
    const StepEstimate estimate = estimator.estimate(choice);
    ++screening.legal;
    note_smallest(choice, estimate, screening.smallest);
    if (estimate.memory_share > memory_share)
      note_too_large(choice, estimate, screening);
    else
      screening.candidates.push_back(candidate_of(choice, estimate));
  };
  each_layout(scenario, space, [&](const Step& choice) {
    stopped = stopped || ((screening.legal & 1023) == 0 && interrupted());
    if (stopped) return;
    try {
      each_split(choice, space.splits, space.splits ? memory_share : 1, estimator, note);
    } catch (const std::invalid_argument& reason) {  // no fabric joins these ranks
      if (refusal.empty()) refusal = reason.what();
    }
  });
  if (screening.legal == 0 && !stopped)
    throw std::invalid_argument("no layout of this model on this cluster is possible" +
                                (refusal.empty() ? std::string() : ": " + refusal));
  return screening;
}

}  // namespace slipway::scenarios
