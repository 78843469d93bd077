// A published run as a scenario: the same step time as the scenario file of that layout gives.
#include "scenarios/graph_prices.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/command_test.h"

namespace slipway {
namespace {

// A Llama of four layers, tensor 2 x pipeline 2 x data 2 on eight A100, full recompute.
PublishedTable table_of(const std::string& pipeline) {
  std::istringstream in(
      "trainer,machine,model,family,layers,hidden,ffn,heads,kv_heads,vocab,tied,sequence,gpus,gpus_per_"
      "node,tensor,"
      "sequence_parallel,context,pipeline,chunks,zero,micro_batch,global_batch,recompute,kernels,gradient_"
      "dtype,"
      "status,step_s\n"
      "anyone,a100-80gb,own,llama,4,1024,2816,16,8,32000,false,1024,8,4,2,true,1," +
      pipeline + ",1,1,2,16,full,flash1,float32,ok,1\n");
  return read_table(in, "t.csv");
}

class GraphPrices : public CommandTest {};

TEST_F(GraphPrices, AreThoseOfSimulateOnTheSameLayout) {
  std::ofstream(path("s.yaml"))
      << "model: {family: llama, layers: 4, hidden: 1024, ffn: 2816, heads: 16, kv_heads: 8, vocab: 32000, "
         "sequence: 1024}\n"
         "cluster: {machine: a100-80gb, nodes: 2, gpus_per_node: 4}\n"
         "layout: {tensor: 2, pipeline: 2, sequence_parallel: true, zero: 1}\n"
         "schedule: {micro_batch: 2, global_batch: 16, recompute: full, kernels: flash1}\n";
  const Answer answer = slipway_with({"simulate", path("s.yaml"), "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const double expected = nlohmann::json::parse(answer.out)["step_time_s"];

  const PublishedTable table = table_of("2");
  Validation validation = validate(table, false);
  double share = 0;
  price_by_graph(validation, GraphEngine::simulation, [&](double done) { share = done; });
  EXPECT_DOUBLE_EQ(validation.rows[0].price.step_s, expected);
  EXPECT_DOUBLE_EQ(share, 1);
  EXPECT_EQ(validation.priced_by, "simulation");
  price_by_graph(validation, GraphEngine::replay, [](double) {});
  EXPECT_NEAR(validation.rows[0].price.step_s, expected, 0.02 * expected);
}

// Megatron-Core's context parallelism is a ring; of other trainers no row tells.
TEST_F(GraphPrices, ContextRowsExchangeKeysAndValuesAsTheirTrainerDoes) {
  PublishedRow row = table_of("2").rows[0];
  row.shape.sharding.context = 2;
  EXPECT_EQ(scenario_of(row).layout.context_exchange, ContextExchange::all_gather);
  row.trainer = "megatron-core";
  EXPECT_EQ(scenario_of(row).layout.context_exchange, ContextExchange::ring);
  EXPECT_EQ(choice_of(row).layout.context_exchange, ContextExchange::ring);
}

TEST_F(GraphPrices, WhatNoScenarioCanDescribeHasNoPriceAndAReason) {
  const PublishedTable table = table_of("8");
  Validation validation = validate(table, false);
  price_by_graph(validation, GraphEngine::replay, [](double) {});
  EXPECT_EQ(validation.rows[0].price.step_s, 0);
  EXPECT_FALSE(validation.rows[0].price.cannot.empty());
  PublishedRow row = table_of("2").rows[0];
  row.gpus = 6;
  EXPECT_THROW(scenario_of(row), std::invalid_argument);  // one and a half nodes of four
}

TEST_F(GraphPrices, RefitAndAnUnknownEngineAreRefused) {
  const std::string table = SLIPWAY_SOURCE_DIR "/scenarios/megatron-2021/runs.csv";
  EXPECT_THAT(slipway_with({"validate", table, "--engine", "replay", "--refit"}).err,
              testing::HasSubstr("--refit"));
  const Answer answer = slipway_with({"validate", table, "--engine", "guess"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, testing::HasSubstr("formula, replay, simulation"));
}

}  // namespace
}  // namespace slipway
