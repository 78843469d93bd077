// K-FAC's work in the bubbles: every dependency of the PipeFisher rule, read from the filled timeline.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "models/machine/priced_cluster.h"
#include "models/training/kfac.h"
#include "schedules/fill/kfac.h"
#include "schedules/graph/bubble_work.h"
#include "schedules/lower/kfac_shares.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

struct Filled {
  TaskGraph step;
  Durations durations;
  BubbleWork bubble_work;
  Filling filling;
  Timeline timeline;
};

Filled filled(const char* schedule, int data, Recompute recompute = Recompute::none) {
  Filled f;
  Step input;
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
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.recompute = recompute;
  input.global_batch = 8 * data;
  input.optimizer.name = "kfac";
  PricedCluster cluster = hand_cluster(1, 2 * data, 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e12;
  machine.memory_bandwidth = 1e12;
  machine.factorization_half = 100;
  f.step = lower(input);
  f.durations = durations_of(f.step, cluster);
  set_global_order(f.step, f.durations);
  f.bubble_work = kfac_bubble_work(f.step, cluster);
  f.filling = fill(f.step, f.durations, f.bubble_work);
  f.timeline = replay(f.filling.graph, f.filling.durations);
  return f;
}

// Label → (start, end) on one rank, for the window's first step and all bubble work.
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

class KfacBubbleWork : public testing::TestWithParam<std::tuple<const char*, int, Recompute>> {
 protected:
  Filled f = filled(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()));
  bool recomputes() const { return std::get<2>(GetParam()) == Recompute::full; }
  int ranks() const { return 2 * std::get<1>(GetParam()); }
  bool has_replicas() const { return ranks() > 2 || std::get<0>(GetParam()) == std::string("chimera"); }
};

TEST_P(KfacBubbleWork, FilledGraphsAreSound) {
  for (const Violation& v : check_graph(f.step)) ADD_FAILURE() << describe(f.step, v);
  for (const Violation& v : check_graph(f.filling.graph)) ADD_FAILURE() << describe(f.filling.graph, v);
  for (const Violation& v : check_filling(f.step, f.bubble_work, f.filling))
    ADD_FAILURE() << describe(f.filling.graph, v);
}

TEST_P(KfacBubbleWork, CurvatureAComesAfterItsForwardAndCurvatureBAfterItsBackward) {
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

TEST_P(KfacBubbleWork, InversionsComeAfterAllCurvatureOfBothKindsAndItsReduction) {
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

TEST_P(KfacBubbleWork, OneReplicaInvertsBothFactorsOfALinear) {
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

INSTANTIATE_TEST_SUITE_P(Of, KfacBubbleWork,
                         testing::Values(std::tuple("gpipe", 1, Recompute::none),
                                         std::tuple("1f1b", 1, Recompute::none), std::tuple("1f1b", 2, Recompute::none),
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

double optimizer_without_kfac(const Filled& with) {
  Step plain;
  plain.model = with.step.step.model;
  plain.layout = with.step.step.layout;
  plain.micro_batch = with.step.step.micro_batch;
  plain.dtype = with.step.step.dtype;
  return static_bytes_of(plain)[0].optimizer;
}
// A stage's two blocks.
constexpr double moments = 2 * 8.0 * (4 * 64 * 64 + 2 * 64 * 256);
double factors(const Filled& f) { return 2 * kfac_factor_bytes(f.step.step.model->runs[1].block, Dtype::float32); }

TEST(KfacStep, HoldsInversesThroughoutAndNoMomentsOfTheMatrices) {
  const Filled with = filled("1f1b", 1);
  EXPECT_DOUBLE_EQ(with.step.static_bytes[0].optimizer, optimizer_without_kfac(with) + factors(with) - moments);
}

TEST(KfacStep, HoldsOnAReplicaTheInversesThatItMakes) {
  const Filled with = filled("1f1b", 4);
  double held = 0;
  for (int rank = 0; rank < 4; ++rank) {
    double inverted = 0;
    for (const BubbleTask& item : with.bubble_work.items) {
      const Work& work = with.bubble_work.works[item.task.work];
      if (item.task.communicator != none || item.task.rank != rank) continue;
      const KfacWork what = kfac_work_of(with.step, work);
      if (what.stage != KfacStage::inversion) continue;
      const KfacLinear linear = kfac_linears(with.step.step.model->runs[1].block)[what.linear];
      const std::int64_t side = what.of_input ? linear.in : linear.out;
      inverted += 4.0 * static_cast<double>(side * side);
    }
    const double own = with.step.static_bytes[rank].optimizer;
    EXPECT_DOUBLE_EQ(own, optimizer_without_kfac(with) + inverted - moments) << rank;
    held += inverted;
  }
  EXPECT_DOUBLE_EQ(held, factors(with));
}

TEST(KfacStep, ReplicasOnUnlikeMachinesShareOutAlike) {
  Filled f = filled("1f1b", 2);
  PricedCluster cluster = hand_cluster(1, 4, 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e12;
  machine.memory_bandwidth = 1e12;
  cluster.groups.push_back(cluster.groups[0]);
  for (NodeGroup& group : cluster.groups) group.gpus_per_node = 1;
  cluster.groups[0].nodes = 1;
  cluster.groups[1].nodes = 3;
  cluster.groups[1].machine.launch_overhead = 1;  // each inversion takes as long there
  cluster.fabrics[0].groups = {0, 1};
  std::map<std::string, int> times;
  const BubbleWork bubble_work = kfac_bubble_work(f.step, cluster);
  for (const BubbleTask& item : bubble_work.items) {
    const std::string& suffix = bubble_work.works[item.task.work].suffix;
    if (suffix.find(".inv") != std::string::npos) ++times[suffix];
  }
  EXPECT_EQ(times.size(), 2U * 4 * 6);
  for (const auto& [suffix, count] : times) EXPECT_EQ(count, 1) << suffix;
}

TEST(KfacStep, HoldsSumsOfAllFactorsFromTheFirstCurvatureToTheLastInversion) {
  const Filled f = filled("1f1b", 1);
  double sums = 0;
  for (BufferId id = 0; id < f.filling.graph.buffers.size(); ++id) {
    const Buffer& buffer = f.filling.graph.buffers[id];
    if (buffer.kind != BufferKind::kept || buffer.rank != 0) continue;
    int inversions = 0;
    for (TaskId task = 0; task < f.filling.graph.tasks.size(); ++task) {
      const auto read = f.filling.graph.inputs[task];
      if (std::count(read.begin(), read.end(), id) == 0) continue;
      if (label_of(f.filling.graph, task).find(".inv") != std::string::npos) ++inversions;
    }
    if (inversions == 0) continue;
    EXPECT_EQ(inversions, 2 * 2 * 6);
    const auto first = static_cast<TaskId>(buffer.writer);
    const char kind = label_of(f.filling.graph, first)[label_of(f.filling.graph, first).find_last_of('.') + 1];
    for (const auto& [label, span] : spans(f, 0)) {
      if (label[label.find_last_of('.') + 1] != kind) continue;
      EXPECT_GE(span.start, f.timeline.start[first]) << label;
    }
    sums += buffer.bytes;
  }
  EXPECT_DOUBLE_EQ(sums, factors(f));
}

TEST(KfacStep, AnInversionNeedsAsMuchAgainOnAGpuAndNothingOnAProcessor) {
  Machine machine;
  EXPECT_EQ(kfac_inversion_bytes(machine, 768, Dtype::bfloat16), 4.0 * 768 * 768);
  machine.cores = 2;
  EXPECT_EQ(kfac_inversion_bytes(machine, 768, Dtype::bfloat16), 0);
}

}  // namespace
}  // namespace slipway::test
