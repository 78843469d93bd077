// Segments that share a recording: as few recordings as micro-batches are alive at once, never two uses at a time.
#include "exec/lanes/recordings.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "schedules/lower/lowering.h"
#include "schedules/time/global_order.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

TaskGraph graph_of(Step input) {
  TaskGraph graph = lower(input);
  set_global_order(graph, unit_durations(graph));
  return graph;
}
TaskGraph graph_of(const Degrees& degrees, const std::string& schedule, Recompute recompute = Recompute::none) {
  Step input = with_layout(tiny_llama(8, false), degrees);
  input.schedule = schedule;
  input.recompute = recompute;
  return graph_of(std::move(input));
}

std::set<std::int32_t> pools_of(const Recordings& recordings) {
  return {recordings.pool.begin(), recordings.pool.end()};
}

TEST(Recordings, HasAsManySlotsAsMicroBatchesAreAliveAtOnce) {
  // 1F1B keeps stages − stage micro-batches, GPipe all 8 of them.
  const TaskGraph few = graph_of({.pipeline = 4}, "1f1b"), all = graph_of({.pipeline = 4}, "gpipe");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(pools_of(recordings_of(few, rank)).size(), static_cast<std::size_t>(4 - rank));
    EXPECT_EQ(pools_of(recordings_of(all, rank)).size(), 8u);
  }
  EXPECT_EQ(recordings_of(few, 3).pool.size(), 2u) << "forward and backward of one slot";
}

TEST(Recordings, WithoutPipelineOneSlotServesAllMicroBatches) {
  const TaskGraph graph = graph_of({.tensor = 2}, "1f1b");
  const Recordings recordings = recordings_of(graph, 1);
  EXPECT_EQ(pools_of(recordings).size(), 1u);
  EXPECT_GT(recordings.pool.size(), 2u * 8) << "segments end at every collective";
  EXPECT_EQ(recordings.why_none, "");
}

// Between the first and the last segment of a micro-batch no other one may use its recordings. Those of a pool are used
// in one order only.
void expect_sound(const TaskGraph& graph, int rank) {
  const Recordings recordings = recordings_of(graph, rank);
  std::map<std::int32_t, std::vector<std::int32_t>> of_pool, seen;  // recordings
  for (std::size_t i = 0; i < recordings.pool.size(); ++i)
    of_pool[recordings.pool[i]].push_back(static_cast<std::int32_t>(i));
  std::map<std::int32_t, std::set<std::pair<int, int>>> users;
  for (const Lane& lane : lanes_of(graph)) {
    if (lane.rank != rank || lane.communicator != none) continue;
    for (const TaskId task : lane.tasks) {
      const std::int32_t recording = recordings.recording[task];
      if (recording == none) continue;
      const std::int32_t pool = recordings.pool[recording];
      std::vector<std::int32_t>& used = seen[pool];
      users[pool].insert({graph.work(task).stage, graph.tasks[task].micro_batch});
      EXPECT_EQ(users[pool].size(), 1u) << label_of(graph, task) << " comes between another micro-batch's segments";
      used.push_back(recording);
      if (used.size() < of_pool[pool].size()) continue;
      EXPECT_EQ(used, of_pool[pool]) << "another order than that of the recordings";
      used.clear(), users[pool].clear();
    }
  }
  for (const auto& [pool, used] : seen) EXPECT_TRUE(used.empty()) << "a pool is left in the middle";
}

TEST(Recordings, NeverSharesARecordingBetweenMicroBatchesThatAreAliveAtOnce) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "chimera", "dualpipe-v", "interleaved-1f1b"})
    for (const int tensor : {1, 2})
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        SCOPED_TRACE(std::string(schedule) + " tensor " + std::to_string(tensor) + " recompute " +
                     std::to_string(static_cast<int>(recompute)));
        const std::string name = schedule;
        const bool has_chunks = name == "interleaved-1f1b" || name == "zb-v" || name == "dualpipe-v";
        const TaskGraph graph =
            graph_of({.tensor = tensor, .pipeline = 4, .chunks = has_chunks ? 2 : 1}, schedule, recompute);
        for (int rank = 0; rank < rank_count(graph.step.layout); ++rank) expect_sound(graph, rank);
      }
}

TEST(Recordings, SaysWhyThereIsNone) {
  const Recordings two = recordings_of(graph_of({.data = 2, .zero = 2}, "1f1b"), 0);
  EXPECT_TRUE(two.pool.empty());
  EXPECT_NE(two.why_none.find("layout.zero 2 and 3"), std::string::npos);
  Step sliced = with_layout(tiny_llama(4, false), {.pipeline = 2});
  sliced.schedule = "terapipe";
  sliced.slices = 2;
  EXPECT_NE(recordings_of(graph_of(sliced), 0).why_none.find("slices"), std::string::npos);
}

TEST(Recordings, LeavesOutRoundsOfARing) {
  Step input = with_layout(tiny_llama(4, false), {.context = 2});
  input.layout.context_exchange = ContextExchange::ring;
  const TaskGraph graph = graph_of(input);
  const Recordings recordings = recordings_of(graph, 0);
  int rounds = 0;
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    const Work& work = graph.work(task);
    if (work.kind != WorkKind::segment || graph.tasks[task].rank != 0) continue;
    const bool is_round = graph.operators(work)[work.first_op].kind == OpKind::ring_attention;
    rounds += is_round ? 1 : 0;
    EXPECT_EQ(recordings.recording[task] == none, is_round) << label_of(graph, task);
  }
  EXPECT_GT(rounds, 0);
}

}  // namespace
}  // namespace slipway::test
