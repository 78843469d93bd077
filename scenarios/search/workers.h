// Forked workers that price layouts. A simulation needs its own process, and a layout that exhausts memory must not end
// the search. Jobs are numbers, whose meaning the workers know from the fork, with a limit beyond which the answer does
// not matter.
//
//   parent ──► give(job) ──► pipe ──► worker: work(job) → Outcome ──► pipe ──► take() ──► parent
//
// A worker has one thread, as there is a worker for each core. Workers end with the parent, however it ends.
// Guarded by tests/scenarios/workers_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

namespace slipway::scenarios {

// Cores of this machine, and so workers unless the user says how many; at least 1.
int core_count();

class Workers {
 public:
  static constexpr std::size_t result_bytes = 256;  // at most
  struct Outcome {
    int job = 0;
    bool failed = false;
    char text[1024] = {};  // the exception's
    std::byte result[result_bytes] = {};
    // The result as put() wrote it; requires !failed.
    template <class Result>
    Result as() const {
      static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= result_bytes);
      Result value;
      std::memcpy(&value, result, sizeof value);
      return value;
    }
  };
  template <class Result>
  static void put(const Result& value, std::byte* result) {
    static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= result_bytes);
    std::memcpy(result, &value, sizeof value);
  }
  // Writes its result. An exception becomes `failed` and `text`.
  using Work = std::function<void(int job, double limit, std::byte* result)>;
  Workers(int count, Work work);
  // Work without a limit.
  Workers(int count, std::function<void(int job, std::byte* result)> work)
      : Workers(count, Work([work = std::move(work)](int job, double, std::byte* result) { work(job, result); })) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool idle() const;  // a worker has no job
  int busy() const;
  void give(int job, double limit = std::numeric_limits<double>::infinity());  // requires idle()
  // The next result; unset after `wait_ms` without one. Throws std::runtime_error when a worker died.
  std::optional<Outcome> take(int wait_ms);

 private:
  struct Worker {
    pid_t id = -1;
    int jobs = -1, outcomes = -1;  // our ends
    bool busy = false;
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
