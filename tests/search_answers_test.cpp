// The search where its answer hangs on one thing: the bounds of split backwards, and a memory that only the timeline knows.
#include "scenarios/search/search.h"

#include <gmock/gmock.h>

#include "scenarios/search/answer.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

// Four GPUs of round numbers in two nodes.
Scenario small_llama(const ScenarioFolder& folder, const std::string& memory, int batch) {
  folder.write("gpu.yaml",
               "name: gpu\nmemory_bytes: " + memory +
                   "\npeak_flops: {float32: 10 TFLOP/s, bfloat16: 20 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nlaunch_overhead: 1 us\n"
                   "gemm_half: 64\nnode_link: {name: bus, bandwidth: 20 GB/s, latency: 2 us}\n"
                   "network_link: {name: wire, bandwidth: 5 GB/s, latency: 5 us}\n");
  return scenario_to_search(
      folder.write("s.yaml",
                   "model: {family: llama, layers: 6, hidden: 128, ffn: 384, heads: 4, kv_heads: 4, vocab: 256, sequence: 64}\n"
                   "cluster: {machine: ./gpu.yaml, nodes: 2, gpus_per_node: 2}\n"
                   "schedule: {name: 1f1b, global_batch: " + std::to_string(batch) + "}\n"),
      {}, {});
}

// Split backwards and stages in a V have bounds of their own (estimate_split.cpp); of the compute alone, nearly all was
// simulated.
TEST(Search, OfASplitBackwardHasTheTopTenOfExhaustiveSimulationAndSimulatesLessThanHalf) {
  const ScenarioFolder folder;
  Scenario scenario = small_llama(folder, "40 MB", 24);
  scenario.schedule.name = "zb-v";
  const SearchSpace space = search_space(scenario, {"schedule.name"});
  std::vector<PricedLayout> all;
  each_layout(scenario, space, [&](const LayoutChoice& choice) { all.push_back(price_layout(scenario, choice)); });
  SearchOptions options;
  std::erase_if(all, [&](const PricedLayout& row) { return !fits(row, options.memory_share); });
  std::stable_sort(all.begin(), all.end(), is_better);
  const SearchResult found = search_layouts(scenario, space, options);
  ASSERT_GE(all.size(), 20u);
  ASSERT_EQ(found.best.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(layout_text(found.best[i].choice), layout_text(all[i].choice)) << i;
  EXPECT_LT(2 * found.simulated, found.legal);
}

// A layout whose timeline alone is too large was called the closest with the share of its estimate, below what is allowed.
TEST(Search, WithoutALayoutThatFitsSaysWhatTheClosestNeedsOnItsTimeline) {
  const ScenarioFolder folder;
  const Scenario scenario = small_llama(folder, "3 MB", 8);
  std::optional<LayoutChoice> large;
  double estimated = 0, needed = 0;
  each_layout(scenario, search_space(scenario, {}), [&](const LayoutChoice& choice) {
    if (large) return;
    estimated = price_if_it_fits(scenario, choice, 0).memory_share, needed = price_layout(scenario, choice).memory_share;
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
}  // namespace slipway
