#include "schedules/bundle/bundle.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <istream>
#include <iterator>
#include <stdexcept>

#include "schedules/bundle/step_program.h"
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
constexpr int version = 22;

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

void fields(auto& a, Is<Task> auto& t) {
  a.line("task");
  a(t.kind, t.rank, t.communicator, t.work, t.micro_batch, t.slice, t.step);
}

void fields(auto& a, Is<PlacedBubbleWork> auto& placed) {
  a.line("bubble_work");
  a.list(placed.weights, [&](auto& bytes) { a(bytes); });
  a.line("works");
  a.list(placed.works, [&](auto& w) { fields(a, w); });
  a.line("communicators");
  a.list(placed.communicators, [&](auto& c) { fields(a, c); });
  a.line("tasks");
  a.list(placed.tasks, [&](auto& each) {
    fields(a, each.task);
    a.list(each.reads, [&](auto& buffer) { a(buffer); });
    a.list(each.after, [&](auto& task) { a(task); });
  });
  a.line("buffers");
  a.list(placed.buffers, [&](auto& b) { fields(a, b); });
}

void fields(auto& a, Is<StepProgram> auto& program) {
  fields(a, program.step);
  a.line("window");
  a(program.window, program.fingerprint);
  if (has_bubble_work(program.step)) fields(a, program.bubble_work);
  a.line("order");
  a.list(program.order, [&](auto& id) { a(id); });
}

void fields(auto& a, Is<BatchSchedule> auto& schedule) {
  a.line("batches");
  a(schedule.rule, schedule.warmup, schedule.eta, schedule.test_every, schedule.workers);
  a.list(schedule.rungs, [&](auto& rung) { a(rung); });
  a.list(schedule.stages, [&](auto& stage) { a(stage.from, stage.batch); });
}

// A bundle as its text has it.
struct BundleText {
  std::string scenario;
  Run run;
  StepProgram first;
  BatchSchedule batches;
  std::vector<StepProgram> larger;
};

void fields(auto& a, Is<BundleText> auto& bundle) {
  a.line("scenario");
  a(bundle.scenario);
  fields(a, bundle.run);
  fields(a, bundle.first);
  fields(a, bundle.batches);
  a.line("larger");
  a.list(bundle.larger, [&](auto& program) { fields(a, program); });
  a.line("end");
}

// Of what the lowering made: what a rank would do at each place of the order.
std::uint64_t fingerprint_of(const TaskGraph& graph) {
  Fingerprint print;
  print(graph.placement.copies);
  print.list(graph.placement.rank, [&](auto& rank) { print(rank); });
  for (const auto& operators : graph.stage_operators)
    print.list(operators, [&](auto& op) { print(op.kind, op.block); });
  print.list(graph.works, [&](auto& w) { fields(print, w); });
  print.list(graph.communicators, [&](auto& c) { fields(print, c); });
  print.list(graph.tasks, [&](auto& t) { fields(print, t); });
  print.list(graph.buffers, [&](auto& b) { fields(print, b); });
  for (const Rows* rows : {&graph.inputs, &graph.outputs, &graph.predecessors}) {
    print.list(rows->begin, [&](auto& place) { print(place); });
    print.list(rows->values, [&](auto& id) { print(id); });
  }
  print.list(graph.carried, [&](auto& pair) { print(pair.first, pair.second); });
  return print.value;
}

// FNV-1a, 64 bits.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

StepProgram written_program(const TaskGraph& graph) {
  StepProgram program = step_program_of(graph);
  program.fingerprint = fingerprint_of(graph);
  return program;
}

void require_none(const TextReader& reader, const std::string& defect) {
  if (!defect.empty())
    reader.fail("the bundle is not what `slipway lower` writes: " + defect + "; lower the scenario again");
}

TaskGraph read_graph(const TextReader& reader, const StepProgram& program) {
  try {
    TaskGraph graph = graph_of(program);
    if (fingerprint_of(graph) != program.fingerprint)
      reader.fail(
          "this program makes other tasks of the bundle's step than the slipway that wrote it; lower the scenario "
          "again with the slipway that belongs to this program");
    return graph;
  } catch (const std::invalid_argument& defect) {
    require_none(reader, defect.what());
    throw;
  }
}

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

void write_bundle(std::ostream& out, const Bundle& bundle) {
  TextWriter writer;
  writer.line(magic);
  writer(version);
  BundleText text{bundle.scenario, bundle.run, written_program(bundle.graph), bundle.batches, {}};
  for (const TaskGraph& graph : bundle.larger) text.larger.push_back(written_program(graph));
  fields(writer, text);
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
    const bool older = found_version < version;
    reader.fail("bundle version " + std::to_string(found_version) + (older ? " of an older" : " of a newer") +
                " slipway; this program reads version " + std::to_string(version) +
                "; write it again, with `slipway lower SCENARIO -o FILE` of the slipway that belongs to this program");
  }
  const std::size_t at = text.rfind("checksum ");
  if (at == std::string::npos) reader.fail("the file is cut short: no checksum line; write it again");
  if (text.substr(at) != "checksum " + std::to_string(checksum(std::string_view(text).substr(0, at))) + "\n") {
    reader.fail("the checksum does not match: the file was changed or damaged; write it again");
  }
  BundleText found;
  fields(reader, found);
  require_none(reader, run_defect(found.run));
  Bundle bundle{found.scenario, read_graph(reader, found.first), found.run, found.batches, {}};
  for (const StepProgram& program : found.larger) bundle.larger.push_back(read_graph(reader, program));
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
