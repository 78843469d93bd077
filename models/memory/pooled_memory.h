// The memory constants that all trainers share, as they were fitted, and the deviations of each trainer.
//
//   models/memory/pooled.yaml ──► PooledMemory ──constants_of(trainer, machine)──► MemoryConstants
//
// A trainer or machine without a fitted deviation has the deviation 1, with its whole prior spread. So its intervals
// are wider. Guarded by tests/models/pooled_memory_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/memory/memory_constants.h"

namespace slipway::models {

struct PooledConstant {
  double value = 0, prior = 0;
  double spread = 0;  // standard deviation of ln(value) before the fit; > 0
  std::string source;
};

// A factor on one constant.
struct MemoryDeviation {
  std::string trainer, machine;  // without a machine: on all
  double value = 1;
};

struct PooledMemory {
  std::vector<PooledConstant> constants;  // in the order of memory_parameters(), without the two deviations
  std::vector<MemoryDeviation> fragmentation, library;
  double fragmentation_spread = 0.5, library_spread = 0.5;
  std::string fragmentation_source, library_source;
  double row_spread = 0.04, table_spread = 0.03, other_share = 0.01;
  std::string noise_source;
  // Covariance of z = ln(value / prior) / spread: all constants, then both lists of deviations, row by row. Empty: that
  // of the priors.
  std::vector<double> covariance;

  std::size_t unknowns() const { return constants.size() + fragmentation.size() + library.size(); }
};

// For a run of this trainer, by its facts.
MemoryConstants constants_of(const PooledMemory& pooled, std::string_view trainer, std::string_view machine,
                             const MemoryFacts& facts);

}  // namespace slipway::models
