// Forked children of this process and the pipes to them: simulations (sim/isolate.h), workers of a search
// (scenarios/search/workers.h) and ranks (scenarios/commands/execute/launch.h). Plain POSIX; system calls that a signal
// interrupts go on.
//
//   fork_child(work) ─┬─► child: work(), then its end without destructors    killed when the parent ends, however it ends
//                     └─► parent: its number ──► reap() ──► status ──► signal_text()
//
// Guarded by tests/schedules/child_process_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

#include "models/namespaces.h"

namespace slipway::schedules {

struct Pipe {
  int read = -1, write = -1;
};
// Both ends close on exec. `purpose` begins the error: "cannot start a worker". Throws std::system_error.
Pipe open_pipe(const std::string& purpose);

// `work` throws nothing. Where it returns, the child's exit status is 0. Throws std::system_error.
pid_t fork_child(const std::string& purpose, const std::function<void()>& work);
// For a child whose parent answers interrupts: Ctrl-C and job schedulers send SIGINT and SIGTERM to the whole group.
void leave_interrupts_to_parent();

// False: the reader is gone.
bool write_all(int file, const void* from, std::size_t size);
// False: the writer is gone before that.
bool read_all(int file, void* to, std::size_t size);
// Appends what is there, waiting for some. False: the writer is gone, or a file that does not block has nothing.
bool read_some(int file, std::string& text);

// Waits for the child's end. The status is that of waitpid.
int reap(pid_t child);
// "signal 9 (Killed)"
std::string signal_text(int signal);

}  // namespace slipway::schedules
