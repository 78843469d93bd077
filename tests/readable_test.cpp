#include "scenarios/readable.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(Readable, SecondsHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(readable_seconds(0), "0 s");
  EXPECT_EQ(readable_seconds(3.21e-6), "3.21 µs");
  EXPECT_EQ(readable_seconds(0.4123), "412 ms");
  EXPECT_EQ(readable_seconds(0.99999), "1.00 s");
  EXPECT_EQ(readable_seconds(12.345), "12.3 s");
  EXPECT_EQ(readable_seconds(9000), "2.50 h");
  EXPECT_EQ(readable_seconds(864000), "10.0 days");
}

TEST(Readable, BytesAreBinary) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1536), "1.50 KiB");
  EXPECT_EQ(readable_bytes(80.0 * (1 << 30)), "80.0 GiB");
}

TEST(Readable, SharesHaveNoZeroWithASign) {
  EXPECT_EQ(readable_share(-1e-9), "0.0 %");
  EXPECT_EQ(readable_share(-0.002), "-0.2 %");
}

TEST(Readable, CountsHaveGroupsOfThreeOrAPrefix) {
  EXPECT_EQ(readable_count(7), "7");
  EXPECT_EQ(readable_count(1234), "1,234");
  EXPECT_EQ(readable_count(999999), "999,999");
  EXPECT_EQ(readable_count(-123456), "-123,456");
  EXPECT_EQ(readable_count(8.03e9), "8.03 G");
}

TEST(Readable, NounsFollowTheirNumber) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(1200, "task"), "1,200 tasks");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
}

TEST(AlignedTable, TheFirstColumnIsLeftTheOthersRightAndWidthIsWhatOneSees) {
  EXPECT_EQ(aligned_table({{"kind", "time"}, {"forward", "3 µs"}, {"b", "12 ms"}}, "  "),
            "  kind      time\n  forward   3 µs\n  b        12 ms\n");
}

}  // namespace
}  // namespace slipway
