#include "schedules/graph/shortened.h"

#include <algorithm>

namespace slipway {
namespace {

using List = std::vector<Action>;

// Actions [first, last) of a list repeat: each but those of the last period is followed, `length` later, by the same
// of `period` micro-batches later.
struct Region {
  std::size_t first = 0, last = 0, length = 1;
  int periods() const { return static_cast<int>((last - first) / length); }
};

Action later(Action action, int micro_batches) {
  action.micro_batch += micro_batches;
  return action;
}

std::optional<Region> region_of(const List& list, int micro_batches, int period) {
  const std::size_t middle = list.size() / 2;
  const auto from = list.begin() + static_cast<std::ptrdiff_t>(middle);
  const auto length = static_cast<std::size_t>(std::find(from, list.end(), later(*from, period)) - from);
  const auto repeats = [&](std::size_t at) {
    return list[at].micro_batch > 0 && list[at].micro_batch + period + 1 < micro_batches &&
           list[at + length] == later(list[at], period);
  };
  Region region{middle, middle, length};
  while (region.last + length < list.size() && repeats(region.last)) ++region.last;
  while (region.first > 0 && repeats(region.first - 1)) --region.first;
  if (region.last - region.first < length) return std::nullopt;
  region.last += length;
  return region;
}

std::vector<Region> regions_of(const ActionLists& lists, int micro_batches, int period) {
  std::vector<Region> regions;
  for (const List& list : lists) {
    const std::optional<Region> region = list.empty() ? std::nullopt : region_of(list, micro_batches, period);
    if (!region) return {};
    regions.push_back(*region);
  }
  return regions;
}

ShortenedActions without(const ActionLists& lists, const std::vector<Region>& regions, int micro_batches, int period,
                         int left_out) {
  ShortenedActions result{{}, micro_batches - left_out * period, period, left_out};
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const auto first = lists[rank].begin() + static_cast<std::ptrdiff_t>(regions[rank].first);
    List& list = result.actions.emplace_back(lists[rank].begin(), first);
    for (auto at = first + static_cast<std::ptrdiff_t>(regions[rank].length) * left_out; at != lists[rank].end(); ++at) {
      list.push_back(*at);
      list.back().micro_batch -= left_out * period;
    }
  }
  return result;
}

}  // namespace

std::optional<ShortenedActions> shortened(const ActionLists& lists, int micro_batches, int patience) {
  const int longest = 2 * static_cast<int>(lists.size());  // of the periods that are looked for
  for (int period = 1; period <= longest && 3 * period < micro_batches; ++period) {
    const std::vector<Region> regions = regions_of(lists, micro_batches, period);
    if (regions.empty()) continue;
    const int fewest = std::min_element(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
                         return a.periods() < b.periods();
                       })->periods();
    const int keep = patience * (6 + (longest + period - 1) / period);
    const int left_out = (fewest - keep) / shortening_step * shortening_step;
    if (left_out <= 0 || 3 * left_out * period < micro_batches) return std::nullopt;
    return without(lists, regions, micro_batches, period, left_out);
  }
  return std::nullopt;
}

}  // namespace slipway
