// A cluster as a trainer uses it: prices of products, attention and messages by hand.
#include "models/machine/priced_cluster.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "models/machine/cost.h"

namespace slipway::test {
namespace {

// 1 PFLOP/s and 1 TB/s; products reach half of the peak and cost 3 µs besides.
Cluster measured_cluster() {
  NodeGroup group;
  group.nodes = 2, group.gpus_per_node = 8;
  Machine& machine = group.machine;
  machine.name = "round";
  machine.generation = Generation::ampere;
  machine.peak_flops[static_cast<std::size_t>(Format::bfloat16)] = 1e15;
  machine.memory_bandwidth = 1e12;
  machine.node_link.bandwidth = 300e9;
  machine.network_link.bandwidth = 25e9;
  machine.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)] = GemmConstants{.share = 0.5, .launch = 3e-6};
  machine.kernels.attention[static_cast<std::size_t>(Format::bfloat16)] = {{128, {.share = 0.5, .memory = 1}}};
  Cluster cluster;
  cluster.groups = {group};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

StepConstants plain() {
  StepConstants constants;  // all factors 1, all times 0
  constants.logit_bytes = 0, constants.update_bytes = 30;
  return constants;
}

Cluster trained_by(const TrainerFacts& facts, const StepConstants& constants) {
  return priced(measured_cluster(), facts, [&](const Machine&) { return constants; });
}

const Fabric& network_of(const Cluster& cluster) { return cluster.fabrics.at(1); }

// 25 GB/s a port.
TEST(PricedCluster, MessagesBetweenNodesHaveWhatCalibrateMeasuredElseTheShareOfTraining) {
  StepConstants constants = plain();
  constants.network_share = 0.8, constants.network_hop = 5e-6;
  EXPECT_DOUBLE_EQ(network_of(trained_by({}, constants)).bandwidth, 20e9);
  EXPECT_DOUBLE_EQ(network_of(trained_by({}, constants)).latency, 5e-6);

  Cluster own = measured_cluster();
  Machine& machine = own.groups[0].machine;
  machine.network_link.efficiency = 0.4, machine.network_link.latency = 30e-6;
  machine.deviations = {{"network_link.efficiency", {0.01}}, {"network_link.latency", {0.02}}};
  own = priced(own, {}, [&](const Machine&) { return constants; });
  EXPECT_DOUBLE_EQ(network_of(own).bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(network_of(own).latency, 30e-6);
}

// Tiles of 128 rows: what E experts take of evenly spread rows ends half a tile in, on average. 2 FLOPs a number.
TEST(PricedCluster, AGroupedProductPaysForTheHalfEmptyTileOfEachExpert) {
  const Machine machine = trained_by({}, plain()).groups[0].machine;
  Operator op;
  op.kind = OpKind::down, op.dtype = Dtype::bfloat16, op.kernels = 1;
  op.m = 4096, op.n = 4096, op.k = 2048;
  const auto seconds = [&](int experts) {
    op.experts = experts;
    return operator_seconds(machine, op, Direction::forward);
  };
  const auto of_rows = [](double rows) { return 2.0 * rows * 4096 * 2048 / (0.5 * 1e15); };
  EXPECT_NEAR(seconds(8) - seconds(0), of_rows(8 * 64.0), 1e-9 * of_rows(4096));
  EXPECT_NEAR(seconds(64) - seconds(0), of_rows(64 * 64.0), 1e-9 * of_rows(4096)) << "twice as long with 64 rows each";
}

TEST(PricedCluster, NoMessageBetweenNodesIsFasterThanItsPort) {
  StepConstants constants = plain();
  constants.network_share = 1.3;
  EXPECT_DOUBLE_EQ(network_of(trained_by({}, constants)).bandwidth, 25e9);
}

Operator product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.kind = OpKind::up;
  op.m = m, op.n = n, op.k = k;
  op.forward_flops = op.input_grad_flops = op.weight_grad_flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return op;
}

TEST(PricedCluster, AProductTakesItsKernelAtTheTrainersShare) {
  StepConstants constants = plain();
  constants.gemm = 0.8;
  const Cluster cluster = trained_by({}, constants);
  const Operator op = product(4096, 4096, 4096);
  EXPECT_NEAR(operator_seconds(cluster.groups[0].machine, op, Direction::forward), 3e-6 + op.forward_flops / 0.4e15,
              1e-12);
}

TEST(PricedCluster, AWeightGradientAlsoAddsToTheSumOfGradients) {
  TrainerFacts facts;
  facts.accumulate_bytes = 0;
  const Operator op = product(1000, 2000, 3000);
  const double without = operator_seconds(trained_by(facts, plain()).groups[0].machine, op, Direction::weight_grad);
  facts.accumulate_bytes = 10;
  const double with = operator_seconds(trained_by(facts, plain()).groups[0].machine, op, Direction::weight_grad);
  EXPECT_NEAR(with - without, 10 * 2000.0 * 3000.0 / (0.85 * 1e12), 1e-12);
}

TEST(PricedCluster, FlashAttentionOneIsSlowerByItsConstant) {
  Operator op;
  op.kind = OpKind::attention;
  op.k = 128, op.m = op.n = 4096, op.heads = 32;
  op.forward_flops = 1e12;
  StepConstants constants = plain();
  constants.flash1 = 0.5;
  const Machine machine = trained_by({}, constants).groups[0].machine;
  const double flash2 = operator_seconds(machine, op, Direction::forward);
  op.attention = Kernels::flash1;
  EXPECT_NEAR(operator_seconds(machine, op, Direction::forward) / flash2, 2, 1e-9);
}

TEST(PricedCluster, PortsGetTheSharesOfTheConstants) {
  StepConstants constants = plain();
  constants.node_share = 0.5, constants.network_share = 0.8, constants.network_hop = 1e-5;
  const Cluster cluster = trained_by({}, constants);
  ASSERT_EQ(cluster.fabrics.size(), 2u);
  EXPECT_DOUBLE_EQ(cluster.fabrics[0].bandwidth, 150e9);
  EXPECT_DOUBLE_EQ(cluster.fabrics[1].bandwidth, 20e9);
  EXPECT_DOUBLE_EQ(cluster.fabrics[1].latency, 1e-5);
}

TEST(PricedCluster, FabricsAndAlgorithmsOfOnesOwnStayAndOthersAreNccls) {
  Cluster cluster = measured_cluster();
  const auto trained_now = [&] { return priced(cluster, {}, [](const Machine&) { return book_constants(); }); };
  EXPECT_EQ(trained_now().algorithms[static_cast<std::size_t>(Axis::data)], Algorithm::nccl);
  cluster.own_algorithms = true;
  cluster.fabrics[1].own = true;
  EXPECT_EQ(trained_now().algorithms, cluster.algorithms);
  EXPECT_EQ(trained_now().fabrics[1].bandwidth, cluster.fabrics[1].bandwidth);
  EXPECT_NE(trained_now().fabrics[0].bandwidth, cluster.fabrics[0].bandwidth);
}

TEST(PricedCluster, AppliedTwiceIsAppliedOnce) {
  StepConstants constants = plain();
  constants.node_share = 0.5, constants.fixed = 0.02;
  const Cluster once = trained_by({}, constants);
  const Cluster twice = priced(once, {}, [&](const Machine&) { return constants; });
  EXPECT_EQ(twice.fabrics[0].bandwidth, once.fabrics[0].bandwidth);
  EXPECT_EQ(twice.groups[0].machine.constants.fixed, 0.02);
}

TEST(PricedCluster, AMachineWithoutMeasuredKernelsStaysAsItIs) {
  Cluster cluster = measured_cluster();
  cluster.groups[0].machine.kernels = {};
  const Cluster same = priced(cluster, {}, [](const Machine&) { return book_constants(); });
  EXPECT_FALSE(same.groups[0].machine.trained);
  EXPECT_EQ(same.fabrics[0].bandwidth, cluster.fabrics[0].bandwidth);
}

TEST(PricedCluster, TheHostLaunchesEachKernelAndCudaGraphsNone) {
  StepConstants constants = plain();
  constants.host_kernel = 1e-5;
  const Machine machine = trained_by({}, constants).groups[0].machine;
  Operator op = product(10, 10, 10);
  op.kernels = 3;
  EXPECT_DOUBLE_EQ(host_seconds(machine, op, Direction::forward), 3e-5);
  EXPECT_DOUBLE_EQ(host_seconds(machine, op, Direction::backward), 4e-5);
  EXPECT_DOUBLE_EQ(host_seconds(machine, op, Direction::weight_grad), 1e-5);
}

TEST(PricedCluster, DropoutOfScoresThatAreWrittenTakesTheHostTwoMoreKernels) {
  StepConstants constants = plain();
  constants.host_kernel = 1e-5;
  TrainerFacts drops;
  drops.dropout = true;
  const Machine with = trained_by(drops, constants).groups[0].machine,
                without = trained_by({}, constants).groups[0].machine;
  Operator op;
  op.kind = OpKind::attention, op.kernels = 3, op.attention = Kernels::fused_softmax;
  for (const Direction direction : {Direction::forward, Direction::backward})
    EXPECT_DOUBLE_EQ(host_seconds(with, op, direction) - host_seconds(without, op, direction), 2e-5);
  op.attention = Kernels::flash2;
  EXPECT_DOUBLE_EQ(host_seconds(with, op, Direction::forward), host_seconds(without, op, Direction::forward));
}

// One layer of a Llama with 1,000 tokens in bfloat16: the operator of this kind.
Operator of_a_layer(OpKind kind, Kernels kernels) {
  const Model model = llama("own", {1, 256, 700, 4, 2, 100, 1000});
  WorkShape shape;
  shape.micro_batch = 1, shape.sequence = 1000, shape.sharding = {1, false, 1};
  shape.dtype = Dtype::bfloat16, shape.kernels = kernels;
  for (const Operator& op : operators_of(model, 1, 2, shape))
    if (op.kind == kind) return op;
  throw std::logic_error("no such operator");
}

struct Passes {
  double forward, backward;
};
Passes passes_of(bool eager, const Operator& op, double traffic = 1.2, double eager_traffic = 1.25) {
  StepConstants constants = plain();
  constants.traffic = traffic, constants.eager_traffic = eager_traffic;
  TrainerFacts facts;
  facts.eager = eager;
  const Machine machine = trained_by(facts, constants).groups[0].machine;
  return {operator_seconds(machine, op, Direction::forward), operator_seconds(machine, op, Direction::backward)};
}

constexpr double streamed = 0.85 * 1e12, launch_gap = 3e-6;  // bytes/s of element-wise kernels; s between two kernels

// SwiGLU of 1,000 x 700 numbers, 2 bytes. One by one: silu reads and writes one tensor, the product reads two, writes
// one; backward the product's two gradients read two and write one each, and silu's reads two and writes one. Fused:
// forward reads both and writes one, backward reads three and writes two.
TEST(PricedCluster, AFusedActivationMovesEightTensorsAndAnEagerOneFourteen) {
  const Operator op = of_a_layer(OpKind::activation, Kernels::flash2);
  constexpr double tensor = 1000.0 * 700 * 2;
  const Passes fused = passes_of(false, op), eager = passes_of(true, op);
  const double gaps = 2 * op.kernels * launch_gap;
  EXPECT_NEAR(fused.forward + fused.backward, gaps + (3 + 5) * tensor * 1.2 / streamed, 1e-15);
  EXPECT_NEAR(eager.forward + eager.backward, gaps + (5 + 9) * tensor * 1.2 * 1.25 / streamed, 1e-15);
}

// RMSNorm of 1,000 x 256 numbers. Fused: x read, y written; backward x and dy read, dx written. As PyTorch's six
// kernels with fp32 between them, 36 and 76 bytes a number (operator_cost_parts.h). Counted kernel by kernel, so no eager factor.
TEST(PricedCluster, AFusedNormMovesTwoAndThreeTensorsAndSixKernelsManyMore) {
  const Operator fused = of_a_layer(OpKind::norm, Kernels::flash2_rmsnorm),
                 six = of_a_layer(OpKind::norm, Kernels::torch);
  constexpr double numbers = 1000.0 * 256;
  for (const bool eager : {false, true}) {
    EXPECT_NEAR(passes_of(eager, fused).forward, launch_gap + 2 * 2 * numbers * 1.2 / streamed, 1e-15);
    EXPECT_NEAR(passes_of(eager, fused).backward, launch_gap + 3 * 2 * numbers * 1.2 / streamed, 1e-15);
    EXPECT_NEAR(passes_of(eager, six).forward, 6 * launch_gap + 36 * numbers * 1.2 / streamed, 1e-15);
    EXPECT_NEAR(passes_of(eager, six).backward, 6 * launch_gap + 76 * numbers * 1.2 / streamed, 1e-15);
  }
}

// Queries and keys of 4 + 2 heads of 64, 2 bytes each, read and written: one kernel, or the halves turned, joined,
// multiplied by sine and cosine and added, which is 2.5 times the traffic.
TEST(PricedCluster, EagerRotaryPositionsMoveTwoAndAHalfTimesTheBytes) {
  const Operator op = of_a_layer(OpKind::qkv, Kernels::flash2);
  constexpr double turned = 1000.0 * (4 + 2) * 64 * 2 * 2;
  const Passes fused = passes_of(false, op), eager = passes_of(true, op);
  EXPECT_NEAR(eager.forward - fused.forward, 1.5 * turned * 1.2 / streamed, 1e-15);
  EXPECT_NEAR(eager.backward - fused.backward, 1.5 * turned * 1.2 / streamed, 1e-15);
}

}  // namespace
}  // namespace slipway::test
