// K-FAC's costs: FLOPs and efficiencies against measurements, and a measured block divided over Linears.
#include <gmock/gmock.h>

#include "models/model/parameters.h"
#include "models/training/kfac.h"
#include "scenarios/predict/prediction.h"
#include "tests/support/pipefisher_files.h"

namespace slipway::test {

namespace {

WorkShape shape_of(std::int64_t micro_batch) {
  WorkShape shape;
  shape.micro_batch = micro_batch;
  shape.sequence = 128;
  shape.dtype = Dtype::float32;
  return shape;
}

Block first_transformer(const Model& model) { return model.runs.at(1).block; }

struct Sums {
  double curvature = 0, inversion = 0, precondition = 0;
};
Sums sum_of(const std::vector<KfacSeconds>& linears) {
  Sums sums;
  for (const KfacSeconds& linear : linears) {
    sums.curvature += linear.curvature_a + linear.curvature_b;
    sums.inversion += linear.inversion_a + linear.inversion_b;
    sums.precondition += linear.precondition;
  }
  return sums;
}

// The profile's one constant for inversions was fitted to these four blocks; curvature and preconditioning
// are plain GEMMs at the default efficiency.
TEST(KfacCost, FromMachineProfilesIsNearTheMeasuredBlocksOfTwoModelsOnTwoGpus) {
  for (const char* name : {"bert-base", "bert-large"}) {
    for (const char* gpu : {"p100", "v100"}) {
      const std::string table = std::string(name) + "-" + gpu + ".blocks.yaml";
      Scenario scenario = pipefisher_scenario(
          "bert-base", {"model.name=" + std::string(name),
                        "cluster.block_times=" SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/" + table,
                        std::string("cluster.machine=") + (gpu[0] == 'p' ? "p100-16gb" : "v100-32gb")});
      Machine machine = scenario.cluster.groups.front().machine;
      const BlockTimes measured = row_of(machine.blocks, 32);
      machine.blocks = {};
      const Sums priced = sum_of(kfac_seconds(first_transformer(scenario.step.model), shape_of(32), machine));
      EXPECT_NEAR(priced.inversion / measured.inversion_s, 1, 0.10) << table;
      EXPECT_NEAR(priced.curvature / measured.curvature_s, 1, 0.25) << table;
      EXPECT_NEAR(priced.precondition / measured.precondition_s, 1, 0.35) << table;
    }
  }
}

TEST(KfacCost, OfAMeasuredBlockIsDividedBySquaresAndCubesOfTheFactorsSides) {
  const Scenario scenario = pipefisher_scenario("bert-base");
  const Machine& machine = scenario.cluster.groups.front().machine;
  const auto linears = kfac_seconds(first_transformer(scenario.step.model), shape_of(32), machine);
  const BlockTimes& measured = row_of(machine.blocks, 32);
  const Sums sums = sum_of(linears);
  EXPECT_NEAR(sums.curvature, measured.curvature_s, 1e-12);
  EXPECT_NEAR(sums.inversion, measured.inversion_s, 1e-12);
  EXPECT_NEAR(sums.precondition, measured.precondition_s, 1e-12);
  // q: both sides are 768; down: its input is four times as wide.
  EXPECT_NEAR(linears.back().curvature_a / linears.front().curvature_a, 16, 1e-9);
  EXPECT_NEAR(linears.back().inversion_a / linears.front().inversion_a, 64, 1e-9);
}

TEST(KfacCost, FactorsOfABertBlockTakeTheMeasuredBytes) {
  const Scenario scenario = pipefisher_scenario("bert-base");
  EXPECT_EQ(kfac_factor_bytes(first_transformer(scenario.step.model), Dtype::float32),
            row_of(scenario.cluster.groups.front().machine.blocks, 32).factor_bytes);
  EXPECT_EQ(kfac_factor_bytes(scenario.step.model->runs.front().block, Dtype::float32), 0);
}

TEST(KfacCost, ASwigluBlockHasSevenLinears) {
  const Model model =
      llama("small", {.layers = 1, .hidden = 64, .ffn = 128, .heads = 8, .kv_heads = 2, .vocab = 256, .sequence = 32});
  const auto linears = kfac_linears(first_transformer(model));
  ASSERT_EQ(linears.size(), 7U);
  EXPECT_EQ(linears[1].out, 16);  // two of eight heads
}

TEST(KfacCost, RowsOfLinearsTileTheParametersThatStoreThem) {
  const Model swiglu =
      llama("small", {.layers = 1, .hidden = 64, .ffn = 96, .heads = 8, .kv_heads = 2, .vocab = 256, .sequence = 32});
  for (const Model& model : {swiglu, *pipefisher_scenario("bert-base").step.model}) {
    const std::vector<Parameter> parameters = parameters_of(model, 1);
    for (const Parameter& parameter : parameters) {
      std::int64_t next = 0;
      for (const KfacLinear& linear : kfac_linears(first_transformer(model))) {
        if (!parameter.name.ends_with(linear.parameter)) continue;
        EXPECT_EQ(linear.first_row, next) << linear.name;
        EXPECT_EQ(linear.in, parameter.shape[1]) << linear.name;
        next += linear.out;
      }
      EXPECT_EQ(next, parameter.is_vector ? 0 : parameter.shape[0]) << parameter.name;
    }
  }
}

TEST(BlockTable, SaysWhatItWasMeasuredFor) {
  const Scenario scenario = pipefisher_scenario("bert-base");
  const BlockTable& table = scenario.cluster.groups.front().machine.blocks;
  const Block block = first_transformer(scenario.step.model);
  EXPECT_EQ(mismatch(table, block, shape_of(32)), "");
  EXPECT_THAT(mismatch(table, block, shape_of(3)), testing::HasSubstr("measured: 1, 2, 4, 8"));
  Block wide = block;
  wide.hidden = 1024;
  EXPECT_THAT(mismatch(table, wide, shape_of(32)), testing::HasSubstr("hidden 768, not 1024"));
  WorkShape sharded = shape_of(32);
  sharded.sharding.tensor = 2;
  EXPECT_THAT(mismatch(table, block, sharded), testing::HasSubstr("tensor 1"));
  EXPECT_THROW(row_of(table, 3), std::invalid_argument);
}

}  // namespace

// The closed-form model of PipeFisher: the check values of BERT-Base on P100 (Osawa et al. 2022), and the simulation
// without communication.

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
  const PreparedStep prepared = prepared_step(pipefisher_scenario(
      "bert-base",
      {"schedule.name=" + std::string(schedule), "model.layers=" + std::to_string(layers), "layout.pipeline=" + d,
       "cluster.gpus_per_node=" + d, "schedule.global_batch=" + std::to_string(32 * stages), "schedule.fill=kfac",
       "schedule.recompute=" + std::string(recompute)}));
  const auto model = pipefisher_of(prepared.scenario);
  ASSERT_TRUE(model.has_value());
  const Simulation simulation = simulate(prepared.graph, prepared.cluster, prepared.durations, {});
  const StepMetrics step = metrics_of(prepared.graph, simulation.timeline, 0);
  EXPECT_NEAR(prepared.filling->unfilled_step_s, model->step_s, 1e-6 * model->step_s);
  EXPECT_NEAR(step.step_time_s, prepared.filling->filled_step_s, 1e-6 * model->step_s);
  if (prepared.filling->behind_s == 0) {
    EXPECT_NEAR(step.step_time_s, model->step_s, 1e-6 * model->step_s);
  }
  EXPECT_NEAR(prepared.filling->utilization.before, model->utilization, 1e-6);
  EXPECT_NEAR(prepared.filling->utilization.ceiling, model->filled_utilization, 1e-6);
}
INSTANTIATE_TEST_SUITE_P(
    Of, WithoutCommunication,
    testing::Values(Case{"gpipe", 12, 4, "none"}, Case{"1f1b", 12, 4, "none"}, Case{"gpipe", 4, 4, "none"},
                    Case{"1f1b", 4, 4, "none"}, Case{"gpipe", 8, 8, "none"}, Case{"1f1b", 8, 8, "none"},
                    Case{"chimera", 12, 4, "none"}, Case{"chimera", 4, 4, "none"}, Case{"chimera", 8, 8, "none"},
                    Case{"gpipe", 12, 4, "full"}, Case{"1f1b", 12, 4, "full"}, Case{"gpipe", 4, 4, "full"},
                    Case{"1f1b", 4, 4, "full"}, Case{"gpipe", 8, 8, "full"}, Case{"1f1b", 8, 8, "full"},
                    Case{"chimera", 12, 4, "full"}, Case{"chimera", 4, 4, "full"}, Case{"chimera", 8, 8, "full"}));

}  // namespace

}  // namespace slipway::test
