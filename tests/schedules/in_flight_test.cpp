// Micro-batches in flight, against the counts in the schedules' papers.
#include "schedules/memory/in_flight.h"

#include <gtest/gtest.h>

#include "schedules/step/action.h"

namespace slipway::test {
namespace {

std::vector<double> held(const char* schedule, const ScheduleShape& shape, int rank) {
  const ActionLists lists = schedule_named(schedule)->actions(shape);
  return held_at_peak(lists[rank], std::vector<HeldBytes>(static_cast<std::size_t>(shape.stages()), HeldBytes{1, 1}));
}

TEST(InFlight, RankIOf1F1BHoldsPMinusIMicroBatchesOrAllThereAre) {
  for (const int micro_batches : {2, 4, 9})
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(held("1f1b", {4, 1, micro_batches, 1}, rank)[rank], std::min(micro_batches, 4 - rank));
}

TEST(InFlight, GPipeHoldsAllOfThem) {
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(held("gpipe", {4, 1, 9, 1}, rank)[rank], 9);
}

// Narayanan et al. 2021: p·v + p − 1 chunks on the first rank, which is p·(1 + (p−1)/(p·v)) whole ones.
TEST(InFlight, InterleavingHoldsPMinusOneChunksMoreOnTheFirstRank) {
  double sum = 0;
  for (const double count : held("interleaved-1f1b", {4, 2, 8, 1}, 0)) sum += count;
  EXPECT_EQ(sum, 4 * 2 + 4 - 1);
}

TEST(InFlight, ASplitBackwardHoldsUntilItsWeightGradientWhatThatNeeds) {
  const std::vector<Action> list{{Pass::forward, 0, 0},    {Pass::input_grad, 0, 0},  {Pass::forward, 0, 1},
                                 {Pass::input_grad, 0, 1}, {Pass::weight_grad, 0, 0}, {Pass::weight_grad, 0, 1}};
  const auto held = [&](const HeldBytes& bytes) { return held_at_peak(list, std::vector{bytes})[0]; };
  EXPECT_EQ(held({1, 1}), 2);
  EXPECT_EQ(held({1, 0.25}), 1.25);
  EXPECT_EQ(held({1, 0}), 1);
  EXPECT_EQ(held({1, 3}), 6) << "a layer that was made again leaves more than its input";
}

TEST(InFlight, ThePeakIsThatOfBytesNotOfCounts) {
  const std::vector<Action> list{{Pass::forward, 0, 0},  {Pass::forward, 0, 1}, {Pass::backward, 0, 0},
                                 {Pass::backward, 0, 1}, {Pass::forward, 2, 0}, {Pass::backward, 2, 0}};
  const auto at_peak = held_at_peak(list, std::vector<HeldBytes>{{1, 1}, {}, {10, 10}});
  EXPECT_EQ(at_peak.at(0), 0);
  EXPECT_EQ(at_peak.at(2), 1);
}

// A pair gives up a layer of one micro-batch for each that it keeps of the other.
TEST(InFlight, APairWhoseLayersAlternateHoldsALayerMoreInsteadOfAMicroBatchMore) {
  const ActionLists lists = schedule_named("1f1b-merged")->actions({1, 1, 8, 1});
  EXPECT_EQ(held_at_peak(lists[0], std::vector{HeldBytes{1, 1}})[0], 2) << "one after the other";
  EXPECT_EQ(held_at_peak(lists[0], std::vector{HeldBytes{1, 1, 0.25}})[0], 1.25);
}

}  // namespace
}  // namespace slipway::test
