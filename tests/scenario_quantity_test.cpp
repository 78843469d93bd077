// Units against values worked out by hand.
#include "scenarios/language/quantity.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(Quantity, ReadsDecimalAndBinaryPrefixesAndBits) {
  EXPECT_EQ(quantity("450 GB/s", Unit::bytes_per_second), 450e9);
  EXPECT_EQ(quantity("400 Gbit/s", Unit::bytes_per_second), 50e9);
  EXPECT_EQ(quantity("3.35TB/s", Unit::bytes_per_second), 3.35e12);
  EXPECT_EQ(quantity("80 GB", Unit::bytes), 80e9);
  EXPECT_EQ(quantity("80 GiB", Unit::bytes), 85899345920.0);
  EXPECT_EQ(quantity("312 TFLOP/s", Unit::flops), 312e12);
  EXPECT_EQ(quantity("15 T", Unit::tokens), 15e12);
}

TEST(Quantity, WholeTimesAreTheSameDoubleAsTheirSiLiteral) {
  EXPECT_EQ(quantity("2 us", Unit::seconds), 2e-6);
  EXPECT_EQ(quantity("3 us", Unit::seconds), 3e-6);
  EXPECT_EQ(quantity("1.5 ms", Unit::seconds), 1.5e-3);
  EXPECT_EQ(quantity("250 ns", Unit::seconds), 250e-9);
}

TEST(Quantity, BareNumbersAreInBaseUnits) {
  EXPECT_EQ(quantity("4.5e11", Unit::bytes_per_second), 4.5e11);
  EXPECT_EQ(quantity("+1e-5", Unit::seconds), 1e-5);
  EXPECT_EQ(quantity("-0.5", Unit::pure), -0.5);
}

TEST(Quantity, RefusesWhatIsAmbiguousOrOfAnotherKind) {
  for (const char* text :
       {"400 Gb/s", "450 gb/s", "450 GB", "450 XB/s", "fast", "", "450 GB/s please", "1e400", "inf", "nan"})
    EXPECT_FALSE(quantity(text, Unit::bytes_per_second)) << text;
  EXPECT_FALSE(quantity("80 GB", Unit::pure));
  EXPECT_FALSE(quantity("2 ks", Unit::seconds));
}

TEST(WholeNumber, TakesDigitsOnly) {
  EXPECT_EQ(whole_number("1024"), 1024);
  EXPECT_EQ(whole_number("-3"), -3);
  EXPECT_EQ(whole_number("+3"), 3);
  for (const char* text : {"1.0", "1e3", "", "0x10", "8 ", "99999999999999999999"})
    EXPECT_FALSE(whole_number(text)) << text;
}

TEST(NumberText, ReadsBackAsTheSameDouble) {
  for (const double value : {0.1, 1.0 / 3.0, 3.35e12, 5e-324, 1.7e308, 0.0}) {
    EXPECT_EQ(quantity(number_text(value), Unit::pure), value);
  }
}

}  // namespace
}  // namespace slipway
