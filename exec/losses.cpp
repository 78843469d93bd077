#include "exec/losses.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "exec/loss_lines.h"
#include "exec/run_files.h"

namespace slipway {
namespace {

std::string key_of(int step, int rank) {
  return "loss/" + std::to_string(step) + "/" + std::to_string(rank);
}

std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

struct EndedStep {
  int step = 0;
  double part = 0;
  std::int64_t end_ns = 0;
};

}  // namespace

std::vector<int> head_ranks(const TaskGraph& graph) {
  std::set<int> ranks;
  const auto last_op = static_cast<int>(operators_of(graph, static_cast<int>(graph.stages.size()) - 1).size());
  for (const Task& task : graph.tasks) {
    const Work& work = graph.works[static_cast<std::size_t>(task.work)];
    const bool head = work.kind == WorkKind::segment && work.pass == Pass::forward &&
                      graph.placement.is_last(work.stage) && work.last_op == last_op;
    if (head) ranks.insert(task.rank);
  }
  return {ranks.begin(), ranks.end()};
}

struct LossReporter::State {
  const Bundle* bundle = nullptr;
  int rank = 0;
  Progress first;
  std::vector<int> heads;
  std::unique_ptr<Store> store;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<EndedStep> queue;
  bool closed = false;
  std::exception_ptr error;
  std::string path;
  std::ofstream file;  // rank 0
  std::int64_t previous_end_ns = 0;

  bool holds_head() const { return std::binary_search(heads.begin(), heads.end(), rank); }
  void work();
  void collect(const EndedStep& ended);
  void write(int step, double loss, double rate);
};

void LossReporter::State::work() {
  try {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return closed || !queue.empty(); });
      if (queue.empty()) return;
      const EndedStep ended = queue.front();
      queue.pop_front();
      lock.unlock();
      if (rank == 0) {
        collect(ended);
      } else if (holds_head()) {
        store->set(key_of(ended.step, rank), exact(ended.part));
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    error = std::current_exception();
  }
}

void LossReporter::State::collect(const EndedStep& ended) {
  double loss = 0;
  for (const int head : heads) {
    if (head == 0) {
      loss += ended.part;
      continue;
    }
    loss += number_from(store->get(key_of(ended.step, head), while_alive_s), "part of the loss");
    store->forget(key_of(ended.step, head));
  }
  const double rate = learning_rate_of(*bundle, first, ended.step);
  write(ended.step, loss, rate);
  const double seconds = static_cast<double>(ended.end_ns - previous_end_ns) * 1e-9;
  previous_end_ns = ended.end_ns;
  std::printf("step %lld/%d  loss %.4f  lr %.2e  %.3f s\n", static_cast<long long>(first.steps + ended.step + 1),
              bundle->run.steps, loss, rate, seconds);
  std::fflush(stdout);
}

// Flushed, a line is the kernel's and survives the process.
void LossReporter::State::write(int step, double loss, double rate) {
  file << first.steps + step << ' ' << first.samples + (step + 1) * bundle->graph.global_batch << ' ' << exact(loss) << ' '
       << exact(rate) << '\n'
       << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path + " (disk full?)");
}

LossReporter::LossReporter(const Bundle& bundle, int rank, const Progress& begin, const std::string& directory,
                           std::unique_ptr<Store> store)
    : state_(std::make_unique<State>()) {
  state_->bundle = &bundle;
  state_->rank = rank;
  state_->first = begin;
  state_->heads = head_ranks(bundle.graph);
  state_->store = std::move(store);
  if (rank == 0) {
    state_->path = losses_path(directory);
    const std::string kept = losses_before(state_->path, begin.steps);
    state_->file.open(state_->path);
    state_->file << kept << std::flush;
    if (!state_->file) throw std::runtime_error("cannot write " + state_->path);
  }
  state_->thread = std::thread([state = state_.get()] { state->work(); });
}

LossReporter::~LossReporter() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->changed.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void LossReporter::begin(std::int64_t start_ns) { state_->previous_end_ns = start_ns; }

void LossReporter::step_ended(int step, double part, std::int64_t end_ns) {
  if (state_->rank != 0 && !state_->holds_head()) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->error) std::rethrow_exception(state_->error);
  state_->queue.push_back({step, part, end_ns});
  state_->changed.notify_one();
}

void LossReporter::finish() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->changed.notify_one();
  }
  state_->thread.join();
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace slipway
