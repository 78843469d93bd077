// A diverged training ends as a failure at the first step whose loss or gradient norm is not finite. All ranks print
// the step and what to try, and the last finite checkpoint stays unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "exec/rank/losses.h"
#include "exec/run/checkpoint_folder.h"
#include "tests/support/memory_store.h"
#include "tests/support/resumed_runs.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Weights of 1e300 after the first step, which overflow in the second.
const std::string far_too_fast = "--set run.lr=1e300 --set run.checkpoint_steps=1";

class DivergedIn : public testing::TestWithParam<const char*> {};

TEST_P(DivergedIn, RunEndsAtTheStepAndKeepsTheLastFiniteCheckpoint) {
  const std::string folder = fresh("diverged");
  const Ended ended = executed(folder, {far_too_fast, GetParam()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr("slipway execute: rank "), HasSubstr("step 2"),
                                  HasSubstr("the training has diverged"), HasSubstr("run.optimizer.lr"),
                                  HasSubstr("run.clip_norm"), HasSubstr("checkpoint of step 1 (--resume latest)")));
  EXPECT_EQ(complete_checkpoints(folder), std::vector<std::int64_t>{1});
  EXPECT_THAT(losses_of(folder), AllOf(HasSubstr("\n1,8,"), Not(HasSubstr("\n3,"))));
  for (const int rank : {0, 1}) EXPECT_THAT(text_of_file(records_path(folder, rank)), Not(IsEmpty()));
}
INSTANTIATE_TEST_SUITE_P(Layouts, DivergedIn,
                         testing::Values("", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=1",
                                         "--set layout.pipeline=1 --set layout.tensor=2 --set run.clip_norm=0"));

// The loss of the second step is that of logits of zero, but its gradient is not finite: with clipping that is found at
// once.
TEST(Diverged, RunTellsTheGradientsNormWhereTheLossIsStillFinite) {
  const std::string folder = fresh("norm");
  const Ended ended = executed(folder, {"--set run.lr=1e300"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("step 2, end of the step: the training has diverged: the loss is "
                                      "5.5452, but the gradient's norm is nan;"));
  EXPECT_THAT(losses_of(folder), AllOf(HasSubstr("\n2,16,5.54"), Not(HasSubstr("\n3,"))));
}

// Without clipping the loss shows it, on a rank that does not compute it.
TEST(Diverged, RunNamesTheRankOfTheLoss) {
  const std::string folder = fresh("loss");
  const Ended ended = executed(folder, {"--set run.lr=1e300 --set run.clip_norm=0"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors,
              HasSubstr("step 3, end of the step: the training has diverged: the loss is nan (computed on rank 1);"));
  EXPECT_THAT(ended.output, HasSubstr("step 3/8  loss nan "));
  EXPECT_THAT(losses_of(folder), AllOf(HasSubstr("\n3,24,nan,"), Not(HasSubstr("\n4,"))));
}

TEST(LossReporter, EndsTheRunWhereTheLossIsFiniteButTheGradientIsNot) {
  const Bundle bundle = tiny_bundle(tiny_input(tiny_llama(1, false)));
  const std::string folder = temporary_folder().path("reported");
  std::filesystem::create_directories(folder);
  MemoryStore store;
  std::string reported;
  LossReporter losses(bundle, 0, {}, folder, store.connect(), [&](const std::string& where) {
    try {
      throw;
    } catch (const std::exception& error) {
      reported = where + ": " + error.what();
    }
  });
  losses.step_ended({{0, 0, 8}, 8, 5.25, 0, std::nullopt, 1.0});
  losses.step_ended({{1, 8, 8}, 8, 1.25e57, 0, std::nullopt, std::numeric_limits<double>::infinity()});
  losses.step_ended({{2, 16, 8}, 8, 5.25, 0, std::nullopt, 1.0});
  losses.finish();
  EXPECT_THAT(reported, HasSubstr("step 2, end of the step: the training has diverged: the loss is 1.2500e+57, but "
                                  "the gradient's norm is inf;"));
  EXPECT_THAT(text_of_file(losses_path(folder)),
              AllOf(HasSubstr("\n1 16 1.2"), HasSubstr("e+57 "), Not(HasSubstr("\n2 "))));
}

TEST(LossReporter, KeepsEarlierLinesAndReplacesALinkThatSomebodyPutThere) {
  const Bundle bundle = tiny_bundle(tiny_input(tiny_llama(1, false)));
  const std::string folder = temporary_folder().path("linked");
  std::filesystem::create_directories(folder);
  const std::string earlier = "0 8 5.5 0.01\n1 16 5.25 0.01\n2 24 5 0.01\n";
  std::ofstream(folder + "/other") << earlier;
  std::filesystem::create_symlink("other", losses_path(folder));
  MemoryStore store;
  LossReporter losses(bundle, 0, {2, 16, 8}, folder, store.connect(), [](const std::string&) {});
  losses.step_ended({{2, 16, 8}, 8, 4.5, 0, std::nullopt, std::nullopt});
  losses.finish();
  EXPECT_FALSE(std::filesystem::is_symlink(losses_path(folder)));
  EXPECT_EQ(text_of_file(folder + "/other"), earlier);
  EXPECT_THAT(text_of_file(losses_path(folder)), StartsWith("0 8 5.5 0.01\n1 16 5.25 0.01\n2 24 4.5 "));
}

// x86 makes nan with the sign set, which some readers of tables reject.
TEST(LossReporter, WritesAndPrintsNumbersThatAreNoneWithoutASign) {
  const Bundle bundle = tiny_bundle(tiny_input(tiny_llama(1, false)));
  const std::string folder = temporary_folder().path("unsigned");
  std::filesystem::create_directories(folder);
  MemoryStore store;
  const double none = -std::numeric_limits<double>::quiet_NaN();
  LossReporter losses(bundle, 0, {}, folder, store.connect(), [](const std::string&) {});
  testing::internal::CaptureStdout();
  losses.step_ended({{0, 0, 8}, 8, none, 0, GradientNorms{2, none, none}, std::nullopt, none});
  losses.finish();
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("loss nan "), HasSubstr("evaluation nan "), Not(HasSubstr("-nan"))));
  EXPECT_THAT(text_of_file(losses_path(folder)), AllOf(HasSubstr(" nan nan evaluation=nan"), Not(HasSubstr("-nan"))));
}

}  // namespace
}  // namespace slipway::test
