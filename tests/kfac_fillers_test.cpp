// K-FAC's work in the bubbles: every dependency of the PipeFisher rule, read off the filled timeline.
#include <gmock/gmock.h>

#include <map>

#include "models/kfac.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/kfac_fillers.h"
#include "schedules/graph/replay.h"
#include "tests/hand_graph.h"

namespace slipway {
namespace {

struct Filled {
  TaskGraph step;
  Durations durations;
  Fillers fillers;
  Filling filling;
  Timeline timeline;
};

Filled filled(const char* schedule, int data, Recompute recompute = Recompute::none) {
  Filled f;
  LoweringInput input;
  input.model = bert("small", {.layers = 4,
                               .hidden = 64,
                               .ffn = 256,
                               .heads = 4,
                               .vocab = 256,
                               .max_positions = 64,
                               .token_types = 2,
                               .sequence = 64});
  input.layout = {.pipeline = 2, .data = data};
  input.schedule = schedule;
  input.shape = {.micro_batch = 2, .sequence = 64, .dtype = Dtype::float32};
  input.recompute = recompute;
  input.global_batch = 8 * data;
  input.kfac = true;
  Cluster cluster = hand_cluster(1, 2 * data, 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e12;
  machine.memory_bandwidth = 1e12;
  machine.factorization_half = 100;
  f.step = lower(input);
  f.durations = durations_of(f.step, cluster);
  set_global_order(f.step, f.durations);
  f.fillers = kfac_fillers(f.step, cluster);
  f.filling = fill(f.step, f.durations, f.fillers);
  f.timeline = replay(f.filling.graph, f.filling.durations);
  return f;
}

// Label → (start, end) on one rank, of the window's first step and all fillers.
struct Span {
  double start, end;
};
std::map<std::string, Span> spans(const Filled& f, int rank) {
  std::map<std::string, Span> found;
  for (TaskId id = 0; id < f.filling.graph.tasks.size(); ++id) {
    if (f.filling.graph.tasks[id].step > 0) continue;
    for (const std::int32_t member : members_of(f.filling.graph, id))
      if (member == rank) found[label_of(f.filling.graph, id)] = {f.timeline.start[id], f.timeline.end[id]};
  }
  return found;
}

class KfacFillers : public testing::TestWithParam<std::tuple<const char*, int, Recompute>> {
 protected:
  Filled f = filled(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()));
  bool recomputes() const { return std::get<2>(GetParam()) == Recompute::full; }
  int ranks() const { return 2 * std::get<1>(GetParam()); }
  bool has_replicas() const { return ranks() > 2 || std::get<0>(GetParam()) == std::string("chimera"); }
};

TEST_P(KfacFillers, FilledGraphsAreSound) {
  for (const Violation& v : check_graph(f.step)) ADD_FAILURE() << describe(f.step, v);
  for (const Violation& v : check_graph(f.filling.graph)) ADD_FAILURE() << describe(f.filling.graph, v);
  for (const Violation& v : check_filling(f.step, f.fillers, f.filling))
    ADD_FAILURE() << describe(f.filling.graph, v);
}

TEST_P(KfacFillers, CurvatureAComesAfterItsForwardAndCurvatureBAfterItsBackward) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto of_rank = spans(f, rank);
    int seen = 0;
    for (const auto& [label, span] : of_rank) {
      const auto dot = label.find_last_of('.');
      if (label[dot + 1] != 'A' && label[dot + 1] != 'B') continue;
      const std::string stage = label.substr(0, label.find('.')), micro_batch = label.substr(dot + 2);
      const std::string block = label.substr(label.find('.'), label.find('.', 2) - label.find('.'));
      ++seen;
      double after = 0;  // the end of the last matching segment that the step has
      const char pass = label[dot + 1] == 'B' ? 'B' : recomputes() ? 'R' : 'F';
      for (const auto& [other, at] : of_rank)
        if (other == stage + pass + micro_batch || other == stage + pass + micro_batch + block)
          after = std::max(after, at.end);
      EXPECT_GT(after, 0) << label;
      EXPECT_GE(span.start, after) << label;
    }
    EXPECT_EQ(seen, 2 * 6 * 2 * 4);  // blocks, Linears, A and B, micro-batches
  }
}

TEST_P(KfacFillers, InversionsComeAfterAllCurvatureOfBothKindsAndItsReduction) {
  std::map<std::string, int> inverted;
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto of_rank = spans(f, rank);
    double all = 0;
    for (const char kind : {'A', 'B'}) {
      double last = 0;
      for (const auto& [label, span] : of_rank)
        if (label[label.find_last_of('.') + 1] == kind) last = std::max(last, span.end);
      int reductions = 0;
      for (const auto& [label, span] : of_rank) {
        if (!label.ends_with(std::string(".ar_") + kind)) continue;
        EXPECT_GE(span.start, last) << label;
        last = span.end;
        ++reductions;
      }
      EXPECT_EQ(reductions, has_replicas() ? 1 : 0);
      all = std::max(all, last);
    }
    for (const auto& [label, span] : of_rank) {
      if (!label.ends_with(".invA") && !label.ends_with(".invB")) continue;
      EXPECT_GE(span.start, all) << label;
      ++inverted[label];
    }
  }
  // Replicas share the inversions of a stage: each factor is inverted by one of them.
  EXPECT_EQ(inverted.size(), 2U * 4 * 6);
  for (const auto& [label, times] : inverted) EXPECT_EQ(times, 1) << label;
}

TEST_P(KfacFillers, OneReplicaInvertsBothFactorsOfALinear) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto of_rank = spans(f, rank);
    int linears = 0;
    for (const auto& [label, span] : of_rank) {
      if (!label.ends_with(".invA")) continue;
      EXPECT_EQ(of_rank.count(label.substr(0, label.size() - 1) + "B"), 1) << label;
      ++linears;
    }
    EXPECT_GT(linears, 0) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, KfacFillers,
                         testing::Values(std::tuple("gpipe", 1, Recompute::none),
                                         std::tuple("1f1b", 1, Recompute::none),
                                         std::tuple("1f1b", 2, Recompute::none),
                                         std::tuple("chimera", 1, Recompute::none),
                                         std::tuple("chimera", 2, Recompute::none),
                                         std::tuple("1f1b", 1, Recompute::full)));

TEST(KfacStep, PreconditionsEveryStageBeforeItsUpdateAndReplicasGatherWhatTheyShared) {
  const Filled f = filled("1f1b", 2);
  const auto of_rank = spans(f, 0);
  EXPECT_GE(of_rank.at("0.ag_precondition").start, of_rank.at("0.precondition").end);
  EXPECT_GE(of_rank.at("0.opt").start, of_rank.at("0.ag_precondition").end);
}

// Osawa et al. 2022: Chimera's two directions count as two replicas; a rank has twice the stages and half of each.
TEST(KfacStep, PreconditionsInChimeraAsLongAsInOnePipeline) {
  const auto seconds = [](const Filled& f) {
    double sum = 0;
    for (TaskId id = 0; id < f.step.tasks.size(); ++id)
      if (f.step.tasks[id].rank == 0 && label_of(f.step, id).ends_with(".precondition")) sum += f.durations[id];
    return sum;
  };
  const double one_way = seconds(filled("1f1b", 1));
  EXPECT_GT(one_way, 0);
  EXPECT_NEAR(seconds(filled("chimera", 1)), one_way, 1e-9 * one_way);
}

TEST(KfacStep, KeepsFactorsAndInversesInMemoryAndNoMomentsOfTheMatrices) {
  const Filled with = filled("1f1b", 1);
  const Block block = with.step.model.runs[1].block;
  LoweringInput plain;
  plain.model = with.step.model;
  plain.layout = with.step.layout;
  plain.shape = with.step.shape;
  EXPECT_DOUBLE_EQ(with.step.static_bytes[0].optimizer - static_bytes_of(plain)[0].optimizer,
                   2 * (2 * kfac_factor_bytes(block, Dtype::float32) - 8.0 * (4 * 64 * 64 + 2 * 64 * 256)));
}

}  // namespace
}  // namespace slipway
