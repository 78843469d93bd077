#include "scenarios/predict/filling.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/machine/priced_cluster.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "schedules/fill/evaluation.h"
#include "schedules/fill/kfac.h"
#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"

namespace slipway::scenarios {
namespace {

FillOptions options_of(const Scenario& scenario) {
  FillOptions options;
  options.use_bubbles = scenario.step.fill != Fill::none;
  options.steps = scenario.step.optimizer.refresh_steps;
  return options;
}

FillSummary summary_of(const BubbleWork& bubble_work, const FillOptions& options, const Filling& filling) {
  FillSummary summary;
  summary.name = bubble_work.name;
  summary.in_bubbles = options.use_bubbles;
  summary.steps = filling.graph.window;
  summary.unfilled_step_s = filling.period_s;
  summary.filled_step_s = filling.window_period_s / filling.graph.window;
  summary.utilization = utilization_of(filling);
  summary.ranks = filling.ranks;
  const double ranks = static_cast<double>(filling.ranks.size());
  for (const RankFilling& rank : filling.ranks) {
    summary.bubble_work_s += rank.bubble_work_s / ranks;
    summary.behind_s += rank.behind_s / ranks;
  }
  return summary;
}

void refuse_violations(const TaskGraph& graph, const std::vector<Violation>& violations) {
  if (violations.empty()) return;
  std::string text = "filling the bubbles broke an invariant; this is a defect of slipway, please report it";
  for (const Violation& violation : violations) text += "\n" + describe(graph, violation);
  throw std::runtime_error(text);
}

// Layers of each stage if all are equal; otherwise 0.
int layers_per_stage(const Scenario& scenario) {
  const std::vector<Block> blocks = blocks_of(scenario.step.model);
  int layers = 0;
  for (const BlockRange& stage : split_blocks(scenario.step.model, scenario.step.layout)) {
    int count = 0;
    for (int block = stage.first; block < stage.last; ++block)
      count += blocks[block].kind == BlockKind::transformer ? 1 : 0;
    if (layers != 0 && layers != count) return 0;
    layers = count;
  }
  return layers;
}

// True for scenarios that the closed form describes, apart from unequal stages.
bool is_of_the_papers_kind(const Scenario& scenario) {
  return scenario.step.optimizer.name == "kfac" && !scenario.step.actions &&
         schedule_of(scenario.step).has_filled_form && scenario.step.layout.data * scenario.step.layout.context == 1 &&
         !scenario.cluster.groups.front().machine.blocks.empty();
}

std::string closed_form_row(const PipeFisherModel& model) { return fmt::format("{:.4g} steps", model.ratio); }

BubbleWork bubble_work_of(const Scenario& scenario, const TaskGraph& step, const Durations& own,
                          const PricedCluster& cluster) {
  if (scenario.step.optimizer.name == "kfac") return kfac_bubble_work(step, cluster);
  return evaluation_bubble_work(step, cluster, own, scenario.step.evaluation_micro_batches);
}

}  // namespace

bool has_bubble_work(const Scenario& scenario) { return has_bubble_work(scenario.step); }

Durations window_durations(const Scenario& scenario, const TaskGraph& step, const Durations& own,
                           const PricedCluster& cluster, int window, double stretch) {
  Durations durations;
  for (int s = 0; s < window; ++s) durations.seconds.insert(durations.seconds.end(), own.begin(), own.end());
  for (const BubbleTask& item : bubble_work_of(scenario, step, own, cluster).items)
    durations.push_back(item.seconds * (item.task.communicator == none ? stretch : 1));
  return durations;
}

void fill_bubbles(PreparedStep& prepared) {
  const Scenario& scenario = prepared.scenario;
  if (!has_bubble_work(scenario)) return;
  const FillOptions options = options_of(scenario);
  BubbleWork bubble_work;
  Filling filling;
  try {
    bubble_work = bubble_work_of(scenario, prepared.graph, prepared.durations, prepared.cluster);
    filling = fill(prepared.graph, prepared.durations, bubble_work, options);
  } catch (const std::invalid_argument& error) {
    throw UsageError(scenario.path + ": " + error.what());
  }
  refuse_violations(filling.graph, check_graph(filling.graph));
  refuse_violations(filling.graph, check_filling(prepared.graph, bubble_work, filling));
  prepared.filling = summary_of(bubble_work, options, filling);
  prepared.graph = std::move(filling.graph);
  prepared.durations = std::move(filling.durations);
  prepared.durations.host = host_issue_of(prepared.graph, prepared.cluster);  // bubble work is launched too
}

std::optional<PipeFisherModel> pipefisher_of(const Scenario& scenario) {
  const BlockTable& table = scenario.cluster.groups.front().machine.blocks;
  const bool one_way = schedule_of(scenario.step).copies == 1;
  const int layers = is_of_the_papers_kind(scenario) ? layers_per_stage(scenario) : 0;
  if (layers == 0) return std::nullopt;
  PipeFisherInput input;
  input.shape = one_way ? PipelineShape::one_way : PipelineShape::bidirectional;
  input.stages = scenario.step.layout.pipeline;
  input.micro_batches = static_cast<int>(scenario.step.global_batch / scenario.step.micro_batch);
  input.recompute = scenario.step.recompute == Recompute::full;
  input.stage = stage_times(row_of(table, scenario.step.micro_batch), layers);
  return pipefisher(input);
}

std::string filling_text(const PreparedStep& prepared) {
  if (!prepared.filling) return "";
  const FillSummary& f = *prepared.filling;
  const Utilization& u = f.utilization;
  std::string text =
      fmt::format("Bubbles filled with {} (utilization of the pipeline's time, mean over ranks):\n", f.name);
  text +=
      aligned_table({{"before", "after", "ceiling", "refreshed every", "ceiling's", "a rank for itself", "step before",
                      "found no gap"},
                     {readable_share(u.before), readable_share(u.after), readable_share(u.ceiling),
                      counted(f.steps, "step"), u.ceiling_steps > 0 ? counted(u.ceiling_steps, "step") : "no bubble",
                      readable_share(u.own_cycles), readable_seconds(f.unfilled_step_s),
                      fmt::format("{} of {} a rank", readable_seconds(f.behind_s), readable_seconds(f.bubble_work_s))}},
                    "  ");
  if (u.after > u.ceiling && f.behind_s > 0)
    text +=
        "  After is above the ceiling of the bubbles: work that found no gap runs behind the window, where "
        "no rank waits.\n"
        "  It makes steps longer and fuller.\n";
  if (const auto model = pipefisher_of(prepared.scenario)) {
    text += "Closed form without communication (Osawa et al. 2022):\n";
    text +=
        aligned_table({{"pipeline", "bubble", "K-FAC / bubble", "step", "sequences/s", "without K-FAC", "memory"},
                       {readable_seconds(model->pipeline_s), readable_seconds(model->bubble_s), closed_form_row(*model),
                        readable_seconds(model->step_s), fmt::format("{:.4g}", model->sequences_per_s),
                        fmt::format("{:.4g}", model->first_order_per_s), readable_bytes(model->memory_bytes)}},
                      "  ");
  } else if (is_of_the_papers_kind(prepared.scenario)) {
    text += "No closed form (Osawa et al. 2022): it needs equally many blocks in every stage.\n";
  }
  return text + "\n";
}

}  // namespace slipway::scenarios
