// Segments that are replayed from recordings train like segments that run operator by operator, to the last bit.
#include "exec/lanes/segment_replay.h"

#include <gtest/gtest.h>

#include "tests/support/layout_runs.h"
#include "tests/support/operation_recorder.h"

namespace slipway::test {
namespace {

constexpr int run_steps = 5;  // two run operator by operator, one records, two only replay

struct Replayed {
  Trained trained;
  int recorded = 0, replayed = 0;
};

// Gradients are those of the last step, which has only replayed.
Replayed run_of(const Step& input, bool replays) {
  at::set_num_threads(1);
  const Bundle bundle = tiny_bundle(input);
  OperationRecorder recorder;
  VirtualRanks ranks(bundle, at::kCPU);
  if (replays) ranks.replay_segments(recorder);
  static int folders = 0;
  const std::string folder = temporary_folder().path("replay" + std::to_string(folders++));
  ranks.dump_gradients_of_step(run_steps - 1, folder);
  std::vector<double> losses;
  for (int step = 0; step < run_steps; ++step) {
    ranks.run_step(step);
    losses.push_back(ranks.take_loss(step));
  }
  return {trained(std::move(losses), folder, rank_count(input.layout)), recorder.recorded, recorder.replayed};
}

int recording_count(const TaskGraph& graph) {
  std::size_t count = 0;
  for (int rank = 0; rank < rank_count(graph.step.layout); ++rank) count += recordings_of(graph, rank).pool.size();
  return static_cast<int>(count);
}

int replays_per_step(const TaskGraph& graph) {
  int count = 0;
  for (int rank = 0; rank < rank_count(graph.step.layout); ++rank)
    for (const std::int32_t recording : recordings_of(graph, rank).recording) count += recording != none ? 1 : 0;
  return count;
}

void expect_same_bits(Step input) {
  SCOPED_TRACE(describe_layout(input));
  const Replayed plain = run_of(input, false), replayed = run_of(input, true);
  EXPECT_EQ(replayed.trained.losses, plain.trained.losses);
  ASSERT_EQ(replayed.trained.gradients.size(), plain.trained.gradients.size());
  for (const auto& [name, gradient] : plain.trained.gradients)
    EXPECT_EQ(replayed.trained.gradients.at(name).values, gradient.values) << name;
  const TaskGraph graph = tiny_bundle(input).graph;
  EXPECT_GT(replayed.recorded, 0);
  EXPECT_EQ(replayed.recorded, recording_count(graph)) << "each once";
  EXPECT_EQ(replayed.replayed, replays_per_step(graph) * (run_steps - SegmentReplay::eager_steps));
}

Step input_of(const Degrees& degrees, const std::string& schedule = "1f1b") {
  Step input = with_layout(tiny_llama(4, true), degrees);
  input.schedule = schedule;
  input.clip_norm = 0.5;
  return input;
}

TEST(SegmentReplay, TrainsLikeOperatorByOperatorOnOneRank) { expect_same_bits(input_of({})); }

TEST(SegmentReplay, TrainsLikeOperatorByOperatorInEverySchedule) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "chimera"})
    expect_same_bits(input_of({.pipeline = 2}, schedule));
  for (const char* schedule : {"interleaved-1f1b", "zb-v", "dualpipe-v"})
    expect_same_bits(input_of({.pipeline = 2, .chunks = 2}, schedule));
}

TEST(SegmentReplay, TrainsLikeOperatorByOperatorInOtherLayouts) {
  expect_same_bits(input_of({.tensor = 2}));
  expect_same_bits(input_of({.tensor = 2, .pipeline = 2, .sequence_parallel = true}));
  expect_same_bits(input_of({.data = 2, .zero = 1}));
  expect_same_bits(input_of({.context = 2}));
  Step ring = input_of({.context = 2});
  ring.layout.context_exchange = ContextExchange::ring;
  expect_same_bits(ring);
}

TEST(SegmentReplay, TrainsLikeOperatorByOperatorWithRecomputation) {
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    Step input = input_of({.pipeline = 2});
    input.recompute = recompute;
    expect_same_bits(input);
  }
}

TEST(SegmentReplay, TrainsLikeOperatorByOperatorOtherModels) {
  Step gpt = with_layout(tiny_gpt(4), {.pipeline = 2}), bert = with_layout(tiny_bert(4), {.tensor = 2});
  expect_same_bits(gpt);
  expect_same_bits(bert);
  Step narrow = input_of({.pipeline = 2});
  narrow.dtype = Dtype::bfloat16;  // float32 gradients and masters
  narrow.gradient_dtype = Dtype::float32;
  expect_same_bits(narrow);
}

TEST(SegmentReplay, RunsAsItIsWhereNothingCanBeRecorded) {
  Step input = input_of({.data = 2, .zero = 3});
  const Replayed plain = run_of(input, false), asked = run_of(input, true);
  EXPECT_EQ(asked.recorded, 0);
  EXPECT_EQ(asked.trained.losses, plain.trained.losses);
}

// The first task of one rank's plan, driven by hand.
class ByHand : public testing::Test {
 protected:
  ByHand() : bundle_(tiny_bundle(input_of({}))), replay_(bundle_.graph, 0, recorder_) {
    for (TaskId task = 0; task < bundle_.graph.tasks.size(); ++task) {
      if (replay_.recordings().recording[task] == 0) first_ = task;
      if (replay_.recordings().recording[task] == 1) second_ = task;
    }
  }
  at::Tensor run(TaskId task, int step, const at::Tensor& x) {
    return replay_.run(task, step, {x}, [this](const SegmentReplay::Tensors& in) {
      ++computed_;
      return SegmentReplay::Tensors{in[0] * 2 + 1};
    })[0];
  }
  Bundle bundle_;
  OperationRecorder recorder_;
  SegmentReplay replay_;
  TaskId first_ = 0, second_ = 0;
  int computed_ = 0;
};

TEST_F(ByHand, TheFirstStepsComputeThenOneRecordsThenNobodyComputes) {
  for (int step = 0; step < 6; ++step) {
    const at::Tensor x = at::full({3}, step, at::kDouble);
    EXPECT_TRUE(at::equal(run(first_, step, x), x * 2 + 1)) << step;
    EXPECT_EQ(computed_, std::min(step + 1, SegmentReplay::eager_steps + 1));
  }
  EXPECT_EQ(recorder_.recorded, 1);
  EXPECT_EQ(recorder_.replayed, 4);
}

TEST_F(ByHand, OutputsAreTheCallersAndInputsMayGo) {
  at::Tensor x = at::ones({3}, at::kDouble);
  const at::Tensor early = run(first_, 2, x);
  x.fill_(5);
  const at::Tensor late = run(first_, 3, x);
  EXPECT_EQ(early[0].item<double>(), 3) << "a later replay wrote over it";
  EXPECT_EQ(late[0].item<double>(), 11);
}

TEST_F(ByHand, AnotherShapeIsRefused) {
  run(first_, 2, at::ones({3}, at::kDouble));
  EXPECT_THROW(run(first_, 3, at::ones({7}, at::kDouble)), std::runtime_error);
  EXPECT_EQ(recorder_.recorded, 1);
}

TEST_F(ByHand, WorkThatLooksAtANumberIsNotRecorded) {
  const auto looking = [](const SegmentReplay::Tensors& in) {
    return SegmentReplay::Tensors{in[0].sum().item<double>() > 0 ? in[0] * 2 : in[0]};
  };
  EXPECT_THROW(replay_.run(first_, 2, {at::ones({3})}, looking), std::runtime_error);
}

// The recorder itself must find errors; otherwise equal losses prove nothing.
TEST_F(ByHand, TheStandInSpoilsWhatAnEarlierReplayHasLeft) {
  at::Tensor kept;
  const auto keeps = [&](const SegmentReplay::Tensors& in) {
    kept = in[0] * 2;
    return SegmentReplay::Tensors{kept + 1};
  };
  replay_.run(first_, 2, {at::ones({3})}, keeps);
  EXPECT_EQ(kept[0].item<double>(), 2);
  const auto reads = [&](const SegmentReplay::Tensors& in) { return SegmentReplay::Tensors{in[0] + kept}; };
  EXPECT_EQ(replay_.run(second_, 2, {at::ones({3})}, reads)[0][0].item<double>(), 3)
      << "as a backward reads its forward's";
  replay_.run(first_, 3, {at::full({3}, 4.0)}, keeps);
  EXPECT_EQ(replay_.run(second_, 3, {at::ones({3})}, reads)[0][0].item<double>(), 9);
  EXPECT_THROW(replay_.run(second_, 4, {at::ones({3})}, reads), std::logic_error) << "another order";
}

}  // namespace
}  // namespace slipway::test
