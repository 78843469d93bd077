// Tensor-parallel overlap: a message in t pieces beside its product, in both engines' prices and in the bound.
#include "schedules/time/overlap.h"
#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"

#include <gtest/gtest.h>

#include "schedules/bound/estimate.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

PricedCluster one_node() {
  PricedCluster cluster;
  cluster.groups = {{round_gpu(), 1, 4}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

Step sharded(bool overlaps, int layers = 4) {
  Step step;
  step.model =
      llama("dense",
            {.layers = layers, .hidden = 512, .ffn = 2048, .heads = 8, .kv_heads = 8, .vocab = 512, .sequence = 512});
  step.layout = {.tensor = 4, .sequence_parallel = true};
  step.global_batch = 4;
  step.overlap_tensor = overlaps;
  return step;
}

// Of t pieces, the first (or the last) is sent while no other is multiplied: max(M, P) + min(M, P)/t in all.
TEST(TensorOverlap, LeavesOnePieceOfTheShorterOne) {
  EXPECT_DOUBLE_EQ(exposed_seconds(4, 16, 4), 1);
  EXPECT_DOUBLE_EQ(16 + exposed_seconds(4, 16, 4), std::max(4, 16) + 4.0 / 4);
  EXPECT_DOUBLE_EQ(4 + exposed_seconds(16, 4, 4), std::max(4, 16) + 4.0 / 4);
  EXPECT_DOUBLE_EQ(exposed_seconds(3, 7, 1), 3);
}

TEST(TensorOverlap, IsOfTheFourProductsOfALayerInBothDirections) {
  const TaskGraph graph = lower(sharded(true, 1));
  int forward = 0, backward = 0;
  for (const Work& work : graph.works) {
    const HidingProduct beside = product_beside(graph, work);
    if (beside.product == nullptr) continue;
    (beside.direction == Direction::forward ? forward : backward) += 1;
    EXPECT_EQ(beside.product->block, 1);
  }
  EXPECT_EQ(forward, 4);   // ag1 qkv, out rs1, ag2 up, down rs2
  EXPECT_EQ(backward, 4);  // their duals
  const TaskGraph plain = lower(sharded(false, 1));
  for (const Work& work : plain.works) EXPECT_EQ(product_beside(plain, work).product, nullptr);
}

double step_time(const Step& step, const PricedCluster& cluster, CollectiveFidelity fidelity) {
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  SimulationOptions options;
  options.collectives = fidelity;
  return step_time_of(graph, simulate(graph, cluster, durations, options).timeline);
}

TEST(TensorOverlap, ShortensTheStepByTheSameInBothFidelitiesAndTheBoundStaysBelow) {
  const PricedCluster cluster = one_node();
  for (const auto fidelity : {CollectiveFidelity::closed_form, CollectiveFidelity::flows}) {
    const double without = step_time(sharded(false), cluster, fidelity),
                 with = step_time(sharded(true), cluster, fidelity);
    EXPECT_LT(with, 0.95 * without);
    EXPECT_NEAR(with, step_time(sharded(true), cluster, CollectiveFidelity::closed_form), 0.02 * with);
    StepEstimator estimator(sharded(true), cluster);
    EXPECT_LE(estimator.passes_bound(sharded(true)), with * (1 + 1e-9));
    EXPECT_GT(estimator.passes_bound(sharded(true)), 0.4 * with);
  }
}

TEST(TensorOverlap, NeedsSequenceParallelism) {
  Step step = sharded(true);
  step.layout.sequence_parallel = false;
  const auto found = refusals(step);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().key, "schedule.overlap_tensor");
}

}  // namespace
}  // namespace slipway::test
