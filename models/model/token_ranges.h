// The tokens of a sequence that a context rank holds, and its work in each round of a ring (Liu et al. 2023).
//
//   causal, c = 3, six pieces:  │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │      rank r has pieces r and 2c−1−r, so that all ranks see
//                         rank    0   1   2   2   1   0        as many keys; else one piece, the r-th of c
//
// Round i uses the block of rank r−i, which came around the ring in i steps. If causal, its keys are visible
//   own block     as a causal square: the two pieces, one after the other, are in the order of the sequence
//   r−i < r       the first piece to all queries, the second to none
//   r−i > r       both pieces to the second half of the queries, to the first none
// So only the first round needs a mask, and no round is empty. Guarded by tests/models/model_test.cpp: every token
// belongs to one rank, every pair of query and visible key to one round, and all ranks have equally many pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct TokenRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const TokenRange&) const = default;
};

// Number of equal pieces that a sequence is cut into.
constexpr std::int64_t pieces_of(bool causal, int context) { return causal && context > 1 ? 2 * context : context; }
// Ranges of context rank `rank`, in the order in which it holds them. The pieces must divide `sequence`.
std::vector<TokenRange> token_ranges(bool causal, int context, int rank, std::int64_t sequence);
// Tokens [first, first + count) of the tokens in `ranges`, counted one range after the other.
std::vector<TokenRange> ranges_within(const std::vector<TokenRange>& ranges, std::int64_t first, std::int64_t count);

// The work of rank `rank` in a round, on a block of `tokens` keys with equally many queries.
struct RingRound {
  int from = 0;  // rank whose keys and values these are
  TokenRange queries, keys;
  bool masked = false;  // query i sees only keys up to i
};
RingRound ring_round(bool causal, int context, int rank, int round, std::int64_t tokens);

}  // namespace slipway::models
