// Ranks get cores of their own.
#include "scenarios/execution/core_binding.h"

#include <gmock/gmock.h>

#include <thread>

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CoreBinding, EveryRankGetsItsOwnEqualShareOfTheCoresThatMayBeUsed) {
  const std::vector<int> usable{1, 3, 5, 7, 9};
  EXPECT_THAT(cores_of_rank(usable, 0, 2), ElementsAre(1, 3));
  EXPECT_THAT(cores_of_rank(usable, 1, 2), ElementsAre(5, 7));
  EXPECT_THAT(cores_of_rank(usable, 4, 5), ElementsAre(9));
}

TEST(CoreBinding, MoreRanksThanCoresAreNotBound) {
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(cores_of_rank({0, 1}, rank, 3), IsEmpty());
}

TEST(CoreBinding, TheUsableCoresAreThoseThatTheSystemCounts) {
  EXPECT_EQ(usable_cores().size(), std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace slipway
