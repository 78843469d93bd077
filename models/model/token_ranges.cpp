#include "models/model/token_ranges.h"

#include <algorithm>

namespace slipway::models {

std::vector<TokenRange> token_ranges(bool causal, int context, int rank, std::int64_t sequence) {
  const std::int64_t pieces = pieces_of(causal, context), length = sequence / pieces;
  if (pieces == context) return {{rank * length, length}};
  return {{rank * length, length}, {(pieces - 1 - rank) * length, length}};
}

std::vector<TokenRange> ranges_within(const std::vector<TokenRange>& ranges, std::int64_t first, std::int64_t count) {
  std::vector<TokenRange> part;
  std::int64_t at = 0;  // tokens before the range
  for (const TokenRange& range : ranges) {
    const std::int64_t begin = std::max(first, at), end = std::min(first + count, at + range.count);
    if (begin < end) part.push_back({range.first + begin - at, end - begin});
    at += range.count;
  }
  return part;
}

RingRound ring_round(bool causal, int context, int rank, int round, std::int64_t tokens) {
  const int from = (rank - round + context) % context;
  const TokenRange all{0, tokens}, first_half{0, tokens / 2}, second_half{tokens / 2, tokens - tokens / 2};
  if (!causal) return {from, all, all, false};
  if (from == rank) return {from, all, all, true};
  if (from < rank) return {from, all, first_half, false};
  return {from, second_half, all, false};
}

}  // namespace slipway::models
