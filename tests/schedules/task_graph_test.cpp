// The program itself, as a shell starts it, and membership of large groups.
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "schedules/graph/membership.h"
#include "tests/support/broken_graph.h"
#include "tests/support/command_test.h"
#include "tests/support/process_limits.h"

namespace slipway::test {

namespace {

using Program = CommandTest;

int status_of(const std::string& arguments) {
  return WEXITSTATUS(std::system((SLIPWAY_PROGRAM " " + arguments).c_str()));
}

TEST_F(Program, AnAnswerThatCannotBeWrittenIsAFailureWithAMessage) {
  EXPECT_EQ(status_of("list models > /dev/full 2> " + path("err")), status_failed);
  EXPECT_THAT(text_of(path("err")), testing::HasSubstr("cannot write to standard output"));
  EXPECT_EQ(status_of("list models > " + path("out")), status_done);
  EXPECT_EQ(status_of("list nothing > /dev/full 2> " + path("err")), status_usage);
}

// An address space of 600 MB, and a graph below the size from which it is estimated first (graph_size.h).
TEST_F(Program, LackOfMemoryIsToldInWordsAndLeavesNoHalfBundle) {
  if (!addresses_can_be_limited) GTEST_SKIP() << "no program runs within a limit of addresses here";
  const std::string large =
      SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml --set schedule.global_batch=1024 ";
  for (const std::string& command : {"lower " + large + "-o " + path("run.slip"), "simulate --exact " + large}) {
    const std::string line = "ulimit -v 600000; exec " SLIPWAY_PROGRAM " " + command + " > /dev/null 2> " + path("err");
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), status_failed);
    EXPECT_THAT(text_of(path("err")),
                testing::HasSubstr("out of memory: what this command holds (a task graph, a trace) is larger than"));
    EXPECT_THAT(text_of(path("err")), testing::HasSubstr("fewer micro-batches (schedule.global_batch)"));
  }
  EXPECT_EQ(files(), 1u);  // err
}

}  // namespace

namespace {

using testing::ElementsAre;

std::vector<TaskId> all_tasks(const TaskGraph& graph) {
  std::vector<TaskId> ids;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) ids.push_back(id);
  return ids;
}

bool walks_to(const TaskGraph& graph, TaskId task, std::int32_t rank) {
  const auto members = members_of(graph, task);
  return std::find(members.begin(), members.end(), rank) != members.end();
}

TEST(Membership, IsWhatAWalkOfTheMemberListSays) {
  TaskGraph graph = test::sound({.tensor = 2, .pipeline = 2, .data = 2, .tied = true, .clip_norm = 1});
  for (Communicator& communicator : graph.communicators)
    std::rotate(communicator.ranks.begin(), communicator.ranks.begin() + 1, communicator.ranks.end());
  const Membership membership(graph);
  for (const TaskId id : all_tasks(graph)) {
    const auto members = members_of(graph, id);
    for (std::int32_t rank = -1; rank <= rank_count(graph.step.layout); ++rank) {
      const auto at = std::find(members.begin(), members.end(), rank);
      ASSERT_EQ(membership.has(id, rank), at != members.end()) << label_of(graph, id) << " rank " << rank;
      if (at == members.end()) continue;
      ASSERT_EQ(membership.place_of(id, rank), at - members.begin());
    }
  }
}

TEST(Membership, CommonMembersAreFoundFromEitherSide) {
  TaskGraph graph;
  graph.communicators = {{"wide", Axis::world, {4, 0, 2, 3, 1}}, {"narrow", Axis::tensor, {3, 7, 4}}};
  graph.tasks = {{TaskKind::collective, none, 0, 0, none, 0}, {TaskKind::collective, none, 1, 0, none, 0}};
  const Membership membership(graph);
  const auto common = [&](TaskId task, TaskId other) {
    std::vector<std::size_t> places;
    membership.for_common(task, other, [&](std::size_t place) { places.push_back(place); });
    std::sort(places.begin(), places.end());
    return places;
  };
  EXPECT_THAT(common(0, 1), ElementsAre(0, 3));  // ranks 4 and 3 of the wide one
  EXPECT_THAT(common(1, 0), ElementsAre(0, 2));  // ranks 3 and 4 of the narrow one
}

TEST(OwnPredecessors, AreThePredecessorsInWhichTheMemberTakesPart) {
  const TaskGraph graph = test::sound({.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .tied = true, .clip_norm = 1});
  const Membership membership(graph);
  const OwnPredecessors own(graph, membership, all_tasks(graph));
  for (const TaskId id : all_tasks(graph)) {
    for (std::int32_t rank = 0; rank < rank_count(graph.step.layout); ++rank) {
      std::vector<TaskId> expected;
      for (const TaskId before : graph.predecessors[id])
        if (walks_to(graph, id, rank) && walks_to(graph, before, rank)) expected.push_back(before);
      ASSERT_THAT(own.of(id, rank), testing::ElementsAreArray(expected)) << label_of(graph, id);
    }
  }
}

// The global norm joins all ranks: n scalars in, n updates that wait. A rank reads only its own scalar and its own
// update, not n of each.
TEST(OwnPredecessors, OfAGroupOfAllRanksAreAsManyAsItsMembers) {
  for (const int data : {2, 8, 32}) {
    const TaskGraph graph = test::sound({.pipeline = 2, .data = data, .clip_norm = 1});
    const auto ranks = static_cast<std::size_t>(rank_count(graph.step.layout));
    const Membership membership(graph);
    const OwnPredecessors own(graph, membership, {test::task_called(graph, "norm_reduce")});
    EXPECT_EQ(own.edges(), ranks);
  }
}

}  // namespace

}  // namespace slipway::test
