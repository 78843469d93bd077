// Prices of published rows: which columns they use, which not, and why a row has none.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/priced_run.h"
#include "scenarios/tables/table.h"
#include "scenarios/validate/graph_prices.h"
#include "tests/support/command_test.h"
#include "tests/support/table_text.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

// A run of Llama 13B with a vocabulary of 128,000 on A100, as Hagemann et al. 2023 made theirs.
PublishedRow run_of(const std::string& results, int nodes = 8, int pipeline = 1, const std::string& more = "zero: 1",
                    const std::string& machine = "a100-80gb") {
  return table_of("scenario,status,step_s\n\"{model: llama-13b-v128k, cluster: {machine: " + machine +
                  ", nodes: " + std::to_string(nodes) +
                  ", gpus_per_node: 8, trainer: aa-scaling}, layout: {pipeline: " + std::to_string(pipeline) + ", " +
                  more + "}, schedule: {global_batch: 2048}}\"," + results + "\n")
      .rows.at(0);
}

TEST(Price, TheMeasuredTimeDoesNotEnterIt) {
  const RowPrice fast = price(run_of("ok,26.5")), slow = price(run_of("ok,99"));
  EXPECT_GT(fast.step_s, 0);
  EXPECT_EQ(fast.step_s, slow.step_s);
}

// Not the run's own test of the network either: nobody has it before the run.
TEST(Price, NoMeasuredValueOfARunEntersItsPrediction) {
  std::ifstream in(SLIPWAY_SOURCE_DIR "/scenarios/studies/ultrascale-2025/runs.csv");
  int priced = 0;
  for (PublishedRow row : read_table(in, "runs.csv").rows) {
    if (!row.scenario || row.scenario->step.layout.tensor == 1 || row.reserved_bytes == 0) continue;
    const RowPrice with = price(row);
    row.step_s = 1, row.allocated_bytes = row.reserved_bytes = row.all_reduce_bytes_per_s = 0;
    const RowPrice without = price(row);
    ASSERT_EQ(with.step_s, without.step_s) << row.line;
    ASSERT_EQ(with.memory->static_bytes, without.memory->static_bytes) << row.line;
    ASSERT_EQ(with.memory->first_bytes, without.memory->first_bytes) << row.line;
    ASSERT_EQ(with.memory->odds.bytes, without.memory->odds.bytes) << row.line;
    ++priced;
  }
  EXPECT_GT(priced, 300);
}

TEST(Price, ARunOutOfMemoryHasAPredictedTimeToo) {
  const RowPrice out =
      price(table_of("scenario,status,step_s\n\"{model: llama-13b-v128k, cluster: {machine: a100-80gb, "
                     "nodes: 8, gpus_per_node: 8, trainer: aa-scaling}, layout: {zero: 1}, schedule: "
                     "{micro_batch: 8, global_batch: 2048}}\",oom,\n")
                .rows.at(0));
  EXPECT_GT(out.step_s, 0);
  ASSERT_TRUE(out.memory.has_value());
  EXPECT_FALSE(out.memory->fits);
}

// 13B parameters with a vocabulary of 128,000; ZeRO-1 over 64: 2 + 2 + 12/64 bytes each; 5 % for counting norms.
TEST(Price, StaticBytesAreThoseOfTheBook) {
  const PublishedRow row = run_of("ok,26.5");
  const RowPrice result = price(row);
  ASSERT_TRUE(result.memory.has_value()) << result.cannot_memory;
  const double parameters = static_cast<double>(parameter_count(row.scenario->step.model));
  EXPECT_NEAR(result.memory->static_bytes, parameters * (4 + 12.0 / 64), 0.05 * result.memory->static_bytes);
  EXPECT_EQ(result.memory->capacity_bytes, 80.0 * 1024 * 1024 * 1024);
}

TEST(Price, ATrainerHasOneOnMachinesOnWhichNobodySawIt) {
  const double here = price(run_of("ok,26.5")).step_s;
  for (const char* machine : {"h100-80gb", "h200"}) {
    const double there = price(run_of("ok,26.5", 8, 1, "zero: 1", machine)).step_s;
    EXPECT_GT(there, here / 4) << machine;
    EXPECT_LT(there, here) << machine;  // three times the peak
  }
}

// ZeRO 3 gathers the weights in each pass. Nothing of that is free on 64 GPUs.
TEST(Price, ZeRO3TakesLongerThanZeRO1AndLessMemory) {
  const RowPrice one = price(run_of("ok,26.5")), three = price(run_of("ok,26.5", 8, 1, "zero: 3"));
  EXPECT_GT(three.step_s, one.step_s);
  EXPECT_LT(three.memory->static_bytes, one.memory->static_bytes);
}

// Time and memory are of one step: a stage that has the layers of another's has their bytes.
TEST(Price, TimeAndMemoryAreOfOneSplitOfLayers) {
  const auto memory = [](const char* split) {
    return price(run_of("ok,26.5", 8, 4, std::string("zero: 1, split: ") + split)).memory->static_bytes;
  };
  const PublishedRow row = run_of("ok,26.5");
  const double layer = static_cast<double>(parameter_count(row.scenario->step.model->runs[1].block));
  EXPECT_NEAR(memory("[16, 8, 8, 8]") - memory("[10, 10, 10, 10]"), 6 * layer * (4 + 12.0 / 16),
              0.01 * 6 * layer * 4.75);
}

TEST(Price, MoreStagesThanLayersAreRefused) {
  EXPECT_THAT(run_of("ok,30", 8, 64).unpriceable,
              HasSubstr("64 stages are more than the model's 40 transformer blocks"));
}

}  // namespace

// A published run as a scenario: its step time equals that of the scenario file of that layout.

namespace {

PublishedTable own_table(const std::string& row) {
  return table_of(runs_text(
      "trainer,machine,model,family,layers,hidden,ffn,heads,kv_heads,vocab,tied,sequence,gpus,gpus_per_node,tensor,"
      "sequence_parallel,context,pipeline,chunks,zero,micro_batch,global_batch,recompute,kernels,status,step_s\n" +
      row));
}

// A Llama of four layers, tensor 2 x pipeline 2 x data 2 on eight A100, full recompute.
PublishedTable table_with(const std::string& pipeline) {
  return own_table("megatron-lm,a100-80gb,own,llama,4,1024,2816,16,8,32000,false,1024,8,4,2,true,1," + pipeline +
                   ",1,1,2,16,full,flash1,ok,1\n");
}

class GraphPrices : public CommandTest {};

TEST_F(GraphPrices, AreThoseOfSimulateOnTheSameLayout) {
  std::ofstream(path("s.yaml"))
      << "model: {family: llama, layers: 4, hidden: 1024, ffn: 2816, heads: 16, kv_heads: 8, vocab: 32000, "
         "sequence: 1024}\n"
         "cluster: {machine: a100-80gb, nodes: 2, gpus_per_node: 4, trainer: megatron-lm}\n"
         "layout: {tensor: 2, pipeline: 2, sequence_parallel: true, zero: 1}\n"
         "schedule: {micro_batch: 2, global_batch: 16, recompute: full, kernels: flash1}\n";
  const Answer answer = slipway_with({"simulate", path("s.yaml"), "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const double expected = nlohmann::json::parse(answer.out)["step_time_s"];

  const PublishedTable table = table_with("2");
  Validation validation = validate(table, false);
  double share = 0;
  price_by_graph(validation, GraphEngine::simulation, [&](double done) { share = done; });
  EXPECT_DOUBLE_EQ(validation.rows[0].price.step_s, expected);
  EXPECT_DOUBLE_EQ(share, 1);
  EXPECT_EQ(validation.priced_by, "simulation");
  price_by_graph(validation, GraphEngine::replay, [](double) {});
  EXPECT_NEAR(validation.rows[0].price.step_s, expected, 0.02 * expected);
  EXPECT_DOUBLE_EQ(validation.rows[0].price.step_s, price(table.rows[0]).step_s);
  price_by_graph(validation, GraphEngine::book, [](double) {});
  EXPECT_DOUBLE_EQ(validation.rows[0].price.step_s,
                   PricedRun(table.rows[0]).replay([](const Machine&) { return book_constants(); }));
  EXPECT_EQ(validation.priced_by, "book");
}

TEST_F(GraphPrices, WhatNoScenarioCanDescribeHasNoPriceAndAReason) {
  const PublishedTable table = table_with("8");
  Validation validation = validate(table, false);
  price_by_graph(validation, GraphEngine::replay, [](double) {});
  EXPECT_EQ(validation.rows[0].price.step_s, 0);
  EXPECT_FALSE(validation.rows[0].price.cannot.empty());
}

TEST_F(GraphPrices, RefitAndAnUnknownEngineAreRefused) {
  const std::string table = SLIPWAY_SOURCE_DIR "/scenarios/studies/megatron-2021/runs.csv";
  EXPECT_THAT(slipway_with({"validate", table, "--engine", "simulation", "--refit"}).err,
              testing::HasSubstr("--refit"));
  const Answer answer = slipway_with({"validate", table, "--engine", "guess"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, testing::HasSubstr("replay, simulation, book"));
}

}  // namespace

}  // namespace slipway::test
