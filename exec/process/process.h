// A rank as an operating-system process, and how it ended. Two ranks with the same boot id and process-id namespace see
// each other in /proc, which shows at once that a peer was killed, and how. Until its parent has collected it, an ended
// process keeps its exit code in field 52 of /proc/<pid>/stat.
// Guarded by tests/exec/process_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

struct ProcessIdentity {
  std::string host;           // for messages
  std::string boot_id;        // same boot id = same clock and same kernel
  std::string pid_namespace;  // process ids are valid only inside one
  long pid = 0;
  long long start_ticks = 0;  // distinguishes a process from a later one with the same id
};

ProcessIdentity this_process();
std::string to_text(const ProcessIdentity&);
ProcessIdentity process_from_text(const std::string& text);  // throws std::runtime_error

bool same_clock(const ProcessIdentity& a, const ProcessIdentity& b);
// False for containers of one machine with separate names and networks.
bool same_host(const ProcessIdentity& a, const ProcessIdentity& b);
// True if `a` can see `b` in its /proc.
bool visible(const ProcessIdentity& a, const ProcessIdentity& b);

// The reason why a visible process has ended: "killed by signal 9", "ended with exit status 3", or, when its parent has
// collected it already, "killed or ended without a report". Empty while it lives.
std::optional<std::string> cause_of_end(const ProcessIdentity& process);
// True while a visible process is stopped: by SIGSTOP, Ctrl-Z or a debugger.
bool is_stopped(const ProcessIdentity& process);
// A descriptor that becomes readable when the visible process ends; -1 when the kernel has none.
int descriptor_of(const ProcessIdentity& process);

// Seconds since a process of this kernel was started.
double age_of(const ProcessIdentity& process);

// "process 4711 on host x"
std::string describe(const ProcessIdentity& process);

}  // namespace slipway::exec
