// The order of samples: a permutation of [0, count) for each epoch, which gives the window of a run's i-th sample. It
// needs no memory: a Feistel network over the next power of four, walked until it falls into the range (Black and Rogaway
// 2002). Guarded by tests/exec/token_source_test.cpp.
#pragma once

#include <cstdint>

#include "models/namespaces.h"

namespace slipway::exec {

class SampleOrder {
 public:
  SampleOrder(std::uint64_t count, std::uint64_t seed);
  std::uint64_t window_of(std::uint64_t sample) const;

 private:
  std::uint64_t count_, seed_;
  int half_bits_ = 1;
};

}  // namespace slipway::exec
