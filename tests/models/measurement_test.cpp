#include "models/fit/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace slipway::test {
namespace {

using testing::HasSubstr;

std::vector<Measurement> read(const std::string& text) {
  std::istringstream in(text);
  return read_measurements(in, "m.0");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

Machine machine() {
  Machine result;
  result.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 100e9;
  result.gemm_efficiency = 0.5, result.attention_efficiency = 0.25;
  result.memory_bandwidth = 10e9;
  result.launch_overhead = 1e-6, result.task_overhead = 5e-6;
  result.node_link = {"loopback", 1e9, 1e-4, 1};
  result.network_link = {"ethernet", 1e7, 1e-3, 1};
  result.reduce_bandwidth = 2e9;
  result.host_to_device = {"", 50e9, 1e-5, 1};
  result.device_to_host = {"", 40e9, 2e-5, 0.5};
  return result;
}

double predicted(const std::string& line) { return observations_of(read(line)).at(0).predict(machine()); }

TEST(Measurement, EachKindIsPredictedByTheCostModel) {
  // 2·1000³ FLOPs at 50 GFLOP/s; matrices of 12 MB are faster.
  EXPECT_NEAR(predicted("measure gemm pass=forward m=1000 n=1000 k=1000 dtype=float32 seconds=1"), 0.04 + 1e-6, 1e-12);
  // 2·8·512²·64 FLOPs at 25 GFLOP/s, and 2.5 times as many backward.
  const double forward = 2 * 8 * 512.0 * 512 * 64 / 25e9;
  EXPECT_NEAR(predicted("measure attention pass=forward batch_heads=8 s=512 d=64 dtype=float32 seconds=1"),
              forward + 1e-6, 1e-12);
  EXPECT_NEAR(predicted("measure attention pass=backward batch_heads=8 s=512 d=64 dtype=float32 seconds=1"),
              2.5 * forward + 1e-6, 1e-12);
  EXPECT_NEAR(predicted("measure elementwise op=add bytes=1e7 dtype=float32 seconds=1"), 1e-3 + 1e-6, 1e-12);
  EXPECT_NEAR(predicted("measure elementwise op=silu_mul bytes=1e7 dtype=float32 seconds=1"), 1e-3 + 2e-6, 1e-12);
  EXPECT_NEAR(predicted("measure elementwise op=rms_norm bytes=1e7 dtype=float32 seconds=1"), 3.5e-3 + 6e-6, 1e-12);
  EXPECT_NEAR(predicted("measure launch dtype=float32 seconds=1"), 1e-6, 1e-8);
  // Seven numbers of 4 bytes are read or written for a float32 parameter.
  EXPECT_NEAR(predicted("measure optimizer elements=1e6 dtype=float32 seconds=1"), 28e6 / 10e9 + 1e-6, 1e-12);
  EXPECT_NEAR(predicted("measure task_overhead lanes=2 dtype=float32 seconds=1"), 5e-6, 1e-15);
  EXPECT_NEAR(predicted("measure transfer bytes=1e6 members=2 dtype=float32 seconds=1"), 1e-4 + 1e-3, 1e-12);
  EXPECT_NEAR(predicted("measure all-reduce bytes=1e6 members=2 dtype=float32 seconds=1"), 2e-4 + 1e-3 + 0.25e-3,
              1e-12);
  EXPECT_NEAR(predicted("measure all-gather bytes=1e6 members=4 dtype=float32 seconds=1"), 3e-4 + 0.75e-3, 1e-12);
  EXPECT_NEAR(predicted("measure reduce-scatter bytes=1e6 members=2 dtype=float32 seconds=1"), 1e-4 + 0.5e-3 + 0.25e-3,
              1e-12);
  // Three messages of a quarter each.
  EXPECT_NEAR(predicted("measure all-to-all bytes=1e6 members=4 dtype=float32 seconds=1"), 3e-4 + 0.75e-3, 1e-12);
  EXPECT_NEAR(predicted("measure host-to-device bytes=1e8 dtype=bfloat16 seconds=1"), 1e-5 + 2e-3, 1e-12);
  EXPECT_NEAR(predicted("measure device-to-host bytes=1e8 dtype=bfloat16 seconds=1"), 2e-5 + 5e-3, 1e-12);
}

// Two nodes of two processors: each node's port carries 2·2 parts of a quarter, and a ring's one edge 3/2 of an all-reduce.
TEST(Measurement, RanksOfANodeShareItsPort) {
  EXPECT_NEAR(predicted("measure all-gather bytes=1e6 members=4 link=network per_node=2 dtype=float32 seconds=1"),
              1e-4 + 2e-3 + 0.1, 1e-9);
  EXPECT_NEAR(predicted("measure all-reduce bytes=1e6 members=4 link=network per_node=2 dtype=float32 seconds=1"),
              6e-3 + 0.15 + 0.375e-3, 1e-9);
  EXPECT_NEAR(predicted("measure all-gather bytes=1e6 members=4 link=network per_node=1 dtype=float32 seconds=1"),
              3e-3 + 0.075, 1e-9);
}

TEST(Measurement, TheSameOnSeveralRanksCountsOnceWithTheMedian) {
  const auto all =
      merged(read("measure launch dtype=float32 seconds=3e-6\n"
                  "measure gemm m=8 n=8 k=8 dtype=float32 seconds=1e-6\n"
                  "measure launch dtype=float32 seconds=1e-6\n"
                  "measure launch dtype=float32 seconds=9e-6\n"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].what, "gemm");
  EXPECT_DOUBLE_EQ(all[1].seconds, 3e-6);
}

TEST(Measurement, BestRateIsThatOfTheFastestProductOfEachDtype) {
  const auto rates =
      best_gemm_rates(read("measure gemm m=100 n=100 k=100 dtype=float32 seconds=1e-4\n"
                           "measure gemm m=200 n=100 k=100 dtype=float32 seconds=1e-4\n"
                           "measure gemm m=100 n=100 k=100 dtype=float64 seconds=1e-4\n"));
  EXPECT_NEAR(rates[static_cast<std::size_t>(Dtype::float32)], 4e10, 1);
  EXPECT_NEAR(rates[static_cast<std::size_t>(Dtype::float64)], 2e10, 1);
  EXPECT_EQ(rates[static_cast<std::size_t>(Dtype::bfloat16)], 0);
}

TEST(Measurement, OfTheTaskOverheadOnlyTheMostLanesCount) {
  const auto observations =
      observations_of(read("measure task_overhead lanes=1 dtype=float32 seconds=1e-6\n"
                           "measure task_overhead lanes=2 dtype=float32 seconds=2e-5\n"));
  ASSERT_EQ(observations.size(), 1U);
  EXPECT_DOUBLE_EQ(observations[0].seconds, 2e-5);
}

TEST(Measurement, WhatNoMachineMeasuresIsRefusedWhereItStands) {
  const char* const gemm = "measure gemm pass=forward m=8 n=8 k=8 dtype=float32 seconds=";
  for (const std::string seconds : {"0", "-1", "inf", "nan", "1e300", "1e-300"})
    EXPECT_THAT(error_of(gemm + seconds), HasSubstr("m.0:1: seconds=" + seconds + " is no number from 1e-12 to 1e+06"));
  for (const std::string members : {"0", "-1", "2.5", "3e9", "1e300", "nan"})
    EXPECT_THAT(error_of("measure all-reduce bytes=8 members=" + members + " seconds=1"),
                HasSubstr("m.0:1: members=" + members + " is no whole number from 1 to 1e+09"));
  EXPECT_THAT(error_of("measure transfer bytes=1e300 seconds=1"),
              HasSubstr("bytes=1e300 is no number from 0 to 1e+15"));
  EXPECT_THAT(error_of("measure attention pass=x batch_heads=1 s=1 d=1 dtype=float32 seconds=1"),
              HasSubstr("pass=x is not known; allowed: forward, backward, input_grad, weight_grad"));
  EXPECT_THAT(error_of("measure elementwise op=sin bytes=8 dtype=float32 seconds=1"), HasSubstr("op=sin is not known"));
}

TEST(Measurement, ErrorsNameFileLineAndDefect) {
  EXPECT_THAT(error_of("\nhello\n"), HasSubstr("m.0:2: expected a line 'measure"));
  EXPECT_THAT(error_of("measure warp seconds=1"),
              HasSubstr("'warp' is no measurement that calibrate knows; known: all-"));
  EXPECT_THAT(error_of("measure gemm m=1 n=2 k=3 dtype=float32"), HasSubstr("seconds= is missing"));
  EXPECT_THAT(error_of("measure gemm m=1 n=2 dtype=float32 seconds=1"),
              HasSubstr("k= is missing in a measurement of gemm"));
  EXPECT_THAT(error_of("measure gemm m=one n=2 k=3 dtype=float32 seconds=1"), HasSubstr("m=one is no whole number"));
  EXPECT_THAT(error_of("measure launch dtype=float33 seconds=1"), HasSubstr("dtype=float33"));
  EXPECT_THAT(error_of("measure launch float32 seconds=1"), HasSubstr("expected key=value, found: float32"));
}

}  // namespace
}  // namespace slipway::test
