// Forked workers that price layouts. A simulation needs its own process, and a layout that exhausts memory must not end
// the search. Jobs are numbers, whose meaning the workers know from the fork, with a limit beyond which the answer does
// not matter.
//
//   parent ──► give(job) ──► pipe ──► worker: work(job) → line of JSON ──► pipe ──► take() ──► parent
//
// A worker has one thread, as there is a worker for each core. Workers end with the parent, however it ends.
// Guarded by tests/scenarios/workers_test.cpp.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schedules/graph/child_process.h"

namespace slipway::scenarios {

// Cores of this machine, and so workers unless the user says how many; at least 1.
int core_count();

class Workers {
 public:
  struct Outcome {
    int job = 0;
    std::optional<std::string> failure = {};  // the exception's text
    nlohmann::json answer = {};               // without a failure
  };
  // An exception becomes a failure. Numbers of the answer arrive as they are; NaN and infinity become null.
  using Work = std::function<nlohmann::json(int job, double limit)>;
  Workers(int count, const Work& work);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool idle() const;  // a worker has no job
  int busy() const;
  void give(int job, double limit = std::numeric_limits<double>::infinity());  // requires idle()
  // The next result; unset after `wait_ms` without one. Throws std::runtime_error when a worker died.
  std::optional<Outcome> take(int wait_ms);

 private:
  struct Worker {
    schedules::OwnedFile jobs, answers;  // our ends
    schedules::OwnedChild process;       // ends first; a simulation that it started dies with it
    bool busy = false;
    int job = 0;
  };
  std::vector<Worker> workers_;
};

// The callbacks by which a list of jobs is distributed; unset ones are not called.
struct Dealing {
  std::function<double()> limit;        // on the next job's answer
  std::function<bool(int job)> wanted;  // false: neither this job nor those after it
  std::function<bool(int done)> go_on;  // asked several times a second; false: end now
};
// Gives jobs in their order to workers that are idle, and `note` each outcome, in the order in which jobs end.
void deal(Workers& workers, const std::vector<int>& jobs, const std::function<void(const Workers::Outcome&)>& note,
          const Dealing& how = {});

}  // namespace slipway::scenarios
