// The program `slipway`: see scenarios/commands/command_line/command.h.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <limits>
#include <new>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/terminal_text.h"
#include "scenarios/commands/command_line/terminal_timeline.h"

namespace {

// Keeps freed memory in the heap, so that its pages serve again. A graph of ten million tasks is vectors of hundreds of
// megabytes, made and dropped one after another. glibc maps each anew and the kernel clears its pages. That was a fifth
// of the whole time on 1,024 ranks.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int lent_at_once = 64 << 20;  // bytes by which the heap grows
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, lent_at_once);
#endif
}

// The message of every command, thread and simulating child out of memory. The library's own is "std::bad_alloc".
struct OutOfMemory : std::bad_alloc {
  const char* what() const noexcept override {
    return "out of memory: what this command holds (a task graph, a trace) is larger than this machine, or its limit "
           "(ulimit -v), has room for; "
           "take fewer micro-batches (schedule.global_batch) or ranks, or a machine with more memory";
  }
};

int run(const std::vector<std::string>& arguments) {
  using namespace slipway::scenarios;
  if (!::isatty(STDOUT_FILENO)) return run_slipway(arguments, std::cout, std::cerr);
  TerminalText text(*std::cout.rdbuf(), terminal_width(), locale_is_utf8());
  std::streambuf* const terminal = std::cout.rdbuf(&text);
  const int status = run_slipway(arguments, std::cout, std::cerr);
  std::cout.flush();
  std::cout.rdbuf(terminal);
  return status;
}

void name_lack_of_memory() {
  std::set_new_handler([] { throw OutOfMemory(); });
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails, with a message, as on a full disk
  keep_freed_memory();
  name_lack_of_memory();
  const int status = run({argv + 1, argv + argc});
  // An answer that did not arrive (a full disk behind >) is a failure even when the work was done.
  errno = 0;
  std::cout.flush();
  if (std::cout) return status;
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  std::cerr << "slipway: cannot write to standard output" << reason
            << "; the answer is incomplete, make room or send it elsewhere\n";
  return status == slipway::scenarios::status_done ? slipway::scenarios::status_failed : status;
}
