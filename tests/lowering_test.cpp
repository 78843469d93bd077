#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "schedules/graph/replay.h"

namespace slipway {
namespace {

LoweringInput small_llama(int tensor, int pipeline, int data, int chunks) {
  LoweringInput input;
  input.model = llama(
      "small",
      {.layers = 8, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = tensor;
  input.layout.pipeline = pipeline;
  input.layout.data = data;
  input.layout.chunks = chunks;
  input.layout.sequence_parallel = tensor > 1;
  input.schedule = chunks > 1 ? "interleaved-1f1b" : "1f1b";
  input.shape.micro_batch = 2;
  input.shape.sequence = 32;
  input.shape.dtype = Dtype::float32;
  input.global_batch = 16 * data;
  return input;
}

// Forward 1, backward 2, everything else nothing.
Durations unit_durations(const TaskGraph& graph) {
  Durations durations(graph.tasks.size(), 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.works[static_cast<std::size_t>(graph.tasks[id].work)];
    if (work.kind == WorkKind::segment) durations[id] = work.pass == Pass::forward ? 1 : 2;
  }
  return durations;
}

TaskGraph ordered(const LoweringInput& input) {
  TaskGraph graph = lower(input);
  set_global_order(graph, unit_durations(graph));
  return graph;
}

TEST(Lowering, WithoutCommunicationTimeGPipeAnd1F1BTakeNPlusDMinusOneSteps) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int pipeline : {2, 4, 8}) {
      LoweringInput input = small_llama(1, pipeline, 1, 1);
      input.schedule = schedule;
      const TaskGraph graph = ordered(input);
      const Timeline timeline = replay(graph, unit_durations(graph));
      EXPECT_DOUBLE_EQ(timeline.makespan_s, (graph.micro_batches + pipeline - 1) * 3.0)
          << schedule << pipeline;
    }
  }
}

// GPipe on two ranks, three micro-batches, F 1, B 2, a message x: the last forward arrives after 3 (and, blocking,
// 2x more) + x; the other rank's backwards send two messages before its last one and one after.
TEST(Lowering, ARankThatBlocksOnItsMessagesPaysForEachOfThem) {
  LoweringInput input = small_llama(1, 2, 1, 1);
  input.schedule = "gpipe";
  input.global_batch = 6;
  constexpr double x = 0.5;
  for (const bool blocking : {false, true}) {
    input.blocking_transfers = blocking;
    TaskGraph graph = lower(input);
    Durations durations = unit_durations(graph);
    for (TaskId id = 0; id < graph.tasks.size(); ++id)
      if (graph.tasks[id].kind == TaskKind::transfer) durations[id] = x;
    set_global_order(graph, durations);
    EXPECT_TRUE(check_graph(graph).empty());
    EXPECT_DOUBLE_EQ(replay(graph, durations).makespan_s, 12 + (blocking ? 6 : 2) * x);
  }
}

TEST(Lowering, AWholeActionIsOneTaskWhenNothingIsCommunicatedInsideIt) {
  const TaskGraph graph = ordered(small_llama(1, 4, 1, 1));
  const auto compute = std::count_if(graph.tasks.begin(), graph.tasks.end(),
                                     [](const Task& task) { return task.kind == TaskKind::compute; });
  EXPECT_EQ(compute, 4 * 8 * 2);
  std::set<std::string> labels;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) labels.insert(label_of(graph, id));
  EXPECT_TRUE(labels.contains("2F0"));
  EXPECT_TRUE(labels.contains("3B7"));
  EXPECT_TRUE(labels.contains("0F0.send"));
  EXPECT_TRUE(labels.contains("3.opt"));
}

TEST(Lowering, SequenceParallelCutsEachLayerAtItsFourCollectives) {
  const TaskGraph graph = ordered(small_llama(2, 1, 1, 1));
  std::map<std::string, int> seen;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) ++seen[label_of(graph, id)];
  for (const char* label : {"0F0.emb", "0F0.emb.rs_embed", "0F0.L3.norm1", "0F0.L3.ag1", "0F0.L3.attn",
                            "0F0.L3.rs1", "0F0.L3.norm2", "0F0.L3.ag2", "0F0.L3.mlp", "0F0.L3.rs2",
                            "0F0.head.ag_loss", "0B0.L3.mlp", "0B0.L3.ag2", "0.L3.norm_grad"}) {
    EXPECT_TRUE(seen.contains(label)) << label;
  }
  EXPECT_EQ(seen["0F0.L3.ag1"], 1) << "a collective is one node";
  EXPECT_EQ(seen["0F0.L3.attn"], 2) << "one compute task per tensor rank";
}

// 16 numbers of each weight: the group sums both, and every other replicated weight only under sequence parallel.
TEST(Lowering, NormsOfQueryAndKeyAreSummedOverTheTensorGroupInAnyCase) {
  const auto summed = [](bool norms, bool sequence_parallel) {
    LoweringInput input = small_llama(2, 1, 1, 1);
    input.model.runs[1].block.qk_norm = norms;
    input.layout.sequence_parallel = sequence_parallel;
    const TaskGraph graph = ordered(input);
    std::map<int, double> bytes;
    for (const Work& work : graph.works)
      if (work.kind == WorkKind::norm_grad_reduce) bytes[work.block] = work.bytes;
    return bytes;
  };
  EXPECT_TRUE(summed(false, false).empty());
  EXPECT_EQ(summed(true, false).size(), 8u) << "layers";
  EXPECT_EQ(summed(true, false)[1], 2 * 16 * 4.0);
  EXPECT_EQ(summed(true, true)[1], (2 * 16 + 2 * 64) * 4.0);
  EXPECT_EQ(summed(false, true)[1], 2 * 64 * 4.0);
}

TEST(Lowering, EveryLayoutIsOrderedCompletelyAndEveryBufferHasAWriter) {
  for (const int tensor : {1, 2}) {
    for (const int pipeline : {1, 2, 4}) {
      for (const int data : {1, 2}) {
        for (const int zero : {0, 1, 2, 3}) {
          for (const auto recompute : {Recompute::none, Recompute::full}) {
            for (const int chunks : {1, 2}) {
              if (chunks > 1 && pipeline == 1) continue;
              LoweringInput input = small_llama(tensor, pipeline, data, chunks);
              input.layout.zero = zero;
              input.recompute = recompute;
              input.clip_norm = 1;
              const TaskGraph graph = ordered(input);
              EXPECT_EQ(graph.order.size(), graph.tasks.size());
              for (const Buffer& buffer : graph.buffers) EXPECT_NE(buffer.writer, none);
              for (const auto in : graph.inputs.values) ASSERT_LT(in, graph.buffers.size());
            }
          }
        }
      }
    }
  }
}

TEST(Lowering, EveryLayoutKeepsTheInvariants) {
  for (const int tensor : {1, 2}) {
    for (const int context : {1, 2}) {
      for (const int pipeline : {1, 2, 4}) {
        for (const int data : {1, 2}) {
          for (const int zero : {0, 1, 2, 3}) {
            for (const int variant : {0, 1, 2, 3, 4}) {
              LoweringInput input =
                  small_llama(tensor, pipeline, data, variant == 3 && pipeline > 1 ? 2 : 1);
              input.layout.context = context;
              input.layout.zero = zero;
              if (variant == 1) input.recompute = Recompute::full;
              if (variant == 2)
                input.model = gpt("tied", {.layers = 8,
                                           .hidden = 64,
                                           .ffn = 128,
                                           .heads = 4,
                                           .vocab = 256,
                                           .max_positions = 32,
                                           .sequence = 32});
              if (variant == 4)
                input.model = bert("bert", {.layers = 8,
                                            .hidden = 64,
                                            .ffn = 128,
                                            .heads = 4,
                                            .vocab = 256,
                                            .max_positions = 32,
                                            .token_types = 2,
                                            .sequence = 32});
              if (variant != 1) input.clip_norm = 1;
              const TaskGraph graph = ordered(input);
              for (const Violation& violation : check_graph(graph)) {
                FAIL() << "t" << tensor << " c" << context << " p" << pipeline << " d" << data << " zero"
                       << zero << " variant " << variant << "\n"
                       << describe(graph, violation);
              }
            }
          }
        }
      }
    }
  }
}

// torch.utils.checkpoint recomputes inside the backward, which begins when the gradient has come.
TEST(Lowering, ARecomputationBeginsWhenTheGradientOfItsStageHasArrived) {
  for (const int tensor : {1, 2}) {
    LoweringInput input = small_llama(tensor, 2, 1, 1);
    input.recompute = Recompute::full;
    const TaskGraph graph = ordered(input);
    int found = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      if (graph.works[static_cast<std::size_t>(graph.tasks[id].work)].pass != Pass::recompute) continue;
      for (const auto before : graph.predecessors[id]) found += label_of(graph, before) == "1B0.send";
    }
    EXPECT_EQ(found, tensor) << "the first recomputation of each rank of stage 0, micro-batch 0";
  }
}

TEST(Lowering, EverySavedBufferIsReadExactlyOnce) {
  for (const auto recompute : {Recompute::none, Recompute::full}) {
    LoweringInput input = small_llama(2, 2, 2, 2);
    input.recompute = recompute;
    const TaskGraph graph = ordered(input);
    std::vector<int> readers(graph.buffers.size());
    for (const auto in : graph.inputs.values) ++readers[in];
    for (std::size_t i = 0; i < graph.buffers.size(); ++i) {
      if (graph.buffers[i].kind == BufferKind::saved) {
        EXPECT_EQ(readers[i], 1);
      }
    }
  }
}

TEST(Lowering, TheLastBackwardIsCutByBlockSoThatItsReductionsOverlap) {
  const TaskGraph graph = ordered(small_llama(1, 2, 2, 1));
  std::set<std::string> labels;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) labels.insert(label_of(graph, id));
  EXPECT_TRUE(labels.contains("0B0"));
  EXPECT_FALSE(labels.contains("0B7"));
  EXPECT_TRUE(labels.contains("0B7.L0"));
  EXPECT_TRUE(labels.contains("0.L0.ar_grad"));
}

TEST(Lowering, ZeroOneReduceScattersAndGathersAndTheNextStepWaitsForTheGather) {
  LoweringInput input = small_llama(1, 1, 2, 1);
  input.layout.zero = 1;
  const TaskGraph graph = ordered(input);
  std::set<std::string> labels;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) labels.insert(label_of(graph, id));
  EXPECT_TRUE(labels.contains("0.L0.rs_grad"));
  EXPECT_TRUE(labels.contains("0.L0.ag_param"));
  EXPECT_EQ(graph.carried.size(), 2u * 10u) << "ten blocks on two ranks";
}

TEST(Lowering, ATiedHeadIsReducedBetweenFirstAndLastStage) {
  LoweringInput input = small_llama(1, 2, 1, 1);
  input.model = llama("tied", {.layers = 8,
                               .hidden = 64,
                               .ffn = 128,
                               .heads = 4,
                               .kv_heads = 4,
                               .vocab = 256,
                               .sequence = 32,
                               .tied = true});
  const TaskGraph graph = ordered(input);
  bool found = false;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (label_of(graph, id) != "emb.tied_grad") continue;
    found = true;
    EXPECT_EQ(members_of(graph, id).size(), 2u);
    EXPECT_EQ(graph.works[static_cast<std::size_t>(graph.tasks[id].work)].bytes, 256 * 64 * 4);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace slipway
