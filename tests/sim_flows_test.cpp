// The table that tells which task a flow belongs to, against the standard library's.
#include "sim/flows.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace slipway {
namespace {

TEST(FlightTable, GivesBackWhatWasPutInUnderManyInsertsAndRemovals) {
  FlightTable table;
  std::unordered_map<const void*, Instance> expected;
  std::vector<const void*> keys;
  std::mt19937 random(7);
  for (Instance i = 0; i < 200000; ++i) {
    const bool put =
        keys.empty() || random() % 100 < (i < 20000 ? 80U : 49U);  // grows to thousands, then drains
    if (put) {
      const auto* key =
          reinterpret_cast<const void*>((static_cast<std::uintptr_t>(random()) % 100000 + 1) * 64);
      if (!expected.emplace(key, i).second) continue;
      table.insert(key, i);
      keys.push_back(key);
    } else {
      std::swap(keys[random() % keys.size()], keys.back());
      ASSERT_EQ(table.take(keys.back()), expected.at(keys.back()));
      expected.erase(keys.back());
      keys.pop_back();
    }
  }
  EXPECT_GT(keys.size(), 100U);
  for (const void* key : keys) ASSERT_EQ(table.take(key), expected.at(key));
}

}  // namespace
}  // namespace slipway
