// The shared memory constants: the built-in file, and what a trainer without runs takes of it.
#include "models/memory/pooled_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "scenarios/language/load_memory.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

TEST(PooledMemory, EveryBuiltInConstantHasASourceAndStaysNearItsPrior) {
  const PooledMemory& memory = built_in_memory();
  EXPECT_EQ(memory.constants.size() + memory_deviations, memory_parameters().size());
  for (const PooledConstant& constant : memory.constants) {
    EXPECT_FALSE(constant.source.empty());
    EXPECT_LT(std::abs(std::log(constant.value / constant.prior)), 2.5 * constant.spread) << constant.source;
  }
  for (const MemoryDeviation& each : memory.fragmentation)
    EXPECT_LT(std::abs(std::log(each.value)), 2.5 * memory.fragmentation_spread) << each.trainer;
  for (const MemoryDeviation& each : memory.library)
    EXPECT_LT(std::abs(std::log(each.value)), 2.5 * memory.library_spread) << each.trainer << " " << each.machine;
}

TEST(PooledMemory, AFileReadsBackAsItWasWritten) {
  const std::string text = memory_to_yaml(built_in_memory(), "again");
  EXPECT_EQ(memory_to_yaml(memory_from_yaml(text, "again.yaml"), "again"), text);
}

TEST(PooledMemory, ATrainerWithoutRunsTakesTheUsualAndIsLessCertain) {
  const PooledMemory& memory = built_in_memory();
  ASSERT_FALSE(memory.library.empty());
  const MemoryDeviation& known = memory.library.front();
  const MemoryConstants own = constants_of(memory, known.trainer, known.machine, {});
  const MemoryConstants other = constants_of(memory, "nobody", known.machine, {});
  EXPECT_EQ(own.library_factor, known.value);
  EXPECT_EQ(own.machine, known.machine);
  EXPECT_EQ(other.library_factor, 1);
  EXPECT_EQ(other.machine, "");
  const std::size_t n = own.spreads.size(), last = n * n - 1;
  EXPECT_LT(own.covariance[last], 1);
  EXPECT_EQ(other.covariance[last], 1) << "the prior's whole spread";
  EXPECT_EQ(other.covariance[n - 1], 0) << "and nothing in common with constants";
}

TEST(PooledMemory, AWrongFileIsRefusedWithLineKeyAndRemedy) {
  const auto error_of = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    try {
      memory_from_yaml(text, "mine.yaml");
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string text = memory_to_yaml(built_in_memory(), "again");
  EXPECT_THAT(error_of(text, "  layer_factor", "  layer_faktor"), HasSubstr("layer_factor: is missing; add it"));
  EXPECT_THAT(error_of(text, "row: 0.04", "row: much"), HasSubstr("row: 'much' is no number; write a number"));
  EXPECT_THAT(error_of(text, "    fragmentation of ", "    fragments of "), HasSubstr("is no deviation; write"));
}

}  // namespace
}  // namespace slipway::test
