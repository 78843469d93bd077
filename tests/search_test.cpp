// The search against exhaustive simulation, and the space against the loader.
#include "scenarios/search/search.h"

#include <gmock/gmock.h>

#include <set>

#include "scenarios/memory/changes.h"
#include "scenarios/search/answer.h"
#include "scenarios/search/ranking.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

// Small models on a few GPUs of round numbers; memory is scarce, so that some layouts do not fit.
struct Small {
  const char* name;
  const char* model;
  const char* memory;
  int nodes, gpus;
  int batch;
  const char* more;
  const char* network = "5 GB/s";
  const char* schedule = "";
};
constexpr Small smalls[] = {
    {"llama",
     "{family: llama, layers: 4, hidden: 64, ffn: 192, heads: 4, kv_heads: 2, vocab: 512, sequence: 64}",
     "3 MB", 1, 4, 8, "layout: {split: balanced}"},
    {"wide llama over two nodes",
     "{family: llama, layers: 6, hidden: 128, ffn: 384, heads: 4, kv_heads: 4, vocab: 256, sequence: 64}",
     "12 MB", 2, 2, 12, "run: {clip_norm: 1}"},
    {"tied gpt",
     "{family: gpt, layers: 5, hidden: 64, ffn: 256, heads: 2, vocab: 256, max_positions: 32, sequence: "
     "32}",
     "3 MB", 2, 2, 4, "run: {steps: 1}"},
    {"slow network",
     "{family: llama, layers: 4, hidden: 128, ffn: 384, heads: 4, kv_heads: 4, vocab: 256, sequence: 64}",
     "8 MB", 4, 1, 8, "layout: {split: even}", "200 MB/s"},
    {"long sequence",
     "{family: llama, layers: 4, hidden: 64, ffn: 192, heads: 4, kv_heads: 4, vocab: 128, sequence: 1024}",
     "14 MB", 2, 2, 4, "run: {clip_norm: 0}"},
    {"unfused and uneven",
     "{family: llama, layers: 7, hidden: 64, ffn: 192, heads: 2, kv_heads: 2, vocab: 1024, sequence: 64}",
     "5 MB", 2, 2, 6, "run: {clip_norm: 1}", "5 GB/s", ", kernels: torch"},
};

std::string text_of(const Small& small) {
  return std::string("model: ") + small.model +
         "\ncluster: {machine: ./gpu.yaml, nodes: " + std::to_string(small.nodes) +
         ", gpus_per_node: " + std::to_string(small.gpus) + "}\n" + small.more +
         "\nschedule: {name: 1f1b, global_batch: " + std::to_string(small.batch) + small.schedule + "}\n";
}

Scenario load(const ScenarioFolder& folder, const Small& small) {
  folder.write("gpu.yaml", std::string("name: gpu\nmemory_bytes: ") + small.memory +
                               "\npeak_flops: {float32: 10 TFLOP/s, bfloat16: 20 TFLOP/s}\n"
                               "memory_bandwidth: 1 TB/s\nlaunch_overhead: 1 us\ngemm_half: 64\n"
                               "node_link: {name: bus, bandwidth: 20 GB/s, latency: 2 us}\n"
                               "network_link: {name: wire, bandwidth: " +
                               small.network + ", latency: 5 us}\n");
  return scenario_to_search(folder.write("s.yaml", text_of(small)), {}, {});
}

std::vector<PricedLayout> exhaustive(const Scenario& scenario, double memory_share) {
  std::vector<PricedLayout> rows;
  each_layout(scenario, search_space(scenario, {}),
              [&](const LayoutChoice& choice) { rows.push_back(price_layout(scenario, choice)); });
  std::erase_if(rows, [&](const PricedLayout& row) { return !fits(row, memory_share); });
  std::stable_sort(rows.begin(), rows.end(), [](const PricedLayout& a, const PricedLayout& b) {
    return a.step_time_s != b.step_time_s ? a.step_time_s < b.step_time_s : a.memory_bytes < b.memory_bytes;
  });
  return rows;
}

class SearchedSpaces : public testing::TestWithParam<Small> {};

TEST_P(SearchedSpaces, HaveTheTopTenOfExhaustiveSimulation) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, GetParam());
  SearchOptions options;
  options.memory_share = 0.8;
  const std::vector<PricedLayout> all = exhaustive(scenario, options.memory_share);
  const SearchResult found = search_layouts(scenario, search_space(scenario, {}), options);
  ASSERT_GE(all.size(), 20u);
  ASSERT_EQ(found.best.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(layout_text(found.best[i].choice), layout_text(all[i].choice)) << i;
    EXPECT_EQ(found.best[i].step_time_s, all[i].step_time_s);
  }
  EXPECT_LT(found.simulated, found.legal - found.too_large) << "nothing was saved";
  EXPECT_GT(found.too_large, 0) << "memory was no matter";
}

TEST_P(SearchedSpaces, HaveBoundsThatNoLayoutIsBelow) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, GetParam());
  StepEstimator estimator(lowering_input(scenario), scenario.cluster);
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const LayoutChoice& choice) {
    if (++layouts % 3 != 0) return;
    const PricedLayout row = price_layout(scenario, choice);
    const StepEstimate estimate = estimator.estimate(choice);
    EXPECT_LE(estimate.bound_s, row.step_time_s * (1 + 1e-9)) << layout_text(choice);
    EXPECT_LE(estimator.passes_bound(choice), row.step_time_s * (1 + 1e-9)) << layout_text(choice);
    EXPECT_LE(estimate.memory_share, row.memory_share * (1 + 1e-9)) << layout_text(choice);
    EXPECT_LE(estimate.memory_share, row.timeline_share * (1 + 1e-9)) << layout_text(choice);
  });
  EXPECT_GT(layouts, 60);
}

TEST_P(SearchedSpaces, GiveTheSameAnswerWhateverTheNumberOfWorkers) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, GetParam());
  std::vector<std::string> answers;
  for (const int workers : {1, 3}) {
    SearchOptions options;
    options.workers = workers;
    SearchResult found = search_layouts(scenario, search_space(scenario, {}), options);
    found.screening_s = found.simulation_s = 0;
    answers.push_back(search_text(scenario, found, options));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// The front: no layout of the space is both faster and smaller than one of its rows.
TEST_P(SearchedSpaces, HaveAFrontOfFallingMemoryAndRisingTime) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, GetParam());
  const SearchResult found = search_layouts(scenario, search_space(scenario, {}), {});
  ASSERT_FALSE(found.pareto.empty());
  EXPECT_EQ(layout_text(found.pareto.front().choice), layout_text(found.best.front().choice));
  for (std::size_t i = 1; i < found.pareto.size(); ++i) {
    EXPECT_GE(found.pareto[i].step_time_s, found.pareto[i - 1].step_time_s);
    EXPECT_LT(found.pareto[i].memory_share, found.pareto[i - 1].memory_share);
  }
}

// What the loader accepts is what the space holds: each layout loads, and a wall of other values does not.
TEST_P(SearchedSpaces, HoldWhatTheLoaderAccepts) {
  const ScenarioFolder folder;
  const Small& small = GetParam();
  const Scenario scenario = load(folder, small);
  std::set<std::string> in_space;
  each_layout(scenario, search_space(scenario, {}), [&](const LayoutChoice& choice) {
    const LoadResult loaded = load_scenario(scenario.path, overrides_of(choice));
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    EXPECT_EQ(rank_count(choice.layout), small.nodes * small.gpus);
    EXPECT_TRUE(in_space.insert(layout_text(choice)).second) << layout_text(choice) << " comes twice";
  });
  int accepted = 0;
  for (const int t : {1, 2, 3, 4})
    for (const int p : {1, 2, 4})
      for (const int c : {1, 2, 4})
        for (const int v : {1, 2, 3})
          for (const int b : {1, 2, 3, 4})
            for (const bool sp : {false, true})
              for (const Schedule& schedule : all_schedules()) {
                if (!schedule.searched) continue;
                LayoutChoice choice;
                choice.layout.tensor = t, choice.layout.pipeline = p, choice.layout.context = c;
                choice.layout.chunks = v, choice.layout.sequence_parallel = sp;
                choice.layout.data = std::max(1, small.nodes * small.gpus / (t * p * c));
                choice.schedule = &schedule;
                choice.micro_batch = b;
                const bool disguised = p == 1 && (v > 1 || schedule.name != "1f1b");
                const bool loads = load_scenario(scenario.path, overrides_of(choice)).errors.empty();
                accepted += loads && !disguised ? 1 : 0;
                EXPECT_EQ(loads && !disguised, in_space.contains(layout_text(choice)))
                    << layout_text(choice);
              }
  EXPECT_GT(accepted, 10);
}

INSTANTIATE_TEST_SUITE_P(Small, SearchedSpaces, testing::ValuesIn(smalls), [](const auto& of) {
  std::string name = of.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// A fast and a slow group of nodes: members differ, so nothing can be folded across them.
TEST(SearchOfUnequalNodes, HasTheTopTenOfExhaustiveSimulation) {
  const ScenarioFolder folder;
  load(folder, smalls[0]);  // writes gpu.yaml
  folder.write("slow.yaml",
               "name: slow\nmemory_bytes: 2 MB\npeak_flops: {float32: 4 TFLOP/s, bfloat16: 8 TFLOP/s}\n"
               "memory_bandwidth: 0.5 TB/s\nlaunch_overhead: 2 us\ngemm_half: 64\n"
               "node_link: {name: bus, bandwidth: 10 GB/s, latency: 2 us}\n"
               "network_link: {name: wire, bandwidth: 5 GB/s, latency: 5 us}\n");
  const Scenario scenario = scenario_to_search(
      folder.write("s.yaml", std::string("model: ") + smalls[0].model +
                                 "\ncluster: {groups: [{machine: ./gpu.yaml, nodes: 1, gpus_per_node: 2}, "
                                 "{machine: ./slow.yaml, nodes: 1, gpus_per_node: 2}]}\n"
                                 "schedule: {name: 1f1b, global_batch: 8}\n"),
      {}, {});
  SearchOptions options;
  options.memory_share = 0.8;
  const std::vector<PricedLayout> all = exhaustive(scenario, options.memory_share);
  const SearchSpace as_written = search_space(scenario, {"layout.split", "layout.placement"});  // search_refine_test
  const SearchResult found = search_layouts(scenario, as_written, options);
  ASSERT_EQ(found.best.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(layout_text(found.best[i].choice), layout_text(all[i].choice));
}

// A trainer that takes less for some parts and more for others than the book.
TEST_P(SearchedSpaces, AreJudgedAsSlipwayMemoryJudgesThem) {
  const ScenarioFolder folder;
  Scenario scenario = load(folder, GetParam());
  scenario.trainer.gradient_bytes = 2;
  scenario.trainer.layer_factor = 0.7;
  scenario.trainer.logit_bytes = 2;
  scenario.trainer.library_bytes = 1e5;
  scenario.trainer.usable_share = 0.9;
  scenario.trainer.machine = scenario.cluster.groups[0].machine.name;  // no book: the closed form has no vote
  StepEstimator estimator(lowering_input(scenario), scenario.cluster, scenario.trainer);
  double closest = 0;
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const LayoutChoice& choice) {
    const PricedLayout row = price_if_it_fits(scenario, choice, 0);
    const Verdict verdict = verdict_of(with_layout(scenario, choice));
    EXPECT_DOUBLE_EQ(row.memory_bytes, verdict.bytes);
    const double bound = estimator.estimate(choice).memory_share;
    EXPECT_LE(bound, row.memory_share * (1 + 1e-9)) << layout_text(choice);
    EXPECT_EQ(verdict.fits, row.memory_share <= scenario.trainer.usable_share * (1 + 1e-12));
    closest += bound / row.memory_share;
    ++layouts;
  });
  EXPECT_GT(closest / layouts, 0.5);
}

TEST(Search, ThatIsInterruptedSaysSo) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, smalls[0]);
  SearchOptions options;
  int asked = 0;
  options.interrupted = [&] { return ++asked > 4; };
  const SearchResult found = search_layouts(scenario, search_space(scenario, {}), options);
  EXPECT_FALSE(found.complete);
  EXPECT_THAT(search_text(scenario, found, options), testing::HasSubstr("INTERRUPTED"));
}

TEST(Search, TakesNoStepBelowItsBoundForAnAnswer) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, smalls[0]);
  LayoutChoice choice;
  choice.layout = scenario.layout;
  choice.schedule = schedule_named("1f1b");
  EXPECT_NO_THROW(refuse_below_bound(choice, 1, 1));
  EXPECT_NO_THROW(refuse_below_bound(choice, 1, 1 - 1e-9)) << "another order of additions";
  try {
    refuse_below_bound(choice, 0.05, 0.04);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(layout_text(choice)), testing::HasSubstr("0.04 s"),
                                             testing::HasSubstr("0.05 s"), testing::HasSubstr("defect")));
  }
}

// Terapipe cuts sequences, which the lowering refuses with context parallelism and with full recomputation.
TEST(Search, OfSlicesHoldsOnlyWhatCanBeSimulated) {
  const ScenarioFolder folder;
  Scenario scenario = load(folder, smalls[0]);
  scenario.schedule.name = "terapipe", scenario.schedule.slices = 2;
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {"schedule.name"}), [&](const LayoutChoice& choice) {
    ++layouts;
    EXPECT_NO_THROW(price_layout(scenario, choice)) << layout_text(choice);
  });
  EXPECT_GT(layouts, 10);
}

}  // namespace
}  // namespace slipway
