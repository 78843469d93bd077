// Prices of published rows: which columns they use, which not, and why a row has none.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/priced_run.h"
#include "scenarios/validate/graph_prices.h"
#include "schedules/time/replay.h"
#include "tests/support/command_test.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

PublishedRow hagemann(const std::string& fields) {
  std::istringstream in(
      "model,seq_len,gpus,micro_batch,tensor,pipeline,sequence_parallel,recompute,kernel,status,step_time_"
      "s\n" +
      fields + "\n");
  return read_table(in, "t.csv").rows.at(0);
}

const std::string best = "llama-13b,2048,64,1,1,1,0,none,flash2+rmsnorm,ok,";

TEST(Price, TheMeasuredTimeDoesNotEnterIt) {
  const RowPrice fast = price(hagemann(best + "26.5")), slow = price(hagemann(best + "99"));
  EXPECT_GT(fast.step_s, 0);
  EXPECT_EQ(fast.step_s, slow.step_s);
}

// Not the run's own test of the network either: nobody has it before the run.
TEST(Price, NoMeasuredValueOfARunEntersItsPrediction) {
  std::ifstream in(SLIPWAY_SOURCE_DIR "/scenarios/studies/ultrascale-2025/runs.csv");
  int priced = 0;
  for (PublishedRow row : read_table(in, "runs.csv").rows) {
    if (row.step.layout.tensor == 1 || row.reserved_bytes == 0) continue;
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
  const RowPrice out = price(hagemann("llama-13b,2048,64,8,1,1,0,none,flash2+rmsnorm,oom,"));
  EXPECT_GT(out.step_s, 0);
  ASSERT_TRUE(out.memory.has_value());
  EXPECT_FALSE(out.memory->fits);
}

// 13B parameters with a vocabulary of 128,000; ZeRO-1 over 64: 2 + 2 + 12/64 bytes each; 5 % for counting norms.
TEST(Price, StaticBytesAreThoseOfTheBook) {
  const PublishedRow row = hagemann(best + "26.5");
  const RowPrice result = price(row);
  ASSERT_TRUE(result.memory.has_value()) << result.cannot_memory;
  const double parameters = static_cast<double>(parameter_count(row.step.model));
  EXPECT_NEAR(result.memory->static_bytes, parameters * (4 + 12.0 / 64), 0.05 * result.memory->static_bytes);
  EXPECT_EQ(result.memory->capacity_bytes, 80.0 * 1024 * 1024 * 1024);
}

TEST(Price, ATrainerHasOneOnMachinesOnWhichNobodySawIt) {
  PublishedRow row = hagemann(best + "26.5");
  const double here = price(row).step_s;
  for (const char* machine : {"h100-80gb", "h200"}) {
    row.machine = machine;
    EXPECT_GT(price(row).step_s, here / 4) << machine;
    EXPECT_LT(price(row).step_s, here) << machine;  // three times the peak
  }
}

TEST(Price, AnUnknownMachineOrTrainerHasNoneAndAReason) {
  PublishedRow row = hagemann(best + "26.5");
  row.machine = "abacus";
  EXPECT_THAT(price(row).cannot, HasSubstr("no machine profile 'abacus'"));
  EXPECT_THAT(price(row).cannot_memory, HasSubstr("no machine profile 'abacus'"));
  row = hagemann(best + "26.5");
  row.trainer = "nobody";
  EXPECT_THAT(price(row).cannot, HasSubstr("there is no trainer 'nobody'"));
}

TEST(Price, WhatIsNotModelledHasNoTimeAndAReasonButAVerdictOfMemory) {
  PublishedRow fp8 = hagemann(best + "26.5"), groups = fp8;
  fp8.fp8 = true;
  EXPECT_EQ(price(fp8).step_s, 0);
  EXPECT_THAT(price(fp8).cannot, HasSubstr("fp8"));
  EXPECT_TRUE(price(fp8).memory.has_value());
  groups.shard_group = 8;
  EXPECT_EQ(price(groups).step_s, 0);
  EXPECT_THAT(price(groups).cannot, HasSubstr("in groups of 8 GPUs"));
  EXPECT_TRUE(price(groups).memory.has_value());
}

// ZeRO 3 gathers the weights in each pass. Nothing of that is free on 64 GPUs.
TEST(Price, ZeRO3TakesLongerThanZeRO1AndLessMemory) {
  PublishedRow one = hagemann(best + "26.5"), three = one;
  three.step.layout.zero = 3;
  EXPECT_GT(price(three).step_s, price(one).step_s);
  EXPECT_LT(price(three).memory->static_bytes, price(one).memory->static_bytes);
}

// Weights and gradients, 2 bytes each, and the replica's share of Adam's 12. With 40 layers on 16 stages the first has
// three, on 20 all have two.
TEST(Price, AStageThatHasALayerMoreHasItsBytesToo) {
  const auto bytes = [](const char* pipeline, const char* gpus) {
    return price(hagemann(std::string("llama-13b,2048,") + gpus + ",1,1," + pipeline + ",0,none,flash2+rmsnorm,ok,30"))
        .memory->static_bytes;
  };
  const PublishedRow row = hagemann(best + "26.5");
  const double layer = static_cast<double>(parameter_count(row.step.model->runs[1].block));
  EXPECT_NEAR(bytes("16", "1024") - bytes("20", "1280"), layer * (4 + 12.0 / 64), 1e-3 * layer);
}

TEST(Price, MoreStagesThanLayersAreRefused) {
  PublishedRow row = hagemann("llama-13b,2048,64,1,1,64,0,none,flash2,ok,30");
  EXPECT_EQ(row.unpriceable, "");
  EXPECT_THAT(price(row).cannot, HasSubstr("64 stages are more than the model's 40 transformer blocks"));
}

}  // namespace

// A published run as a scenario: its step time equals that of the scenario file of that layout.

namespace {

PublishedTable own_table(const std::string& row) {
  std::istringstream in(
      "trainer,machine,model,family,layers,hidden,ffn,heads,kv_heads,vocab,tied,sequence,gpus,gpus_per_"
      "node,tensor,"
      "sequence_parallel,context,pipeline,chunks,zero,micro_batch,global_batch,recompute,kernels,gradient_"
      "dtype,"
      "status,step_s\n" +
      row);
  return read_table(in, "t.csv");
}

// A Llama of four layers, tensor 2 x pipeline 2 x data 2 on eight A100, full recompute.
PublishedTable table_of(const std::string& pipeline) {
  return own_table("megatron-lm,a100-80gb,own,llama,4,1024,2816,16,8,32000,false,1024,8,4,2,true,1," + pipeline +
                   ",1,1,2,16,full,flash1,float32,ok,1\n");
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

  const PublishedTable table = table_of("2");
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

// Seven layers on four stages, gradients of 16 bits, unfused attention on one context rank and flash attention on two:
// what a trainer does as a rule decides how layers are dealt out, what gradients are reduced in, how keys go around.
TEST_F(GraphPrices, AreThoseOfSimulateForEveryTrainer) {
  std::set<double> steps;
  for (const EmbeddedFile& file : embedded_trainers())
    for (const int context : {1, 2}) {
      const std::string trainer(file.name), degree = std::to_string(context),
                                            kernels = context == 1 ? "torch" : "flash2";
      const PublishedTable table =
          own_table(trainer + ",a100-80gb,own,llama,7,1024,2816,16,8,32000,false,1024," + std::to_string(8 * context) +
                    ",4,1,false," + degree + ",4,1,1,2,16,full," + kernels + ",bfloat16,ok,1\n");
      const bool run_decides = built_in_trainer(trainer)->facts.reduces_in == ReductionDtype::run;
      const std::string text =
          "model: {family: llama, layers: 7, hidden: 1024, ffn: 2816, heads: 16, kv_heads: 8, vocab: 32000, sequence: "
          "1024}\ncluster: {machine: a100-80gb, nodes: " +
          std::to_string(2 * context) + ", gpus_per_node: 4, trainer: " + trainer +
          "}\nlayout: {pipeline: 4, zero: 1, context: " + degree +
          "}\nschedule: {micro_batch: 2, global_batch: 16, recompute: full, kernels: " + kernels + "}\n" +
          (run_decides ? "run: {gradient_dtype: bfloat16}\n" : "");
      const LoadResult loaded = load_scenario_text(text, "s.yaml");
      ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
      const double step_s = replayed_step_s(loaded.scenario);
      EXPECT_DOUBLE_EQ(replayed_step_s(scenario_of(table.rows[0])), step_s) << trainer << ", context " << context;
      EXPECT_NEAR(price(table.rows[0]).step_s, step_s, 1e-12 * step_s) << trainer << ", context " << context;
      if (context == 1) steps.insert(step_s);

      std::ofstream(path("s.yaml")) << text;
      const Answer answer = slipway_with({"simulate", path("s.yaml"), "--json"});
      ASSERT_EQ(answer.status, status_done) << answer.err;
      Validation validation = validate(table, false);
      price_by_graph(validation, GraphEngine::simulation, [](double) {});
      EXPECT_DOUBLE_EQ(validation.rows[0].price.step_s, nlohmann::json::parse(answer.out)["step_time_s"].get<double>())
          << trainer << ", context " << context;
    }
  EXPECT_EQ(steps.size(), embedded_trainers().size());
}

// Megatron-Core's context parallelism is a ring; other trainers' rows do not show theirs.
TEST_F(GraphPrices, ContextRowsExchangeKeysAndValuesAsTheirTrainerDoes) {
  PublishedRow row = table_of("2").rows[0];
  row.step.layout.context = 2, row.gpus = 16;
  EXPECT_EQ(scenario_of(row).step.layout.context_exchange, ContextExchange::all_gather);
  row.trainer = "megatron-core";
  EXPECT_EQ(scenario_of(row).step.layout.context_exchange, ContextExchange::ring);
}

// Megatron-LM's rows on V100 are of DGX-2: sixteen a node, behind switches.
TEST_F(GraphPrices, TwoOfSixteenV100sHaveTheSwitchesOfTheirNode) {
  PublishedRow row = table_of("2").rows[0];
  row.machine = "v100-32gb", row.gpus = 2;
  row.gpus_per_node = 8;
  EXPECT_EQ(scenario_of(row).cluster.groups[0].machine.node_link.mesh, 7);
  row.gpus_per_node = 16;
  EXPECT_EQ(scenario_of(row).cluster.groups[0].machine.node_link.mesh, 0);
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
  const std::string table = SLIPWAY_SOURCE_DIR "/scenarios/studies/megatron-2021/runs.csv";
  EXPECT_THAT(slipway_with({"validate", table, "--engine", "simulation", "--refit"}).err,
              testing::HasSubstr("--refit"));
  const Answer answer = slipway_with({"validate", table, "--engine", "guess"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, testing::HasSubstr("replay, simulation, book"));
}

}  // namespace

}  // namespace slipway::test
