// Forked workers that price layouts: a simulation needs a process of its own, and a layout that exhausts
// memory must not take the search along. Jobs are numbers; what they mean the workers know from the fork.
//
//   parent ──► give(job) ──► pipe ──► worker: work(job) → Outcome ──► pipe ──► take() ──► parent
//
// Workers end with the parent, by any end of it. Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/plan/screen.h"

namespace slipway::scenarios {

class Workers {
 public:
  // A job's result is at most this many bytes of plain data.
  static constexpr std::size_t result_bytes = 128;
  struct Outcome {
    int job = 0;
    bool failed = false;
    char text[1024] = {};  // of the exception
    std::byte result[result_bytes] = {};
  };
  // `work` writes its result; what it throws becomes `failed` and `text`.
  Workers(int count, std::function<void(int job, std::byte* result)> work);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool idle() const;  // is there one without a job?
  int busy() const;
  void give(int job);  // requires idle()
  // The next result; nothing after `wait_ms` without one. Throws std::runtime_error when a worker died.
  std::optional<Outcome> take(int wait_ms);

 private:
  struct Worker {
    pid_t id = -1;
    int jobs = -1, outcomes = -1;  // our ends
    bool busy = false;
  };
  std::vector<Worker> workers_;
};

// The fastest of many candidates, simulating as few as possible (private to search*).
//
//   closed form (estimate.h) ──► passes through the schedule (passes_bound) ──► verdict, simulation
//   microseconds                 a millisecond                                  a tenth of a second
//
// Neither bound exceeds the simulated step, and what is next is asked of the candidate with the least bound
// so far, until the bounds of all that are left exceed what has been simulated. Which candidates count as
// simulated does not depend on the number of workers: one whose bound is above the final limit does not,
// although an idle worker may have taken it. Guarded by tests/scenarios/search_test.cpp.

// Layouts that were simulated, and those that may be yet.
using ProgressOf = std::function<void(int done, int left)>;

// Throws std::runtime_error that names both, and the defect: the search leaves out layouts by their bounds.
void refuse_below_bound(const Step& choice, double bound_s, double step_time_s);

class Ranking {
 public:
  // All must outlive this.
  Ranking(const Scenario& scenario, const SearchOptions& options, StepEstimator& estimator,
          const std::vector<Candidate>& candidates);

  // The first `count` candidates by step time, then memory, of those that fit; all
  // of them have a row. Fewer where fewer fit, or when interrupted. `progress` as a share of this call.
  std::vector<std::size_t> fastest(int count, const ProgressOf& progress);
  // Simulates these as well.
  void simulate(const std::vector<std::size_t>& which, const ProgressOf& progress);

  const PricedLayout& row(std::size_t candidate) const { return rows_[candidate]; }
  // All that had to be judged so far, and simulated where they fit.
  const std::set<std::size_t>& judged() const { return judged_; }

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
  void take(Round& round);
  void note_row(std::size_t candidate, const std::byte* result);
  bool fits(std::size_t candidate) const;
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const Scenario& scenario_;
  const SearchOptions& options_;
  StepEstimator& estimator_;
  const std::vector<Candidate>& candidates_;
  std::vector<PricedLayout> rows_;    // per candidate, as the next
  std::vector<bool> is_sharp_;        // was passes_bound asked?
  std::vector<double> sharp_bounds_;  // its answer, or 0
  std::set<std::size_t> judged_;
  Workers workers_;
};

}  // namespace slipway::scenarios
