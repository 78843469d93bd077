#include "scenarios/search/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "schedules/graph/parallel.h"

namespace slipway::scenarios {

int core_count() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

namespace {

bool read_all(int file, void* to, std::size_t size) {
  auto* at = static_cast<std::byte*>(to);
  while (size > 0) {
    const ssize_t count = read(file, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int file, const void* from, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(from);
  while (size > 0) {
    const ssize_t count = write(file, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

struct Job {
  int number = 0;
  double limit = 0;
};

[[noreturn]] void be_a_worker(int jobs, int outcomes, pid_t parent, const Workers::Work& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::signal(SIGINT, SIG_IGN);  // both may reach the whole group; the parent answers them and ends us
  std::signal(SIGTERM, SIG_IGN);
  schedules::has_one_thread = true;
  for (Job job; read_all(jobs, &job, sizeof job);) {
    Workers::Outcome outcome;
    outcome.job = job.number;
    try {
      work(job.number, job.limit, outcome.result);
    } catch (const std::exception& error) {
      outcome.failed = true;
      std::strncpy(outcome.text, error.what(), sizeof outcome.text - 1);
    }
    if (!write_all(outcomes, &outcome, sizeof outcome)) break;
  }
  _exit(0);
}

}  // namespace

Workers::Workers(int count, Work work) {
  const pid_t parent = getpid();
  for (int i = 0; i < count; ++i) {
    int jobs[2], outcomes[2];
    if (pipe2(jobs, O_CLOEXEC) != 0 || pipe2(outcomes, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot start a worker: pipe");
    const pid_t id = fork();
    if (id == 0) {
      close(jobs[1]);
      for (const Worker& earlier : workers_) close(earlier.jobs);
      be_a_worker(jobs[0], outcomes[1], parent, work);
    }
    close(jobs[0]);
    close(outcomes[1]);
    if (id < 0) throw std::system_error(errno, std::generic_category(), "cannot start a worker: fork");
    workers_.push_back({id, jobs[1], outcomes[0], false});
  }
}

Workers::~Workers() {
  for (const Worker& worker : workers_) {
    kill(worker.id, SIGKILL);  // a simulation that it started dies with it
    close(worker.jobs);
    close(worker.outcomes);
    while (waitpid(worker.id, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

bool Workers::idle() const { return busy() < static_cast<int>(workers_.size()); }

int Workers::busy() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return w.busy; }));
}

void Workers::give(int number, double limit) {
  const Job job{number, limit};
  const auto worker = std::find_if(workers_.begin(), workers_.end(), [](const Worker& w) { return !w.busy; });
  worker->busy = true;
  if (!write_all(worker->jobs, &job, sizeof job))
    throw std::runtime_error("a worker of the search ended before its work; is there enough memory?");
}

std::optional<Workers::Outcome> Workers::take(int wait_ms) {
  std::vector<pollfd> files;
  for (const Worker& worker : workers_) files.push_back({worker.outcomes, POLLIN, 0});
  if (poll(files.data(), files.size(), wait_ms) <= 0) return std::nullopt;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents == 0) continue;
    Outcome outcome;
    if (!read_all(workers_[i].outcomes, &outcome, sizeof outcome))
      throw std::runtime_error("a worker of the search ended before its work; is there enough memory?");
    workers_[i].busy = false;
    return outcome;
  }
  return std::nullopt;
}

void deal(Workers& workers, const std::vector<int>& jobs, const std::function<void(const Workers::Outcome&)>& note,
          const Dealing& how) {
  constexpr int patience_ms = 100;
  std::size_t given = 0;
  int done = 0;
  while (!how.go_on || how.go_on(done)) {
    while (given < jobs.size() && workers.idle() && (!how.wanted || how.wanted(jobs[given])))
      workers.give(jobs[given++], how.limit ? how.limit() : std::numeric_limits<double>::infinity());
    if (workers.busy() == 0) return;
    if (const auto outcome = workers.take(patience_ms)) ++done, note(*outcome);
  }
}

}  // namespace slipway::scenarios
