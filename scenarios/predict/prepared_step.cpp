#include "scenarios/predict/prepared_step.h"

#include <fmt/format.h>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/keys.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/graph_size.h"
#include "scenarios/predict/readable.h"
#include "schedules/bound/balanced_split.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/representatives.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {
namespace {

const Machine& machine_of(const Scenario& scenario, int rank) {
  const auto group = static_cast<std::size_t>(place_of(scenario.cluster, rank).group);
  return scenario.cluster.groups[group].machine;
}

void refuse_violations(const TaskGraph& graph) {
  const std::vector<Violation> violations = check_graph(graph);
  if (violations.empty()) return;
  std::string text = "the task graph breaks an invariant; this is a defect of slipway, please report it";
  for (const Violation& violation : violations) text += "\n" + describe(graph, violation);
  throw std::runtime_error(text);
}

std::string layout_text(const Layout& layout) {
  std::string text;
  const auto add = [&](const char* name, int degree) {
    if (degree > 1) text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(degree);
  };
  add("tensor", layout.tensor);
  if (layout.sequence_parallel) text += ", sequence parallel";
  add("context", layout.context);
  if (layout.context > 1 && layout.context_exchange == ContextExchange::ring) text += " (ring)";
  add("pipeline", layout.pipeline);
  if (layout.pipeline > 1) add("chunks", layout.chunks);
  add("data", layout.data);
  add("expert", layout.expert);
  if (layout.zero > 0) text += (text.empty() ? "zero " : ", zero ") + std::to_string(layout.zero);
  return text.empty() ? "one rank" : text;
}

// The representative ranks (schedules/lower/representatives.h), and why none could be left out, where that was possible
// in principle.
struct LoweredRanks {
  Representatives representatives;  // none: all ranks
  std::string why_all;
};

// Bubble work and copies of the model make the members of a pipeline rank differ.
LoweredRanks lowered_ranks(const Scenario& scenario, const PricedCluster& cluster) {
  const Layout& layout = scenario.step.layout;
  const JoinedRanks joined = joined_ranks(scenario.step);
  const char* reason =
      has_bubble_work(scenario) ? "bubble work differs between ranks" : why_no_representatives(cluster, layout, joined);
  LoweredRanks ranks;
  if (reason == nullptr) ranks.representatives = representatives_of(cluster, layout, joined);
  if (layout.tensor * layout.context * layout.data == 1) return ranks;
  if (lowered_count(layout, ranks.representatives) < rank_count(layout)) return ranks;
  ranks.why_all = reason != nullptr ? reason
                                    : "no representative ranks exist for all pipeline ranks: machines, speeds, links "
                                      "or shared ports differ";
  return ranks;
}

// A flapping link keeps no period, and the report of degradation covers the whole step.
bool may_leave_out_micro_batches(const Scenario& scenario, const PrepareOptions& options) {
  return options.patience > 0 && !has_bubble_work(scenario) && !is_degraded(scenario.cluster);
}

// The step's graph, with fewer micro-batches where options allow it and the schedule repeats.
TaskGraph lowered(PreparedStep& prepared, const PrepareOptions& options) {
  Step step = prepared.scenario.step;
  LoweredRanks ranks;
  if (options.representatives_only) ranks = lowered_ranks(prepared.scenario, prepared.cluster);
  prepared.why_all_ranks = std::move(ranks.why_all);
  if (may_leave_out_micro_batches(prepared.scenario, options))
    prepared.periodic = periodic_actions(action_lists(step), micro_batches_of(step), options.patience);
  if (!prepared.periodic) return lower(step, ranks.representatives);
  step.actions = std::make_shared<const ActionLists>(prepared.periodic->actions);
  step.global_batch = prepared.periodic->micro_batches * step.micro_batch * step.layout.data;
  TaskGraph graph = lower(step, ranks.representatives);
  graph.step = prepared.scenario.step;
  return graph;
}

PreparedStep ordered_or_refused(Scenario scenario, const PrepareOptions& options) {
  const std::string path = scenario.path;
  try {
    return prepared_unchecked(std::move(scenario), options);
  } catch (const std::invalid_argument& error) {
    throw UsageError(path + ": " + error.what());
  }
}

// Where a schedule repeats, the graph has at least as many micro-batches as a pipeline has ranks (periodic.h).
void refuse_too_large(const Scenario& scenario, const PrepareOptions& options) {
  Step step = scenario.step;
  if (may_leave_out_micro_batches(scenario, options) && schedules::micro_batches_of(step) > step.layout.pipeline)
    step.global_batch = step.layout.pipeline * step.micro_batch * step.layout.data;
  constexpr double small = 1e5;  // passes of all ranks; they are lowered in less time than they are counted
  const double passes = 2.0 * stage_count(step.layout) * schedules::micro_batches_of(step) * step.slices;
  const double all_passes = passes * member_count(step.layout);
  if (all_passes < small) return;
  const double available = available_memory();
  const bool all_ranks =
      !options.representatives_only || !lowered_ranks(scenario, priced_cluster(scenario)).why_all.empty();
  if (all_ranks) refuse_beyond_memory(scenario, {.tasks = all_passes}, available);  // each is a task at least
  const GraphSize size = estimated_size(step, all_ranks, [&](const Step& smaller) {
    Scenario small = scenario;
    small.step = smaller;
    const PreparedStep prepared = ordered_or_refused(std::move(small), {.representatives_only = !all_ranks});
    refuse_violations(prepared.graph);
    return prepared.graph.tasks.size();
  });
  refuse_beyond_memory(scenario, size, available);
  if (options.on_size && size.tasks > 0) options.on_size(size);
}

// Choices that cost time or memory and are not the default: ", recompute full, kernels torch".
std::string choices_text(const Step& step) {
  std::string text;
  if (step.slices > 1) text += fmt::format(", {} slices", step.slices);
  for (const auto& each : recomputed_module_names)
    if (step.levers.recomputed.has(each.value)) text += std::string(", recompute ") + each.name;
  if (step.levers.lora.rank > 0) text += ", LoRA of rank " + std::to_string(step.levers.lora.rank);
  if (step.recompute != Recompute::none) text += ", recompute " + std::string(name_of(step.recompute));
  if (step.kernels != Step{}.kernels) text += ", kernels " + std::string(name_of(step.kernels));
  return text;
}

std::string parameters_text(const Model& model) {
  const std::string all = readable_count(static_cast<double>(parameter_count(model))) + " parameters";
  if (!has_experts(model)) return all;
  return all + ", " + readable_count(static_cast<double>(active_parameter_count(model))) + " active";
}

}  // namespace

void refuse_uncalibrated(const Scenario& scenario) {
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!awaits_calibration(groups[i].machine)) continue;
    const std::string& file = scenario.machine_files.at(i);
    throw UsageError(scenario.path + ": the machine " + groups[i].machine.name +
                     (file.empty() ? "" : " (" + file + ")") + " has no measured rates yet; run `slipway calibrate " +
                     scenario.path + " --measure -o M.yaml`, then set cluster.machine to M.yaml");
  }
}

PreparedStep prepared_unchecked(Scenario scenario, const PrepareOptions& options) {
  PreparedStep prepared;
  prepared.scenario = std::move(scenario);
  prepared.cluster = priced_cluster(prepared.scenario);
  prepared.graph = lowered(prepared, options);
  prepared.durations = order_and_price(prepared.graph, prepared.cluster);
  return prepared;
}

PreparedStep prepared_step(Scenario scenario, const PrepareOptions& options) {
  refuse_uncalibrated(scenario);
  refuse_too_large(scenario, options);
  PreparedStep prepared = ordered_or_refused(std::move(scenario), options);
  refuse_violations(prepared.graph);
  fill_bubbles(prepared);
  return prepared;
}

double peak_flops(const Scenario& scenario) {
  double sum = 0;
  // A block table leaves embedding and head free, but the FLOPs of the MFU count them. So there is no share of a peak.
  if (!scenario.cluster.groups.front().machine.blocks.empty()) return 0;
  for (int rank = 0; rank < rank_count(scenario.step.layout); ++rank) {
    const double peak = machine_of(scenario, rank).peak_flops[static_cast<std::size_t>(scenario.step.dtype)];
    if (peak <= 0) return 0;
    sum += peak;
  }
  return sum / scenario.cluster.ranks_per_gpu;
}

std::vector<double> memory_capacities(const Scenario& scenario) {
  std::vector<double> bytes;
  for (int rank = 0; rank < rank_count(scenario.step.layout); ++rank) {
    bytes.push_back(machine_of(scenario, rank).memory_bytes);
  }
  return bytes;
}

std::string on_machine(const Scenario& scenario, int rank) {
  return has_several_machines(scenario.cluster) ? " of " + machine_of(scenario, rank).name : "";
}

int micro_batches_of(const PreparedStep& prepared) { return schedules::micro_batches_of(prepared.scenario.step); }

double tokens_per_step(const Scenario& scenario) {
  return static_cast<double>(scenario.step.global_batch) * static_cast<double>(scenario.step.model->sequence);
}

std::string machines_text(const Cluster& cluster) {
  std::string text;
  for (const NodeGroup& group : cluster.groups) {
    if (!text.empty()) text += " + ";
    text += std::to_string(group.nodes * group.gpus_per_node) + " x " + group.machine.name;
  }
  return text;
}

std::string trainer_text(const Scenario& scenario) {
  if (!scenario.names_trainer) return "";
  const std::string by = scenario.trainer_file.empty() ? "" : " of " + scenario.trainer_file;
  if (is_priced_by_trainer(scenario.cluster)) return "; as " + scenario.trainer.name + by + " trains";
  return "; this machine has no measured kernels: priced by its profile, not as " + scenario.trainer.name + " trains";
}

std::string headline(const PreparedStep& prepared) {
  const Scenario& s = prepared.scenario;
  return fmt::format("{}: {} ({}), sequence {}, on {}: {}; {}, {} of {}, {}{}{}", s.name, s.step.model->name,
                     parameters_text(s.step.model), s.step.model->sequence, machines_text(s.cluster),
                     layout_text(s.step.layout), s.step.actions ? "schedule of a CSV" : s.step.schedule,
                     counted(micro_batches_of(prepared), "micro-batch"), counted(s.step.micro_batch, "sequence"),
                     name_of(s.step.dtype), choices_text(s.step), trainer_text(s));
}

}  // namespace slipway::scenarios
