#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "models/model/operators.h"
#include "schedules/check/actions.h"
#include "schedules/step/layout.h"
#include "schedules/step/placement.h"

namespace slipway::test {

namespace {

Model small(std::int64_t layers, std::int64_t vocab = 1000) {
  return llama("small",
               {.layers = layers, .hidden = 64, .ffn = 192, .heads = 4, .kv_heads = 4, .vocab = vocab, .sequence = 32});
}

Layout stages(int pipeline, int chunks, SplitKind split, std::vector<int> list = {}) {
  Layout layout;
  layout.pipeline = pipeline;
  layout.chunks = chunks;
  layout.split = split;
  layout.split_list = std::move(list);
  return layout;
}

std::string error_of(const Model& model, const Layout& layout) {
  try {
    split_blocks(model, layout);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Layout, RanksAreNumberedTensorFastestAndPipelineSlowest) {
  Layout layout;
  layout.tensor = 2, layout.context = 3, layout.data = 4, layout.pipeline = 5;
  EXPECT_EQ(rank_count(layout), 120);
  EXPECT_EQ(rank_of(layout, {.tensor = 1}), 1);
  EXPECT_EQ(rank_of(layout, {.context = 1}), 2);
  EXPECT_EQ(rank_of(layout, {.data = 1}), 6);
  EXPECT_EQ(rank_of(layout, {.pipeline = 1}), 24);
}

TEST(Layout, CoordinatesAndRanksAreInverseOfEachOther) {
  Layout layout;
  layout.tensor = 2, layout.context = 3, layout.data = 4, layout.pipeline = 5;
  for (int rank = 0; rank < rank_count(layout); ++rank) {
    EXPECT_EQ(rank_of(layout, coordinates_of(layout, rank)), rank);
  }
}

TEST(Split, EvenGivesEarlyStagesOneMoreAndTheEndsTheirEmbeddingAndHead) {
  EXPECT_EQ(split_blocks(small(7), stages(3, 1, SplitKind::even)), (std::vector<BlockRange>{{0, 4}, {4, 6}, {6, 9}}));
  EXPECT_EQ(split_blocks(small(4), stages(2, 2, SplitKind::even)),
            (std::vector<BlockRange>{{0, 2}, {2, 3}, {3, 4}, {4, 6}}));
  EXPECT_EQ(split_blocks(small(3), stages(1, 1, SplitKind::even)), (std::vector<BlockRange>{{0, 5}}));
}

TEST(Split, ListIsTakenAsGivenAndMayLeaveOnlyTheHeadOnTheLastStage) {
  EXPECT_EQ(split_blocks(small(5), stages(3, 1, SplitKind::list, {2, 3, 0})),
            (std::vector<BlockRange>{{0, 3}, {3, 6}, {6, 7}}));
}

double stage_flops(const Model& model, BlockRange range) {
  WorkShape shape;
  shape.sequence = model.sequence;
  double flops = 0;
  for (const Operator& op : operators_of(model, range.first, range.last, shape)) flops += op.forward_flops;
  return flops;
}

double largest_stage(const Model& model, const std::vector<BlockRange>& ranges) {
  double largest = 0;
  for (const BlockRange range : ranges) largest = std::max(largest, stage_flops(model, range));
  return largest;
}

// Every contiguous partition, tried one by one.
double best_by_trying_all(const Model& model, int count) {
  const int blocks = static_cast<int>(blocks_of(model).size());
  double best = 1e300;
  std::vector<BlockRange> ranges;
  const std::function<void(int)> extend = [&](int first) {
    if (static_cast<int>(ranges.size()) == count) {
      if (first == blocks) best = std::min(best, largest_stage(model, ranges));
      return;
    }
    for (int last = first + 1; last <= blocks; ++last) {
      ranges.push_back({first, last});
      extend(last);
      ranges.pop_back();
    }
  };
  extend(0);
  return best;
}

TEST(Split, BalancedIsNoWorseThanAnyOtherPartition) {
  for (const std::int64_t vocab : {100, 1000, 3000}) {  // the head weighs from less than one layer to several
    for (const std::int64_t layers : {4, 7, 9}) {
      for (const int count : {1, 2, 3, 4}) {
        const Model model = small(layers, vocab);
        const auto ranges = split_blocks(model, stages(count, 1, SplitKind::balanced));
        ASSERT_EQ(ranges.size(), static_cast<std::size_t>(count));
        EXPECT_NEAR(largest_stage(model, ranges), best_by_trying_all(model, count), 1);
        EXPECT_EQ(ranges.front().first, 0);
        EXPECT_EQ(ranges.back().last, layers + 2);
      }
    }
  }
}

// Llama Team 2024, section 3.3.2: 126 layers on 16 ranks, with one layer less on the first and on the last stage.
TEST(Split, EvenLeavesTheFirstAndTheLastStageOfLlama405bWithoutALayer) {
  const auto ranges = split_blocks(small(126), stages(16, 8, SplitKind::even));
  ASSERT_EQ(ranges.size(), 128U);
  EXPECT_EQ(ranges.front(), (BlockRange{0, 1}));
  EXPECT_EQ(ranges[1], (BlockRange{1, 2}));
  EXPECT_EQ(ranges.back(), (BlockRange{127, 128}));
  EXPECT_EQ(split_blocks(small(3), stages(4, 1, SplitKind::even)),
            (std::vector<BlockRange>{{0, 2}, {2, 3}, {3, 4}, {4, 5}}));
}

TEST(Split, AListMayLeaveStagesWithNothing) {
  EXPECT_EQ(split_blocks(small(2), stages(5, 1, SplitKind::list, {0, 2, 0, 0, 0})),
            (std::vector<BlockRange>{{0, 1}, {1, 3}, {3, 3}, {3, 3}, {3, 4}}));
}

TEST(Split, BalancedCountsTheHeadSoThatTheLastStageGetsFewerLayers) {
  const auto ranges = split_blocks(small(8, 3000), stages(2, 1, SplitKind::balanced));
  EXPECT_GT(ranges[0].last - ranges[0].first, ranges[1].last - ranges[1].first);
}

TEST(Split, ErrorsSayWhatIsWrongAndWhatToDo) {
  EXPECT_EQ(error_of(small(2), stages(4, 2, SplitKind::even)),
            "8 stages (pipeline 4 × chunks 2) for 4 blocks (embedding, layers, head); lower layout.pipeline or "
            "layout.chunks, or give stages without a layer in layout.split");
  EXPECT_NE(error_of(small(4), stages(2, 1, SplitKind::list, {4})).find("lists 1 stage, but"), std::string::npos);
  EXPECT_NE(error_of(small(4), stages(2, 1, SplitKind::list, {2, 3})).find("adds up to 5 layers"), std::string::npos);
  EXPECT_NE(error_of(small(4), stages(2, 1, SplitKind::list, {5, -1})).find("negative number -1"), std::string::npos);
}

}  // namespace

namespace {

Placement of(const char* schedule, ScheduleShape shape) {
  shape.copies = schedule_named(schedule)->copies;
  return placement_of(schedule_named(schedule)->actions(shape), shape);
}

TEST(PlacementOfActions, FollowsTheRowsOfTheSchedule) {
  EXPECT_EQ(of("1f1b", {.pipeline = 3, .micro_batches = 4}).rank, (std::vector{0, 1, 2}));
  EXPECT_EQ(of("interleaved-1f1b", {.pipeline = 2, .chunks = 2, .micro_batches = 2}).rank, (std::vector{0, 1, 0, 1}));
  for (const char* in_a_v : {"zb-v", "dualpipe-v"})
    EXPECT_EQ(of(in_a_v, {.pipeline = 3, .chunks = 2, .micro_batches = 6}).rank, (std::vector{0, 1, 2, 2, 1, 0}));
}

TEST(PlacementOfActions, ChimeraHoldsEveryPartOnTwoRanks) {
  const Placement placement = of("chimera", {.pipeline = 4, .micro_batches = 4});
  EXPECT_EQ(placement.rank, (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(placement.parts(), 4);
  for (int part = 0; part < 4; ++part)
    EXPECT_EQ(placement.holders(part), (std::vector{std::min(part, 3 - part), std::max(part, 3 - part)}));
  // Ranks 0 and 3 update part 0 first, then part 3.
  EXPECT_EQ(placement.by_part(), (std::vector{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_TRUE(placement.is_first(4));
  EXPECT_TRUE(placement.is_last(3));
  EXPECT_FALSE(placement.is_last(4));
  EXPECT_EQ(placement.copy_of(5), 1);
  EXPECT_EQ(placement.part_of(5), 1);
}

// One stray action does not move a stage; check_actions names it.
TEST(PlacementOfActions, AStageIsWhereMostOfItsActionsAre) {
  ActionLists lists = schedule_named("gpipe")->actions({.pipeline = 2, .micro_batches = 2});
  lists[1].push_back({Pass::backward, 0, 1});
  lists[0].push_back({Pass::forward, 9, 0});
  EXPECT_EQ(placement_of(lists, {.pipeline = 2, .micro_batches = 2}).rank, (std::vector{0, 1}));
}

TEST(PlacementOfActions, AStageWithoutActionsIsOnItsNumberModuloTheRanks) {
  EXPECT_EQ(placement_of(ActionLists(2), {.pipeline = 2, .chunks = 2, .micro_batches = 1}).rank,
            (std::vector{0, 1, 0, 1}));
}

}  // namespace

}  // namespace slipway::test
