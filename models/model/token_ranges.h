// Which tokens of a sequence a context rank has, and what it has to do in each round of a ring (Liu et al. 2023).
//
//   causal, c = 3, six pieces:  │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │      rank r has pieces r and 2c−1−r, so that all ranks see
//                         rank    0   1   2   2   1   0        as many keys; else one piece, the r-th of c
//
// Round i is on the block of rank r−i, which came around the ring in i steps. Of a causal sequence, its keys are seen
//   own block     as a causal square: the two pieces, one after the other, are in the order of the sequence
//   r−i < r       the first piece by all queries, the second by none
//   r−i > r       both pieces by the second half of the queries, by the first none
// so no round but the first needs a mask, and none is empty. Guarded by tests/models/model_test.cpp: every token is
// of one rank, every pair of query and visible key is in one round, and all ranks have as many pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct TokenRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const TokenRange&) const = default;
};

// Equal pieces that a sequence is cut into.
constexpr std::int64_t pieces_of(bool causal, int context) { return causal && context > 1 ? 2 * context : context; }
// Of context rank `rank`, in the order in which it holds them. The pieces must divide `sequence`.
std::vector<TokenRange> token_ranges(bool causal, int context, int rank, std::int64_t sequence);
// Tokens [first, first + count) of those in `ranges`, counted one after the other.
std::vector<TokenRange> ranges_within(const std::vector<TokenRange>& ranges, std::int64_t first, std::int64_t count);

// What rank `rank` computes in a round, on a block of `tokens` keys with as many queries.
struct RingRound {
  int from = 0;  // rank whose keys and values these are
  TokenRange queries, keys;
  bool masked = false;  // query i sees keys up to i only
};
RingRound ring_round(bool causal, int context, int rank, int round, std::int64_t tokens);

}  // namespace slipway::models
