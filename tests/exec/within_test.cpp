
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "exec/process/within.h"

namespace slipway::test {
namespace {

TEST(Within, GivesTheResultOfACallThatEndsInTime) {
  EXPECT_EQ(within(60, [] { return 7; }), 7);
}

TEST(Within, ThrowsWhatTheCallThrows) {
  EXPECT_THROW(within(60, []() -> int { throw std::runtime_error("broken"); }), std::runtime_error);
}

TEST(Within, LeavesACallThatHangsBehind) {
  const auto go_on = std::make_shared<std::promise<void>>();
  const auto done = std::make_shared<std::promise<void>>();
  const auto hangs = [go_on, done] {
    go_on->get_future().wait();
    done->set_value();
    return 0;
  };
  EXPECT_EQ(within(0.05, hangs), std::nullopt);
  go_on->set_value();
  done->get_future().wait();
}

}  // namespace
}  // namespace slipway::test
