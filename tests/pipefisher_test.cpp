// The closed-form model of PipeFisher: the check values of BERT-Base on P100 (Osawa et al. 2022), and the
// simulation without communication.
#include <gmock/gmock.h>

#include "scenarios/validation/prediction.h"
#include "tests/pipefisher_files.h"

namespace slipway {
namespace {

constexpr double mib = 1024.0 * 1024.0;

BlockTimes bert_base_p100() {
  return row_of(pipefisher_scenario("bert-base").cluster.groups.front().machine.blocks, 32);
}

// One block per stage, four stages, four micro-batches of 32.
PipeFisherInput check_case(PipelineShape shape) {
  PipeFisherInput input;
  input.shape = shape;
  input.stages = input.micro_batches = 4;
  input.stage = bert_base_p100();
  return input;
}

TEST(PipeFisher, GPipeAnd1F1BHaveThePublishedRatioThroughputUtilizationAndMemory) {
  const PipeFisherModel model = pipefisher(check_case(PipelineShape::one_way));
  EXPECT_EQ(model.forward_passes, 7);
  EXPECT_EQ(model.backward_passes, 7);
  EXPECT_NEAR(model.ratio, 2.2120, 5e-5);
  EXPECT_NEAR(model.first_order_per_s, 697.97, 5e-3);
  EXPECT_NEAR(model.sequences_per_s, 673.00, 5e-3);
  EXPECT_NEAR(model.utilization, 0.5714, 5e-5);
  EXPECT_NEAR(model.memory_bytes / mib, 1900.5, 5e-2);
}

TEST(PipeFisher, ChimeraHasThePublishedRatioAndThroughput) {
  const PipeFisherModel model = pipefisher(check_case(PipelineShape::bidirectional));
  EXPECT_EQ(model.forward_passes, 4);
  EXPECT_EQ(model.backward_passes, 6);
  EXPECT_NEAR(model.ratio, 5.28, 5e-3);
  EXPECT_NEAR(model.first_order_per_s, 929.6, 5e-2);
  EXPECT_NEAR(model.sequences_per_s, 885.8, 5e-2);
}

TEST(PipeFisher, ChimeraWithMoreMicroBatchesThanStagesRunsHalfAPipelineLess) {
  PipeFisherInput input = check_case(PipelineShape::bidirectional);
  input.micro_batches = 8;
  EXPECT_EQ(pipefisher(input).forward_passes, 8 + 2 - 1);
  EXPECT_EQ(pipefisher(input).backward_passes, 8 + 2 - 1);
}

TEST(PipeFisher, RecomputationIsUsefulWorkOfEveryBackward) {
  PipeFisherInput input = check_case(PipelineShape::one_way);
  const PipeFisherModel plain = pipefisher(input);
  input.recompute = true;
  const PipeFisherModel again = pipefisher(input);
  EXPECT_NEAR(again.pipeline_s - plain.pipeline_s, 7 * input.stage.forward_s, 1e-12);
  EXPECT_NEAR(again.bubble_s - plain.bubble_s, 3 * input.stage.forward_s, 1e-12);
  EXPECT_NEAR(plain.memory_bytes - again.memory_bytes, 3 * input.stage.activation_bytes, 1);
}

TEST(PipeFisher, RefusesAnOddBidirectionalPipeline) {
  PipeFisherInput input = check_case(PipelineShape::bidirectional);
  input.stages = 3;
  EXPECT_THROW(pipefisher(input), std::invalid_argument);
}

struct Case {
  const char* schedule;
  int layers, stages;
  const char* recompute;
};
class WithoutCommunication : public testing::TestWithParam<Case> {};

TEST_P(WithoutCommunication, TheSimulatedStepIsTheClosedForm) {
  const auto [schedule, layers, stages, recompute] = GetParam();
  const std::string d = std::to_string(stages);
  const Plan plan = plan_of(pipefisher_scenario(
      "bert-base", {"schedule.name=" + std::string(schedule), "model.layers=" + std::to_string(layers),
                    "layout.pipeline=" + d, "cluster.gpus_per_node=" + d,
                    "schedule.global_batch=" + std::to_string(32 * stages), "schedule.fill=kfac",
                    "schedule.recompute=" + std::string(recompute)}));
  const auto model = pipefisher_of(plan.scenario);
  ASSERT_TRUE(model.has_value());
  const Simulation simulation = simulate(plan.graph, plan.scenario.cluster, plan.durations, {});
  const StepMetrics step = metrics_of(plan.graph, simulation.timeline, 0);
  EXPECT_NEAR(plan.filling->unfilled_step_s, model->step_s, 1e-6 * model->step_s);
  EXPECT_NEAR(step.step_time_s, plan.filling->filled_step_s, 1e-6 * model->step_s);
  if (plan.filling->behind_s == 0) {
    EXPECT_NEAR(step.step_time_s, model->step_s, 1e-6 * model->step_s);
  }
  EXPECT_NEAR(plan.filling->utilization.before, model->utilization, 1e-6);
  EXPECT_NEAR(plan.filling->utilization.ceiling, model->filled_utilization, 1e-6);
}
INSTANTIATE_TEST_SUITE_P(Of, WithoutCommunication,
                         testing::Values(Case{"gpipe", 12, 4, "none"}, Case{"1f1b", 12, 4, "none"},
                                         Case{"gpipe", 4, 4, "none"}, Case{"1f1b", 4, 4, "none"},
                                         Case{"gpipe", 8, 8, "none"}, Case{"1f1b", 8, 8, "none"},
                                         Case{"chimera", 12, 4, "none"}, Case{"chimera", 4, 4, "none"},
                                         Case{"chimera", 8, 8, "none"}, Case{"gpipe", 12, 4, "full"},
                                         Case{"1f1b", 12, 4, "full"}, Case{"gpipe", 4, 4, "full"},
                                         Case{"1f1b", 4, 4, "full"}, Case{"gpipe", 8, 8, "full"},
                                         Case{"1f1b", 8, 8, "full"}, Case{"chimera", 12, 4, "full"},
                                         Case{"chimera", 4, 4, "full"}, Case{"chimera", 8, 8, "full"}));

}  // namespace
}  // namespace slipway
