// Forked workers that price layouts: a simulation needs a process of its own, and a layout that exhausts
// memory must not take the search along. Jobs are numbers; what they mean the workers know from the fork.
//
//   parent ──► give(job) ──► pipe ──► worker: work(job) → Outcome ──► pipe ──► take() ──► parent
//
// Workers end with the parent, by any end of it. Guarded by tests/workers_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace slipway {

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

}  // namespace slipway
