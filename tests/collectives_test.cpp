#include "models/collectives.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace slipway {
namespace {

constexpr double S = 1e9, alpha = 1e-5, B = 100e9, R = 400e9;

TEST(RingCost, AllReduceOfNMembersMovesTwiceNMinusOneOverN) {
  for (int n : {2, 3, 8, 64})
    EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, n, S, 0, B, 0), 2.0 * (n - 1) / n * S / B);
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, 8, S, alpha, B, 0), 14 * alpha + 1.75 * S / B);
}

TEST(RingCost, AllReduceIsAReduceScatterAndAnAllGather) {
  for (int n : {2, 5, 16})
    EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, n, S, alpha, B, R),
                     ring_seconds(Collective::reduce_scatter, n, S, alpha, B, R) +
                         ring_seconds(Collective::all_gather, n, S, alpha, B, R));
}

// A round by round replay of the ring, written without the closed form: in each round every member sends
// one n-th of the tensor to its neighbour, and adds it in the first n−1 rounds.
TEST(RingCost, EqualsARoundByRoundReplay) {
  for (int n : {2, 4, 7}) {
    std::vector<double> clock(static_cast<std::size_t>(n), 0.0);
    for (int round = 0; round < 2 * (n - 1); ++round) {
      std::vector<double> next = clock;
      for (std::size_t i = 0; i < clock.size(); ++i) {
        const std::size_t from = (i + clock.size() - 1) % clock.size();
        next[i] = std::max(clock[i], clock[from]) + alpha + S / n / B;
        if (round < n - 1) next[i] += S / n / R;
      }
      clock = next;
    }
    EXPECT_NEAR(ring_seconds(Collective::all_reduce, n, S, alpha, B, R), clock[0], 1e-12);
  }
}

TEST(RingCost, SendIsLatencyPlusSizeOverBandwidth) {
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::send, 2, S, alpha, B, R), alpha + S / B);
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::broadcast, 5, S, alpha, B, R), 4 * alpha + S / B);
}

TEST(RingCost, OfOneMemberOrNoCollectiveIsNothing) {
  for (Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                Collective::broadcast, Collective::send})
    EXPECT_EQ(ring_seconds(collective, 1, S, alpha, B, R), 0);
  EXPECT_EQ(ring_seconds(Collective::none, 8, S, alpha, B, R), 0);
}

TEST(RingCost, RefusesALinkWithoutBandwidth) {
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 2, S, alpha, 0, 0), std::invalid_argument);
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 0, S, alpha, B, 0), std::invalid_argument);
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 2, -1, alpha, B, 0), std::invalid_argument);
}

TEST(RingTraffic, GivesTheBytesOfEachLinkAndTheRounds) {
  const RingTraffic traffic = ring_traffic(Collective::all_reduce, 4, 8.0);
  EXPECT_EQ(traffic.bytes_per_link, 12.0);
  EXPECT_EQ(traffic.rounds, 6);
  EXPECT_EQ(traffic.reduced_bytes, 6.0);
}

}  // namespace
}  // namespace slipway
