// What remains open where no further process can be started: RLIMIT_NPROC, which binds no root.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <system_error>

#include "schedules/graph/child_process.h"

namespace slipway::test {

inline int open_files() {
  constexpr int most = 1024;
  int count = 0;
  for (int file = 0; file < most; ++file) count += fcntl(file, F_GETFD) != -1 ? 1 : 0;
  return count;
}

constexpr int started_all_the_same = 100;

// Files that `start` leaves open in a process that may start no other. `start` must throw std::system_error.
inline int files_left_by(const std::function<void()>& start) {
  const int status = reap(fork_child("cannot start the test", [&] {
    constexpr int nobody = 65534;
    if (getuid() == 0 && setresuid(nobody, nobody, nobody) != 0) _exit(started_all_the_same);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    const int before = open_files();
    try {
      start();
    } catch (const std::system_error&) {
      _exit(open_files() - before);
    }
    _exit(started_all_the_same);
  }));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace slipway::test
