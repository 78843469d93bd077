#include "scenarios/search/screen.h"
#include "schedules/bound/estimate.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <stdexcept>
#include <string>

#include "models/machine/priced_cluster.h"

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
  std::vector<std::vector<int>> balanced = estimator.balanced_splits(choice, memory_share, splits ? SIZE_MAX : 1);
  if (balanced.empty()) {
    if (kind == SplitKind::balanced) visit(choice);
    return;
  }
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
void note_smallest(Candidate candidate, std::vector<Candidate>& smallest) {
  constexpr std::size_t most = 24;
  if (smallest.size() == most && candidate.memory_share >= smallest.back().memory_share) return;
  const auto at = std::upper_bound(smallest.begin(), smallest.end(), candidate.memory_share,
                                   [](double share, const Candidate& other) { return share < other.memory_share; });
  smallest.insert(at, std::move(candidate));
  if (smallest.size() > most) smallest.pop_back();
}

// The screening of one part of the space. `refusal`: that of its first layout, where no layout is legal.
struct Part {
  Screening screening;
  std::string refusal;
};

Part screen_part(const Scenario& scenario, const SearchSpace& space, double memory_share, StepEstimator& estimator,
                 const std::function<bool()>& interrupted) {
  Part part;
  Screening& screening = part.screening;
  bool stopped = false;
  const auto note = [&](const Step& choice) {
    const StepEstimate estimate = estimator.estimate(choice);
    ++screening.legal;
    note_smallest(candidate_of(choice, estimate), screening.smallest);
    if (estimate.memory_share > memory_share)
      note_too_large(choice, estimate, screening);
    else
      screening.candidates.push_back(candidate_of(choice, estimate));
  };
  each_layout(scenario, space, [&](const Step& choice) {
    stopped = stopped || interrupted();
    if (stopped) return;
    try {
      each_split(choice, space.splits, space.splits ? memory_share : 1, estimator, note);
    } catch (const std::invalid_argument& reason) {  // no fabric joins these ranks
      if (part.refusal.empty()) part.refusal = reason.what();
    }
  });
  return part;
}

// The space, cut by what each_layout varies last, so that the parts in turn are the space in its order.
std::vector<SearchSpace> parts_of(const SearchSpace& space) {
  std::vector<SearchSpace> parts;
  for (const int tensor : space.tensor)
    for (const bool sequence_parallel : space.sequence_parallel) {
      parts.push_back(space);
      parts.back().tensor = {tensor}, parts.back().sequence_parallel = {sequence_parallel};
    }
  return parts;
}

void append(Part&& part, Part& all) {
  Screening &from = part.screening, &to = all.screening;
  to.legal += from.legal, to.too_large += from.too_large;
  std::ranges::move(from.candidates, std::back_inserter(to.candidates));
  for (Candidate& candidate : from.smallest) note_smallest(std::move(candidate), to.smallest);
  if (from.best_too_large && (!to.best_too_large || from.best_too_large->bound_s < to.best_too_large->bound_s))
    to.best_too_large = std::move(from.best_too_large);
  if (all.refusal.empty()) all.refusal = std::move(part.refusal);
}

}  // namespace

Screening screen(const Scenario& scenario, const SearchSpace& space, double memory_share, int threads,
                 const std::function<bool()>& interrupted) {
  const PricedCluster cluster = priced_cluster(scenario);
  const std::vector<SearchSpace> spaces = parts_of(space);
  std::vector<Part> parts(spaces.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    StepEstimator estimator(scenario.step, cluster, scenario.memory);
    for (std::size_t i = next++; i < spaces.size(); i = next++)
      parts[i] = screen_part(scenario, spaces[i], memory_share, estimator, interrupted);
  };
  std::vector<std::future<void>> others;
  for (int i = 1; i < std::min(threads, static_cast<int>(spaces.size())); ++i)
    others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& each : others) each.get();
  Part all;
  for (Part& part : parts) append(std::move(part), all);
  if (all.screening.legal == 0 && !interrupted())
    throw std::invalid_argument("no layout of this model on this cluster is possible" +
                                (all.refusal.empty() ? std::string() : ": " + all.refusal));
  return std::move(all.screening);
}

}  // namespace slipway::scenarios
