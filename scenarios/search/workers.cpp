#include "scenarios/search/workers.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

#include "schedules/graph/parallel.h"

namespace slipway::scenarios {

int core_count() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

namespace {

constexpr const char *answer_key = "answer", *failure_key = "failure";

struct Job {
  int number = 0;
  double limit = 0;
};

// A line: the answer, or why there is none.
std::string reply_to(const Job& job, const Workers::Work& work) {
  nlohmann::json reply;
  try {
    reply[answer_key] = work(job.number, job.limit);
  } catch (const std::exception& error) {
    reply = {{failure_key, error.what()}};
  }
  return reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void be_a_worker(int jobs, int answers, const Workers::Work& work) {
  leave_interrupts_to_parent();
  schedules::has_one_thread = true;
  for (Job job; read_all(jobs, &job, sizeof job);) {
    const std::string reply = reply_to(job, work);
    if (!write_all(answers, reply.data(), reply.size())) return;
  }
}

bool is_readable(int file) {
  pollfd one{file, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

[[noreturn]] void fail_as_ended() {
  throw std::runtime_error("a worker of the search ended before its work; is there enough memory?");
}

}  // namespace

Workers::Workers(int count, const Work& work) {
  constexpr const char* purpose = "cannot start a worker";
  for (int i = 0; i < count; ++i) {
    Pipe jobs = open_pipe(purpose), answers = open_pipe(purpose);
    OwnedChild process(fork_child(purpose, [&] {
      jobs.write.close();
      for (Worker& earlier : workers_) earlier.jobs.close();
      be_a_worker(jobs.read, answers.write, work);
    }));
    workers_.push_back({std::move(jobs.write), std::move(answers.read), std::move(process)});
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
  if (!write_all(worker->jobs, &job, sizeof job)) fail_as_ended();
  worker->job = number;
}

std::optional<Workers::Outcome> Workers::take(int wait_ms) {
  std::vector<pollfd> files;
  for (const Worker& worker : workers_) files.push_back({worker.answers, POLLIN, 0});
  if (poll(files.data(), files.size(), wait_ms) <= 0) {
    // The pipe of a worker that died stays open where another thread's child, forked meanwhile, holds it too.
    for (const Worker& worker : workers_)
      if (worker.busy && worker.process.has_ended() && !is_readable(worker.answers)) fail_as_ended();
    return std::nullopt;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents == 0) continue;
    std::string line;
    do {
      if (!read_some(workers_[i].answers, line)) fail_as_ended();
    } while (line.back() != '\n');
    workers_[i].busy = false;
    nlohmann::json reply = nlohmann::json::parse(line);
    if (reply.contains(failure_key)) return Outcome{workers_[i].job, reply[failure_key].get<std::string>()};
    return Outcome{workers_[i].job, {}, std::move(reply[answer_key])};
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
