// One child process with its output in pipes: the launcher's fork and exec.
// Guarded by tests/scenarios/launch_test.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// The reading end of a pipe, cut into lines. -1: closed.
struct LinePipe {
  int descriptor = -1;
  std::string partial;  // the line so far
  // Takes the available bytes without blocking; closes at the end of the stream. `line` gets whole lines, and at the
  // end also an unfinished one.
  void drain(const std::function<void(std::string_view)>& line);
  void close(const std::function<void(std::string_view)>& line);
};

struct ChildProcess {
  pid_t pid = -1;
  LinePipe output, errors;
};

// Starts a program (path, no search) in its own process group, bound to `cores` (empty: not bound). It gets SIGKILL
// when this process dies. Throws std::runtime_error with the program and the reason when it cannot run.
ChildProcess start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                         const std::vector<int>& cores = {});

// Signals the whole group of the child. Harmless when it has ended.
void signal_child(const ChildProcess& child, int signal);

}  // namespace slipway::scenarios
