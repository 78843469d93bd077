#include "models/memory/pooled_memory.h"

#include <algorithm>

namespace slipway::models {
namespace {

// The index of the deviation in the covariance; -1: it is not there.
int index_of(const std::vector<MemoryDeviation>& deviations, std::string_view trainer, std::string_view machine) {
  const auto found = std::ranges::find_if(deviations, [&](const MemoryDeviation& each) {
    return each.trainer == trainer && (each.machine.empty() || each.machine == machine);
  });
  return found == deviations.end() ? -1 : static_cast<int>(found - deviations.begin());
}

// The part of the covariance at these indices; -1: a prior's, alone.
std::vector<double> covariance_at(const PooledMemory& pooled, const std::vector<int>& indices) {
  const std::size_t all = pooled.unknowns(), n = indices.size();
  std::vector<double> part(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const bool known = !pooled.covariance.empty() && indices[i] >= 0 && indices[j] >= 0;
      part[i * n + j] =
          known ? pooled.covariance[static_cast<std::size_t>(indices[i]) * all + static_cast<std::size_t>(indices[j])]
                : (i == j ? 1.0 : 0.0);
    }
  return part;
}

}  // namespace

MemoryConstants constants_of(const PooledMemory& pooled, std::string_view trainer, std::string_view machine,
                             const MemoryFacts& facts) {
  MemoryConstants result;
  result.trainer = trainer;
  result.facts = facts;
  std::vector<int> indices;
  for (std::size_t i = 0; i < pooled.constants.size(); ++i) {
    result.*memory_parameters()[i].value = pooled.constants[i].value;
    result.spreads.push_back(pooled.constants[i].spread);
    indices.push_back(static_cast<int>(i));
  }
  const int shared = static_cast<int>(pooled.constants.size());
  const int fragmentation = index_of(pooled.fragmentation, trainer, machine);
  const int library = index_of(pooled.library, trainer, machine);
  if (fragmentation >= 0) result.fragmentation_factor = pooled.fragmentation[fragmentation].value;
  if (library >= 0) {
    result.library_factor = pooled.library[library].value;
    result.machine = machine;
  }
  result.spreads.push_back(pooled.fragmentation_spread);
  result.spreads.push_back(pooled.library_spread);
  indices.push_back(fragmentation < 0 ? -1 : shared + fragmentation);
  indices.push_back(library < 0 ? -1 : shared + static_cast<int>(pooled.fragmentation.size()) + library);
  result.covariance = covariance_at(pooled, indices);
  result.row_spread = pooled.row_spread;
  result.table_spread = pooled.table_spread;
  result.other_share = pooled.other_share;
  return result;
}

}  // namespace slipway::models
