// The orders that PyTorch 2.11 makes, as its CSV files (tests/data/pytorch_schedules; generate.py there wrote those with a
// class in their names, PyTorch's and torchtitan's own tests have the others).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "schedules/catalogue/schedule_csv.h"
#include "schedules/check/actions.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"

namespace slipway::test {
namespace {

const std::filesystem::path folder = std::filesystem::path(SLIPWAY_SOURCE_DIR) / "tests/data/pytorch_schedules";

ActionLists read(const std::string& name) {
  std::ifstream in(folder / name);
  EXPECT_TRUE(in) << name;
  return read_schedule_csv(in, name);
}

TEST(PyTorchOrders, AreThoseOfTheCatalogue) {
  struct Pair {
    const char *file, *schedule;
    ScheduleShape shape;
  };
  for (const auto& [file, schedule, shape] :
       {Pair{"GPipe_3p1v_5m.csv", "gpipe", {.pipeline = 3, .micro_batches = 5}},
        Pair{"Interleaved1F1B_4p2v_8m.csv", "interleaved-1f1b", {.pipeline = 4, .chunks = 2, .micro_batches = 8}},
        Pair{"Interleaved1F1B_4p2v_10m.csv", "interleaved-1f1b", {.pipeline = 4, .chunks = 2, .micro_batches = 10}},
        Pair{"Interleaved1F1B_4p2v_6m.csv", "interleaved-1f1b", {.pipeline = 4, .chunks = 2, .micro_batches = 6}},
        Pair{"Interleaved1F1B_4p3v_3m.csv", "interleaved-1f1b", {.pipeline = 4, .chunks = 3, .micro_batches = 3}},
        Pair{"Interleaved1F1B_4p3v_3m_comms.csv", "interleaved-1f1b", {.pipeline = 4, .chunks = 3, .micro_batches = 3}},
        Pair{"LoopedBFS_2p2v_4m.csv", "looped-bfs", {.pipeline = 2, .chunks = 2, .micro_batches = 4}},
        Pair{"LoopedBFS_2p2v_4m_comms.csv", "looped-bfs", {.pipeline = 2, .chunks = 2, .micro_batches = 4}},
        Pair{"LoopedBFS_4p2v_6m.csv", "looped-bfs", {.pipeline = 4, .chunks = 2, .micro_batches = 6}},
        Pair{"ZBVZeroBubble_2p2v_8m.csv", "zb-v", {.pipeline = 2, .chunks = 2, .micro_batches = 8}},
        Pair{"ZBVZeroBubble_4p2v_10m.csv", "zb-v", {.pipeline = 4, .chunks = 2, .micro_batches = 10}},
        Pair{"DualPipeV_2p2v_4m.csv", "dualpipe-v", {.pipeline = 2, .chunks = 2, .micro_batches = 4}},
        Pair{"DualPipeV_2p2v_4m_comms.csv", "dualpipe-v", {.pipeline = 2, .chunks = 2, .micro_batches = 4}},
        Pair{"DualPipeV_4p2v_10m.csv", "dualpipe-v", {.pipeline = 4, .chunks = 2, .micro_batches = 10}},
        Pair{"pytorch_dualpipev_4rank_10mb.csv", "dualpipe-v", {.pipeline = 4, .chunks = 2, .micro_batches = 10}}})
    EXPECT_EQ(read(file), schedule_named(schedule)->actions(shape)) << file;
}

// PyTorch 2.11 prints the forwards of the last rank one micro-batch too late: its counter begins at 0 and is raised before
// each forward (Schedule1F1B._get_pipeline_order). What it runs is right, and the other rows are printed right.
TEST(PyTorchOrders, OfOneForwardOneBackwardAreOursButForTheLastRowThatPyTorchPrintsWrong) {
  for (const int m : {4, 8}) {
    const ActionLists printed = read("1F1B_4p1v_" + std::to_string(m) + "m.csv");
    const ScheduleShape shape{.pipeline = 4, .micro_batches = m};
    ActionLists ours = schedule_named("1f1b")->actions(shape);
    for (std::size_t rank = 0; rank + 1 < ours.size(); ++rank) EXPECT_EQ(printed[rank], ours[rank]);
    for (Action& action : ours.back()) action.micro_batch += action.pass == Pass::forward ? 1 : 0;
    EXPECT_EQ(printed.back(), ours.back());
    const auto defects = check_actions(printed, shape);
    ASSERT_EQ(defects.size(), 1U);
    EXPECT_NE(defects.front().message.find("3F" + std::to_string(m) + " has a micro-batch that is not among"),
              std::string::npos)
        << defects.front().message;
  }
}

ScheduleShape shape_of(const ActionLists& lists) {
  std::set<int> stages, micro_batches;
  for (const auto& list : lists)
    for (const Action& action : list) stages.insert(action.stage), micro_batches.insert(action.micro_batch);
  const int pipeline = static_cast<int>(lists.size());
  return {.pipeline = pipeline,
          .chunks = static_cast<int>(stages.size()) / pipeline,
          .micro_batches = static_cast<int>(micro_batches.size())};
}

TEST(PyTorchOrders, AreCompleteStepsThatLowerToSoundGraphs) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".csv" || name.starts_with("1F1B")) continue;
    ++files;
    const ActionLists lists = read(name);
    const ScheduleShape shape = shape_of(lists);
    const auto defects = check_actions(lists, shape);
    ASSERT_TRUE(defects.empty()) << name << "\n" << describe(lists, defects.front());
    Step step;
    step.model =
        gpt("small",
            {.layers = 12, .hidden = 64, .ffn = 256, .heads = 4, .vocab = 256, .max_positions = 64, .sequence = 64});
    step.layout = {
        .tensor = 2, .pipeline = shape.pipeline, .chunks = shape.chunks, .data = 2, .sequence_parallel = true};
    step.global_batch = 2 * shape.micro_batches;
    step.actions = std::make_shared<const ActionLists>(lists);
    TaskGraph graph = lower(step);
    set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
    const auto violations = check_graph(graph);
    EXPECT_TRUE(violations.empty()) << name << "\n" << describe(graph, violations.front());
  }
  EXPECT_GE(files, 19);
}

}  // namespace
}  // namespace slipway::test
