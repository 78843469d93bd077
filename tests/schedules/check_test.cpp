#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/check/check.h"
#include "tests/support/broken_graph.h"

namespace slipway::test {

namespace {

using namespace test;
using testing::HasSubstr;

TEST(Checks, EveryLoweredLayoutIsSound) {
  for (const int tensor : {1, 2}) {
    for (const int pipeline : {1, 2, 4}) {
      for (const int data : {1, 2}) {
        for (const int zero : {0, 1, 2, 3}) {
          for (const auto recompute : {Recompute::none, Recompute::full}) {
            for (const bool tied : {false, true}) {
              const TaskGraph graph = sound({.tensor = tensor,
                                             .pipeline = pipeline,
                                             .data = data,
                                             .zero = zero,
                                             .tied = tied,
                                             .clip_norm = 1,
                                             .recompute = recompute});
              const auto violations = check_graph(graph);
              ASSERT_TRUE(violations.empty()) << describe(graph, violations.front()) << "tensor " << tensor
                                              << " pipeline " << pipeline << " data " << data << " zero " << zero;
            }
          }
        }
      }
    }
  }
}

TEST(Checks, InterleavedAndGpipeGraphsAreSound) {
  for (const Shape& shape :
       {Shape{.tensor = 2, .pipeline = 2, .data = 2, .chunks = 2}, Shape{.pipeline = 2, .chunks = 3},
        Shape{.pipeline = 1, .chunks = 2}, Shape{.pipeline = 4, .schedule = "gpipe"}}) {
    const TaskGraph graph = sound(shape);
    const auto violations = check_graph(graph);
    EXPECT_TRUE(violations.empty()) << describe(graph, violations.front());
  }
}

TEST(Checks, I1FindsACircleAndSpellsItOut) {
  TaskGraph graph = sound({.pipeline = 2});
  add_edge(graph, task_called(graph, "0B0"), task_called(graph, "0F0"));
  const auto violations = check_acyclic(graph);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations.front().invariant, 1);
  EXPECT_THAT(first(violations), HasSubstr("0F0 → "));
  EXPECT_THAT(first(violations), HasSubstr("0B0 → 0F0"));
}

TEST(Checks, I1FindsPredecessorsThatAreNotTheSuccessorsReadBackwards) {
  TaskGraph graph = sound({.pipeline = 2});
  const TaskId backward = task_called(graph, "0B0");
  auto before = row_of(graph.predecessors, backward);
  before.pop_back();
  graph.predecessors = with_row(graph.predecessors, backward, before);
  EXPECT_THAT(first(check_acyclic(graph)), HasSubstr("the predecessors of 0B0 on rank 0"));
}

TEST(Checks, I2FindsALaneThatIsNoProjectionOfTheGlobalOrder) {
  const TaskGraph graph = sound({.pipeline = 2});
  auto lanes = lanes_of(graph);
  EXPECT_TRUE(check_lane_order(graph, lanes).empty());
  auto& tasks = lane_of(graph, lanes, 0, "compute").tasks;
  std::swap(tasks[0], tasks[1]);
  EXPECT_THAT(first(check_lane_order(graph, lanes)), HasSubstr("lane compute of rank 0 runs 0F1 before 0F0"));
}

TEST(Checks, I2FindsATaskThatALaneLost) {
  const TaskGraph graph = sound({.pipeline = 2});
  auto lanes = lanes_of(graph);
  lane_of(graph, lanes, 1, "compute").tasks.pop_back();
  EXPECT_THAT(first(check_lane_order(graph, lanes)), HasSubstr("the lanes hold"));
}

TEST(Checks, I2FindsAnOrderThatContradictsADependencyOrIsNoPermutation) {
  TaskGraph graph = sound({.pipeline = 2});
  swap_in_order(graph, task_called(graph, "0F0"), task_called(graph, "0F0.send"));
  EXPECT_THAT(first(check_lane_order(graph, lanes_of(graph))), HasSubstr("before 0F0 on rank 0, which it needs"));
  graph.order.back() = graph.order.front();
  EXPECT_THAT(first(check_lane_order(graph, {})), HasSubstr("no permutation"));
}

TEST(Checks, I3FindsMembersThatSeeDifferentSequences) {
  const TaskGraph graph = sound({.tensor = 2});
  auto lanes = lanes_of(graph);
  EXPECT_TRUE(check_collectives(graph, lanes).empty());
  auto& tasks = lane_of(graph, lanes, 1, "tp").tasks;
  std::swap(tasks[3], tasks[4]);
  const auto violations = check_collectives(graph, lanes);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_THAT(first(violations), HasSubstr("communicator tp: as task 3 rank 0 runs "));
  EXPECT_EQ(violations.front().culprits.size(), 2U);
}

TEST(Checks, I3FindsAMemberThatNeverArrives) {
  const TaskGraph graph = sound({.tensor = 2});
  auto lanes = lanes_of(graph);
  lane_of(graph, lanes, 1, "tp").tasks.pop_back();
  EXPECT_THAT(first(check_collectives(graph, lanes)), HasSubstr("rank 1 never runs"));
}

TEST(Checks, I3ComparesTheDtypeOfTasksWithTheSameLabel) {
  TaskGraph graph = sound({.tensor = 2});
  auto lanes = lanes_of(graph);
  auto& tasks = lane_of(graph, lanes, 1, "tp").tasks;
  // A twin of rank 1's second collective: same kind and label, another dtype.
  const Task twin = graph.tasks[tasks[1]];
  Work work = graph.work(twin);
  graph.tasks.push_back(twin);
  graph.tasks.back().work = static_cast<std::int32_t>(graph.works.size());
  graph.works.push_back(work);
  tasks[1] = static_cast<TaskId>(graph.tasks.size() - 1);
  EXPECT_TRUE(check_collectives(graph, lanes).empty());
  graph.works.back().dtype = Dtype::bfloat16;
  EXPECT_THAT(first(check_collectives(graph, lanes)), HasSubstr("as task 1"));
}

TEST(Checks, I4FindsAThirdMemberUnequalBytesAndAWrongEnd) {
  const TaskGraph graph = sound({.pipeline = 2});
  const TaskId send = task_called(graph, "0F0.send");
  EXPECT_TRUE(check_transfers(graph).empty());

  TaskGraph crowded = graph;
  crowded.communicators[graph.tasks[send].communicator].ranks = {0, 1, 1};
  EXPECT_THAT(first(check_transfers(crowded)), HasSubstr("one sender and one other rank"));

  TaskGraph shortened = graph;
  shortened.buffers[graph.outputs[send].front()].bytes /= 2;
  EXPECT_THAT(first(check_transfers(shortened)), HasSubstr("0F0.send on ranks 0, 1 receives"));

  TaskGraph reversed = graph;
  std::swap(reversed.communicators[graph.tasks[send].communicator].ranks[0],
            reversed.communicators[graph.tasks[send].communicator].ranks[1]);
  EXPECT_THAT(first(check_transfers(reversed)), HasSubstr("sends a buffer of rank 0 instead of rank 1"));
}

TEST(Checks, I5FindsAReadThatDoesNotWaitForItsWriter) {
  TaskGraph graph = sound({.pipeline = 2});
  EXPECT_TRUE(check_buffers(graph).empty());
  remove_edge(graph, task_called(graph, "0F0.send"), task_called(graph, "1F0"));
  const auto violations = check_buffers(graph);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_THAT(first(violations), HasSubstr("1F0 on rank 1 reads the value buffer"));
  EXPECT_THAT(first(violations), HasSubstr("without waiting for 0F0.send"));
}

// The gradient that arrives for micro-batch 1 overwrites that of micro-batch 0, which is not read yet.
TEST(Checks, I5FindsABufferThatIsRewrittenBeforeItsLastReader) {
  TaskGraph graph = sound({.pipeline = 2});
  const TaskId early = task_called(graph, "1B0.send"), late = task_called(graph, "1B1.send");
  graph.outputs = with_row(graph.outputs, late, row_of(graph.outputs, early));
  EXPECT_THAT(first(check_buffers(graph)), HasSubstr("writes the gradient buffer"));
  EXPECT_THAT(first(check_buffers(graph)), HasSubstr("again, after"));
}

TEST(Checks, I5FindsABufferThatNobodyWritesAndOneOnAnotherRank) {
  const TaskGraph graph = sound({.pipeline = 2});
  const TaskId forward = task_called(graph, "0F0");
  TaskGraph unwritten = graph;
  unwritten.outputs = with_row(graph.outputs, forward, {});
  EXPECT_THAT(first(check_buffers(unwritten)), HasSubstr("0F0 on rank 0 should write"));
  TaskGraph elsewhere = graph;
  elsewhere.inputs =
      with_row(graph.inputs, task_called(graph, "1F0"), row_of(graph.inputs, task_called(graph, "0F0.send")));
  EXPECT_THAT(first(check_buffers(elsewhere)), HasSubstr("1F0 on rank 1 reads the value buffer"));
  EXPECT_THAT(first(check_buffers(elsewhere)), HasSubstr("where it does not run"));
}

TEST(Checks, I7NamesTheRankAndTheTaskThatPeaks) {
  std::vector<RankMemory> memory(2);
  memory[0].peak = 10.0 * (1ULL << 30U), memory[0].peak_task = "0F3";
  memory[1].peak = 12.5 * (1ULL << 30U), memory[1].peak_task = "1B0";
  const std::vector<double> capacity(2, 12.0 * (1ULL << 30U));
  const auto violations = check_memory(memory, capacity);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(first(violations), "rank 1 needs 12.50 GiB of 12.00 GiB, most of it during 1B0");
}

// "Receive just before use, send just after production" on one lane per pair: each end posts another message first, and
// blocking messages stop both.
TEST(Checks, I8FindsLanesThatWaitForEachOtherForEver) {
  const TaskGraph graph = sound({.pipeline = 2});
  auto lanes = lanes_of(graph);
  EXPECT_TRUE(check_rendezvous(graph, lanes).empty());
  auto& tasks = lane_of(graph, lanes, 1, "pp.forward.0-1").tasks;
  std::swap(tasks[0], tasks[1]);
  const auto violations = check_rendezvous(graph, lanes);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_THAT(first(violations), HasSubstr("0F0.send on ranks 0, 1"));
  EXPECT_THAT(first(violations), HasSubstr("0F1.send on ranks 0, 1"));
}

TEST(Checks, I8AsksForNoParticularOrderOnlyForOneThatReachesTheEnd) {
  TaskGraph graph = sound({.pipeline = 2});
  const auto lanes = lanes_of(graph);
  std::swap(graph.order.front(), graph.order.back());  // the lanes are no projections of it any more
  EXPECT_FALSE(check_lane_order(graph, lanes).empty());
  EXPECT_TRUE(check_rendezvous(graph, lanes).empty());
}

TEST(Checks, I9FindsTwoTasksOfARankWithOneLabel) {
  TaskGraph graph = sound({.pipeline = 2, .data = 2});
  EXPECT_TRUE(check_labels(graph).empty());
  graph.tasks[task_called(graph, "1F2", 3)].micro_batch = 1;
  const auto violations = check_labels(graph);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(first(violations), "two tasks of rank 3 are called 1F1");
}

TEST(Checks, I9FindsLabelsThatBecomeEqualOnlyWhenSpelledOut) {
  TaskGraph graph = sound({.pipeline = 2});
  // A once-per-step label has no pass: an optimizer task with a pass is still called 0.opt.
  change_work(graph, task_called(graph, "1.opt"), [](Work& work) { work.stage = 0, work.pass = Pass::forward; });
  graph.tasks[task_called(graph, "0.opt")].rank = 1;
  EXPECT_EQ(first(check_labels(graph)), "two tasks of rank 1 are called 0.opt");
}

TEST(Checks, AViolationIsShownInTheGridWithTheCulpritMarked) {
  TaskGraph graph = sound({.pipeline = 2});
  swap_in_order(graph, task_called(graph, "1F0"), task_called(graph, "1B0"));
  const auto violations = check_passes(graph);
  ASSERT_FALSE(violations.empty());
  const std::string text = describe(graph, violations.front());
  EXPECT_THAT(text, HasSubstr("I6: stage 1, micro-batch 0 on rank 1 runs 1B0 before 1F0"));
  EXPECT_THAT(text, HasSubstr("*1B0*"));
  EXPECT_THAT(text, HasSubstr("*1F0*"));
  EXPECT_THAT(text, HasSubstr("rank 0 │"));
}

TEST(Checks, CheckGraphRunsThemAllAndStopsWhereTheOrderIsBroken) {
  TaskGraph graph = sound({.pipeline = 2});
  graph.tasks[task_called(graph, "1F2")].micro_batch = 1;
  const auto violations = check_graph(graph);
  std::vector<int> invariants;
  for (const Violation& violation : violations) invariants.push_back(violation.invariant);
  EXPECT_THAT(invariants, testing::Contains(6));
  EXPECT_THAT(invariants, testing::Contains(9));
  graph.order.clear();
  EXPECT_EQ(check_graph(graph).front().invariant, 2);
}

}  // namespace

// I6: forwards and backwards exactly once and in order, updates after their reductions.

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
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("stage 0, micro-batch 1 on rank 1 has no forward of operator"));
}

TEST(Checks, I6FindsABackwardBeforeItsForward) {
  TaskGraph graph = sound({.pipeline = 2});
  swap_in_order(graph, task_called(graph, "1F0"), task_called(graph, "1B0"));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("runs 1B0 before 1F0"));
}

TEST(Checks, I6FindsAnInputGradientWhoseWeightGradientIsMissing) {
  TaskGraph graph = sound({.pipeline = 2});
  change_work(graph, task_called(graph, "1B1"), [](Work& work) { work.pass = Pass::input_grad; });
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("stage 1, micro-batch 1 on rank 1 has no weight gradient of 1I1"));
}

TEST(Checks, I6FindsAMicroBatchOnTheWrongStage) {
  TaskGraph graph = sound({.pipeline = 2});
  graph.tasks[task_called(graph, "1F3")].micro_batch = 4;
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("1, micro-batch 3 on rank 1 has no forward of operator 0"));
}

TEST(Checks, I6FindsAWeightGradientWhoseInputIsNotGatheredAgain) {
  TaskGraph graph = sound({.tensor = 2});
  const TaskId backward = task_called(graph, "0B1.L2.mlp", 0), gather = task_called(graph, "0B1.L2.ag2_again", 0);
  std::vector<std::uint32_t> inputs = row_of(graph.inputs, backward);
  std::erase_if(inputs, [&](BufferId in) { return graph.buffers[in].writer == static_cast<std::int32_t>(gather); });
  graph.inputs = with_row(graph.inputs, backward, inputs);
  EXPECT_THAT(
      first(check_passes(graph)),
      HasSubstr("0B1.L2.mlp on rank 0 reads 0 inputs gathered again from its micro-batch's shards instead of 1"));
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
      if (std::find(members.begin(), members.end(), 0) != members.end()) remove_edge(graph, reduction, next);
    }
    const std::string expected = "0.opt on rank 0 does not wait for " + std::string(label);
    EXPECT_THAT(check_passes(graph),
                testing::Contains(testing::AllOf(testing::Field(&Violation::message, HasSubstr(expected)),
                                                 testing::Field(&Violation::culprits, testing::Contains(update)))));
  }
}

TEST(Checks, I6FindsAReductionThatDoesNotWaitForTheLastBackward) {
  TaskGraph graph = sound({.pipeline = 2, .data = 2});
  const TaskId last = task_called(graph, "0B3.L1", 0), reduction = task_called(graph, "0.L1.ar_grad");
  remove_edge(graph, last, reduction);
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("0.L1.ar_grad on ranks 0, 1 does not wait for 0B3.L1 on rank 0"));
}

TEST(Checks, I6FindsAReductionThatTheLayoutNeedsAndTheGraphForgot) {
  const struct {
    const char* label;
    const char* needed;
  } cases[] = {{"0.L1.ar_grad", "over the data and context group"},
               {"0.L1.norm_grad", "of replicated weights over the tensor group"},
               {"emb.tied_grad", "between embedding and head"}};
  for (const auto& [label, needed] : cases) {
    TaskGraph graph = sound({.tensor = 2, .pipeline = 2, .data = 2, .tied = true});
    change_work(graph, task_called(graph, label, 0), [](Work& work) { work.kind = WorkKind::parameter_gather; });
    EXPECT_THAT(first(check_passes(graph)), HasSubstr("lacks its gradient reduction " + std::string(needed)));
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

TEST(Checks, I6FindsCopiesOfHeadsWhoseGradientsAreNotSummed) {
  TaskGraph graph = sound({.tensor = 4, .data = 2, .kv_heads = 2});
  EXPECT_TRUE(check_passes(graph).empty());
  change_work(graph, task_called(graph, "0.L1.kv_grad", 0), [](Work& work) { work.kind = WorkKind::parameter_gather; });
  EXPECT_THAT(first(check_passes(graph)),
              HasSubstr("lacks its gradient reduction over the tensor ranks with the same key-value heads"));
}

TEST(Checks, I6FindsAnUpdateBeforeTheGlobalNormAndAClippedGraphWithoutOne) {
  TaskGraph graph = sound({.pipeline = 2, .clip_norm = 1});
  remove_edge(graph, task_called(graph, "norm_reduce"), task_called(graph, "1.opt"));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("1.opt on rank 1 does not wait for "));
  EXPECT_THAT(first(check_passes(graph)), HasSubstr("though clipping is on"));
  TaskGraph forgotten = sound({.pipeline = 2});
  forgotten.step.clip_norm = 1;
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

}  // namespace slipway::test
