// A stack profile laid over a cluster: its layers and messages take what the trainer's formula says.
#include "schedules/graph/stack_pace.h"

#include <gmock/gmock.h>

#include "models/collectives.h"
#include "models/cost.h"
#include "scenarios/load_stack.h"
#include "scenarios/profiles.h"

namespace slipway {
namespace {

using testing::HasSubstr;

LoweringInput llama_input(int tensor, int context) {
  LoweringInput input;
  input.model = llama("llama", {8, 4096, 11008, 32, 32, 32000, 4096});
  input.layout.tensor = input.shape.sharding.tensor = tensor;
  input.layout.context = input.shape.sharding.context = context;
  input.layout.sequence_parallel = input.shape.sharding.sequence_parallel = tensor > 1;
  input.layout.pipeline = input.layout.data = 2;
  input.layout.zero = 1;
  input.shape.sequence = 4096;
  input.global_batch = 16;
  return input;
}

Cluster cluster_of(const std::string& machine) {
  Defects defects;
  Cluster cluster;
  cluster.groups.push_back({*load_machine(machine, {}, defects), 4, 8});
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

TEST(StackPace, ALayersOperatorsAndCollectivesTakeWhatTheFormulaSays) {
  const Stack& stack = *built_in_stack("megatron-core");
  const LoweringInput input = llama_input(2, 2);
  const Cluster paced = at_pace(cluster_of("a100-40gb"), stack, input);
  const Machine& machine = paced.groups[0].machine;
  const StepParts parts = stack.model->parts(step_work_of(input, machine, 8),
                                             values_of(*time_on(stack, "a100-40gb")));
  double forward = 0, backward = 0, tensor = 0, context = 0;
  for (const Operator& op : operators_of(input.model, 1, 2, input.shape)) {
    if (op.kind != OpKind::communicate) {
      forward += operator_seconds(machine, op, Direction::forward);
      backward += operator_seconds(machine, op, Direction::backward);
      continue;
    }
    for (const Collective each : {op.forward, op.backward}) {
      const MessageCost& cost = paced.message_costs[static_cast<std::size_t>(op.axis)];
      (op.axis == Axis::context ? context : tensor) +=
          ring_seconds(each, 2, op.message_bytes, cost.latency, cost.bandwidth, 0);
    }
  }
  EXPECT_NEAR(forward, parts.layer_forward, 1e-9 * forward);
  EXPECT_NEAR(backward, parts.layer_backward, 1e-9 * backward);
  EXPECT_NEAR(tensor, parts.layer_tensor, 1e-9 * tensor);
  EXPECT_NEAR(context, parts.layer_context, 1e-9 * context);
  EXPECT_GT(context, 0);
}

TEST(StackPace, LaidOverTwiceIsLaidOverOnce) {
  const Stack& stack = *built_in_stack("nanotron");
  const LoweringInput input = llama_input(2, 1);
  const Cluster once = at_pace(cluster_of("h100-80gb"), stack, input), twice = at_pace(once, stack, input);
  EXPECT_EQ(once.groups[0].machine.layer_pace.forward, twice.groups[0].machine.layer_pace.forward);
  EXPECT_EQ(once.groups[0].machine.head_pace.backward, twice.groups[0].machine.head_pace.backward);
  EXPECT_NE(once.groups[0].machine.layer_pace.forward, 1);
}

TEST(StackPace, OfAMachineThatATrainerWasNotFittedOnIsRefusedWithThoseThatItWas) {
  try {
    at_pace(cluster_of("h200"), *built_in_stack("nanotron"), llama_input(2, 1));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("nanotron has no constants for machine h200; fitted on: h100-80gb"));
  }
}

}  // namespace
}  // namespace slipway
