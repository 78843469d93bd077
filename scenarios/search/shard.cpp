#include "scenarios/search/shard.h"

namespace slipway::scenarios {

std::vector<std::size_t> points_in(const Shard& shard, std::size_t points) {
  std::vector<std::size_t> indices;
  for (auto at = static_cast<std::size_t>(shard.number - 1); at < points; at += static_cast<std::size_t>(shard.count))
    indices.push_back(at);
  return indices;
}

}  // namespace slipway::scenarios
