#include "scenarios/commands/execute/piped_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "schedules/graph/child_process.h"

namespace slipway::scenarios {

namespace {

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

// Runs between fork and exec: only system calls; all memory is prepared before.
[[noreturn]] void become(char* const* arguments, char* const* environment, const std::optional<cpu_set_t>& cores,
                         int out, int errors, int failure) {
  ::setpgid(0, 0);
  // Binding makes a run faster, not right. Where the system refuses it, the rank runs unbound.
  if (cores) ::sched_setaffinity(0, sizeof *cores, &*cores);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &standard, nullptr);
  ::sigaction(SIGTERM, &standard, nullptr);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(failure, &reason, sizeof reason);
  ::_exit(127);
}

std::optional<cpu_set_t> set_of(const std::vector<int>& cores) {
  if (cores.empty()) return std::nullopt;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  return set;
}

// Waits until the child has become its program or says why not: `failure` is readable then. False where it was stopped
// (SIGSTOP) before that and does not go on: nothing would ever come.
bool has_become(int failure, pid_t pid) {
  constexpr int look_ms = 100, most_looks = 50;
  for (int stopped = 0; stopped < most_looks;) {
    pollfd event{failure, POLLIN, 0};
    if (::poll(&event, 1, look_ms) > 0) return true;
    siginfo_t state{};
    const bool is_stopped =
        ::waitid(P_PID, static_cast<id_t>(pid), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0 && state.si_pid == pid;
    stopped = is_stopped ? stopped + 1 : 0;
  }
  return false;
}

}  // namespace

ChildProcess start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                         const std::vector<int>& cores) {
  std::vector<std::string> arguments = command, variables = merged_environment(environment);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  const std::optional<cpu_set_t> core_set = set_of(cores);
  const std::string purpose = "cannot start " + command[0];
  Pipe out = open_pipe(purpose), errors = open_pipe(purpose), failure = open_pipe(purpose);
  const pid_t pid =
      fork_child(purpose, [&] { become(argv.data(), envp.data(), core_set, out.write, errors.write, failure.write); });
  ::setpgid(pid, pid);  // here and in the child: whichever comes first
  for (Pipe* pipe : {&out, &errors, &failure}) pipe->write.close();
  int reason = 0;
  const bool became = has_become(failure.read, pid);
  if (!became) ::kill(pid, SIGKILL);
  const bool failed = read_all(failure.read, &reason, sizeof reason);  // end of file after a successful exec
  if (failed || !became) {
    reap(pid);
    throw std::runtime_error(purpose + ": " +
                             (became ? std::strerror(reason) : "its process was stopped before it began"));
  }
  for (const Pipe* pipe : {&out, &errors}) ::fcntl(pipe->read, F_SETFL, O_NONBLOCK);
  return {pid, {out.read.release(), {}}, {errors.read.release(), {}}};
}

void signal_child(const ChildProcess& child, int signal) {
  if (child.pid > 0) ::kill(-child.pid, signal);
}

void LinePipe::drain(const std::function<void(std::string_view)>& line) {
  while (descriptor >= 0) {
    errno = 0;
    if (!read_some(descriptor, partial)) {
      if (errno == EAGAIN) return;
      return close(line);
    }
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

}  // namespace slipway::scenarios
