#include "scenarios/commands/execute/launch.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "exec/run/whole_file.h"
#include "scenarios/commands/execute/piped_child.h"
#include "schedules/graph/child_process.h"

namespace slipway::scenarios {

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
