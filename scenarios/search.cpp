#include "scenarios/search.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <queue>
#include <stdexcept>
#include <thread>

#include "scenarios/search_screen.h"
#include "scenarios/search_workers.h"

namespace slipway {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double rounding = 1 + 1e-9;  // the engines add up in other orders than the bounds
// With whole graphs up to the first size a search takes seconds; one of the second takes one.
constexpr double most_simulated_tasks = 20e3, most_tasks_of_a_row = 150e3;
// A replay of one member up to this size takes about a second.
constexpr double most_replayed_tasks = 1e6;
constexpr double front_slowest = 2;  // times the fastest: what is slower is no alternative

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Numbers {  // what a worker sends
  double step_time_s, mfu, compute_share, bubble_share, exposed_comm_share, memory_bytes, memory_share;
};
static_assert(sizeof(Numbers) <= Workers::result_bytes);

bool is_better(const PricedLayout& a, const PricedLayout& b) {
  return a.step_time_s != b.step_time_s ? a.step_time_s < b.step_time_s : a.memory_bytes < b.memory_bytes;
}

class Search {
 public:
  Search(const Scenario& scenario, const SearchOptions& options)
      : scenario_(scenario), options_(options), estimator_(lowering_input(scenario), scenario.cluster) {}

  SearchResult run(const SearchSpace& space) {
    const auto begin = std::chrono::steady_clock::now();
    Screening screened =
        screen(scenario_, space, options_.memory_share, estimator_, [this] { return interrupted(); });
    candidates_ = std::move(screened.candidates);
    result_.legal = screened.legal;
    result_.too_large = screened.too_large;
    result_.best_too_large = screened.best_too_large;
    result_.screening_s = seconds_since(begin);
    result_.engine = engine();
    if (result_.complete) {
      price();
      result_.pricing_s = seconds_since(begin) - result_.screening_s;
    }
    return std::move(result_);
  }

 private:
  bool interrupted() {
    if (options_.interrupted && options_.interrupted()) result_.complete = false;
    return !result_.complete;
  }

  SearchEngine engine() const {
    if (options_.engine != SearchEngine::automatic) return options_.engine;
    double least = infinite;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates_)
      if (candidate.bound_s < least) least = candidate.bound_s, best = &candidate;
    return best == nullptr || graph_tasks(scenario_, best->choice) <= most_simulated_tasks
               ? SearchEngine::simulation
               : SearchEngine::replay;
  }

  SearchEngine engine_of(const LayoutChoice& choice) const {
    const bool replayed =
        result_.engine == SearchEngine::replay && members_are_alike(scenario_.cluster, choice.layout);
    return replayed ? SearchEngine::replay : SearchEngine::simulation;
  }

  // Job 2i: candidate i by its engine; 2i + 1: simulated whole.
  void price() {
    const int cores = std::max(1U, std::thread::hardware_concurrency());
    Workers workers(options_.workers > 0 ? options_.workers : cores, [this](int job, std::byte* result) {
      const LayoutChoice& choice = candidates_[static_cast<std::size_t>(job / 2)].choice;
      const PricedLayout row =
          price_layout(scenario_, choice, job % 2 == 1 ? SearchEngine::simulation : engine_of(choice));
      const Numbers numbers{row.step_time_s,        row.mfu,          row.compute_share, row.bubble_share,
                            row.exposed_comm_share, row.memory_bytes, row.memory_share};
      std::memcpy(result, &numbers, sizeof numbers);
    });
    rows_.assign(candidates_.size(), {});
    best_first(workers);
    front(workers);
    simulate_whole(workers);
  }

  void take(Workers& workers) {
    const auto outcome = workers.take(100);
    if (!outcome) return;
    const auto index = static_cast<std::size_t>(outcome->job / 2);
    const LayoutChoice& choice = candidates_[index].choice;
    if (outcome->failed) {
      if (interrupted()) return;
      throw std::runtime_error("pricing the layout " + layout_text(choice) + ": " + outcome->text);
    }
    Numbers numbers;
    std::memcpy(&numbers, outcome->result, sizeof numbers);
    PricedLayout& row = rows_[index];
    if (outcome->job % 2 == 1) {
      whole_[index] = row;
      fill(numbers, SearchEngine::simulation, whole_[index]);
      return;
    }
    row.choice = choice;
    row.estimate = estimator_.estimate(choice);
    fill(numbers, engine_of(choice), row);
    if (row.memory_share > options_.memory_share) return;
    fastest_.insert(std::upper_bound(fastest_.begin(), fastest_.end(), row.step_time_s), row.step_time_s);
    if (static_cast<int>(fastest_.size()) > options_.best) fastest_.pop_back();
  }

  static void fill(const Numbers& numbers, SearchEngine engine, PricedLayout& row) {
    row.engine = engine;
    row.step_time_s = numbers.step_time_s, row.mfu = numbers.mfu;
    row.compute_share = numbers.compute_share, row.bubble_share = numbers.bubble_share;
    row.exposed_comm_share = numbers.exposed_comm_share;
    row.memory_bytes = numbers.memory_bytes, row.memory_share = numbers.memory_share;
  }

  // Nothing above this can be among the best.
  double limit() const {
    return static_cast<int>(fastest_.size()) < options_.best ? infinite : fastest_.back() * rounding;
  }

  void best_first(Workers& workers) {
    struct Item {
      double bound;
      std::size_t index;
      bool sharp;
      bool operator>(const Item& other) const {
        return bound != other.bound ? bound > other.bound : index > other.index;
      }
    };
    std::vector<Item> items;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      items.push_back({candidates_[i].bound_s, i, false});
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue(std::greater<>(), std::move(items));
    std::vector<Item> given;
    while (!interrupted()) {
      while (workers.idle() && !queue.empty() && queue.top().bound <= limit()) {
        Item item = queue.top();
        queue.pop();
        if (item.sharp) {
          given.push_back(item);
          workers.give(static_cast<int>(2 * item.index));
          continue;
        }
        item.sharp = true;
        item.bound = std::max(item.bound, estimator_.passes_bound(candidates_[item.index].choice));
        queue.push(item);
      }
      if (workers.busy() == 0) break;
      take(workers);
      if (options_.progress && !fastest_.empty())
        options_.progress("pricing", progress_share(given.size(), queue.empty() ? 0 : queue.top().bound));
    }
    // By the final limit, so that the answer does not depend on who was first.
    std::vector<std::size_t> counted;
    for (const Item& item : given)
      if (item.bound <= limit() && rows_[item.index].engine != SearchEngine::automatic)
        counted.push_back(item.index);
    collect(counted);
  }

  // How far the bound has come towards the best: it ends where the tenth best is.
  double progress_share(std::size_t given, double bound) const {
    const double end = limit();
    if (end == infinite) return 0;
    const double begin = fastest_.front() * 0.8;
    const double by_bound = std::clamp((bound - begin) / std::max(end - begin, 1e-12), 0.0, 0.99);
    return given == 0 ? 0 : by_bound;
  }

  void collect(const std::vector<std::size_t>& indices) {
    for (const std::size_t i : indices) {
      const PricedLayout& row = rows_[i];
      ++result_.priced;
      if (row.memory_share <= options_.memory_share) {
        best_.push_back(i);
        continue;
      }
      ++result_.too_large;
      if (!result_.best_too_large || row.step_time_s < result_.best_too_large->step_time_s)
        result_.best_too_large = row;
    }
    std::sort(best_.begin(), best_.end(), [&](std::size_t a, std::size_t b) {
      if (is_better(rows_[a], rows_[b])) return true;
      return !is_better(rows_[b], rows_[a]) && a < b;
    });
    if (best_.size() > static_cast<std::size_t>(options_.best))
      best_.resize(static_cast<std::size_t>(options_.best));
    for (const std::size_t i : best_) result_.best.push_back(rows_[i]);
  }

  void wait_for(Workers& workers, const std::vector<int>& jobs) {
    std::size_t next = 0;
    while (!interrupted() && (next < jobs.size() || workers.busy() > 0)) {
      while (next < jobs.size() && workers.idle()) workers.give(jobs[next++]);
      take(workers);
      if (options_.progress) options_.progress("pricing", 0.99);
    }
  }

  // The front of the bounds, then priced: layouts that use less memory than every faster one.
  void front(Workers& workers) {
    if (result_.best.empty()) return;
    const double slowest = front_slowest * result_.best.front().step_time_s;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (candidates_[i].bound_s <= slowest) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Candidate &x = candidates_[a], &y = candidates_[b];
      if (x.bound_s != y.bound_s) return x.bound_s < y.bound_s;
      return x.memory_bytes != y.memory_bytes ? x.memory_bytes < y.memory_bytes : a < b;
    });
    double least = infinite;
    std::vector<std::size_t> members{best_.front()};
    std::vector<int> jobs;
    for (const std::size_t i : order) {
      if (candidates_[i].memory_share >= least * 0.99) continue;  // 1 % less is no alternative
      least = candidates_[i].memory_share;
      members.push_back(i);
      const double tasks = graph_tasks(scenario_, candidates_[i].choice);
      const bool small = engine_of(candidates_[i].choice) == SearchEngine::simulation
                             ? tasks <= most_tasks_of_a_row
                             : tasks * candidates_[i].choice.layout.pipeline <=
                                   most_replayed_tasks * rank_count(candidates_[i].choice.layout);
      if (rows_[i].engine == SearchEngine::automatic && small) jobs.push_back(static_cast<int>(2 * i));
    }
    wait_for(workers, jobs);
    std::vector<PricedLayout> rows;
    for (const std::size_t i : members)
      if (rows_[i].engine != SearchEngine::automatic && rows_[i].memory_share <= options_.memory_share)
        rows.push_back(rows_[i]);
    std::stable_sort(rows.begin(), rows.end(), is_better);
    least = infinite;
    for (const PricedLayout& row : rows) {
      if (row.memory_share >= least || row.step_time_s > slowest) continue;
      least = row.memory_share;
      result_.pareto.push_back(row);
    }
  }

  // The best by replay, simulated with all ranks where that is quick; if all of them are, that orders them.
  void simulate_whole(Workers& workers) {
    std::vector<int> jobs;
    for (const std::size_t i : best_)
      if (rows_[i].engine == SearchEngine::replay &&
          graph_tasks(scenario_, candidates_[i].choice) <= most_tasks_of_a_row)
        jobs.push_back(static_cast<int>(2 * i + 1));
    wait_for(workers, jobs);
    if (!result_.complete || whole_.empty()) return;
    std::size_t simulated = 0;
    for (const PricedLayout& row : result_.best)
      simulated += row.engine == SearchEngine::simulation ? 1 : 0;
    const bool all = whole_.size() + simulated == best_.size();
    for (std::size_t row = 0; row < best_.size(); ++row) {
      const auto found = whole_.find(best_[row]);
      if (found == whole_.end()) continue;
      const double replayed = result_.best[row].step_time_s;
      if (all) result_.best[row] = found->second;
      (all ? result_.best[row].replay_step_s : result_.best[row].full_step_s) =
          all ? replayed : found->second.step_time_s;
    }
    if (all) std::stable_sort(result_.best.begin(), result_.best.end(), is_better);
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  StepEstimator estimator_;
  std::vector<Candidate> candidates_;
  std::vector<PricedLayout> rows_;  // per candidate
  std::map<std::size_t, PricedLayout> whole_;
  std::vector<double> fastest_;    // ascending, at most `best`
  std::vector<std::size_t> best_;  // candidates, in the order of result_.best
  SearchResult result_;
};

}  // namespace

SearchResult search_layouts(const Scenario& scenario, const SearchSpace& space,
                            const SearchOptions& options) {
  return Search(scenario, options).run(space);
}

}  // namespace slipway
