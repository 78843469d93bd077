// Steps with levers (models/model/levers.h): their messages, their memory, and that their graphs keep all invariants.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "models/machine/priced_cluster.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/memory/counted_memory.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

constexpr std::int64_t layers = 4;

Step step_of(bool experts, int expert = 1) {
  LlamaShape shape{layers, 64, 256, 8, 4, 512, 128};
  if (experts) shape.experts = 8, shape.experts_per_token = 2, shape.shared_ffn = 96;
  Step step;
  step.model = llama(experts ? "mixture" : "dense", shape);
  step.layout.pipeline = 2, step.layout.data = 2, step.layout.expert = expert;
  step.layout.zero = 1;
  step.global_batch = 8;
  return step;
}

int messages_again(const TaskGraph& graph, Collective collective) {
  int count = 0;
  for (const Task& task : graph.tasks) {
    const Work& work = graph.work(task);
    count += work.kind == WorkKind::wire_collective && work.pass == Pass::recompute && work.collective == collective;
  }
  return count;
}

TaskGraph checked(const Step& step) {
  TaskGraph graph = lower(step);
  Durations durations(graph.tasks.size());
  for (std::size_t id = 0; id < durations.size(); ++id) durations[id] = 1e-3;
  set_global_order(graph, durations);
  const std::vector<Violation> violations = check_graph(graph);
  EXPECT_TRUE(violations.empty()) << step.schedule << ": " << describe(graph, violations.front());
  return graph;
}

// Rows travel there and back once more for each layer and micro-batch, in each of the two expert groups' columns.
TEST(LeveredSteps, SendTheMessagesOfRecomputedExpertsAgain) {
  Step step = step_of(true, 2);
  EXPECT_EQ(messages_again(checked(step), Collective::all_to_all), 0);
  step.levers.recomputed = set_of(RecomputedModule::moe);
  const int per_replica = static_cast<int>(step.global_batch) / step.layout.data;
  EXPECT_EQ(messages_again(checked(step), Collective::all_to_all), 2 * layers * per_replica);
  step.levers.recomputed = set_of(RecomputedModule::moe_act, RecomputedModule::layernorm);
  EXPECT_EQ(messages_again(checked(step), Collective::all_to_all), 0) << "no message is inside these";
}

// With sequence parallelism an MLP's input is gathered and its result scattered once more.
TEST(LeveredSteps, GatherAndScatterForARecomputedMlpAgain) {
  Step step = step_of(false);
  step.layout.tensor = 2, step.layout.sequence_parallel = true;
  step.levers.recomputed = set_of(RecomputedModule::mlp);
  const TaskGraph graph = checked(step);
  const int each = static_cast<int>(layers * step.global_batch);  // 4 micro-batches on each of 2 replicas
  EXPECT_EQ(messages_again(graph, Collective::all_gather), each);
  EXPECT_EQ(messages_again(graph, Collective::reduce_scatter), each);
}

TEST(LeveredSteps, KeepAllInvariantsUnderEverySchedule) {
  for (const Schedule& schedule : all_schedules()) {
    Step step = step_of(true, 2);
    step.schedule = schedule.name;
    step.layout.chunks = schedule.refuse({2, 1, 4, 1, schedule.copies, 0}) ? 2 : 1;
    step.levers.recomputed = set_of(RecomputedModule::moe, RecomputedModule::layernorm, RecomputedModule::core_attn);
    if (!legal(step)) continue;
    checked(step);
    step.levers = {};
    step.levers.lora.rank = 4;
    checked(step);
  }
}

double activations(const Step& step) { return activation_bytes(counted_memory(step)[0].parts); }

// The first rank of 1F1B on two ranks holds two micro-batches of its two layers. Of one layer, what was made again is
// there while its backward pass runs.
TEST(LeveredSteps, CountWhatModulesMakeAgainForOneLayerAtATime) {
  Step step = step_of(false);
  const double kept = activations(step);
  step.levers.recomputed = set_of(RecomputedModule::mlp);
  const double mlp = 8.0 * 128 * 256;
  EXPECT_DOUBLE_EQ(kept - activations(step), 2 * 2 * mlp - mlp);
}

TEST(LeveredSteps, ShowWhatIsMadeAgainOnTheTimelineOfBuffers) {
  Step step = step_of(false);
  step.layout.pipeline = 1, step.layout.data = 1;
  step.global_batch = 1;
  const auto peak = [&] {
    TaskGraph graph = checked(step);
    Durations durations(graph.tasks.size());
    for (std::size_t id = 0; id < durations.size(); ++id) durations[id] = 1e-3;
    return memory_timeline(graph, replay(graph, durations))[0].activations_peak;
  };
  const double whole = peak();
  step.levers.recomputed = set_of(RecomputedModule::mlp);
  const double saved = whole - peak();
  const double mlp = 8.0 * 128 * 256;
  EXPECT_LE(saved, layers * mlp);
  EXPECT_GT(saved, 0);
}

// What each layer's two norms read, there and back for each micro-batch: 2 bytes each of 128 × 64 numbers.
TEST(LeveredSteps, CopyOffloadedInputsThereAndBack) {
  Step step = step_of(false);
  step.levers.offloaded = set_of(OffloadedInput::attn_norm, OffloadedInput::mlp_norm);
  const auto copied = [](const TaskGraph& graph, Pass pass) {
    double bytes = 0;
    for (const Task& task : graph.tasks) {
      const Work& work = graph.work(task);
      if (work.kind == WorkKind::host_copy && work.pass == pass) bytes += work.bytes;
    }
    return bytes;
  };
  const double all = 2 * 2.0 * 128 * 64 * layers * static_cast<double>(step.global_batch);
  EXPECT_EQ(copied(checked(step), Pass::forward), all);
  EXPECT_EQ(copied(checked(step), Pass::backward), all);
  step.levers = {};
  step.levers.offloaded = set_of(OffloadedInput::layer_inputs);
  step.recompute = Recompute::full;
  EXPECT_EQ(copied(checked(step), Pass::forward), all / 2);
  EXPECT_EQ(copied(checked(step), Pass::backward), all / 2);
}

// Three of four layers: all that they keep, with 1F1B on two ranks.
TEST(LeveredSteps, OffloadTheFirstLayersWholly) {
  Step step = step_of(false);
  double layer = 0;
  for (const Operator& op : operators_of(step.model, 1, 2, work_shape(step))) layer += op.saved_bytes;
  step.levers.offloaded_layers = 3;
  double copied = 0;
  for (const TaskGraph graph = checked(step); const Task& task : graph.tasks)
    if (graph.work(task).kind == WorkKind::host_copy) copied += graph.work(task).bytes;
  EXPECT_DOUBLE_EQ(copied, 2 * 3 * layer * static_cast<double>(step.global_batch));
  step.levers.offloaded_layers = 5;
  EXPECT_FALSE(legal(step));
}

// The norms' inputs are not kept, but for those of one layer at work and one on its way.
TEST(LeveredSteps, HoldOffloadedInputsOfTwoLayersAlone) {
  Step step = step_of(false);
  const double kept = activations(step);
  step.levers.offloaded = set_of(OffloadedInput::attn_norm, OffloadedInput::mlp_norm);
  const double norms = 2 * 2.0 * 128 * 64;
  EXPECT_DOUBLE_EQ(kept - activations(step), 2 * 2 * norms - 2 * norms);
}

TEST(LeverRules, RefuseOffloadWithoutALinkToTheHost) {
  Step step = step_of(false);
  step.levers.offloaded = set_of(OffloadedInput::core_attn);
  PricedCluster cluster;
  cluster.groups = {{round_gpu(), 1, 4}};
  cluster.fabrics = default_fabrics(cluster.groups);
  const std::vector<Refusal> found = refusals(step, cluster);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "schedule.offload");
  Machine& machine = cluster.groups[0].machine;
  machine.host_to_device.bandwidth = machine.device_to_host.bandwidth = 1e9;
  EXPECT_TRUE(refusals(step, cluster).empty());
}

// A copy takes its bytes over the link. Where that is longer than a layer's compute, copies decide the forward pass.
TEST(LeveredSteps, WaitForASlowLinkToTheHost) {
  Step step = step_of(false);
  step.layout.pipeline = 1, step.layout.data = 1;
  step.global_batch = 1;
  step.levers.offloaded = set_of(OffloadedInput::layer_inputs);
  step.recompute = Recompute::full;
  PricedCluster cluster;
  cluster.groups = {{round_gpu(), 1, 1}};
  cluster.fabrics = default_fabrics(cluster.groups);
  Machine& machine = cluster.groups[0].machine;
  const auto step_s = [&](double bandwidth) {
    machine.host_to_device.bandwidth = machine.device_to_host.bandwidth = bandwidth;
    TaskGraph graph = lower(step);
    const Durations durations = order_and_price(graph, cluster);
    const Timeline replayed = replay(graph, durations);
    const Timeline simulated = sim::simulate(graph, cluster, durations, {}).timeline;
    double end = 0, simulated_end = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      end = std::max(end, replayed.end[id]);
      simulated_end = std::max(simulated_end, simulated.end[id]);
    }
    EXPECT_NEAR(end, simulated_end, 1e-9 * end);
    return end;
  };
  const double input = 2.0 * 128 * 64, slow = 1e3;  // 16 s a copy
  EXPECT_GT(step_s(slow), 2 * layers * input / slow);
  EXPECT_LT(step_s(slow), 2 * layers * input / slow * 1.01);
  EXPECT_LT(step_s(1e12), 1);
}

// Eight replicas in two copies of four shards: a reduction scatters to four ranks, and pairs of ranks sum a quarter.
TEST(HybridShards, ReduceInTheCopyAndThenOverCopies) {
  for (const int zero : {1, 3}) {
    Step step = step_of(false);
    step.layout.pipeline = 1, step.layout.data = 8, step.layout.zero = zero, step.layout.replicate = 2;
    step.global_batch = 8;
    const TaskGraph graph = checked(step);
    const double all = 4.0 * static_cast<double>(parameter_count(step.model));
    double scattered = 0, summed = 0;
    for (const Task& task : graph.tasks) {
      const Work& work = graph.work(task);
      if (work.kind != WorkKind::grad_reduce) continue;
      const std::size_t members = graph.communicator(task).ranks.size();
      const bool is_sum = work.collective == Collective::all_reduce;
      EXPECT_EQ(members, is_sum ? 2U : 4U);
      (is_sum ? summed : scattered) += work.bytes;
    }
    EXPECT_DOUBLE_EQ(scattered, 2 * all);
    EXPECT_DOUBLE_EQ(summed, 4 * all / 4);
    const StaticBytes bytes = static_bytes_of(step)[0];
    EXPECT_DOUBLE_EQ(bytes.optimizer, 3 * all / 4);
    EXPECT_DOUBLE_EQ(bytes.weights, all / 2 / (zero == 3 ? 4 : 1));
  }
}

// One copy is ZeRO over all data ranks.
TEST(HybridShards, OfOneCopyAreZeRO) {
  Step step = step_of(false);
  step.layout.data = 4, step.layout.replicate = 1;
  for (const Communicator& communicator : checked(step).communicators) EXPECT_NE(communicator.name, "dp_copies");
  step.layout.replicate = 2;
  EXPECT_TRUE(legal(step));
  step.layout.zero = 0;
  EXPECT_FALSE(legal(step));
  step.layout.zero = 1, step.layout.replicate = step.layout.data;
  EXPECT_FALSE(legal(step));
}

// Adapters alone have gradients and moments: 2 + 4 + 12 bytes each beside 2 bytes of a frozen weight.
TEST(LeveredSteps, HoldGradientsAndMomentsOfAdaptersAlone) {
  Step step = step_of(false);
  step.layout.pipeline = 1, step.layout.data = 1, step.layout.zero = 0;
  step.levers.lora.rank = 4;
  constexpr std::int64_t adapters = layers * 4 * ((64 + 128) + (64 + 64) + (64 + 512) + (256 + 64));
  const StaticBytes bytes = static_bytes_of(step)[0];
  EXPECT_EQ(bytes.weights, 2.0 * static_cast<double>(parameter_count(step.model) + adapters));
  EXPECT_EQ(bytes.gradients, 4.0 * adapters);
  EXPECT_EQ(bytes.optimizer, 12.0 * adapters);
  step.optimizer.moment_dtype = Dtype::bfloat16;
  EXPECT_EQ(static_bytes_of(step)[0].optimizer, 8.0 * adapters) << "a copy of 4 bytes, two moments of 2";
}

// Norms and tied tables are frozen: nothing of theirs is summed over tensor ranks or between the first and last stage.
TEST(LeveredSteps, SumNoGradientsOfFrozenWeights) {
  Step step = step_of(false);
  Model tied = *step.model;
  tied.runs.back().block.tied = true;
  step.model = tied;
  step.layout.tensor = 2, step.layout.sequence_parallel = true;
  const auto sums = [&] {
    int count = 0;
    for (const TaskGraph graph = checked(step); const Task& task : graph.tasks) {
      const WorkKind kind = graph.work(task).kind;
      count += kind == WorkKind::norm_grad_reduce || kind == WorkKind::tied_grad_reduce;
    }
    return count;
  };
  EXPECT_GT(sums(), 0);
  step.levers.lora.rank = 4;
  EXPECT_EQ(sums(), 0);
}

TEST(LeveredSteps, ReduceAndUpdateAdaptersAlone) {
  Step step = step_of(false);
  step.layout.pipeline = 1, step.layout.zero = 0;
  step.levers.lora.rank = 4;
  const TaskGraph graph = checked(step);
  constexpr double adapters = layers * 4 * ((64 + 128) + (64 + 64) + (64 + 512) + (256 + 64));
  double reduced = 0, updated = 0;
  for (const Task& task : graph.tasks) {
    const Work& work = graph.work(task);
    if (work.kind == WorkKind::grad_reduce) reduced += work.bytes;
    if (work.kind == WorkKind::optimizer_step && task.rank == 0) updated += work.elements;
  }
  EXPECT_EQ(reduced, 4 * adapters);
  EXPECT_EQ(updated, adapters);
}

std::set<std::string> refused_keys(const Step& step) {
  std::set<std::string> keys;
  for (const Refusal& refusal : refusals(step)) keys.insert(refusal.key);
  return keys;
}

TEST(LeverRules, RefuseWhatIsNotThereAndWhatContradicts) {
  const std::set<std::string> modules{"schedule.recompute_modules"}, graphs{"schedule.cuda_graphs"};
  Step step = step_of(false);
  step.levers.recomputed = set_of(RecomputedModule::moe_act);
  EXPECT_EQ(refused_keys(step), modules);
  step.levers.recomputed = set_of(RecomputedModule::mla_up_proj);
  EXPECT_EQ(refused_keys(step), modules);
  step.levers.recomputed = set_of(RecomputedModule::mlp);
  EXPECT_TRUE(legal(step));
  step.recompute = Recompute::full;
  EXPECT_EQ(refused_keys(step), modules);

  step = step_of(true);
  step.levers.graphs = set_of(GraphScope::moe_preprocess);
  EXPECT_EQ(refused_keys(step), graphs);
  step.levers.graphs = set_of(GraphScope::full, GraphScope::attn);
  EXPECT_EQ(refused_keys(step), graphs);
  step.levers.graphs = set_of(GraphScope::moe);
  EXPECT_EQ(refused_keys(step), graphs) << "experts take any number of rows";
  step.routing.capacity = 1;
  EXPECT_TRUE(legal(step));

  step = step_of(false);
  step.levers.lora.rank = 8;
  step.levers.lora.modules = {};
  EXPECT_EQ(refused_keys(step), std::set<std::string>{"run.lora.modules"});
  step = step_of(false);
  step.dtype = Dtype::float32;
  step.optimizer.moment_dtype = Dtype::bfloat16;
  EXPECT_EQ(refused_keys(step), std::set<std::string>{"run.optimizer.moment_dtype"});
}

}  // namespace
}  // namespace slipway::test
