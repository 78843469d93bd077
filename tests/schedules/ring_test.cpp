// Attention around a ring of context ranks: its operator cost against that of gathered attention, its graph against the
// invariants, its times against closed forms in the list replay and in the simulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/machine/priced_cluster.h"
#include "models/machine/ring.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

Model small_model(bool causal, std::int64_t layers = 2) {
  const std::int64_t sequence = 64;
  if (causal)
    return llama(
        "small",
        {.layers = layers, .hidden = 64, .ffn = 128, .heads = 8, .kv_heads = 4, .vocab = 256, .sequence = sequence});
  return bert("small-bert", {.layers = layers,
                             .hidden = 64,
                             .ffn = 128,
                             .heads = 8,
                             .vocab = 256,
                             .max_positions = sequence,
                             .token_types = 2,
                             .sequence = sequence});
}

Step ring_of(int context, bool causal = true) {
  Step input;
  input.model = small_model(causal);
  input.layout.context = context;
  input.layout.context_exchange = ContextExchange::ring;
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.global_batch = 2;
  return input;
}

struct Sums {
  double forward = 0, backward = 0, saved = 0, sent_forward = 0, sent_backward = 0;
};

Sums sums_of_layer(Step input, ContextExchange exchange) {
  input.layout.context_exchange = exchange;
  Sums sums;
  for (const Operator& op : operators_of(input.model, 1, 2, work_shape(input))) {
    const int members = input.layout.context;
    if (op.kind == OpKind::communicate) {
      sums.sent_forward += ring_traffic(op.forward, members, op.message_bytes).bytes_per_link;
      sums.sent_backward += op.backward_messages * ring_traffic(op.backward, members, op.message_bytes).bytes_per_link;
    }
    if (!is_attention(op.kind)) continue;
    sums.forward += op.forward_flops;
    sums.backward += op.input_grad_flops;
    sums.saved += op.saved_bytes;
  }
  return sums;
}

// The products are equal. Forward bytes are equal; backward has keys and values beside the gradients.
TEST(RingAttention, HasTheFlopsOfGatheredAttentionAndHalfAsManyBytesAgain) {
  for (const bool causal : {false, true}) {
    for (const int context : {2, 4, 8}) {
      const Sums ring = sums_of_layer(ring_of(context, causal), ContextExchange::ring);
      const Sums gathered = sums_of_layer(ring_of(context, causal), ContextExchange::all_gather);
      EXPECT_DOUBLE_EQ(ring.forward, gathered.forward);
      EXPECT_DOUBLE_EQ(ring.backward, gathered.backward);
      EXPECT_DOUBLE_EQ(ring.saved, gathered.saved);
      EXPECT_DOUBLE_EQ(ring.sent_forward, gathered.sent_forward);
      EXPECT_DOUBLE_EQ(ring.sent_backward, 2 * gathered.sent_backward);
    }
  }
}

// Segments take 1 s, a round `round_s`, backward twice as long; a shift `shift_s`; everything else 0.
Durations durations_of(const TaskGraph& graph, double round_s, double shift_s) {
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.work(id);
    if (work.collective == Collective::shift) durations[id] = shift_s;
    if (work.kind != WorkKind::segment) continue;
    const bool forward = work.pass == Pass::forward || work.pass == Pass::recompute;
    const Operator& op = graph.operators(work)[work.first_op];
    durations[id] = (op.kind == OpKind::ring_attention ? round_s : 1) * (forward ? 1 : 2);
  }
  return durations;
}

TaskGraph ordered(const Step& input, double round_s, double shift_s) {
  TaskGraph graph = lower(input);
  set_global_order(graph, durations_of(graph, round_s, shift_s));
  return graph;
}

TEST(RingAttention, LowersToASoundGraphInEveryLayout) {
  for (const bool causal : {false, true})
    for (const int context : {2, 4})
      for (const int tensor : {1, 2})
        for (const int zero : {0, 1, 2, 3})
          for (const char* schedule : {"1f1b", "zb-h1"})
            for (const Recompute recompute : {Recompute::none, Recompute::full}) {
              Step input = ring_of(context, causal);
              input.layout.tensor = tensor, input.layout.sequence_parallel = tensor > 1;
              input.layout.pipeline = 2, input.layout.zero = zero;
              input.schedule = schedule, input.recompute = recompute;
              input.global_batch = 8;
              for (const double shift_s : {0.1, 5.0}) {
                const TaskGraph graph = ordered(input, 1, shift_s);
                for (const Violation& violation : check_graph(graph)) ADD_FAILURE() << describe(graph, violation);
              }
            }
}

// Times by label, on rank 0.
std::map<std::string, std::pair<double, double>> times_of(const TaskGraph& graph, const Timeline& timeline) {
  std::map<std::string, std::pair<double, double>> times;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const auto members = members_of(graph, id);
    if (std::find(members.begin(), members.end(), 0) != members.end())
      times[label_of(graph, id)] = {timeline.start[id], timeline.end[id]};
  }
  return times;
}

std::vector<Timeline> timelines(const TaskGraph& graph, double round_s, double shift_s) {
  const Durations durations = durations_of(graph, round_s, shift_s);
  SimulationOptions options;
  options.steps = 1;
  options.collectives = CollectiveFidelity::closed_form;
  const PricedCluster cluster = hand_cluster(graph.step.layout.context, 1, 1e9, 0);
  return {replay(graph, durations), simulate(graph, cluster, durations, options).timeline};
}

// c rounds of a, c−1 shifts of x. Forward the first shift starts with the first round: c·a where shifts are hidden,
// else all shifts and the last round. Backward the first shift runs beside the 2 s before the rounds. Then each round
// of 2a has a shift of keys and values and one of gradients beside it.
TEST(RingAttention, HidesShiftsBehindLongerRoundsAndShowsThemBehindShorterOnes) {
  for (const int context : {2, 4, 8}) {
    for (const auto& [round_s, shift_s] : {std::pair{1.0, 0.25}, {1.0, 1.0}, {1.0, 1.75}, {0.5, 3.0}}) {
      const TaskGraph graph = ordered(ring_of(context), round_s, shift_s);
      for (const Timeline& timeline : timelines(graph, round_s, shift_s)) {
        auto times = times_of(graph, timeline);
        const std::string last = std::to_string(context - 1);
        const double hidden = context * round_s, shown = (context - 1) * shift_s + round_s;
        for (const std::string layer : {"0F0.L0.", "0F0.L1."})
          EXPECT_NEAR(times.at(layer + "attn" + last).second - times.at(layer + "attn0").first, std::max(hidden, shown),
                      1e-9)
              << context << " ranks, shift of " << shift_s << " s";
        if (shift_s > round_s) continue;
        EXPECT_NEAR(times.at("0B0.L0.attn0").second - times.at("0B0.L0.attn1").first, 2 * hidden, 1e-9);
        EXPECT_LE(times.at("0B0.L0.ring_dkv" + last).second, times.at("0B0.L0.attn0").second + 1e-9);
        EXPECT_LE(times.at("0B0.L0.ring_kv1").second, times.at("0B0.L0.attn1").first + 1e-9);
      }
    }
  }
}

// Two ranks, slow shifts of x: keys and values beside the 2 s before, attn1 of 2a, its gradients home beside attn0.
TEST(RingAttention, OfTwoRanksTakesItsClosedFormBackwardBehindSlowShifts) {
  constexpr double round_s = 0.5, x = 5;
  const TaskGraph graph = ordered(ring_of(2), round_s, x);
  for (const Timeline& timeline : timelines(graph, round_s, x)) {
    auto times = times_of(graph, timeline);
    const double begin = times.at("0B0.L0.ring_kv1").first;
    EXPECT_NEAR(times.at("0B0.L0.attn1").first, begin + x, 1e-9);
    EXPECT_NEAR(times.at("0B0.L0.ring_dkv1").second, begin + x + 2 * round_s + x, 1e-9);
  }
}

// However fast the links, a rank holds its own keys and values, the block in use and the one that arrives.
TEST(RingAttention, HoldsTwoForeignBlocksAtMost) {
  const TaskGraph graph = ordered(ring_of(8), 1, 1e-3);
  const Timeline timeline = replay(graph, durations_of(graph, 1, 1e-3));
  std::vector<double> until(graph.buffers.size(), 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const BufferId in : graph.inputs[id]) until[in] = std::max(until[in], timeline.end[id]);
  std::vector<std::pair<double, double>> blocks;  // of rank 0: received, forgotten
  for (BufferId b = 0; b < graph.buffers.size(); ++b) {
    const Buffer& buffer = graph.buffers[b];
    const bool is_block = buffer.rank == 0 && buffer.kind == BufferKind::value && buffer.wire == wire_kv;
    if (!is_block || buffer.writer == none) continue;
    const auto writer = static_cast<TaskId>(buffer.writer);
    if (graph.tasks[writer].kind == TaskKind::collective) blocks.emplace_back(timeline.start[writer], until[b]);
  }
  ASSERT_EQ(blocks.size(), 2u * 2 * 7);  // layers × passes × shifts
  for (const auto& [from, to] : blocks)
    EXPECT_LE(std::count_if(blocks.begin(), blocks.end(),
                            [at = from](const auto& block) { return block.first <= at && at < block.second; }),
              2);
}

// A shift is one message to the next rank, whatever algorithm the group's other collectives use.
TEST(RingAttention, ShiftTakesOneLatencyAndItsBytesOverOneLink) {
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::shift, 8, 1e6, 1e-5, 1e9, 1e9), 1e-5 + 1e-3);
  HandGraph hand(4);
  hand.collective(Collective::shift, {0, 1, 2, 3}, 1e6);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  options.collectives = CollectiveFidelity::flows;
  EXPECT_NEAR(simulate(hand.graph, hand_cluster(4, 1, 1e9, 1e-5), hand.durations, options).timeline.makespan_s,
              1e-5 + 1e-3, 1e-9);
}

// dkv1 is attn1's gradient alone. Each later message has this rank's own gradient added: two are read, one is written.
// The same holds at home for the gradient of attn0.
TEST(RingAttention, AddsUpGradientsOnTheirWayAtTheMemorysBandwidth) {
  constexpr int context = 4;
  constexpr double bandwidth = 1e9, latency = 1e-5, memory = 1e10, launch = 3e-6;
  Step input = ring_of(context);
  input.global_batch = 4;  // gradients are reduced beside the second micro-batch only
  PricedCluster cluster = hand_cluster(1, context, bandwidth, latency);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e12;
  machine.memory_bandwidth = memory, machine.launch_overhead = launch;
  TaskGraph graph = lower(input);
  const Durations durations = order_and_price(graph, cluster);
  SimulationOptions options;
  options.steps = 1;
  options.collectives = CollectiveFidelity::flows;
  const double bytes = 2.0 * 64 / context * 2 * 4 * 8 * 4;  // sequences, tokens; keys and values, heads, numbers, bytes
  for (const Timeline& timeline : {replay(graph, durations), simulate(graph, cluster, durations, options).timeline}) {
    auto times = times_of(graph, timeline);
    const auto seconds = [&](const std::string& label) { return times.at(label).second - times.at(label).first; };
    for (const char* plain : {"0F0.L0.ring_kv1", "0B0.L0.ring_kv3", "0B0.L0.ring_dkv1"})
      EXPECT_NEAR(seconds(plain), latency + bytes / bandwidth, 1e-12) << plain;
    for (const char* sum : {"0B0.L0.ring_dkv2", "0B0.L0.ring_dkv3"})
      EXPECT_NEAR(seconds(sum), launch + 3 * bytes / memory + latency + bytes / bandwidth, 1e-12) << sum;
  }
  const auto backward_bytes_of_qkv = [&](ContextExchange exchange) {
    Step other = input;
    other.layout.context_exchange = exchange;
    for (const Operator& op : operators_of(other.model, 1, 2, work_shape(other)))
      if (op.kind == OpKind::qkv) return op.elementwise_backward_bytes;
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(backward_bytes_of_qkv(ContextExchange::ring) - backward_bytes_of_qkv(ContextExchange::all_gather),
                   3 * bytes);
}

TEST(RingAttention, OfACausalSequenceThatHasNoTwoPiecesForEachRankIsRefused) {
  Step input = ring_of(8);
  input.model =
      llama("odd", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 8, .kv_heads = 4, .vocab = 256, .sequence = 24});
  EXPECT_FALSE(legal(input));
}

}  // namespace
}  // namespace slipway::test
