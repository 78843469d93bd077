#include "scenarios/commands/execute/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "exec/run/whole_file.h"
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

std::vector<int> usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error(std::string("cannot read which cores may be used: ") + std::strerror(errno));
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> cores_of_rank(const std::vector<int>& usable, int rank, int ranks) {
  const int share = static_cast<int>(usable.size()) / ranks;
  const auto first = usable.begin() + rank * share;
  return {first, first + share};
}

namespace {

constexpr int lowest = 10000;

// The first of the ports that the kernel hands out by itself.
int first_ephemeral() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return file >> first ? first : 32768;  // Linux's default
}

// Tries to bind `port`; for 0 the kernel chooses. Returns the bound port, or 0 with errno.
int bound_port(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  const bool bound = listener >= 0 && ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int reason = errno;
  if (listener >= 0) ::close(listener);
  errno = reason;
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

int free_port() {
  constexpr int tries = 100;
  if (const int end = first_ephemeral(); end > lowest + tries) {
    std::random_device random;
    std::uniform_int_distribution<int> any(lowest, end - 1);
    for (int i = 0; i < tries; ++i)
      if (const int port = bound_port(any(random)); port > 0) return port;
  }
  const int port = bound_port(0);
  if (port == 0) throw std::runtime_error(std::string("no free TCP port on 127.0.0.1: ") + std::strerror(errno));
  return port;
}

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupts = 0;  // SIGINT, SIGTERM and SIGHUP since launch() began
extern "C" void count_interrupt(int) { interrupts = interrupts + 1; }

// Counts interrupts while it lives, and restores the previous handlers afterwards.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupts = 0;
    struct sigaction action = {};
    action.sa_handler = count_interrupt;
    ::sigaction(SIGINT, &action, &old_int_);
    ::sigaction(SIGTERM, &action, &old_term_);
    ::sigaction(SIGHUP, nullptr, &old_hup_);  // a lost terminal; nohup ignores SIGHUP, and it stays ignored
    if (old_hup_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  }
  ~InterruptGuard() {
    ::sigaction(SIGINT, &old_int_, nullptr);
    ::sigaction(SIGTERM, &old_term_, nullptr);
    ::sigaction(SIGHUP, &old_hup_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_int_, old_term_, old_hup_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "killed by signal 9 (Killed)", "ended with exit status 3".
std::string manner_of(const RankEnd& end) {
  if (end.signal == 0) return "ended with exit status " + std::to_string(end.exit_code);
  return (end.stopped ? "stopped by " : "killed by ") + signal_text(end.signal) +
         (end.stopped ? " and did not go on (run.heartbeat_seconds says how long that may last)" : "");
}

struct RunningRank {
  const RankProcess* what = nullptr;
  ChildProcess child;
  bool running = true;
  int stop_signal = 0;  // > 0: it is stopped
  Clock::time_point stopped_at = {};
};

RankEnd end_of(const RankProcess& rank, int status, bool stopping) {
  RankEnd end{.rank = rank.rank, .message = text_of(rank.error_file)};
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.stopped_by_launcher = stopping && end.failed();
  if (end.failed() && !end.stopped_by_launcher && end.message.empty() && !rank.error_file.empty()) {
    try {
      write_whole_file(rank.error_file, manner_of(end) + "\n");
    } catch (const std::runtime_error&) {
      // Other ranks' messages have it too; the launcher prints how this one ended.
    }
  }
  return end;
}

// The ranks of one launch. Destroyed early (an exception), it ends all that still run.
class Flock {
 public:
  explicit Flock(const LaunchOptions& options) : options_(options) {}
  ~Flock() {
    for (RunningRank& rank : ranks_) {
      if (!rank.running) continue;
      signal_child(rank.child, SIGKILL);
      reap(rank.child.pid);
    }
    for (RunningRank& rank : ranks_) close_pipes(rank);
  }
  Flock(const Flock&) = delete;
  Flock& operator=(const Flock&) = delete;

  void start(const RankProcess& rank) {
    ranks_.push_back({&rank, start_child(rank.command, rank.environment, rank.cores), true});
  }

  bool anyone_runs() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const RunningRank& rank) { return rank.running; });
  }

  // Passes output on for at most `milliseconds`; returns earlier when output arrives or a rank's pipe closes.
  void pass_output(int milliseconds) {
    std::vector<pollfd> waiting;
    for (const RunningRank& rank : ranks_) {
      for (const LinePipe* pipe : {&rank.child.output, &rank.child.errors}) {
        if (pipe->descriptor >= 0) waiting.push_back({pipe->descriptor, POLLIN, 0});
      }
    }
    ::poll(waiting.data(), waiting.size(), milliseconds);  // an interrupt also wakes it
    for (RunningRank& rank : ranks_) drain(rank);
  }

  // Collects the ranks that ended since the last call. `stopping`: we have sent SIGTERM or SIGKILL.
  std::vector<RankEnd> collect(bool stopping) {
    std::vector<RankEnd> ended;
    for (RunningRank& rank : ranks_) {
      int status = 0;
      if (!rank.running || ::waitpid(rank.child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != rank.child.pid)
        continue;
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        rank.stop_signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        rank.stopped_at = Clock::now();
        continue;
      }
      rank.running = false;
      drain(rank);
      // A grandchild may hold the pipes open; its output is no longer needed.
      signal_child(rank.child, SIGKILL);
      close_pipes(rank);
      ended.push_back(end_of(*rank.what, status, stopping));
    }
    return ended;
  }

  // The rank that has been stopped longest, if that is too long. A stopped rank does not end by itself, and the other
  // ranks may have ended.
  std::optional<RankEnd> stopped_too_long() const {
    const RunningRank* first = nullptr;
    for (const RunningRank& rank : ranks_)
      if (rank.running && rank.stop_signal > 0 && (first == nullptr || rank.stopped_at < first->stopped_at))
        first = &rank;
    if (first == nullptr || Clock::now() - first->stopped_at < std::chrono::duration<double>(options_.stopped_s))
      return std::nullopt;
    return RankEnd{.rank = first->what->rank, .signal = first->stop_signal, .stopped = true};
  }

  void signal_all(int signal) {
    for (const RunningRank& rank : ranks_) {
      if (rank.running) signal_child(rank.child, signal);
    }
  }

 private:
  void drain(RunningRank& rank) {
    rank.child.output.drain([&](std::string_view line) { pass(rank, line, false); });
    rank.child.errors.drain([&](std::string_view line) { pass(rank, line, true); });
  }
  void close_pipes(RunningRank& rank) {
    rank.child.output.close([&](std::string_view line) { pass(rank, line, false); });
    rank.child.errors.close([&](std::string_view line) { pass(rank, line, true); });
  }
  void pass(const RunningRank& rank, std::string_view line, bool is_error) {
    if (options_.line) options_.line(rank.what->rank, line, is_error);
  }

  const LaunchOptions& options_;
  std::vector<RunningRank> ranks_;
};

// The cause among ranks that ended in the same moment: preferably one that a signal ended, because another rank's
// failure does not end a rank by a signal.
const RankEnd* first_cause(const std::vector<RankEnd>& ended) {
  const RankEnd* cause = nullptr;
  for (const RankEnd& end : ended) {
    if (!end.failed() || end.stopped_by_launcher) continue;
    if (cause == nullptr || (end.signal > 0 && cause->signal == 0)) cause = &end;
  }
  return cause;
}

// The next signal to the survivors, and its time.
struct Ending {
  Clock::time_point term_at = Clock::time_point::max(), kill_at = Clock::time_point::max();
  bool stopping = false;

  void begin(double term_in_s, double kill_after_s) {
    const auto from_now = [](double seconds) {
      return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    term_at = from_now(term_in_s);
    kill_at = from_now(term_in_s + kill_after_s);
  }
  void act(Flock& flock) {
    const auto now = Clock::now();
    if (now >= term_at) {
      stopping = true;
      flock.signal_all(SIGTERM);
      term_at = Clock::time_point::max();
    }
    if (now >= kill_at) flock.signal_all(SIGKILL);
  }
};

}  // namespace

LaunchResult launch(const std::vector<RankProcess>& ranks, const LaunchOptions& options) {
  const InterruptGuard guard;
  Flock flock(options);
  for (const RankProcess& rank : ranks) flock.start(rank);
  LaunchResult result;
  Ending ending;
  int seen_interrupts = 0;
  while (flock.anyone_runs()) {
    flock.pass_output(20);
    const std::vector<RankEnd> ended = flock.collect(ending.stopping);
    result.ends.insert(result.ends.end(), ended.begin(), ended.end());
    const RankEnd* cause = first_cause(ended);
    if (cause != nullptr && !result.first_failure && !result.interrupted) {
      result.first_failure = *cause;
      ending.begin(options.grace_s, options.kill_s);
    }
    if (!result.first_failure && !result.interrupted) {
      result.first_failure = flock.stopped_too_long();
      if (result.first_failure) ending.begin(0, options.kill_s);
    }
    if (interrupts > seen_interrupts) {  // the second one ends the patience
      ending.begin(0, seen_interrupts > 0 ? 0 : options.interrupt_s);
      seen_interrupts = interrupts;
      result.interrupted = true;
    }
    ending.act(flock);
  }
  return result;
}

std::string describe(const RankEnd& end) {
  const std::string text = "rank " + std::to_string(end.rank) + (end.signal > 0 ? " was " : " ") + manner_of(end);
  return end.message.empty() ? text : text + ": " + end.message;
}

}  // namespace slipway::scenarios
