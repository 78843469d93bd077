// The best layout of a model on a cluster: what `slipway plan` answers.
//
//   space ──► closed form of every legal layout ──► too large: out ──► in the order of the bound:
//             (schedules/bound/estimate.h)                             sharper bound ──► simulation
//                                                                      until the bound exceeds the tenth
//                                                                      best
//
// Exact: the bounds never exceed the simulated step, so a layout that was not simulated cannot be among the
// best ten; nor can it fit where the bound of its memory does not. Whether a layout fits is the verdict of
// `slipway memory` (scenarios/predict/verdict.h). A layout is simulated as `slipway
// simulate` does it, but for members that do the same at the same time, which are simulated once
// (schedules/lower/representatives.h). Layouts are simulated by forked workers, one a core; the answer does not
// depend on their number. Guarded by tests/scenarios/search_test.cpp: the ten best are those of exhaustive
// simulation.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/step_interval.h"
#include "scenarios/search/space.h"

namespace slipway::scenarios {

struct PricedLayout {
  Step choice;
  double bound_s = 0;
  bool simulated = false;  // or else step_time_s is the bound, and the timeline and all shares of time are 0
  double step_time_s = 0, mfu = 0;
  double compute_share = 0, bubble_share = 0, exposed_comm_share = 0;
  // As `slipway memory` judges it (scenarios/predict/verdict.h), of the pipeline rank that is least likely to fit: what 99 %
  // of needs stay below. The timeline counts once it was simulated. Only a lower bound where it was never judged.
  bool judged = false;
  double memory_bytes = 0, memory_share = 0;
  double fit_probability = 0;
  double replayed_s = 0;                          // of a step without contention, where a limit was given; 0: unknown
  double timeline_bytes = 0, timeline_share = 0;  // simulated peak of the fullest rank
  // Set for rows of an answer that fitted constants price.
  std::optional<StepInterval> interval;
  std::optional<double> first_is_faster;  // probability that the first row is, of the others
};
// Within the share.
bool fits(const PricedLayout& row, double memory_share);

// Faster, or as fast with less memory.
bool is_better(const PricedLayout& a, const PricedLayout& b);

// The progress of a search. `left`: at most so many layouts remain, by the bounds so far.
struct SearchProgress {
  double share = 0;  // of the whole
  const char* doing = "simulating";
  int done = 0, left = 0;
};

// The numbers of a judged layout, as a worker answers them and the file of a shard has them.
constexpr std::size_t values_of_layout = 12;
std::vector<double> values_of(const PricedLayout& row);
void set_values(const std::vector<double>& values, PricedLayout& row);
// The same of candidates, which are numbered in the order of the space.
using KnownPrices = std::map<std::size_t, std::vector<double>>;

struct SearchOptions {
  int best = 10;            // rows
  double memory_share = 1;  // of a GPU's memory that a layout may need with recommended_probability
  int workers = 0;          // 0: one a core
  std::function<void(const SearchProgress&)> progress;
  int columns = 0;                    // of the tables; 0: as many as they need
  std::function<bool()> interrupted;  // asked by several threads
  // On several machines: only every `shards`-th candidate from `shard` (from 1) on is ranked, for `found`; the result has
  // no rows. Then the search goes on with `known`: it simulates only what is not in it, and its answer is that of one
  // machine, because a candidate that counts in the whole search counts in its shard too.
  int shard = 1, shards = 1;
  KnownPrices* found = nullptr;
  const KnownPrices* known = nullptr;
};
int workers_of(const SearchOptions& options);  // ≥ 1
// Throws UsageError for a memory_share that is none. `given` is what says so: "--memory-share 80".
void check_memory_share(double share, const std::string& given);

struct SearchResult {
  std::vector<PricedLayout> best;  // fastest first; of equals the one with less memory
  // Fastest first, each with less memory (by 2 % of a GPU at least) than all before: of the layouts that
  // were simulated, among them those that are on the front by their bounds.
  std::vector<PricedLayout> pareto;
  // On uneven clusters: how many layouts were refined, in how many simulations, and the fastest as it was before.
  int refined = 0, refinements = 0;
  double unrefined_s = 0;
  std::int64_t legal = 0, too_large = 0, simulated = 0;
  std::optional<PricedLayout> best_too_large;  // the fastest, by its bound
  std::optional<PricedLayout> closest;         // where nothing fits: the one that needs the least, simulated
  double screening_s = 0, simulation_s = 0;
  bool complete = true;  // false: interrupted
};
// Throws std::invalid_argument when the space has no legal layout, with the reason of the first that is
// not.
SearchResult search_layouts(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);

// One layout, judged and simulated; without its bound. Throws std::invalid_argument for what cannot be.
PricedLayout price_layout(const Scenario& scenario, const Step& choice);
// The same, but not simulated where the verdict's share of memory is above `memory_share`, or where the step takes longer
// than `limit_s` even without contention.
PricedLayout price_if_it_fits(const Scenario& scenario, const Step& choice, double memory_share,
                              double limit_s = std::numeric_limits<double>::infinity());

}  // namespace slipway::scenarios
