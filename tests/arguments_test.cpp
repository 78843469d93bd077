#include "exec/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipway {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Arguments, ARunNeedsABundleAndAFolder) {
  const Arguments arguments =
      arguments_from({"run.slip", "--out", "dir", "--steps", "3", "--dump-gradients", "2"});
  EXPECT_EQ(arguments.mode, Arguments::Mode::run);
  EXPECT_EQ(arguments.bundle, "run.slip");
  EXPECT_EQ(arguments.out, "dir");
  EXPECT_EQ(arguments.steps, 3);
  EXPECT_EQ(arguments.dump_step, 2);
  EXPECT_EQ(arguments.threads, 1);
  EXPECT_FALSE(arguments.cuda_graphs);
  EXPECT_TRUE(arguments_from({"run.slip", "--cuda-graphs", "--out", "dir"}).cuda_graphs);
}

TEST(Arguments, ABundleThatWasCarriedElsewhereFindsItsDataThere) {
  const Arguments arguments = arguments_from(
      {"run.slip", "--out", "dir", "--data", "here.txt", "--evaluation-data", "held-out.txt"});
  EXPECT_EQ(arguments.data, "here.txt");
  EXPECT_EQ(arguments.evaluation_data, "held-out.txt");
}

TEST(Arguments, MeasurementsNeedAFile) {
  const Arguments arguments = arguments_from({"--measure", "file", "--dtype", "float64"});
  EXPECT_EQ(arguments.mode, Arguments::Mode::measure);
  EXPECT_EQ(arguments.out, "file");
  EXPECT_EQ(arguments.dtype, Dtype::float64);
}

TEST(Arguments, HelpWinsOverWhateverElseIsThere) {
  EXPECT_EQ(arguments_from({"run.slip", "--help"}).mode, Arguments::Mode::help);
  EXPECT_EQ(arguments_from({"--version"}).mode, Arguments::Mode::version);
}

TEST(Arguments, MistakesAreNamed) {
  const auto refused = [](const std::vector<std::string>& words, const char* why) {
    EXPECT_THAT([&] { arguments_from(words); }, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refused({}, "no bundle was given");
  refused({"run.slip"}, "--out DIR is missing");
  refused({"a.slip", "b.slip", "--out", "d"}, "two bundles, a.slip and b.slip");
  refused({"run.slip", "--out"}, "--out needs a value");
  refused({"run.slip", "--out", "d", "--steps", "0"}, "--steps 0: expected a number of at least 1");
  refused({"run.slip", "--out", "d", "--steps", "many"}, "--steps many");
  refused({"run.slip", "--out", "d", "--colour", "red"}, "unknown option --colour");
  refused({"--measure", "f", "--dtype", "float16"}, "allowed are float32 and float64");
  refused({"run.slip", "--measure", "f"}, "--measure runs no bundle");
  refused({"--measure", "f", "--cuda-graphs"}, "--cuda-graphs is for running a bundle");
}

TEST(ConnectSeconds, EndEightSecondsAfterTheStartOfTheProcessAndAreFiveAtLeast) {
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 0), 8.1);
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 1.5), 6.6);
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 20), 5);
  EXPECT_DOUBLE_EQ(connect_seconds_for(1024, 1), 58.2);
}

}  // namespace
}  // namespace slipway
