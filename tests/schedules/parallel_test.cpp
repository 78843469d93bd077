#include "schedules/graph/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace slipway::test {
namespace {

TEST(InParallel, EveryItemIsWorkedOnOnce) {
  for (const std::size_t count : {0, 1, 2, 3, 1000}) {
    std::vector<int> times(count, 0);
    each_in_parallel(count, 1000000, [&](std::size_t i) { ++times[i]; });
    EXPECT_EQ(times, std::vector<int>(count, 1));
    queued_in_parallel(count, 1000000, [&](std::size_t i) { ++times[i]; });
    EXPECT_EQ(times, std::vector<int>(count, 2));
  }
}

TEST(InParallel, AnExceptionOfAnyItemArrives) {
  for (const std::size_t bad : {0, 5, 9})
    EXPECT_THROW(each_in_parallel(10, 1000000,
                                  [&](std::size_t i) {
                                    if (i == bad) throw std::runtime_error("x");
                                  }),
                 std::runtime_error);
}

TEST(InParallel, OfSeveralExceptionsTheFirstPartsArrives) {
  for (int again = 0; again < 20; ++again) {
    try {
      each_in_parallel(2, 1000000, [](std::size_t i) { throw std::runtime_error(std::to_string(i)); });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "0");
    }
  }
}

}  // namespace
}  // namespace slipway::test
