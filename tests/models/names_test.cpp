#include "models/model/names.h"

#include <gtest/gtest.h>

namespace slipway::test {
namespace {

enum class Colour : std::uint8_t { red, green };
constexpr std::array colour_names{Named{Colour::red, "red"}, Named{Colour::green, "green"}};

TEST(Names, ATableIsReadBothWays) {
  static_assert(value_in(colour_names, name_in(colour_names, Colour::green)) == Colour::green);
  EXPECT_STREQ(name_in(colour_names, Colour::red), "red");
  EXPECT_EQ(value_in(colour_names, "blue"), std::nullopt);
  EXPECT_EQ(all_names(colour_names), "red, green");
}

}  // namespace
}  // namespace slipway::test
