// The search against exhaustive simulation.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

#include "scenarios/commands/plan/answer.h"
#include "scenarios/commands/plan/table.h"
#include "scenarios/predict/readable.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/memory_changes.h"
#include "scenarios/search/ranking.h"
#include "scenarios/search/scenario_to_search.h"
#include "scenarios/search/screen.h"
#include "scenarios/search/search.h"
#include "tests/support/command_test.h"
#include "tests/support/scenario_file.h"
#include "tests/support/small_spaces.h"

namespace slipway::test {

namespace {

std::vector<PricedLayout> exhaustive(const Scenario& scenario, double memory_share) {
  std::vector<PricedLayout> rows;
  each_layout(scenario, search_space(scenario, {}),
              [&](const Step& choice) { rows.push_back(price_layout(scenario, choice)); });
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
  StepEstimator estimator(scenario.step, priced_cluster(scenario));
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const Step& choice) {
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

// Numbers to the last bit, rows in one order.
std::string text_of(const std::vector<Candidate>& rows) {
  std::string text;
  char numbers[80];
  for (const Candidate& row : rows) {
    for (const std::string& override : overrides_of(row.choice)) text += override + " ";
    std::snprintf(numbers, sizeof numbers, "%a %a %a\n", row.bound_s, row.memory_bytes, row.memory_share);
    text += numbers;
  }
  return text;
}

TEST_P(SearchedSpaces, AreScreenedAlikeByOneAndByFourThreads) {
  const ScenarioFolder folder;
  const Scenario scenario = load(folder, GetParam());
  const SearchSpace space = search_space(scenario, {});
  const auto screened = [&](int threads) { return screen(scenario, space, 0.8, threads, [] { return false; }); };
  const Screening one = screened(1);
  ASSERT_GT(one.candidates.size(), 20U);
  for (const int threads : {2, 4}) {
    const Screening several = screened(threads);
    EXPECT_EQ(text_of(several.candidates), text_of(one.candidates)) << threads;
    EXPECT_EQ(text_of(several.smallest), text_of(one.smallest)) << threads;
    EXPECT_EQ(several.legal, one.legal);
    EXPECT_EQ(several.too_large, one.too_large);
    ASSERT_EQ(several.best_too_large.has_value(), one.best_too_large.has_value());
    if (!one.best_too_large) continue;
    EXPECT_EQ(several.best_too_large->bound_s, one.best_too_large->bound_s);
    EXPECT_EQ(layout_text(several.best_too_large->choice), layout_text(one.best_too_large->choice));
  }
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

INSTANTIATE_TEST_SUITE_P(Small, SearchedSpaces, testing::ValuesIn(smalls), name_of_small);

// A fast and a slow group of nodes: members differ, so no representative crosses them.
TEST(SearchOfUnequalNodes, HasTheTopTenOfExhaustiveSimulation) {
  const ScenarioFolder folder;
  load(folder, smalls[0]);  // writes gpu.yaml
  folder.write("slow.yaml",
               "name: slow\nmemory_bytes: 2 MB\npeak_flops: {float32: 4 TFLOP/s, bfloat16: 8 TFLOP/s}\n"
               "memory_bandwidth: 0.5 TB/s\nlaunch_overhead: 2 us\ngemm_half: 64\n"
               "node_link: {name: bus, bandwidth: 10 GB/s, latency: 2 us}\n"
               "network_link: {name: wire, bandwidth: 5 GB/s, latency: 5 us}\n");
  Scenario scenario = scenario_to_search(
      {folder.write("s.yaml", std::string("model: ") + smalls[0].model +
                                  "\ncluster: {groups: [{machine: ./gpu.yaml, nodes: 1, gpus_per_node: 2}, "
                                  "{machine: ./slow.yaml, nodes: 1, gpus_per_node: 2}]}\n"
                                  "schedule: {name: 1f1b, global_batch: 8}\n")},
      {});
  scenario.memory = MemoryConstants{};
  SearchOptions options;
  options.memory_share = 0.8;
  const std::vector<PricedLayout> all = exhaustive(scenario, options.memory_share);
  const SearchSpace as_written = search_space(scenario, {"layout.split", "layout.placement"});  // search_refine_test
  const SearchResult found = search_layouts(scenario, as_written, options);
  ASSERT_EQ(found.best.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(layout_text(found.best[i].choice), layout_text(all[i].choice));
}

// A trainer that takes less for some parts and more for others than the book.
TEST_P(SearchedSpaces, AreJudgedAsSlipwayMemoryJudgesThem) {
  const ScenarioFolder folder;
  Scenario scenario = load(folder, GetParam());
  scenario.memory.facts.gradient_bytes = 2;
  scenario.memory.layer_factor = 0.7;
  scenario.memory.logit_bytes = 2;
  scenario.memory.context_bytes = 1e5;
  scenario.memory.row_spread = 0.05;
  StepEstimator estimator(scenario.step, priced_cluster(scenario), scenario.memory);
  double closest = 0;
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const Step& choice) {
    const PricedLayout row = price_if_it_fits(scenario, choice, 0);
    const Verdict verdict = verdict_of(with_layout(scenario, choice));
    EXPECT_DOUBLE_EQ(row.memory_bytes, verdict.odds.recommended());
    const double bound = estimator.estimate(choice).memory_share;
    EXPECT_LE(bound, row.memory_share * (1 + 1e-9)) << layout_text(choice);
    EXPECT_EQ(verdict.fits_cautious, row.memory_share <= 1);
    closest += bound / row.memory_share;
    ++layouts;
  });
  EXPECT_GT(closest / layouts, 0.49);
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
  Step choice;
  choice.layout = scenario.step.layout;
  choice.schedule = "1f1b";
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
  scenario.step.schedule = "terapipe", scenario.step.slices = 2;
  int layouts = 0;
  each_layout(scenario, search_space(scenario, {"schedule.name"}), [&](const Step& choice) {
    ++layouts;
    EXPECT_NO_THROW(price_layout(scenario, choice)) << layout_text(choice);
  });
  EXPECT_GT(layouts, 10);
}

}  // namespace

// Searches whose result depends on one thing: the bounds of split backwards, or memory that only the timeline shows.

namespace {

// Four GPUs of round numbers in two nodes.
Scenario small_llama(const ScenarioFolder& folder, const std::string& memory, int batch, int kv_heads = 4) {
  folder.write(
      "gpu.yaml",
      "name: gpu\nmemory_bytes: " + memory +
          "\npeak_flops: {float32: 10 TFLOP/s, bfloat16: 20 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nlaunch_overhead: 1 us\n"
          "gemm_half: 64\nnode_link: {name: bus, bandwidth: 20 GB/s, latency: 2 us}\n"
          "network_link: {name: wire, bandwidth: 5 GB/s, latency: 5 us}\n");
  Scenario scenario = scenario_to_search(
      {folder.write("s.yaml", "model: {family: llama, layers: 6, hidden: 128, ffn: 384, heads: 4, kv_heads: " +
                                  std::to_string(kv_heads) +
                                  ", vocab: 256, sequence: 64}\n"
                                  "cluster: {machine: ./gpu.yaml, nodes: 2, gpus_per_node: 2}\n"
                                  "schedule: {name: 1f1b, global_batch: " +
                                  std::to_string(batch) + "}\n")},
      {});
  scenario.memory = MemoryConstants{};  // the count alone: libraries are larger than these GPUs
  return scenario;
}

// Split backwards and stages in a V have bounds of their own (schedules/bound/estimate.cpp). With a bound of compute
// alone, nearly all was simulated.
TEST(Search, OfASplitBackwardHasTheTopTenOfExhaustiveSimulationAndSimulatesLessThanHalf) {
  const ScenarioFolder folder;
  Scenario scenario = small_llama(folder, "40 MB", 24);
  scenario.step.schedule = "zb-v";
  const SearchSpace space = search_space(scenario, {"schedule.name"});
  std::vector<PricedLayout> all;
  each_layout(scenario, space, [&](const Step& choice) { all.push_back(price_layout(scenario, choice)); });
  SearchOptions options;
  std::erase_if(all, [&](const PricedLayout& row) { return !fits(row, options.memory_share); });
  std::stable_sort(all.begin(), all.end(), is_better);
  const SearchResult found = search_layouts(scenario, space, options);
  ASSERT_GE(all.size(), 20u);
  ASSERT_EQ(found.best.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(layout_text(found.best[i].choice), layout_text(all[i].choice)) << i;
  EXPECT_LT(2 * found.simulated, found.legal);
}

// A legal order of passes, at random: a rank may run any pass whose input is there. Stage s is on rank s mod pipeline.
ActionLists drawn_lists(int pipeline, int chunks, int micro_batches, bool splits, std::mt19937& draw) {
  ActionLists lists(static_cast<std::size_t>(pipeline));
  const Pass back = splits ? Pass::input_grad : Pass::backward;
  std::vector<Action> open;
  for (int j = 0; j < micro_batches; ++j) open.push_back({Pass::forward, 0, j});
  while (!open.empty()) {
    const std::size_t at = draw() % open.size();
    const Action next = open[at];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    lists[static_cast<std::size_t>(next.stage % pipeline)].push_back(next);
    const bool is_last = next.stage + 1 == pipeline * chunks;
    if (next.pass == Pass::forward && !is_last) open.push_back({Pass::forward, next.stage + 1, next.micro_batch});
    if (next.pass == Pass::forward && is_last) open.push_back({back, next.stage, next.micro_batch});
    if (next.pass == Pass::input_grad) open.push_back({Pass::weight_grad, next.stage, next.micro_batch});
    if (next.pass == back && next.stage > 0) open.push_back({back, next.stage - 1, next.micro_batch});
  }
  return lists;
}

Scenario trained_llama(const ScenarioFolder& folder) {
  return scenario_to_search(
      {folder.write("s.yaml",
                    "model: {family: llama, layers: 6, hidden: 1024, ffn: 3072, heads: 8, kv_heads: 8, vocab: 4096, "
                    "sequence: 512}\n"
                    "cluster: {machine: h100-80gb, nodes: 2, gpus_per_node: 2, trainer: megatron-core}\n"
                    "schedule: {name: 1f1b, global_batch: 8}\n")},
      {});
}

// Two pipeline ranks and four micro-batches on four GPUs: all that is left to search, simulated.
void expect_exact_around(Scenario scenario, ActionLists lists, int chunks, const std::string& what) {
  constexpr int micro_batches = 4;
  scenario.step.actions = std::make_shared<const ActionLists>(std::move(lists));
  scenario.step.layout.chunks = chunks;
  StepEstimator estimator(scenario.step, priced_cluster(scenario), scenario.memory);
  const SearchSpace space = search_space(scenario, {});
  std::vector<PricedLayout> all;
  each_layout(scenario, space, [&](const Step& choice) {
    EXPECT_EQ(choice.layout.pipeline, 2);
    EXPECT_EQ(choice.layout.chunks, chunks);
    EXPECT_EQ(micro_batches_of(choice), micro_batches);
    all.push_back(price_layout(scenario, choice));
    EXPECT_LE(estimator.passes_bound(choice), all.back().step_time_s * (1 + 1e-9)) << what << layout_text(choice);
  });
  ASSERT_GE(all.size(), 10U) << what;
  const SearchOptions options;
  std::erase_if(all, [&](const PricedLayout& row) { return !fits(row, options.memory_share); });
  std::stable_sort(all.begin(), all.end(), is_better);
  const SearchResult found = search_layouts(scenario, space, options);
  ASSERT_EQ(found.best.size(), std::min<std::size_t>(all.size(), 10)) << what;
  for (std::size_t i = 0; i < found.best.size(); ++i)
    EXPECT_EQ(found.best[i].step_time_s, all[i].step_time_s) << what << i;
}

TEST(Search, AroundTheActionListsOfACsvHasTheAnswerOfExhaustiveSimulationAndBoundsThatHold) {
  const ScenarioFolder folder;
  const Scenario scenarios[] = {small_llama(folder, "40 MB", 8), trained_llama(folder)};
  std::mt19937 draw(7);
  for (const Scenario& scenario : scenarios)
    for (const int chunks : {1, 2})
      for (const bool splits : {false, true})
        for (int i = 0; i < 4; ++i)
          expect_exact_around(scenario, drawn_lists(2, chunks, 4, splits, draw), chunks,
                              "drawn lists " + std::to_string(i) + ": ");
  for (const Schedule& schedule : all_schedules()) {
    const ScheduleShape shape{2, schedule.default_chunks, 4};
    if (schedule.copies > 1 || schedule.default_slices > 1 || schedule.refuse(shape)) continue;
    for (const Scenario& scenario : scenarios)
      expect_exact_around(scenario, schedule.actions(shape), shape.chunks, schedule.name + ": ");
  }
}

TEST(Search, TakesTensorDegreesAboveTheKeyValueHeadsToo) {
  const ScenarioFolder folder;
  const Scenario scenario = small_llama(folder, "40 MB", 8, 1);
  const SearchSpace space = search_space(scenario, {"schedule.name", "layout.tensor"});
  for (const int tensor : {2, 4}) {
    SearchSpace kept = space;
    kept.tensor = {tensor};
    std::vector<PricedLayout> all;
    each_layout(scenario, kept, [&](const Step& choice) { all.push_back(price_layout(scenario, choice)); });
    ASSERT_FALSE(all.empty()) << tensor;
    std::erase_if(all, [](const PricedLayout& row) { return !fits(row, SearchOptions{}.memory_share); });
    std::stable_sort(all.begin(), all.end(), is_better);
    const SearchResult found = search_layouts(scenario, kept, {});
    ASSERT_FALSE(found.best.empty());
    EXPECT_EQ(layout_text(found.best.front().choice), layout_text(all.front().choice));
  }
}

// A layout with too large a timeline was once reported as the closest, with its estimate's share below the limit.
TEST(Search, WithoutALayoutThatFitsSaysWhatTheClosestNeedsOnItsTimeline) {
  const ScenarioFolder folder;
  const Scenario scenario = small_llama(folder, "3 MB", 8);
  std::optional<Step> large;
  double estimated = 0, needed = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const Step& choice) {
    if (large) return;
    estimated = price_if_it_fits(scenario, choice, 0).memory_share,
    needed = price_layout(scenario, choice).memory_share;
    if (needed > 1.001 * estimated) large = choice;
  });
  ASSERT_TRUE(large) << "no timeline needs more than its estimate";
  const Scenario kept = with_layout(scenario, *large);
  SearchOptions options;
  options.memory_share = (estimated + needed) / 2;
  const SearchResult found = search_layouts(kept, search_space(kept, searched_keys()), options);
  ASSERT_TRUE(found.best.empty());
  ASSERT_TRUE(found.closest);
  EXPECT_EQ(layout_text(found.closest->choice), layout_text(*large));
  EXPECT_DOUBLE_EQ(found.closest->memory_share, needed);
}

}  // namespace

}  // namespace slipway::test
