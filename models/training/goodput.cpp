#include "models/training/goodput.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>

#include "models/machine/degradation.h"

namespace slipway::models {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

void check(const FaultyTraining& t) {
  if (!(t.step_s > 0) || t.steps_per_checkpoint < 1 || t.nodes < 1 || t.spare_nodes < 0)
    throw std::invalid_argument("a training needs a step time, steps between checkpoints and nodes");
  if (!(t.checkpoint_s >= 0) || !(t.restart_s >= 0) || !(t.repair_s >= 0) || !(t.node_mtbf_s >= 0))
    throw std::invalid_argument("times of faults must not be negative");
}

// The working nodes and the next failure. Failures of a node in use are a Poisson process, so the next date is drawn
// anew whenever their number changes.
class Nodes {
 public:
  Nodes(const FaultyTraining& training, std::uint64_t seed)
      : training_(training), seed_(seed), spares_(training.spare_nodes) {
    draw(0);
  }

  double next_failure() const { return std::min(random_, planned()); }
  double next_repair() const { return repairs_.empty() ? never : repairs_.top(); }
  bool complete() const { return missing_ == 0; }
  std::int64_t failures() const { return failures_; }

  // The failure of next_failure(); spares step in.
  void fail() {
    const double now = next_failure();
    int count = 1;
    if (planned() == now) count = training_.failures[next_planned_++].nodes;
    for (int i = 0; i < count && missing_ < training_.nodes; ++i) {
      ++failures_, ++missing_;
      repairs_.push(now + training_.repair_s);
    }
    take_spares(now);
    draw(now);
  }
  // Turns nodes whose repair is done by now into spares, and fills gaps.
  void fill(double now) {
    if (take_spares(now) > 0) draw(now);
  }

 private:
  int take_spares(double now) {
    for (; !repairs_.empty() && repairs_.top() <= now; repairs_.pop()) ++spares_;
    const int taken = std::min(spares_, missing_);
    spares_ -= taken, missing_ -= taken;
    return taken;
  }
  double planned() const {
    return next_planned_ < training_.failures.size() ? training_.failures[next_planned_].at : never;
  }
  void draw(double now) {
    const int working = training_.nodes - missing_;
    random_ = never;
    if (training_.node_mtbf_s > 0 && working > 0)
      random_ = now - std::log(uniform(seed_, draws_++)) * training_.node_mtbf_s / working;
  }

  const FaultyTraining& training_;
  std::uint64_t seed_ = 0, draws_ = 0;
  int spares_ = 0, missing_ = 0;
  std::int64_t failures_ = 0;
  std::size_t next_planned_ = 0;
  double random_ = never;
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs_;
};

class History {
 public:
  History(const FaultyTraining& training, double horizon_s, std::int64_t steps, std::uint64_t seed)
      : training_(training), horizon_(horizon_s), steps_left_(steps > 0 ? steps : unlimited), nodes_(training, seed) {}

  Goodput run() {
    while (now_ < horizon_ && steps_left_ > 0) {
      train();
      if (now_ < horizon_ && steps_left_ > 0) recover();
    }
    sum_.elapsed_s = now_;
    sum_.failures = nodes_.failures();
    return sum_;
  }

 private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  // Runs checkpoints until the next failure, the horizon, or the end. recover() handles a failure.
  void train() {
    while (steps_left_ > 0) {
      const std::int64_t steps = std::min(training_.steps_per_checkpoint, steps_left_);
      const double work = static_cast<double>(steps) * training_.step_s, whole = work + training_.checkpoint_s;
      const double limit = std::min(nodes_.next_failure(), horizon_);
      if (now_ + whole <= limit) {
        commit(steps, work, whole, limit);
        continue;
      }
      const double done = limit - now_;
      now_ = limit;
      if (limit < horizon_) {
        sum_.lost_s += done;
      } else {
        sum_.useful_s += std::min(done, work);
        sum_.checkpoint_s += std::max(0.0, done - work);
      }
      return;
    }
  }

  // Takes as many equal intervals as end before `limit`, so that a history's cost does not depend on their number.
  void commit(std::int64_t steps, double work, double whole, double limit) {
    const std::int64_t fitting =
        std::isinf(limit) ? steps_left_ / steps : static_cast<std::int64_t>((limit - now_) / whole);
    const std::int64_t count = std::clamp<std::int64_t>(fitting, 1, steps_left_ / steps);
    now_ += static_cast<double>(count) * whole;
    sum_.useful_s += static_cast<double>(count) * work;
    sum_.checkpoint_s += static_cast<double>(count) * training_.checkpoint_s;
    steps_left_ -= count * steps;
  }

  // From a failure, which is now, to the end of a restart that no other failure undoes.
  void recover() {
    nodes_.fail();
    while (now_ < horizon_) {
      if (!nodes_.complete()) {
        wait();
        continue;
      }
      const double end = now_ + training_.restart_s;
      const double limit = std::min({end, nodes_.next_failure(), horizon_});
      sum_.restart_s += limit - now_;
      now_ = limit;
      if (limit == end) return;
      if (limit < horizon_) nodes_.fail();
    }
  }

  void wait() {
    const double next = std::min({nodes_.next_failure(), nodes_.next_repair(), horizon_});
    sum_.waiting_s += next - now_;
    now_ = next;
    if (now_ >= horizon_) return;
    if (nodes_.next_failure() <= now_)
      nodes_.fail();
    else
      nodes_.fill(now_);
  }

  const FaultyTraining& training_;
  double horizon_, now_ = 0;
  std::int64_t steps_left_;
  Nodes nodes_;
  Goodput sum_;
};

}  // namespace

Goodput simulate_faults(const FaultyTraining& training, double horizon_s, std::int64_t steps, std::uint64_t seed) {
  check(training);
  return History(training, horizon_s, steps, seed).run();
}

double daly_elapsed_s(const FaultyTraining& training, double useful_s) {
  const double m = training.mtbf_s(), tau = training.interval_s();
  return m * std::exp(training.restart_s / m) * std::expm1((tau + training.checkpoint_s) / m) * useful_s / tau;
}

double daly_share(const FaultyTraining& training) { return 1 / daly_elapsed_s(training, 1); }

double young_interval_s(double mtbf_s, double checkpoint_s) { return std::sqrt(2 * checkpoint_s * mtbf_s); }

double daly_interval_s(double mtbf_s, double checkpoint_s) {
  if (checkpoint_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = checkpoint_s / (2 * mtbf_s);
  return young_interval_s(mtbf_s, checkpoint_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint_s;
}

std::int64_t steps_of(double interval_s, double step_s) {
  return std::max<std::int64_t>(1, std::llround(std::min(interval_s / step_s, 1e15)));
}

}  // namespace slipway::models
