#include "scenarios/predict/prediction.h"
#include "scenarios/predict/simulated_step.h"

#include "library/loading.h"
#include "slipway/predict.h"

namespace slipway {
namespace {

std::vector<StageMemory> memory_of(const scenarios::Prediction& prediction) {
  std::vector<StageMemory> rows;
  for (std::size_t i = 0; i < prediction.memory.size(); ++i) {
    const scenarios::StageMemory& stage = prediction.memory[i];
    const scenarios::StageNeed& need = prediction.needs.at(i);
    const schedules::RankMemory& use = stage.use;
    rows.push_back({.pipeline_rank = static_cast<int>(i),
                    .rank = stage.rank,
                    .peak = use.peak,
                    .weights = use.fixed.weights,
                    .gradients = use.fixed.gradients,
                    .optimizer = use.fixed.optimizer,
                    .activations = use.activations_peak,
                    .peak_task = use.peak_task,
                    .needs = need.odds.bytes,
                    .needs_low = need.odds.least(),
                    .needs_high = need.odds.most(),
                    .capacity = need.capacity,
                    .fit_probability = need.probability});
  }
  return rows;
}

// The measured step's tasks, in the global order.
Timeline timeline_of(const scenarios::SimulatedStep& step) {
  const schedules::TaskGraph& graph = step.prepared.graph;
  const schedules::Timeline& times = step.simulation.timeline;
  const std::size_t first = schedules::measured_step(times) * graph.tasks.size();
  double start = std::numeric_limits<double>::infinity();
  for (const schedules::TaskId task : graph.order) start = std::min(start, times.start[first + task]);
  Timeline rows;
  for (const schedules::TaskId task : graph.order)
    for (const std::int32_t rank : schedules::members_of(graph, task)) {
      if (!schedules::is_lowered(graph, rank)) continue;
      rows.rank.push_back(rank);
      rows.task.push_back(static_cast<std::int32_t>(task));
      rows.start_s.push_back(times.start[first + task] - start);
      rows.end_s.push_back(times.end[first + task] - start);
    }
  return rows;
}

}  // namespace

std::optional<Interval> interval_of(const std::optional<scenarios::StepInterval>& interval) {
  return interval ? std::optional(Interval{interval->low_s, interval->high_s}) : std::nullopt;
}

Prediction predict(const Scenario& scenario, const PredictOptions& options) {
  return translated([&] {
    scenarios::StepOptions how;
    how.representatives_only = !options.all_ranks;
    how.steps = options.steps;
    how.periodic = !options.timeline;  // a timeline has every micro-batch
    const scenarios::Scenario read = loaded(scenario);
    const auto [step, found] =
        scenarios::predict(read, how, scenarios::plain_workers(options.watch.progress, options.watch.interrupted));
    Prediction answer;
    answer.scenario = read.name;
    answer.step_time_s = found.step.step_time_s;
    answer.interval = interval_of(found.interval);
    answer.makespan_s = found.step.makespan_s;
    answer.tokens_per_s = found.tokens_per_s;
    answer.mfu = found.step.mfu;
    answer.compute_share = found.step.compute_share;
    answer.exposed_comm_share = found.step.exposed_comm_share;
    answer.bubble_share = found.step.bubble_share;
    answer.memory = memory_of(found);
    answer.fit_probability = found.verdict.probability;
    answer.fits = found.verdict.fits;
    if (found.training)
      answer.training_days = found.training->days, answer.training_gpu_hours = found.training->gpu_hours;
    answer.rests_on = scenarios::basis_text(found.basis);
    if (options.timeline) answer.timeline = timeline_of(step);
    return answer;
  });
}

}  // namespace slipway
