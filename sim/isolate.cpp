#include "sim/isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "schedules/graph/child_process.h"

namespace slipway::sim {
namespace {

constexpr int failed_with_message = 3;
constexpr int tick_ms = 250;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("cannot start a simulation: ") + what);
}

[[noreturn]] void be_the_child(const std::function<void()>& work, int messages) {
  leave_interrupts_to_parent();
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
  int status = 0;
  try {
    work();
  } catch (const std::exception& error) {
    write_all(messages, error.what(), std::strlen(error.what()));
    status = failed_with_message;
  }
  write_all(messages, "", 1);  // the end mark
  _exit(status);               // no destructors, no buffered output of the parent
}

// Reads the child's message up to its end mark. A child that dies without one is noticed at the next tick: another
// thread's child, forked meanwhile, may hold the pipe itself open.
std::string listen(const OwnedChild& child, int messages, const std::function<void()>& tick) {
  std::string message;
  for (bool ended = false;;) {
    pollfd ready{messages, POLLIN, 0};
    const int count = poll(&ready, 1, ended ? 0 : tick_ms);
    if (count == 0) {
      if (ended) return message;
      if (tick) tick();
      ended = child.has_ended();
    }
    if (count <= 0) continue;
    if (!read_some(messages, message)) return message;
    if (message.back() != '\0') continue;
    message.pop_back();
    return message;
  }
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw_errno("no memory for its results");
  data_ = static_cast<std::byte*>(memory);
}

void SharedMemory::forget(std::size_t from, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t first = (from + page - 1) / page * page, last = (from + bytes) / page * page;
  if (last > first && madvise(data_ + first, last - first, MADV_REMOVE) != 0) throw_errno("its results");
}

SharedMemory::~SharedMemory() { munmap(data_, bytes_); }

void run_isolated(const std::function<void()>& work, const std::function<void()>& tick) {
  constexpr const char* purpose = "cannot start a simulation";
  Pipe pipe = open_pipe(purpose);
  OwnedChild child(fork_child(purpose, [&] { be_the_child(work, pipe.write); }));
  pipe.write.close();
  const std::string message = listen(child, pipe.read, tick);
  const int status = child.wait();
  if (WIFSIGNALED(status))
    throw std::runtime_error("the simulation's process was ended by " + signal_text(WTERMSIG(status)) +
                             "; signal 9 often means a lack of memory");
  if (WEXITSTATUS(status) != 0)
    throw std::runtime_error(message.empty() ? "the simulation's process failed without a message" : message);
}

}  // namespace slipway::sim
