#include "schedules/bundle/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "schedules/check/actions.h"
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

bool inside(std::int64_t id, std::size_t size) { return id >= 0 && static_cast<std::size_t>(id) < size; }
bool is_size(double number) { return number >= 0 && std::isfinite(number); }

// The graph's tables with the bubble work in them.
class BubbleWorkCheck {
 public:
  BubbleWorkCheck(const PlacedBubbleWork& placed, const TaskGraph& window)
      : placed_(placed),
        window_(window),
        ranks_(window.static_bytes.size()),
        blocks_(blocks_of(window.step.model).size()) {}

  std::string defect() const {
    if (placed_.weights.size() != ranks_) return "it has memory for another number of ranks than the layout";
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      if (!is_size(placed_.weights[rank]) || placed_.weights[rank] < window_.static_bytes[rank].weights)
        return "the memory is not that of the step";
    for (const Work& work : placed_.works)
      if (!is_sound(work)) return "bubble work has a stage, operators or a size that are none";
    for (const Communicator& communicator : placed_.communicators)
      if (communicator.ranks.empty() || !std::all_of(communicator.ranks.begin(), communicator.ranks.end(),
                                                     [&](std::int32_t rank) { return inside(rank, ranks_); }))
        return "a group of bubble work has no ranks, or others than the layout";
    for (const PlacedTask& each : placed_.tasks)
      if (!is_sound(each)) return "bubble work points outside its tables";
    for (const Buffer& buffer : placed_.buffers)
      if (buffer.kind != BufferKind::kept || !inside(buffer.rank, ranks_) || !inside(buffer.writer, tasks()) ||
          !is_size(buffer.bytes))
        return "what bubble work keeps has a rank, a task or a size that is none";
    return "";
  }

 private:
  std::size_t tasks() const { return window_.tasks.size() + placed_.tasks.size(); }

  bool is_sound(const Work& work) const {
    if (work.kind != WorkKind::bubble_work || !is_size(work.bytes) || !is_size(work.elements)) return false;
    if (!inside(work.slice, static_cast<std::size_t>(window_.step.slices))) return false;
    if (work.block != none && !inside(work.block, blocks_)) return false;
    if (work.stage == none) return true;
    return inside(work.stage, window_.stages.size()) && work.first_op >= 0 && work.first_op <= work.last_op &&
           work.last_op <= std::ssize(window_.operators(work));
  }

  bool is_sound(const PlacedTask& each) const {
    const Task& task = each.task;
    const bool computes = task.communicator == none;
    const std::size_t works = window_.works.size(), buffers = window_.buffers.size() + placed_.buffers.size();
    return computes == (task.kind == TaskKind::bubble_work) &&
           (computes ? inside(task.rank, ranks_)
                     : inside(task.communicator, window_.communicators.size() + placed_.communicators.size())) &&
           task.work >= std::ssize(window_.works) && inside(task.work, works + placed_.works.size()) &&
           inside(task.step, static_cast<std::size_t>(window_.window)) &&
           std::all_of(each.reads.begin(), each.reads.end(), [&](BufferId id) { return id < buffers; }) &&
           std::all_of(each.after.begin(), each.after.end(), [&](TaskId id) { return id < tasks(); });
  }

  const PlacedBubbleWork& placed_;
  const TaskGraph& window_;
  std::size_t ranks_, blocks_;
};

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

std::string step_defect(const StepProgram& program) {
  const Step& step = program.step;
  if (std::string defect = numbers_defect(step); !defect.empty()) return defect;
  const double tasks = as(std::ssize(program.order)), added = as(std::ssize(program.bubble_work.tasks));
  if (program.window < 1 || as(program.window) > tasks) return "its window has no steps, or too many";
  if (rank_count(step.layout) > tasks || passes_of(step) * as(program.window) > tasks - added)
    return "it has fewer tasks than passes";
  if (!has_bubble_work(step) && program.window != 1) return "there is a window of a step without bubble work";
  if (const std::vector<Refusal> refused = refusals(step); !refused.empty()) return text_of(refused.front());
  return actions_defect(step);
}

std::string bubble_work_defect(const PlacedBubbleWork& placed, const TaskGraph& window) {
  return BubbleWorkCheck(placed, window).defect();
}

std::string order_defect(const TaskGraph& graph) {
  constexpr auto absent = std::numeric_limits<std::uint32_t>::max();
  if (graph.order.size() != graph.tasks.size())
    return "the order names " + std::to_string(graph.order.size()) + " tasks of " + std::to_string(graph.tasks.size());
  std::vector<std::uint32_t> position(graph.tasks.size(), absent);
  for (std::uint32_t i = 0; i < graph.order.size(); ++i) {
    if (graph.order[i] >= graph.tasks.size()) return "the order names a task that is none";
    if (position[graph.order[i]] != absent) return "the order names task " + std::to_string(graph.order[i]) + " twice";
    position[graph.order[i]] = i;
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const TaskId before : graph.predecessors[id])
      if (position[before] >= position[id])
        return "the order has " + label_of(graph, id) + " before " + label_of(graph, before) + ", which it needs";
  return "";
}

std::string compute_order_defect(const TaskGraph& graph, const Rows& lowered, std::size_t own) {
  for (std::size_t rank = 0; rank < lowered.size(); ++rank) {
    auto next = lowered[rank].begin();
    for (const TaskId id : graph.compute_order[rank]) {
      if (id >= own) continue;
      if (next == lowered[rank].end() || id != *next)
        return "the order has " + label_of(graph, id) + " where the schedule has another task of the rank";
      ++next;
    }
  }
  return "";
}

}  // namespace slipway::schedules
