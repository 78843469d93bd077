// K-FAC's costs: FLOPs and efficiencies against what was measured, and a measured block divided over
// Linears.
#include <gmock/gmock.h>

#include "models/kfac.h"
#include "models/parameters.h"
#include "tests/pipefisher_files.h"

namespace slipway {
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
                        "cluster.block_times=" SLIPWAY_SOURCE_DIR "/scenarios/pipefisher-2022/" + table,
                        std::string("cluster.machine=") + (gpu[0] == 'p' ? "p100-16gb" : "v100-32gb")});
      Machine machine = scenario.cluster.groups.front().machine;
      const BlockTimes measured = row_of(machine.blocks, 32);
      machine.blocks = {};
      const Sums priced = sum_of(kfac_seconds(first_transformer(scenario.model), shape_of(32), machine));
      EXPECT_NEAR(priced.inversion / measured.inversion_s, 1, 0.10) << table;
      EXPECT_NEAR(priced.curvature / measured.curvature_s, 1, 0.25) << table;
      EXPECT_NEAR(priced.precondition / measured.precondition_s, 1, 0.35) << table;
    }
  }
}

TEST(KfacCost, OfAMeasuredBlockIsDividedBySquaresAndCubesOfTheFactorsSides) {
  const Scenario scenario = pipefisher_scenario("bert-base");
  const Machine& machine = scenario.cluster.groups.front().machine;
  const auto linears = kfac_seconds(first_transformer(scenario.model), shape_of(32), machine);
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
  EXPECT_EQ(kfac_factor_bytes(first_transformer(scenario.model), Dtype::float32),
            row_of(scenario.cluster.groups.front().machine.blocks, 32).factor_bytes);
  EXPECT_EQ(kfac_factor_bytes(scenario.model.runs.front().block, Dtype::float32), 0);
}

TEST(KfacCost, ASwigluBlockHasSevenLinears) {
  const Model model = llama(
      "small",
      {.layers = 1, .hidden = 64, .ffn = 128, .heads = 8, .kv_heads = 2, .vocab = 256, .sequence = 32});
  const auto linears = kfac_linears(first_transformer(model));
  ASSERT_EQ(linears.size(), 7U);
  EXPECT_EQ(linears[1].out, 16);  // two of eight heads
}

TEST(KfacCost, RowsOfLinearsTileTheParametersThatStoreThem) {
  const Model swiglu = llama(
      "small", {.layers = 1, .hidden = 64, .ffn = 96, .heads = 8, .kv_heads = 2, .vocab = 256, .sequence = 32});
  for (const Model& model : {swiglu, pipefisher_scenario("bert-base").model}) {
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
  const Block block = first_transformer(scenario.model);
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
}  // namespace slipway
