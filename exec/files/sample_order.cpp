#include "exec/files/sample_order.h"

#include "exec/files/seeded_bits.h"

namespace slipway::exec {

SampleOrder::SampleOrder(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < count_) ++half_bits_;
}

std::uint64_t SampleOrder::window_of(std::uint64_t sample) const {
  constexpr std::uint64_t rounds = 4;  // enough for a pseudorandom permutation (Luby and Rackoff 1988)
  const std::uint64_t epoch_key = mix(seed_, sample / count_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = sample % count_;
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t next = left ^ (mix(mix(epoch_key, round), right) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= count_);
  return value;
}

}  // namespace slipway::exec
