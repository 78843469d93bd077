#include "schedules/bundle/bundle.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <istream>
#include <iterator>
#include <stdexcept>

#include "schedules/bundle/text_archive.h"
#include "schedules/bundle/verify.h"

namespace slipway::schedules {

// A reader takes no value beyond these.
template <>
constexpr auto last_value<BlockKind> = BlockKind::head;
template <>
constexpr auto last_value<Norm> = Norm::layer;
template <>
constexpr auto last_value<Mlp> = Mlp::squared_relu;
template <>
constexpr auto last_value<Positions> = Positions::none;
template <>
constexpr auto last_value<NormPlace> = NormPlace::both;
template <>
constexpr auto last_value<Parallel> = Parallel::two_norms;
template <>
constexpr auto last_value<QkNorm> = QkNorm::unweighted;
template <>
constexpr auto last_value<Family> = Family::bert;
template <>
constexpr auto last_value<RouterScores> = RouterScores::sigmoid;
template <>
constexpr auto last_value<ContextExchange> = ContextExchange::ring;
template <>
constexpr auto last_value<Dispatcher> = Dispatcher::hybridep;
template <>
constexpr auto last_value<SplitKind> = SplitKind::list;
template <>
constexpr auto last_value<DecayStyle> = DecayStyle::cosine;
template <>
constexpr auto last_value<Dtype> = Dtype::float16;
template <>
constexpr auto last_value<NarrowRecipe> = NarrowRecipe::nvfp4;
template <>
constexpr auto last_value<Recompute> = Recompute::full;
template <>
constexpr auto last_value<Kernels> = Kernels::flash2_rmsnorm;
template <>
constexpr auto last_value<Fill> = Fill::evaluation;
template <>
constexpr auto last_value<Pass> = Pass::recompute;
template <>
constexpr auto last_value<TaskKind> = TaskKind::bubble_work;
template <>
constexpr auto last_value<WorkKind> = WorkKind::host_copy;
template <>
constexpr auto last_value<BufferKind> = BufferKind::kept;
template <>
constexpr auto last_value<Collective> = Collective::shift;
template <>
constexpr auto last_value<Axis> = Axis::host;
template <>
constexpr auto last_value<BatchRule> = BatchRule::norm_test;
template <>
constexpr auto last_value<bool> = true;

namespace {

constexpr std::string_view magic = "slipway-bundle";
constexpr int version = 21;

void fields(auto& a, Is<BlockRun> auto& run) {
  auto& b = run.block;
  a.line("block");
  a(run.count, b.kind, b.hidden, b.ffn, b.experts, b.experts_per_token, b.shared_ffn, b.scores, b.normalises_scores,
    b.score_scale, b.expert_groups, b.groups_per_token, b.router_bias, b.heads, b.kv_heads, b.head_dim, b.vocab,
    b.max_positions, b.token_types, b.norm, b.mlp, b.positions, b.causal, b.bias, b.qkv_bias, b.qk_norm, b.post_norm,
    b.tied, b.rope_theta, b.norm_epsilon, b.v_head_dim, b.rope_head_dim, b.kv_latent, b.q_latent, b.window,
    b.window_chunks, b.sinks, b.out_bias, b.mlp_bias, b.qk_norm_over, b.norms, b.parallel, b.embedding_norm,
    b.predicted_tokens);
}

void fields(auto& a, Is<Layout> auto& l) {
  a.line("layout");
  a(l.tensor, l.pipeline, l.chunks, l.context, l.context_exchange, l.data, l.expert, l.expert_tensor, l.dispatcher,
    l.sequence_parallel, l.zero, l.replicate, l.split);
  a.list(l.split_list, [&](auto& layers) { a(layers); });
}

void fields(auto& a, Is<Model> auto& model) {
  a.line("model");
  a(model.name, model.family, model.sequence);
  a.list(model.runs, [&](auto& run) { fields(a, run); });
  a.list(model.only_predicted, [&](auto& name) { a(name); });
}

void fields(auto& a, Is<Optimizer> auto& o) {
  a.line("optimizer");
  auto& rate = o.lr_schedule;
  a(o.name, o.refresh_steps, o.damping, o.lr, rate.warmup_samples, rate.decay, rate.decay_samples, rate.least, o.beta1,
    o.beta2, o.epsilon, o.weight_decay, o.router_bias_speed, o.moment_dtype, o.offload_fraction);
}

// The lists of an imported schedule; a named one makes its own again.
void actions(auto& a, auto& shared) {
  a.line("actions");
  bool imported = shared != nullptr;
  a(imported);
  if (!imported) return;
  ActionLists lists;
  if constexpr (!std::remove_reference_t<decltype(a)>::reads) lists = *shared;
  a.list(lists, [&](auto& row) {
    a.line("row");
    a.list(row,
           [&](auto& action) { a(action.pass, action.stage, action.micro_batch, action.slice, action.with_next); });
  });
  if constexpr (std::remove_reference_t<decltype(a)>::reads)
    shared = std::make_shared<const ActionLists>(std::move(lists));
}

void fields(auto& a, Is<Step> auto& s) {
  Model model = s.model;
  fields(a, model);
  if constexpr (std::remove_reference_t<decltype(a)>::reads) s.model = std::move(model);
  fields(a, s.layout);
  fields(a, s.optimizer);
  a.line("step");
  a(s.schedule, s.slices, s.group, s.micro_batch, s.global_batch, s.dtype, s.gradient_dtype, s.recompute, s.kernels,
    s.clip_norm, s.worker_norms, s.fill, s.evaluation_micro_batches, s.overlap_grad_reduce, s.overlap_param_gather,
    s.overlap_tensor, s.routing.skew, s.routing.seed, s.routing.balancing_loss, s.routing.balancing_sequences,
    s.routing.capacity, s.routing.forced, s.blocking_transfers, s.delay_weight_grads, s.narrow,
    s.narrow_habits.one_copy, s.narrow_habits.casts_each_pass, s.narrow_habits.gathers_inputs,
    s.narrow_habits.gathers_weights, s.narrow_habits.dispatches, s.levers.recomputed.bits, s.levers.graphs.bits,
    s.levers.offloaded.bits, s.levers.offloaded_layers, s.levers.lora.rank, s.levers.lora.modules.bits);
  actions(a, s.actions);
}

void fields(auto& a, Is<Run> auto& run) {
  a.line("run");
  a(run.steps, run.seed, run.data, run.evaluation_data, run.checkpoint_steps, run.checkpoints_kept, run.heartbeat_s);
}

void fields(auto& a, Is<Work> auto& w) {
  a.line("work");
  a(w.kind, w.pass, w.stage, w.slice, w.block, w.experts, w.first_op, w.last_op, w.collective, w.wire, w.dtype, w.bytes,
    w.elements, w.bubble_work, w.suffix);
}

void fields(auto& a, Is<Communicator> auto& c) {
  a.line("communicator");
  a(c.name, c.axis, c.tokens.dispatcher, c.tokens.per_token, c.tokens.reach);
  a.list(c.ranks, [&](auto& rank) { a(rank); });
}

void fields(auto& a, Is<Buffer> auto& b) {
  a.line("buffer");
  a(b.kind, b.wire, b.rank, b.bytes, b.writer);
}

// One row of the compressed lists. A reader appends it.
void row(auto& a, auto& rows, std::size_t index) {
  std::vector<std::uint32_t> values;
  if constexpr (!std::remove_reference_t<decltype(a)>::reads) values.assign(rows[index].begin(), rows[index].end());
  a.list(values, [&](auto& value) { a(value); });
  if constexpr (std::remove_reference_t<decltype(a)>::reads) {
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
  }
}

void tasks(auto& a, auto& g) {
  a.line("tasks");
  std::size_t index = 0;
  a.list(g.tasks, [&](auto& t) {
    a.line("task");
    a(t.kind, t.rank, t.communicator, t.work, t.micro_batch, t.slice, t.step);
    row(a, g.inputs, index);
    row(a, g.outputs, index);
    row(a, g.predecessors, index);
    ++index;
  });
  a.line("order");
  a.list(g.order, [&](auto& id) { a(id); });
  a.line("carried");
  a.list(g.carried, [&](auto& pair) { a(pair.first, pair.second); });
}

void fields(auto& a, Is<TaskGraph> auto& g) {
  fields(a, g.step);
  a.line("graph");
  a(g.window, g.micro_batches);
  a.line("placement");
  a(g.placement.copies);
  a.list(g.placement.rank, [&](auto& rank) { a(rank); });
  a.line("stages");
  a.list(g.stages, [&](auto& stage) { a(stage.first, stage.last); });
  a.line("memory");
  a.list(g.static_bytes, [&](auto& s) { a(s.weights, s.gradients, s.optimizer); });
  a.line("communicators");
  a.list(g.communicators, [&](auto& c) { fields(a, c); });
  a.line("works");
  a.list(g.works, [&](auto& w) { fields(a, w); });
  a.line("buffers");
  a.list(g.buffers, [&](auto& b) { fields(a, b); });
  tasks(a, g);
}

void fields(auto& a, Is<BatchSchedule> auto& schedule) {
  a.line("batches");
  a(schedule.rule, schedule.warmup, schedule.eta, schedule.test_every, schedule.workers);
  a.list(schedule.rungs, [&](auto& rung) { a(rung); });
  a.list(schedule.stages, [&](auto& stage) { a(stage.from, stage.batch); });
}

void fields(auto& a, Is<Bundle> auto& bundle) {
  a.line("scenario");
  a(bundle.scenario);
  fields(a, bundle.run);
  fields(a, bundle.graph);
  fields(a, bundle.batches);
  a.line("larger");
  a.list(bundle.larger, [&](auto& graph) { fields(a, graph); });
  a.line("end");
}

// FNV-1a, 64 bits.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Refuses ids that point outside their table, before anything follows them.
class ReferenceCheck {
 public:
  ReferenceCheck(const TextReader& reader, const TaskGraph& graph)
      : reader_(reader), graph_(graph), ranks_(rank_count(graph.step.layout)) {}

  void run() const {
    const auto blocks = static_cast<int>(blocks_of(graph_.step.model).size());
    const Placement& placement = graph_.placement;
    require(placement.copies > 0 && placement.rank.size() == graph_.stages.size() &&
                placement.stages() % placement.copies == 0,
            "the placement of the stages");
    for (const std::int32_t rank : placement.rank)
      require(inside(rank, static_cast<std::size_t>(graph_.step.layout.pipeline)), "a stage's pipeline rank");
    for (const BlockRange& stage : graph_.stages) {
      require(stage.first >= 0 && stage.first <= stage.last && stage.last <= blocks, "a stage's blocks");
    }
    for (const Work& work : graph_.works) {
      require(work.stage == none || inside(work.stage, graph_.stages.size()), "a work's stage");
      require(inside(work.slice, static_cast<std::size_t>(graph_.step.slices)), "a work's slice");
      require(work.block == none || inside(work.block, static_cast<std::size_t>(blocks)), "a work's block");
    }
    for (const Communicator& c : graph_.communicators) {
      require(!c.ranks.empty(), "a communicator without members");
      for (const auto rank : c.ranks) require(is_rank(rank), "a communicator's rank");
    }
    check_tasks();
  }

  // Requires the derived operators.
  void check_operators() const {
    for (const Work& work : graph_.works) {
      if (work.stage == none) continue;
      const auto count = static_cast<int>(graph_.operators(work).size());
      require(work.first_op >= 0 && work.first_op <= work.last_op && work.last_op <= count, "a work's operators");
    }
  }

 private:
  void require(bool holds, const char* what) const {
    if (!holds) reader_.fail(std::string(what) + " points outside its table");
  }
  static bool inside(std::int64_t id, std::size_t size) { return id >= 0 && static_cast<std::size_t>(id) < size; }
  bool is_rank(std::int32_t rank) const { return rank >= 0 && rank < ranks_; }
  void all_below(const std::vector<std::uint32_t>& ids, std::size_t limit, const char* what) const {
    require(std::all_of(ids.begin(), ids.end(), [&](std::uint32_t id) { return id < limit; }), what);
  }

  void check_tasks() const {
    for (const Task& t : graph_.tasks) {
      require(inside(t.work, graph_.works.size()), "a task's work");
      require(inside(t.step, static_cast<std::size_t>(graph_.window)), "a task's step");
      require(t.communicator == none ? is_rank(t.rank) : inside(t.communicator, graph_.communicators.size()),
              "a task's rank or communicator");
    }
    for (const Buffer& buffer : graph_.buffers) {
      require(is_rank(buffer.rank) && (buffer.writer == none || inside(buffer.writer, graph_.tasks.size())),
              "a buffer's rank or writer");
    }
    all_below(graph_.inputs.values, graph_.buffers.size(), "a task's input");
    all_below(graph_.outputs.values, graph_.buffers.size(), "a task's output");
    all_below(graph_.predecessors.values, graph_.tasks.size(), "a task's predecessor");
    all_below(graph_.order, graph_.tasks.size(), "the order");
    for (const auto& [before, after] : graph_.carried) {
      require(before < graph_.tasks.size() && after < graph_.tasks.size(), "a carried dependency");
    }
  }

  const TextReader& reader_;
  const TaskGraph& graph_;
  std::int32_t ranks_;
};

// Derives what the text does not repeat: operators, successors, each rank's compute order.
void derive(TaskGraph& g) {
  set_stage_operators(g);
  g.successors = transposed(g.predecessors);
  std::vector<std::vector<TaskId>> lists(rank_count(g.step.layout));
  for (const TaskId id : g.order) {
    if (g.tasks[id].communicator == none) lists[g.tasks[id].rank].push_back(id);
  }
  for (const auto& list : lists) {
    g.compute_order.values.insert(g.compute_order.values.end(), list.begin(), list.end());
    g.compute_order.begin.push_back(static_cast<std::uint32_t>(g.compute_order.values.size()));
  }
}

void require_none(const TextReader& reader, const std::string& defect) {
  if (!defect.empty())
    reader.fail("the bundle is not what `slipway lower` writes: " + defect + "; lower the scenario again");
}

void settle(const TextReader& reader, TaskGraph& graph) {
  require_none(reader, numbers_defect(graph.step));
  try {
    require_none(reader, step_defect(graph));
    const ReferenceCheck references(reader, graph);
    references.run();
    derive(graph);
    references.check_operators();
    require_none(reader, lowering_defect(graph));
  } catch (const std::invalid_argument& impossible) {  // operators or a lowering that do not exist
    require_none(reader, impossible.what());
  }
  require_none(reader, order_defect(graph));
}

}  // namespace

void write_bundle(std::ostream& out, const Bundle& bundle) {
  TextWriter writer;
  writer.line(magic);
  writer(version);
  fields(writer, bundle);
  writer.text += '\n';
  errno = 0;
  out << writer.text << "checksum " << checksum(writer.text) << '\n';
  if (!out.flush())
    throw std::runtime_error(std::string("the bundle could not be written: ") +
                             (errno != 0 ? std::strerror(errno) : "not all of it was taken"));
}

Bundle read_bundle(std::istream& in, const std::string& name) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  TextReader reader(text, name);
  if (!text.starts_with(magic)) reader.fail("this is not a bundle; write one with `slipway lower`");
  reader.line(magic);
  int found_version = 0;
  reader(found_version);
  if (found_version != version) {
    reader.fail("bundle version " + std::to_string(found_version) + ", this program reads version " +
                std::to_string(version) + "; lower the scenario again with the slipway that belongs to it");
  }
  const std::size_t at = text.rfind("checksum ");
  if (at == std::string::npos) reader.fail("the file is cut short: no checksum line; write it again");
  if (text.substr(at) != "checksum " + std::to_string(checksum(std::string_view(text).substr(0, at))) + "\n") {
    reader.fail("the checksum does not match: the file was changed or damaged; write it again");
  }
  Bundle bundle;
  fields(reader, bundle);
  require_none(reader, run_defect(bundle.run));
  settle(reader, bundle.graph);
  for (TaskGraph& graph : bundle.larger) settle(reader, graph);
  if (const std::string defect = ladder_defect(bundle.batches, programs_of(bundle)); !defect.empty())
    reader.fail(defect);
  return bundle;
}

// The step programs of a bundle whose batch grows.

std::vector<const TaskGraph*> programs_of(const Bundle& bundle) {
  std::vector<const TaskGraph*> programs{&bundle.graph};
  for (const TaskGraph& graph : bundle.larger) programs.push_back(&graph);
  return programs;
}

int program_of(const Bundle& bundle, std::int64_t batch) {
  const std::vector<const TaskGraph*> programs = programs_of(bundle);
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i]->step.global_batch == batch) return static_cast<int>(i);
  throw std::out_of_range("the bundle has no step program for a batch of " + std::to_string(batch));
}

namespace {

bool have_same_communicators(const TaskGraph& a, const TaskGraph& b) {
  return std::equal(
      a.communicators.begin(), a.communicators.end(), b.communicators.begin(), b.communicators.end(),
      [](const Communicator& x, const Communicator& y) { return x.name == y.name && x.ranks == y.ranks; });
}

bool have_same_places(const TaskGraph& a, const TaskGraph& b) {
  const Layout &x = a.step.layout, &y = b.step.layout;
  return a.placement.rank == b.placement.rank && a.placement.copies == b.placement.copies && x.tensor == y.tensor &&
         x.pipeline == y.pipeline && x.context == y.context && x.data == y.data && x.zero == y.zero &&
         x.chunks == y.chunks && x.sequence_parallel == y.sequence_parallel;
}

bool have_same_numbers(const TaskGraph& a, const TaskGraph& b) {
  return a.shape().micro_batch == b.shape().micro_batch && a.shape().sequence == b.shape().sequence &&
         a.shape().dtype == b.shape().dtype && a.step.gradient_dtype == b.step.gradient_dtype &&
         a.step.clip_norm == b.step.clip_norm && a.step.slices == b.step.slices;
}

// Checks a rule's parameters (models/training/batch_rules.h); a scenario's loader has checked them already.
std::string rule_defect(const BatchSchedule& schedule) {
  bool whole = false;
  switch (schedule.rule) {
    case BatchRule::constant:
      whole = true;
      break;
    case BatchRule::linear:
      whole = schedule.warmup > 0 && std::isfinite(schedule.warmup);
      break;
    case BatchRule::stages:
      whole = !schedule.stages.empty() &&
              std::all_of(schedule.stages.begin(), schedule.stages.end(),
                          [](const auto& s) { return s.from >= 0 && std::isfinite(s.from) && s.batch > 0; });
      break;
    case BatchRule::norm_test:
      whole = schedule.eta > 0 && std::isfinite(schedule.eta) && schedule.test_every > 0;
      break;
  }
  return whole ? "" : "the batch rule is unknown, or lacks a number";
}

}  // namespace

std::string ladder_defect(const BatchSchedule& schedule, const std::vector<const TaskGraph*>& programs) {
  if (schedule.rungs.empty()) return programs.size() == 1 ? "" : "step programs of batches that no rule leads to";
  if (const std::string defect = rule_defect(schedule); !defect.empty()) return defect;
  const TaskGraph& first = *programs.front();
  std::vector<std::int64_t> batches;
  for (const TaskGraph* graph : programs) batches.push_back(graph->step.global_batch);
  if (batches != schedule.rungs || batches.front() < 1 ||
      std::adjacent_find(batches.begin(), batches.end(), std::greater_equal<>()) != batches.end())
    return "the step programs are not those of the batches";
  for (const TaskGraph* graph : programs) {
    if (graph->step.model != first.step.model) return "the step programs are of different models";
    if (!have_same_places(*graph, first)) return "the step programs are of different layouts";
    if (!have_same_numbers(*graph, first)) return "the step programs do not compute alike";
    if (graph->stages != first.stages) return "the step programs have different stages";
    if (!have_same_communicators(*graph, first)) return "the step programs have different communicators";
    if (graph->window != 1 || uses_kfac(graph->step)) return "the step programs of a growing batch have bubble work";
    if (graph->step.worker_norms != (schedule.rule == BatchRule::norm_test))
      return "the step programs measure norms that the rule does not need, or miss norms that it needs";
  }
  return "";
}

}  // namespace slipway::schedules
