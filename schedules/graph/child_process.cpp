#include "schedules/graph/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

namespace slipway::schedules {
namespace {

[[noreturn]] void fail(const std::string& purpose) { throw std::system_error(errno, std::generic_category(), purpose); }

// Calls again while a signal interrupts the call.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// While one lives, a pipe without a reader is the answer EPIPE to this thread, and no signal that ends the program.
class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe() {
    sigemptyset(&pipe_), sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutBrokenPipe() {
    const int reason = errno;
    const timespec at_once{};
    if (!was_waiting_) uninterrupted([&] { return sigtimedwait(&pipe_, nullptr, &at_once); });
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = reason;
  }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  WithoutBrokenPipe& operator=(const WithoutBrokenPipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_waiting_ = false;
};

}  // namespace

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  close();
  file_ = other.release();
  return *this;
}

void OwnedFile::close() {
  if (file_ >= 0) ::close(release());
}

Pipe open_pipe(const std::string& purpose) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(purpose);
  return {OwnedFile(ends[0]), OwnedFile(ends[1])};
}

OwnedChild::~OwnedChild() {
  if (id_ <= 0) return;
  kill(id_, SIGKILL);
  reap(id_);
}

bool OwnedChild::has_ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

int OwnedChild::wait() { return reap(std::exchange(id_, -1)); }

pid_t fork_child(const std::string& purpose, const std::function<void()>& work) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail(purpose);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended in between
  work();
  _exit(0);  // no destructors, no buffered output of the parent
}

void leave_interrupts_to_parent() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
}

bool write_all(int file, const void* from, std::size_t size) {
  const WithoutBrokenPipe guard;
  const auto* at = static_cast<const std::byte*>(from);
  while (size > 0) {
    const ssize_t count = uninterrupted([&] { return write(file, at, size); });
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool read_all(int file, void* to, std::size_t size) {
  auto* at = static_cast<std::byte*>(to);
  while (size > 0) {
    const ssize_t count = uninterrupted([&] { return read(file, at, size); });
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool read_some(int file, std::string& text) {
  char part[4096];
  const ssize_t count = uninterrupted([&] { return read(file, part, sizeof part); });
  if (count <= 0) return false;
  text.append(part, static_cast<std::size_t>(count));
  return true;
}

int reap(pid_t child) {
  int status = 0;
  uninterrupted([&] { return waitpid(child, &status, 0); });
  return status;
}

std::string signal_text(int signal) {
  const char* name = strsignal(signal);
  return "signal " + std::to_string(signal) + (name == nullptr ? "" : " (" + std::string(name) + ")");
}

}  // namespace slipway::schedules
