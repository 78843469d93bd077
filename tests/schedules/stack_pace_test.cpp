// A stack profile on a cluster: its layers and messages take the seconds of the trainer's formula. So do steps of
// published runs as task graphs, except for the effects of task order.
#include "schedules/time/stack_pace.h"

#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "models/machine/collectives.h"
#include "models/machine/cost.h"
#include "models/trace/statistics.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/language/profiles.h"
#include "scenarios/memory/changes.h"
#include "scenarios/validate/graph_prices.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

Step llama_input(int tensor, int context) {
  Step input;
  input.model = llama("llama", {8, 4096, 11008, 32, 32, 32000, 4096});
  input.layout.tensor = tensor;
  input.layout.context = context;
  input.layout.sequence_parallel = tensor > 1;
  input.layout.pipeline = input.layout.data = 2;
  input.layout.zero = 1;
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
  const Step input = llama_input(2, 2);
  const Cluster paced = at_pace(cluster_of("a100-40gb"), stack, input);
  const Machine& machine = paced.groups[0].machine;
  const StepParts parts = stack.model->parts(step_work_of(input, machine, 8), values_of(*time_on(stack, "a100-40gb")));
  double forward = 0, backward = 0, tensor = 0, context = 0;
  for (const Operator& op : operators_of(input.model, 1, 2, work_shape(input))) {
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

// Formulas are for heads of hidden/heads without norms. Operators of other layers get the pace of such a layer's, so
// that their own work is on top.
TEST(StackPace, NormsOfHeadsAndWiderHeadsTakeThePaceOfALayerWithout) {
  const Stack& stack = *built_in_stack("megatron-core");
  Step input = llama_input(2, 2);
  const auto paced = [&] { return at_pace(cluster_of("a100-40gb"), stack, input); };
  const Cluster plain = paced();
  EXPECT_THAT(unknown_to_formulas(input.model), testing::IsEmpty());
  Model model = input.model;
  model.runs[1].block.qk_norm = true;
  model.runs[1].block.head_dim = 192;
  input.model = model;
  const Cluster other = paced();
  EXPECT_EQ(unknown_to_formulas(input.model).size(), 2u);
  EXPECT_EQ(other.groups[0].machine.layer_pace.forward, plain.groups[0].machine.layer_pace.forward);
  EXPECT_EQ(other.groups[0].machine.layer_pace.backward, plain.groups[0].machine.layer_pace.backward);
  EXPECT_EQ(other.message_costs[static_cast<std::size_t>(Axis::context)].bandwidth,
            plain.message_costs[static_cast<std::size_t>(Axis::context)].bandwidth);
}

// A fit of a ring contains only its visible time, so that must not be hidden again.
TEST(StackPace, WhatARingShowsIsTheLayersAndItsMessagesAreTheFabrics) {
  const Stack& stack = *built_in_stack("megatron-core");
  Step input = llama_input(2, 2);
  input.layout.context_exchange = ContextExchange::ring;
  const Cluster paced = at_pace(cluster_of("a100-40gb"), stack, input);
  const Machine& machine = paced.groups[0].machine;
  const StepParts parts = stack.model->parts(step_work_of(input, machine, 8), values_of(*time_on(stack, "a100-40gb")));
  double forward = 0, backward = 0;
  for (const Operator& op : operators_of(input.model, 1, 2, work_shape(input))) {
    if (op.kind == OpKind::communicate) continue;
    forward += operator_seconds(machine, op, Direction::forward);
    backward += operator_seconds(machine, op, Direction::backward);
  }
  EXPECT_NEAR(forward, parts.layer_forward + parts.layer_context / 3, 1e-9 * forward);
  EXPECT_NEAR(forward + backward, parts.layer_forward + parts.layer_backward + parts.layer_context, 1e-9 * backward);
  EXPECT_EQ(paced.message_costs[static_cast<std::size_t>(Axis::context)].bandwidth, 0);
}

TEST(StackPace, ATensorGroupThatLeavesTheNodePaysForTheNetwork) {
  Cluster cluster = cluster_of("a100-40gb");
  cluster.groups[0].gpus_per_node = 2;
  const Stack& stack = *built_in_stack("megatron-core");
  const auto cost = [&](int tensor) {
    return at_pace(cluster, stack, llama_input(tensor, 1)).message_costs[static_cast<std::size_t>(Axis::tensor)];
  };
  EXPECT_GT(cost(2).bandwidth, 0);
  EXPECT_EQ(cost(4).bandwidth, 0);  // the fabrics'
}

TEST(StackPace, LaidOverTwiceIsLaidOverOnce) {
  const Stack& stack = *built_in_stack("nanotron");
  const Step input = llama_input(2, 1);
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

// Two sums of the same parts. They differ because the graph recomputes only collectives whose result is needed, and
// hides part of reductions behind the last stages' cool-down.
TEST(StackPace, StepsOfPublishedRunsTakeWhatTheirFormulaSays) {
  for (const EmbeddedFile& file : embedded_tables()) {
    std::istringstream in{std::string(file.text)};
    const PublishedTable table = read_table(in, std::string(file.path));
    std::vector<double> off;
    int number = 0;
    for (const PublishedRow& row : table.rows) {
      if (row.status != RowStatus::ok || exclusion_of(row) != Exclusion::none || number++ % 15 != 0) continue;
      const double formula = price(row).step_s;
      if (!(formula > 0)) continue;
      const double laid_out = replayed_step_s(scenario_of(row));
      off.push_back(std::abs(laid_out / formula - 1));
      EXPECT_LT(off.back(), 0.15) << in_words(row) << ": formula " << formula << " s, graph " << laid_out << " s";
    }
    ASSERT_FALSE(off.empty()) << file.path;
    EXPECT_LT(median(off), 0.05) << file.path;
  }
}

}  // namespace
}  // namespace slipway::test
