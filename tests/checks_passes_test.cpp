// I6: forwards and backwards exactly once and in order, updates after their reductions.
#include "schedules/graph/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/broken_graph.h"

namespace slipway {
namespace {

using namespace test;
using testing::HasSubstr;

TEST(Checks, I6FindsAMissingAndADoubledBackward) {
  TaskGraph graph = sound({.pipeline = 2});
  EXPECT_TRUE(check_passes(graph).empty());
  graph.tasks[task_called(graph, "1B2")].micro_batch = 1;
  const auto violations = check_passes(graph);
  ASSERT_EQ(violations.size(), 2U);
  EXPECT_EQ(violations[0].message, "stage 1, micro-batch 1 on rank 1 has more than one backward: 1B1");
  EXPECT_EQ(violations[1].message, "stage 1, micro-batch 2 on rank 1 has no backward of 1F2");
}

TEST(Checks, I6FindsAMissingSegmentOfAForward) {
  TaskGraph graph = sound({.tensor = 2});
  graph.tasks[task_called(graph, "0F1.L2.mlp", 1)].micro_batch = 2;
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("stage 0, micro-batch 1 on rank 1 has no forward of operator"));
}

TEST(Checks, I6FindsABackwardBeforeItsForward) {
  TaskGraph graph = sound({.pipeline = 2});
  swap_in_order(graph, task_called(graph, "1F0"), task_called(graph, "1B0"));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("runs 1B0 before 1F0"));
}

TEST(Checks, I6FindsAnInputGradientWhoseWeightGradientIsMissing) {
  TaskGraph graph = sound({.pipeline = 2});
  change_work(graph, task_called(graph, "1B1"), [](Work& work) { work.pass = Pass::input_grad; });
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("stage 1, micro-batch 1 on rank 1 has no weight gradient of 1I1"));
}

TEST(Checks, I6FindsAMicroBatchOnTheWrongStage) {
  TaskGraph graph = sound({.pipeline = 2});
  graph.tasks[task_called(graph, "1F3")].micro_batch = 4;
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("1, micro-batch 3 on rank 1 has no forward of operator 0"));
}

TEST(Checks, I6FindsAWeightGradientWhoseInputIsNotGatheredAgain) {
  TaskGraph graph = sound({.tensor = 2});
  const TaskId backward = task_called(graph, "0B1.L2.mlp", 0),
               gather = task_called(graph, "0B1.L2.ag2_again", 0);
  std::vector<std::uint32_t> inputs = row_of(graph.inputs, backward);
  std::erase_if(inputs,
                [&](BufferId in) { return graph.buffers[in].writer == static_cast<std::int32_t>(gather); });
  graph.inputs = with_row(graph.inputs, backward, inputs);
  EXPECT_THAT(
      first(check_passes(graph)),
      HasSubstr(
          "0B1.L2.mlp on rank 0 reads 0 inputs gathered again from its micro-batch's shards instead of 1"));
}

TEST(Checks, I6FindsAnInputThatIsGatheredFromAnotherMicroBatch) {
  TaskGraph graph = sound({.tensor = 2});
  graph.inputs = with_row(graph.inputs, task_called(graph, "0B1.L2.ag2_again"),
                          row_of(graph.inputs, task_called(graph, "0B2.L2.ag2_again")));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("0B1.L2.mlp on rank 0 reads 0 inputs gathered again"));
}

TEST(Checks, I6FindsAnUpdateThatDoesNotWaitForItsReduction) {
  for (const char* label : {"0.L1.ar_grad", "0.L1.norm_grad", "emb.tied_grad"}) {
    TaskGraph graph = sound({.tensor = 2, .pipeline = 2, .data = 2, .tied = true});
    const TaskId update = task_called(graph, "0.opt", 0);
    TaskId reduction = task_called(graph, label, 0);
    // Cut the reduction out of the chain that ends in the update of rank 0.
    for (const TaskId next : row_of(graph.successors, reduction)) {
      const auto members = members_of(graph, next);
      if (std::find(members.begin(), members.end(), 0) != members.end())
        remove_edge(graph, reduction, next);
    }
    const std::string expected = "0.opt on rank 0 does not wait for " + std::string(label);
    EXPECT_THAT(check_passes(graph), testing::Contains(testing::AllOf(
                                         testing::Field(&Violation::message, HasSubstr(expected)),
                                         testing::Field(&Violation::culprits, testing::Contains(update)))));
  }
}

TEST(Checks, I6FindsAReductionThatDoesNotWaitForTheLastBackward) {
  TaskGraph graph = sound({.pipeline = 2, .data = 2});
  const TaskId last = task_called(graph, "0B3.L1", 0), reduction = task_called(graph, "0.L1.ar_grad");
  remove_edge(graph, last, reduction);
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("0.L1.ar_grad on ranks 0, 1 does not wait for 0B3.L1 on rank 0"));
}

TEST(Checks, I6FindsAReductionThatTheLayoutNeedsAndTheGraphForgot) {
  const struct {
    const char* label;
    const char* says;
  } cases[] = {{"0.L1.ar_grad", "over the data and context group"},
               {"0.L1.norm_grad", "of replicated weights over the tensor group"},
               {"emb.tied_grad", "between embedding and head"}};
  for (const auto& [label, says] : cases) {
    TaskGraph graph = sound({.tensor = 2, .pipeline = 2, .data = 2, .tied = true});
    change_work(graph, task_called(graph, label, 0),
                [](Work& work) { work.kind = WorkKind::parameter_gather; });
    EXPECT_THAT(first(check_passes(graph)), HasSubstr("lacks its gradient reduction " + std::string(says)));
  }
}

TEST(Checks, I6FindsNormsOfHeadsThatAreNotSummedOverTheTensorGroupWithoutSequenceParallel) {
  TaskGraph graph = sound({.tensor = 2, .data = 2, .sequence_parallel = false, .qk_norm = true});
  EXPECT_TRUE(check_passes(graph).empty());
  change_work(graph, task_called(graph, "0.L1.norm_grad", 0),
              [](Work& work) { work.kind = WorkKind::parameter_gather; });
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("lacks its gradient reduction of replicated weights over the tensor group"));
}

TEST(Checks, I6FindsAnUpdateBeforeTheGlobalNormAndAClippedGraphWithoutOne) {
  TaskGraph graph = sound({.pipeline = 2, .clip_norm = 1});
  remove_edge(graph, task_called(graph, "norm_reduce"), task_called(graph, "1.opt"));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("1.opt on rank 1 does not wait for "));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("though clipping is on"));
  TaskGraph forgotten = sound({.pipeline = 2});
  forgotten.clip_norm = 1;
  EXPECT_THAT(first(check_passes(forgotten)), HasSubstr("takes no part in a global norm"));
}

TEST(Checks, I6FindsADoubledAndAForgottenUpdate) {
  TaskGraph graph = sound({.pipeline = 2, .chunks = 2});
  change_work(graph, task_called(graph, "2.opt"), [](Work& work) { work.stage = 0; });
  const auto violations = check_passes(graph);
  ASSERT_EQ(violations.size(), 2U);
  EXPECT_EQ(violations[0].message, "the parameters of stage 0 on rank 0 are updated 2 times in a step");
  EXPECT_EQ(violations[1].message, "the parameters of stage 2 on rank 0 are updated 0 times in a step");
}

}  // namespace
}  // namespace slipway
