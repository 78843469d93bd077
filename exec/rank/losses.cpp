#include "exec/rank/losses.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "exec/run/divergence.h"
#include "exec/run/loss_lines.h"
#include "exec/run/run_files.h"
#include "exec/run/whole_file.h"

namespace slipway::exec {
namespace {

std::string key_of(std::int64_t step, int rank) { return "loss/" + std::to_string(step) + "/" + std::to_string(rank); }

// Readers and tables expect "nan", not "-nan".
double without_sign_of_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", without_sign_of_nan(value));
  return text;
}

// 5.1234; a diverging loss would print its many digits, so it gets an exponent: 1.2374e+57.
std::string short_text(double value) {
  constexpr double largest_in_full = 1e6;
  char text[40];
  std::snprintf(text, sizeof text, std::abs(value) < largest_in_full ? "%.4f" : "%.4e", without_sign_of_nan(value));
  return text;
}

// NaN for impossible norms: the training has diverged. The norm test itself ends it (exec/rank/batches.h).
double variance_of(const GradientNorms& norms) {
  try {
    return gradient_variance(norms);
  } catch (const std::invalid_argument&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

// "batch 32  ", and the share of noise in the gradient's norm.
std::string batch_text(const StepResult& ended) {
  char text[80];
  std::snprintf(text, sizeof text, "batch %lld  ", static_cast<long long>(ended.batch));
  if (!ended.norms || ended.norms->square_of_mean <= 0) return text;
  const double noise = std::sqrt(variance_of(*ended.norms) / ended.norms->square_of_mean);
  char with_noise[120];
  std::snprintf(with_noise, sizeof with_noise, "%snoise/norm %.2f  ", text, noise);
  return with_noise;
}

std::string evaluation_text(double loss) { return "evaluation " + short_text(loss) + "  "; }

// A rank's part of a step's losses.
struct LossParts {
  double loss = 0;
  std::optional<double> held_out;
};

// The form in the store: "loss", or "loss held-out".
std::string text_of(const LossParts& parts) {
  return exact(parts.loss) + (parts.held_out ? " " + exact(*parts.held_out) : "");
}
LossParts loss_parts_from(const std::string& text) {
  const std::size_t space = text.find(' ');
  LossParts parts{number_from(text.substr(0, space), "part of the loss"), {}};
  if (space != std::string::npos) parts.held_out = number_from(text.substr(space + 1), "part of the held-out loss");
  return parts;
}
LossParts parts_of(const StepResult& ended) { return {ended.loss_part, ended.evaluation_part}; }

// `heads`: the ranks whose part of the loss is not finite.
void refuse_divergence(const StepResult& ended, const std::vector<int>& heads) {
  const double loss = ended.loss_part;
  if (!std::isfinite(loss)) {
    std::string ranks;
    for (const int head : heads) ranks += (ranks.empty() ? " (computed on rank " : ", ") + std::to_string(head);
    throw diverged("the loss is " + short_text(loss) + (ranks.empty() ? "" : ranks + ")"));
  }
  const std::optional<double> square = ended.norms ? ended.norms->square_of_mean : ended.gradient_square;
  if (square && !std::isfinite(*square))
    throw diverged("the loss is " + short_text(loss) + ", but the gradient's norm is " +
                   short_text(std::sqrt(*square)));
}

// `errno`: 0, or that of the stream's last failure.
std::string unwritable(const std::string& path) {
  return "cannot write " + path + (errno != 0 ? std::string(": ") + std::strerror(errno) : " (disk full?)") +
         "; make room, or give --out another folder";
}

}  // namespace

std::vector<int> head_ranks(const TaskGraph& graph) {
  std::set<int> ranks;
  const auto last_op = static_cast<int>(graph.operators(static_cast<int>(graph.stages.size()) - 1).size());
  for (const Task& task : graph.tasks) {
    const Work& work = graph.work(task);
    const bool head = work.kind == WorkKind::segment && work.pass == Pass::forward &&
                      graph.placement.is_last(work.stage) && work.last_op == last_op;
    if (head) ranks.insert(task.rank);
  }
  return {ranks.begin(), ranks.end()};
}

struct LossReporter::State {
  const Bundle* bundle = nullptr;
  int rank = 0;
  std::vector<int> heads;
  std::unique_ptr<Store> store;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<StepResult> queue;
  bool closed = false;
  std::function<void(const std::string&)> broke;
  std::string path;
  std::ofstream file;  // rank 0
  std::int64_t previous_end_ns = 0;

  bool holds_head() const { return std::binary_search(heads.begin(), heads.end(), rank); }
  void work();
  void collect(const StepResult& ended);
  LossParts parts_of_rank(int head, std::int64_t step);
  void write(const StepResult& whole, double rate);
};

void LossReporter::State::work() {
  std::string where;
  try {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return closed || !queue.empty(); });
      if (queue.empty()) return;
      const StepResult ended = queue.front();
      queue.pop_front();
      lock.unlock();
      where = "step " + std::to_string(ended.before.steps + 1) + ", end of the step";
      if (rank == 0) {
        collect(ended);
      } else if (holds_head()) {
        store->set(key_of(ended.before.steps, rank), text_of(parts_of(ended)));
      }
    }
  } catch (...) {
    broke(where);
  }
}

void LossReporter::State::collect(const StepResult& ended) {
  StepResult whole = ended;
  whole.loss_part = 0, whole.evaluation_part.reset();
  std::vector<int> diverged;
  for (const int head : heads) {
    const LossParts parts = head == 0 ? parts_of(ended) : parts_of_rank(head, ended.before.steps);
    if (!std::isfinite(parts.loss)) diverged.push_back(head);
    whole.loss_part += parts.loss;
    if (parts.held_out) whole.evaluation_part = whole.evaluation_part.value_or(0) + *parts.held_out;
  }
  const double rate = learning_rate_of(*bundle, ended.before, ended.batch);
  write(whole, rate);
  const double seconds = static_cast<double>(ended.end_ns - previous_end_ns) * 1e-9;
  previous_end_ns = ended.end_ns;
  const std::string more = (whole.evaluation_part ? evaluation_text(*whole.evaluation_part) : "") +
                           (grows(*bundle) ? batch_text(ended) : "");
  std::printf("step %lld/%d  loss %s  lr %.2e  %s%.3f s\n", static_cast<long long>(ended.before.steps + 1),
              bundle->run.steps, short_text(whole.loss_part).c_str(), rate, more.c_str(), seconds);
  std::fflush(stdout);
  refuse_divergence(whole, diverged);
}

LossParts LossReporter::State::parts_of_rank(int head, std::int64_t step) {
  const std::string key = key_of(step, head);
  const LossParts parts = loss_parts_from(store->get(key, while_alive_s));
  store->forget(key);
  return parts;
}

// A flushed line belongs to the kernel and survives the process.
void LossReporter::State::write(const StepResult& whole, double rate) {
  file << whole.before.steps << ' ' << whole.before.samples + whole.batch << ' ' << exact(whole.loss_part) << ' '
       << exact(rate);
  if (grows(*bundle)) file << ' ' << whole.batch;
  if (whole.norms) file << ' ' << exact(whole.norms->square_of_mean) << ' ' << exact(variance_of(*whole.norms));
  if (whole.evaluation_part) file << " evaluation=" << exact(*whole.evaluation_part);
  errno = 0;
  file << '\n' << std::flush;
  if (!file) throw std::runtime_error(unwritable(path));
}

LossReporter::LossReporter(const Bundle& bundle, int rank, const Progress& begin, const std::string& directory,
                           std::unique_ptr<Store> store, std::function<void(const std::string&)> broke)
    : state_(std::make_unique<State>()) {
  state_->bundle = &bundle;
  state_->rank = rank;
  state_->heads = head_ranks(bundle.graph);
  state_->store = std::move(store);
  state_->broke = std::move(broke);
  if (rank == 0) {
    state_->path = losses_path(directory);
    const std::string kept = losses_before(state_->path, begin.steps);
    write_whole_file(state_->path, kept);  // earlier steps' lines are never only in memory
    errno = 0;
    state_->file.open(state_->path, std::ios::app);
    if (!state_->file) throw std::runtime_error(unwritable(state_->path));
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

void LossReporter::step_ended(const StepResult& result) {
  if (state_->rank != 0 && !state_->holds_head()) return;
  const std::lock_guard lock(state_->mutex);
  state_->queue.push_back(result);
  state_->changed.notify_one();
}

void LossReporter::finish() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->changed.notify_one();
  }
  state_->thread.join();
}

}  // namespace slipway::exec
