#include "scenarios/execution/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace slipway {
namespace {

struct Pipe {
  int read = -1, write = -1;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot open a pipe to a rank");
  return {ends[0], ends[1]};
}

// Our environment with `added` on top, as "NAME=value".
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: system calls only, all memory is prepared before.
[[noreturn]] void become(char* const* arguments, char* const* environment,
                         const std::optional<cpu_set_t>& cores, int out, int errors, int failure,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died in between
  // Binding makes a run faster, not right: where the system refuses it, the rank runs unbound.
  if (cores) ::sched_setaffinity(0, sizeof *cores, &*cores);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &standard, nullptr);
  ::sigaction(SIGTERM, &standard, nullptr);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const auto told = ::write(failure, &reason, sizeof reason);
  ::_exit(127);
}

std::optional<cpu_set_t> set_of(const std::vector<int>& cores) {
  if (cores.empty()) return std::nullopt;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  return set;
}

}  // namespace

ChildProcess start_child(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& environment,
                         const std::vector<int>& cores) {
  std::vector<std::string> arguments = command, variables = merged_environment(environment);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  const std::optional<cpu_set_t> core_set = set_of(cores);
  const Pipe out = open_pipe(), errors = open_pipe(), failure = open_pipe();
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) fail("cannot start " + command[0]);
  if (pid == 0) become(argv.data(), envp.data(), core_set, out.write, errors.write, failure.write, parent);
  ::setpgid(pid, pid);  // here as well: whoever comes first
  for (const int end : {out.write, errors.write, failure.write}) ::close(end);
  int reason = 0;
  const auto size = ::read(failure.read, &reason, sizeof reason);  // ends empty when exec succeeded
  ::close(failure.read);
  if (size > 0) {
    ::close(out.read);
    ::close(errors.read);
    ::waitpid(pid, nullptr, 0);
    errno = reason;
    fail("cannot start " + command[0]);
  }
  for (const int end : {out.read, errors.read}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  return {pid, {out.read, {}}, {errors.read, {}}};
}

void signal_child(const ChildProcess& child, int signal) {
  if (child.pid > 0) ::kill(-child.pid, signal);
}

void LinePipe::drain(const std::function<void(std::string_view)>& line) {
  std::array<char, 4096> chunk{};
  while (descriptor >= 0) {
    const auto size = ::read(descriptor, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return close(line);
    partial.append(chunk.data(), static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (std::size_t end; (end = partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line(std::string_view(partial).substr(begin, end - begin));
    }
    partial.erase(0, begin);
  }
}

void LinePipe::close(const std::function<void(std::string_view)>& line) {
  if (descriptor < 0) return;
  if (!partial.empty()) line(partial);
  partial.clear();
  ::close(descriptor);
  descriptor = -1;
}

}  // namespace slipway
