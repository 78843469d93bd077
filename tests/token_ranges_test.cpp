// How a sequence is shared out over context ranks, counted token by token.
#include "models/token_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace slipway {
namespace {

constexpr std::int64_t sequence = 48;
constexpr int degrees[] = {1, 2, 3, 4, 6, 8};

std::vector<std::int64_t> positions(const std::vector<TokenRange>& ranges) {
  std::vector<std::int64_t> list;
  for (const TokenRange& range : ranges)
    for (std::int64_t i = 0; i < range.count; ++i) list.push_back(range.first + i);
  return list;
}

TEST(TokenRanges, GiveEveryTokenToOneRankAndAllRanksAsMany) {
  for (const bool causal : {false, true}) {
    for (const int context : degrees) {
      std::set<std::int64_t> seen;
      for (int rank = 0; rank < context; ++rank) {
        const auto own = positions(token_ranges(causal, context, rank, sequence));
        EXPECT_EQ(own.size(), static_cast<std::size_t>(sequence / context));
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
        seen.insert(own.begin(), own.end());
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(sequence));
    }
  }
}

TEST(TokenRanges, OfACausalSequenceOnSixRanksPairTheFirstPieceWithTheLast) {
  EXPECT_EQ(token_ranges(true, 6, 0, sequence), (std::vector<TokenRange>{{0, 4}, {44, 4}}));
  EXPECT_EQ(token_ranges(true, 6, 5, sequence), (std::vector<TokenRange>{{20, 4}, {24, 4}}));
}

TEST(TokenRanges, AreCutAcrossTheirPieces) {
  const std::vector<TokenRange> ranges{{0, 4}, {44, 4}};
  EXPECT_EQ(ranges_within(ranges, 0, 3), (std::vector<TokenRange>{{0, 3}}));
  EXPECT_EQ(ranges_within(ranges, 2, 4), (std::vector<TokenRange>{{2, 2}, {44, 2}}));
  EXPECT_EQ(ranges_within(ranges, 4, 4), (std::vector<TokenRange>{{44, 4}}));
}

// Who sees whom, from the rounds, against the definition of causal attention.
TEST(RingRounds, ComputeEveryVisiblePairOnceAndAsManyOnEachRank) {
  for (const bool causal : {false, true}) {
    for (const int context : degrees) {
      for (int rank = 0; rank < context; ++rank) {
        const std::int64_t tokens = sequence / context;
        const auto own = positions(token_ranges(causal, context, rank, sequence));
        std::map<std::pair<std::int64_t, std::int64_t>, int> times;  // (query, key)
        for (int round = 0; round < context; ++round) {
          const RingRound at = ring_round(causal, context, rank, round, tokens);
          const auto theirs = positions(token_ranges(causal, context, at.from, sequence));
          for (std::int64_t q = at.queries.first; q < at.queries.first + at.queries.count; ++q)
            for (std::int64_t k = at.keys.first; k < at.keys.first + at.keys.count; ++k)
              if (!at.masked || k <= q)
                ++times[{own[static_cast<std::size_t>(q)], theirs[static_cast<std::size_t>(k)]}];
        }
        std::size_t visible = 0;
        for (const std::int64_t q : own) visible += static_cast<std::size_t>(causal ? q + 1 : sequence);
        EXPECT_EQ(times.size(), visible) << context << " ranks, rank " << rank;
        for (const auto& [pair, count] : times) {
          EXPECT_EQ(count, 1);
          EXPECT_TRUE(!causal || pair.second <= pair.first);
        }
        if (causal) {
          EXPECT_EQ(static_cast<std::int64_t>(visible) * context, sequence * (sequence + 1) / 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipway
