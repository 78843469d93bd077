#include "schedules/bundle/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "schedules/check/actions.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/lower/lowering.h"
#include "schedules/rules/rules.h"

namespace slipway::schedules {
namespace {

// A count of a block, a layout or a step: large enough for any model, small enough that two of them can be multiplied.
constexpr double most_count = 1e9;
constexpr double most_product = 9e16;  // as in the rule book, of what is counted in 64-bit integers
constexpr double most_ranks = 1e7, most_stages = 1e6;
// As scenarios/language/keys.cpp has them. Blocks and experts are laid out in memory, so a few digits of a file must not be
// the reason to make more of them.
constexpr double most_layers = 1e4, most_experts = 1e5;

struct Number {
  const char* name;
  double value;
  double least = 0, most = most_count;
};

// The first one that is no whole number from its least to its most.
std::string first_defect(std::initializer_list<Number> numbers) {
  for (const Number& number : numbers)
    if (!(number.value >= number.least && number.value <= number.most))
      return std::string(number.name) + " is " + std::to_string(number.value);
  return "";
}

double as(std::int64_t number) { return static_cast<double>(number); }

std::string block_defect(const BlockRun& run) {
  const Block& b = run.block;
  // A head that predicts further tokens contains a layer.
  const double used = b.kind == BlockKind::transformer || b.predicted_tokens > 0 ? 1 : 0;
  const std::string defect = first_defect({{"count", as(run.count), 1},
                                           {"hidden", as(b.hidden), 1},
                                           {"ffn", as(b.ffn)},
                                           {"experts", as(b.experts), 0, most_experts},
                                           {"experts_per_token", as(b.experts_per_token), b.experts > 0 ? 1.0 : 0.0},
                                           {"shared_ffn", as(b.shared_ffn)},
                                           {"expert_groups", as(b.expert_groups), 1},
                                           {"groups_per_token", as(b.groups_per_token), 1},
                                           {"heads", as(b.heads), used},
                                           {"kv_heads", as(b.kv_heads), used},
                                           {"head_dim", as(b.head_dim), used},
                                           {"v_head_dim", as(b.v_head_dim)},
                                           {"rope_head_dim", as(b.rope_head_dim)},
                                           {"kv_latent", as(b.kv_latent)},
                                           {"q_latent", as(b.q_latent)},
                                           {"window", as(b.window)},
                                           {"vocab", as(b.vocab), b.kind == BlockKind::transformer ? 0.0 : 1.0},
                                           {"max_positions", as(b.max_positions)},
                                           {"token_types", as(b.token_types)},
                                           {"predicted_tokens", as(b.predicted_tokens)}});
  if (!defect.empty()) return "a block's " + defect;
  if (b.experts_per_token > b.experts || b.groups_per_token > b.expert_groups ||
      (b.experts > 0 && b.experts % b.expert_groups != 0))
    return "a block's router chooses among experts that are not there";
  if (used > 0 && b.heads % b.kv_heads != 0) return "a block's key-value heads do not divide its heads";
  if (b.rope_head_dim > b.head_dim) return "a block turns more numbers of a head than there are";
  return "";
}

// Parameters of a run's blocks, at least; in doubles, which do not overflow.
double parameters_of(const BlockRun& run) {
  const Block& b = run.block;
  const double head = as(std::max({b.head_dim, b.v_head_dim, b.rope_head_dim}));
  const double width = as(b.ffn) * as(std::max<std::int64_t>(1, b.experts)) + as(b.shared_ffn) +
                       3 * as(b.heads) * head + as(b.kv_latent) + as(b.q_latent) + as(b.vocab) + as(b.max_positions) +
                       as(b.token_types);
  return as(run.count) * 3 * as(b.hidden) * width;
}

std::string model_defect(const Model& model) {
  double blocks = 0, parameters = 0;
  for (const BlockRun& run : model.runs) {
    if (std::string defect = block_defect(run); !defect.empty()) return defect;
    blocks += as(run.count), parameters += parameters_of(run);
  }
  if (model.runs.size() < 2) return "the model has no embedding or no head";
  for (const BlockRun& run : model.runs) {
    const BlockKind kind = &run == &model.runs.front()  ? BlockKind::embedding
                           : &run == &model.runs.back() ? BlockKind::head
                                                        : BlockKind::transformer;
    if (run.block.kind != kind || (kind != BlockKind::transformer && run.count != 1))
      return "the model's blocks are not an embedding, layers and a head";
  }
  if (blocks > most_layers + 2 || parameters > most_product)
    return "the model has more blocks or parameters than can be counted";
  return first_defect({{"the sequence", as(model.sequence), 1}});
}

std::string layout_defect(const Layout& l) {
  const double ranks = as(l.tensor) * as(l.pipeline) * as(l.context) * as(l.data);
  std::string defect = first_defect({{"tensor", as(l.tensor), 1},
                                     {"pipeline", as(l.pipeline), 1},
                                     {"chunks", as(l.chunks), 1},
                                     {"context", as(l.context), 1},
                                     {"data", as(l.data), 1},
                                     {"expert", as(l.expert), 1},
                                     {"expert_tensor", as(l.expert_tensor)},
                                     {"replicate", as(l.replicate), 1}});
  if (defect.empty() && (l.zero < 0 || l.zero > 3)) defect = "zero is " + std::to_string(l.zero);
  if (defect.empty() && (ranks > most_ranks || as(l.pipeline) * as(l.chunks) > most_stages))
    defect = "it has more ranks or stages than can be counted";
  for (const int layers : l.split_list)
    if (defect.empty() && (layers < 0 || as(layers) > most_layers))
      defect = "split has a stage of " + std::to_string(layers);
  return defect.empty() ? "" : "the layout: " + defect;
}

// Bits of values that the enumeration does not have.
bool has_more_than(std::uint8_t bits, std::size_t values) { return (static_cast<unsigned>(bits) >> values) != 0; }

std::string levers_defect(const Levers& levers) {
  const bool unknown = has_more_than(levers.recomputed.bits, recomputed_module_names.size()) ||
                       has_more_than(levers.graphs.bits, graph_scope_names.size()) ||
                       has_more_than(levers.offloaded.bits, offloaded_input_names.size()) ||
                       has_more_than(levers.lora.modules.bits, lora_module_names.size());
  return unknown ? "a set of modules has a value that is none"
                 : first_defect({{"offloaded_layers", as(levers.offloaded_layers)},
                                 {"the rank of adapters", as(levers.lora.rank)}});
}

std::string optimizer_defect(const Optimizer& o) {
  for (const double number : {o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, o.damping, o.offload_fraction,
                              o.router_bias_speed, o.lr_schedule.least})
    if (!std::isfinite(number)) return "the optimizer has a number that is none";
  if (o.lr_schedule.warmup_samples < 0 || o.lr_schedule.decay_samples < 0 || o.refresh_steps < 1)
    return "the optimizer's warm-up, decay or refresh is no count";
  return "";
}

}  // namespace

std::string numbers_defect(const Step& step) {
  std::string defect = model_defect(step.model);
  if (defect.empty()) defect = layout_defect(step.layout);
  if (defect.empty()) defect = optimizer_defect(step.optimizer);
  if (defect.empty())
    defect = first_defect({{"slices", as(step.slices), 1},
                           {"group", as(step.group)},
                           {"micro_batch", as(step.micro_batch), 1},
                           {"global_batch", as(step.global_batch), 1},
                           {"evaluation_micro_batches", as(step.evaluation_micro_batches)},
                           {"balancing_sequences", as(step.routing.balancing_sequences)}});
  if (defect.empty()) defect = levers_defect(step.levers);
  const Routing& routing = step.routing;
  for (const double number : {step.clip_norm, routing.skew, routing.balancing_loss, routing.capacity})
    if (defect.empty() && !(number >= 0 && std::isfinite(number))) defect = "a number of the step is below 0, or none";
  return defect;
}

// As scenarios/language/keys.cpp has them.
std::string run_defect(const Run& run) {
  const std::string defect = first_defect({{"steps", as(run.steps), 1},
                                           {"checkpoint_steps", as(run.checkpoint_steps)},
                                           {"checkpoints_kept", as(run.checkpoints_kept), 1}});
  if (!defect.empty()) return "the run's " + defect;
  if (!(run.heartbeat_s > 0 && run.heartbeat_s <= 1e6))
    return "the run's heartbeat is " + std::to_string(run.heartbeat_s) + " seconds";
  return "";
}

namespace {

// Passes of the step: each is a task at least. So a file of few tasks is never the reason to list many actions.
double passes_of(const Step& step) {
  const Layout& l = step.layout;
  const double replicas = as(l.data), micro_batches = as(step.global_batch) / (replicas * as(step.micro_batch));
  return 2 * micro_batches * as(step.slices) * as(l.pipeline) * as(l.chunks) * replicas * as(l.context) * as(l.tensor);
}

std::string actions_defect(const Step& step) {
  if (step.actions == nullptr) return "";
  const ScheduleShape shape = schedule_shape(step);
  const std::vector<ActionDefect> defects = check_actions(*step.actions, shape);
  return defects.empty() ? "" : defects.front().message;
}

}  // namespace

std::string step_defect(const TaskGraph& graph) {
  const Step& step = graph.step;
  const auto ranks = static_cast<std::size_t>(rank_count(step.layout));
  if (graph.static_bytes.size() != ranks) return "it has memory for another number of ranks than the layout";
  if (graph.window < 1 || as(graph.window) > as(std::ssize(graph.tasks))) return "its window has no steps, or too many";
  if (passes_of(step) * as(graph.window) > as(std::ssize(graph.tasks))) return "it has fewer tasks than passes";
  if (const std::vector<Refusal> refused = refusals(step); !refused.empty()) return text_of(refused.front());
  return actions_defect(step);
}

namespace {

// Equal but for rounding by another compiler or other flags.
bool about_equal(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

bool same(const Work& a, const Work& b) {
  return a.kind == b.kind && a.pass == b.pass && a.stage == b.stage && a.slice == b.slice && a.block == b.block &&
         a.experts == b.experts && a.first_op == b.first_op && a.last_op == b.last_op && a.collective == b.collective &&
         a.wire == b.wire && a.dtype == b.dtype && about_equal(a.bytes, b.bytes) &&
         about_equal(a.elements, b.elements) && a.bubble_work == b.bubble_work && a.suffix == b.suffix;
}

bool same(const Communicator& a, const Communicator& b) {
  return a.name == b.name && a.axis == b.axis && a.ranks == b.ranks && a.tokens.dispatcher == b.tokens.dispatcher &&
         a.tokens.per_token == b.tokens.per_token && a.tokens.reach == b.tokens.reach;
}

bool same(const Task& a, const Task& b) {
  return a.kind == b.kind && a.rank == b.rank && a.communicator == b.communicator && a.work == b.work &&
         a.micro_batch == b.micro_batch && a.slice == b.slice && a.step == b.step;
}

bool same(const Buffer& a, const Buffer& b) {
  return a.kind == b.kind && a.wire == b.wire && a.rank == b.rank && about_equal(a.bytes, b.bytes) &&
         a.writer == b.writer;
}

// Bubble work stands behind what the lowering made.
template <typename List>
bool begins_with(const List& found, const List& made) {
  return found.size() >= made.size() &&
         std::equal(made.begin(), made.end(), found.begin(), [](const auto& a, const auto& b) { return same(a, b); });
}

// Bubble work may read what a task makes, and a task may wait for it.
bool contains_rows(const Rows& found, const Rows& made) {
  for (std::size_t row = 0; row < made.size(); ++row) {
    const std::span<const std::uint32_t> own = made[row], all = found[row];
    for (const std::uint32_t value : own)
      if (std::find(all.begin(), all.end(), value) == all.end()) return false;
  }
  return true;
}

std::string bubble_work_defect(const TaskGraph& graph, std::size_t own) {
  for (std::size_t id = own; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[static_cast<TaskId>(id)];
    const Work& work = graph.work(task);
    const bool computes = task.communicator == none;
    if (work.kind != WorkKind::bubble_work || computes != (task.kind == TaskKind::bubble_work))
      return "behind the steps stands what is no bubble work";
    if (!(work.bytes >= 0 && std::isfinite(work.bytes) && work.elements >= 0 && std::isfinite(work.elements)))
      return "bubble work has a size that is none";
  }
  return "";
}

bool same_static_bytes(const TaskGraph& found, const TaskGraph& made) {
  return std::equal(made.static_bytes.begin(), made.static_bytes.end(), found.static_bytes.begin(),
                    [&](const StaticBytes& a, const StaticBytes& b) {
                      const bool more = found.tasks.size() > made.tasks.size();  // bubble work holds further weights
                      return (about_equal(a.weights, b.weights) || (more && b.weights >= a.weights)) &&
                             about_equal(a.gradients, b.gradients) && about_equal(a.optimizer, b.optimizer);
                    });
}

}  // namespace

std::string lowering_defect(const TaskGraph& graph) {
  const auto lowered = [&]() -> std::optional<TaskGraph> {
    try {
      return lower(graph.step, {}, graph.tasks.size() / static_cast<std::size_t>(graph.window));
    } catch (const std::length_error&) {
      return std::nullopt;  // of many layers a pass is thousands of tasks, so a short file could ask for gigabytes
    }
  };
  const std::optional<TaskGraph> step = lowered();
  if (!step) return "tasks are missing";
  const TaskGraph made = window_of(*step, graph.window);
  const bool has_bubble_work = graph.step.fill != Fill::none || uses_kfac(graph.step);
  if (!has_bubble_work &&
      (graph.window != 1 || graph.tasks.size() != made.tasks.size() || graph.buffers.size() != made.buffers.size()))
    return "there is work in the bubbles of a step that has none";
  if (graph.micro_batches != made.micro_batches || graph.placement.copies != made.placement.copies ||
      !std::equal(made.placement.rank.begin(), made.placement.rank.end(), graph.placement.rank.begin(),
                  graph.placement.rank.end()) ||
      !std::equal(made.stages.begin(), made.stages.end(), graph.stages.begin(), graph.stages.end()))
    return "stages and their ranks are not those of the layout";
  if (!begins_with(graph.communicators, made.communicators)) return "the groups of ranks are not those of the layout";
  if (!begins_with(graph.works, made.works)) return "the works are not those of the step";
  if (!begins_with(graph.tasks, made.tasks)) return "the tasks are not those of the step";
  if (!begins_with(graph.buffers, made.buffers)) return "the buffers are not those of the step";
  if (!same_static_bytes(graph, made)) return "the memory is not that of the step";
  if (!contains_rows(graph.inputs, made.inputs) || !contains_rows(graph.outputs, made.outputs) ||
      !contains_rows(graph.predecessors, made.predecessors) || graph.carried != made.carried)
    return "what tasks read, write and wait for is not that of the step";
  return bubble_work_defect(graph, made.tasks.size());
}

std::string order_defect(const TaskGraph& graph) {
  constexpr auto absent = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> position(graph.tasks.size(), absent);
  for (std::uint32_t i = 0; i < graph.order.size(); ++i) {
    if (position[graph.order[i]] != absent) return "the order names task " + std::to_string(graph.order[i]) + " twice";
    position[graph.order[i]] = i;
  }
  if (graph.order.size() != graph.tasks.size()) return "the order does not name every task";
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const TaskId before : graph.predecessors[id])
      if (position[before] >= position[id])
        return "the order has " + label_of(graph, id) + " before " + label_of(graph, before) + ", which it needs";
  return "";
}

}  // namespace slipway::schedules
