#include "scenarios/search/study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/search/variation.h"
#include "scenarios/search/workers.h"

namespace slipway::scenarios {

namespace {

using Numbers = std::map<std::string, double>;

void add_bubble_work(const PreparedStep& prepared, Numbers& numbers) {
  if (!prepared.filling) return;
  numbers["refresh_steps"] = prepared.filling->steps;
  const auto& utilization = prepared.filling->utilization;
  numbers["utilization_before"] = utilization.before;
  numbers["utilization"] = utilization.after;
  numbers["utilization_ceiling"] = utilization.ceiling;
  numbers["utilization_own_cycles"] = utilization.own_cycles;
  const auto model = pipefisher_of(prepared.scenario);
  if (!model) return;
  numbers["closed_form_step_time_s"] = model->step_s;
  numbers["closed_form_memory_bytes"] = model->memory_bytes;
}

Numbers numbers_of(const StudyPoint& point) {
  StepOptions options;
  options.makespan = false;
  const SimulatedStep simulated = simulated_step(checked_scenario(point.path, point.overrides), options);
  const PreparedStep& prepared = simulated.prepared;
  const Evaluation found = evaluation_of(simulated);
  const double step_s = found.step.step_time_s;
  Numbers numbers{{"step_time_s", step_s},
                  {"tokens_per_s", tokens_per_step(prepared.scenario) / step_s},
                  {"sequences_per_s", static_cast<double>(prepared.scenario.step.global_batch) / step_s},
                  {"bubble_share", found.step.bubble_share},
                  {"exposed_comm_share", found.step.exposed_comm_share},
                  {"peak_memory_bytes", found.timeline_bytes},
                  {"needed_memory_bytes", std::round(found.memory.bytes)},
                  {"fits", found.memory.fits() ? 1.0 : 0.0}};
  if (const auto interval = interval_of(prepared, step_s))
    numbers["step_time_low_s"] = interval->low_s, numbers["step_time_high_s"] = interval->high_s;
  if (found.step.mfu > 0) numbers["mfu"] = found.step.mfu;
  add_bubble_work(prepared, numbers);
  return numbers;
}

// The first complaint. If more follow, its first line is only a headline.
std::string in_short(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (lines.empty()) return "failed without a message";
  if (lines.size() == 1) return lines[0];
  std::string reason = lines[1];
  if (lines.size() > 2) reason += " (" + std::to_string(lines.size() - 2) + " more; `slipway simulate` lists all)";
  return reason;
}

// Hands points to workers until all are done. A worker that dies takes its points under way with it. Which of them
// caused that is unknown, so each row states it, and new workers get the rest.
class Runner {
 public:
  Runner(const std::vector<StudyPoint>& points, int workers, const std::function<void(double)>& done,
         const std::function<bool()>& interrupted)
      : points_(points), workers_(workers), done_(done), interrupted_(interrupted) {
    for (const StudyPoint& point : points) rows_.push_back({point, "", {}, {}});
  }

  std::vector<StudyRow> run() {
    while (unfinished() && !interrupted_()) {
      try {
        with_one_team();
      } catch (const std::runtime_error& error) {
        for (const int job : under_way_) rows_[job].error = error.what();
        finished_ += under_way_.size();
        under_way_.clear();
      }
    }
    for (; next_ < points_.size(); ++next_) under_way_.insert(static_cast<int>(next_));
    for (const int job : under_way_) rows_[job].error = "interrupted before its end";
    return std::move(rows_);
  }

 private:
  bool unfinished() const { return next_ < points_.size() || !under_way_.empty(); }

  void with_one_team() {
    Workers team(workers_, [this](int job, double) { return numbers_of(points_[job]); });
    while (unfinished() && !interrupted_()) {
      while (team.idle() && next_ < points_.size()) {
        under_way_.insert(static_cast<int>(next_));
        team.give(static_cast<int>(next_++));
      }
      if (const auto outcome = team.take(100)) take(*outcome);
      done_(static_cast<double>(finished_) / static_cast<double>(points_.size()));
    }
  }

  void take(const Workers::Outcome& outcome) {
    StudyRow& row = rows_[outcome.job];
    if (outcome.failure) {
      row.error = in_short(*outcome.failure);
    } else {
      outcome.answer.get_to(row.numbers);
      row.basis = basis_of_point(row.point);
    }
    under_way_.erase(outcome.job);
    ++finished_;
  }

  const std::vector<StudyPoint>& points_;
  int workers_;
  const std::function<void(double)>& done_;
  const std::function<bool()>& interrupted_;
  std::vector<StudyRow> rows_;
  std::set<int> under_way_;
  std::size_t next_ = 0, finished_ = 0;
};

}  // namespace

double StudyRow::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::vector<StudyPoint> points_of(const std::vector<std::string>& scenarios, const std::vector<std::string>& overrides,
                                  const std::vector<VariedKeys>& variations) {
  std::vector<StudyPoint> points;
  for (const std::string& path : scenarios) points.push_back({path, overrides, {}});
  for (const VariedKeys& variation : variations) {
    std::vector<StudyPoint> longer;
    for (const StudyPoint& point : points) {
      for (const auto& values : variation.values) {
        StudyPoint next = point;
        for (std::size_t k = 0; k < variation.keys.size(); ++k) {
          next.overrides.push_back(variation.keys[k] + "=" + values[k]);
          next.values.push_back(values[k]);
        }
        longer.push_back(std::move(next));
      }
    }
    points = std::move(longer);
  }
  return points;
}

Basis basis_of_point(const StudyPoint& point) {
  const LoadResult loaded = load_scenario(point.path, point.overrides);
  return loaded.errors.empty() ? basis_of(loaded.scenario) : Basis{};  // the file may have been edited meanwhile
}

std::vector<StudyRow> run_study(const std::vector<StudyPoint>& points, int workers,
                                const std::function<void(double)>& done, const std::function<bool()>& interrupted) {
  return Runner(points, std::min(workers, static_cast<int>(points.size())), done, interrupted).run();
}

}  // namespace slipway::scenarios
