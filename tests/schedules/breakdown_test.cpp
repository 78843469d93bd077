// Where a step's time goes: both accounts sum to the step, and each part is what a closed form says.
#include "schedules/time/breakdown.h"
#include "models/machine/cost.h"
#include "models/machine/priced_cluster.h"

#include <gtest/gtest.h>

#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "schedules/time/work_price.h"

namespace slipway::test {
namespace {

Machine core() {
  Machine machine;
  machine.name = "core";
  machine.memory_bytes = 1e12;
  machine.peak_flops.fill(1e12);
  machine.memory_bandwidth = 1e11;
  machine.task_overhead = 1e-5;
  machine.launch_overhead = 1e-6;
  machine.node_link = {"bus", 1e9, 1e-5};
  machine.network_link = {"net", 5e8, 2e-5};
  return machine;
}

PricedCluster cluster_of(int nodes, int per_node) {
  PricedCluster cluster;
  cluster.groups = {{core(), nodes, per_node}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

Step step_of(int tensor, int pipeline, int data) {
  Step step;
  step.model =
      llama("small", {.layers = 8, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 64});
  step.layout.tensor = tensor, step.layout.pipeline = pipeline, step.layout.data = data;
  step.layout.sequence_parallel = tensor > 1;
  step.dtype = Dtype::float32;
  step.kernels = Kernels::flash2;
  step.global_batch = 8 * data;
  step.clip_norm = 1;
  return step;
}

struct Replayed {
  TaskGraph graph;
  Durations durations;
  Timeline timeline;
  double step_s = 0;
};

Replayed replayed(const Step& step, const PricedCluster& cluster) {
  Replayed result{lower(step), {}, {}, 0};
  result.durations = order_and_price(result.graph, cluster);
  result.timeline = replay(result.graph, result.durations, 3);
  result.step_s = step_time_of(result.graph, result.timeline);
  return result;
}

TEST(Breakdown, PartsOfEveryWorkSumToItsSeconds) {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    Step step = step_of(2, 2, 2);
    step.recompute = recompute;
    const Replayed run = replayed(step, cluster_of(1, 8));
    for (const Task& task : run.graph.tasks) {
      if (task.communicator != none) continue;
      const Work& work = run.graph.work(task);
      const WorkPrice parts = price_of(run.graph, work, core());
      const double whole = compute_seconds(run.graph, work, core());
      EXPECT_NEAR(parts.once.sum() + parts.again.sum(), whole, 1e-12 * whole) << label_of(run.graph, task);
      for (const double seconds : parts.once.seconds) EXPECT_GE(seconds, -1e-18);
    }
  }
}

TEST(Breakdown, ProductsOfAForwardPassAreThoseOfItsOperators) {
  const Replayed run = replayed(step_of(1, 1, 1), cluster_of(1, 1));
  for (const Task& task : run.graph.tasks) {
    const Work& work = run.graph.work(task);
    if (task.communicator != none || work.kind != WorkKind::segment || work.pass != Pass::forward) continue;
    double products = 0;
    for (const Operator& op : run.graph.operators_run_by(work))
      if (op.kind == OpKind::qkv || op.kind == OpKind::out_projection || op.kind == OpKind::up ||
          op.kind == OpKind::down)
        products += operator_seconds(core(), op, Direction::forward);
    EXPECT_GT(products, 0);
    EXPECT_DOUBLE_EQ(price_of(run.graph, work, core()).once[TimePart::products], products);
    return;
  }
  FAIL() << "no forward pass";
}

TEST(Breakdown, AGpusTimeAndThePathBothSumToTheStep) {
  for (const auto& [tensor, pipeline, data] : {std::tuple{1, 1, 1}, {2, 1, 4}, {1, 4, 2}, {2, 2, 2}}) {
    const PricedCluster cluster = cluster_of(2, 4);
    const Replayed run = replayed(step_of(tensor, pipeline, data), cluster);
    const TimeParts ranks = rank_parts(run.graph, cluster, run.durations, run.timeline);
    EXPECT_NEAR(ranks.sum(), run.step_s, 1e-9 * run.step_s);
    const auto terms = critical_path(run.graph, cluster, run.durations, run.timeline);
    EXPECT_NEAR(path_parts(run.graph, cluster, terms, run.step_s).sum(), run.step_s, 1e-9 * run.step_s);
  }
}

TEST(Breakdown, MessagesAreThoseOfTheLayoutsAxes) {
  const PricedCluster cluster = cluster_of(2, 4);
  const auto parts_of = [&](const Step& step) {
    const Replayed run = replayed(step, cluster);
    return rank_parts(run.graph, cluster, run.durations, run.timeline);
  };
  const TimeParts tensor = parts_of(step_of(4, 1, 1)), pipeline = parts_of(step_of(1, 4, 1)),
                  data = parts_of(step_of(1, 1, 4));
  EXPECT_GT(tensor[TimePart::tensor], 0);
  EXPECT_EQ(tensor[TimePart::pipeline] + tensor[TimePart::data], 0);
  EXPECT_GT(pipeline[TimePart::pipeline], 0);
  EXPECT_EQ(pipeline[TimePart::tensor] + pipeline[TimePart::data], 0);
  EXPECT_GT(data[TimePart::data], 0);
  EXPECT_EQ(data[TimePart::tensor] + data[TimePart::pipeline], 0);
}

// One rank computes its own step twice as slowly: half of the time is the slow GPU's.
TEST(Breakdown, ASlowGpuIsAPartOfItsOwn) {
  PricedCluster cluster = cluster_of(1, 1);
  cluster.degradation.slowdown = {2};
  const Replayed run = replayed(step_of(1, 1, 1), cluster);
  const TimeParts ranks = rank_parts(run.graph, cluster, run.durations, run.timeline);
  EXPECT_NEAR(ranks[TimePart::slow_gpus], run.step_s / 2, 1e-9 * run.step_s);
  const auto terms = critical_path(run.graph, cluster, run.durations, run.timeline);
  EXPECT_NEAR(path_parts(run.graph, cluster, terms, run.step_s)[TimePart::slow_gpus], run.step_s / 2,
              1e-9 * run.step_s);
}

TEST(Breakdown, FullRecomputationIsThePassThatIsMadeAgain) {
  Step step = step_of(1, 1, 1);
  const PricedCluster cluster = cluster_of(1, 1);
  const Replayed plain = replayed(step, cluster);
  step.recompute = Recompute::full;
  const Replayed again = replayed(step, cluster);
  const TimeParts without = rank_parts(plain.graph, cluster, plain.durations, plain.timeline),
                  with = rank_parts(again.graph, cluster, again.durations, again.timeline);
  EXPECT_EQ(without[TimePart::recompute], 0);
  EXPECT_GT(with[TimePart::recompute], 0);
  EXPECT_NEAR(with[TimePart::products], without[TimePart::products], 1e-12);
}

}  // namespace
}  // namespace slipway::test
