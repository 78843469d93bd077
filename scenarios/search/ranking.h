// The fastest of many candidates, with as few simulations as possible (private to search*).
//
//   closed form (estimate.h) ──► passes through the schedule (passes_bound) ──► verdict, replay ──► simulation
//   microseconds                 a millisecond                                  a tenth of a second
//
// None of these bounds exceeds the simulated step, nor does the replay, which is one without contention. The candidate
// with the least bound so far goes on to its next stage, until all remaining bounds exceed the simulated steps. The set of
// candidates that count as simulated does not depend on the number of workers: a candidate with a bound above the final
// limit does not count, even if an idle worker took it.
// Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>
#include <vector>

#include "scenarios/search/screen.h"
#include "scenarios/search/workers.h"
#include "schedules/bound/estimate.h"

namespace slipway::scenarios {

// Layouts that were simulated, and those that may still be.
using ProgressOf = std::function<void(int done, int left)>;

// Throws std::runtime_error with layout and bound, as a defect: the search leaves out layouts by their bounds.
void refuse_below_bound(const Step& choice, double bound_s, double step_time_s);

class Ranking {
 public:
  // All arguments must outlive this.
  Ranking(const Scenario& scenario, const SearchOptions& options, StepEstimator& estimator,
          const std::vector<Candidate>& candidates);

  // The first `count` fitting candidates by step time, then memory; all of them have a row. Fewer where fewer fit, or
  // when interrupted. `progress` is a share of this call.
  std::vector<std::size_t> fastest(int count, const ProgressOf& progress);
  // Simulates these too.
  void simulate(const std::vector<std::size_t>& which, const ProgressOf& progress);

  // The row of a candidate that was judged.
  const PricedLayout& row(std::size_t candidate) const { return rows_.at(candidate); }
  // All candidates that had to be judged so far, simulated where they fit.
  const std::set<std::size_t>& judged() const { return judged_; }
  // All that workers found, by candidate.
  const KnownPrices& found() const { return found_; }

 private:
  struct Item {
    double bound;
    std::size_t candidate;
    bool operator>(const Item& other) const {
      return bound != other.bound ? bound > other.bound : candidate > other.candidate;
    }
  };
  struct Round;  // one call of fastest()

  void ask(Round& round, const Item& item);
  bool is_simulated(std::size_t candidate) const;
  void take(Round& round);
  void note_row(std::size_t candidate, const Workers::Outcome& outcome);
  std::vector<double> price(std::size_t candidate, double limit) const;
  bool fits(std::size_t candidate) const;
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const Scenario& scenario_;
  const SearchOptions& options_;
  StepEstimator& estimator_;
  const std::vector<Candidate>& candidates_;
  std::unordered_map<std::size_t, PricedLayout> rows_;  // of the judged candidates, few of all
  std::vector<bool> is_sharp_;                          // per candidate: passes_bound was computed
  std::vector<double> sharp_bounds_;                    // its result, or the replay's; 0: neither
  std::set<std::size_t> judged_;
  KnownPrices found_;
  Workers workers_;
};

}  // namespace slipway::scenarios
