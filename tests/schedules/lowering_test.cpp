#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/step/placement.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/broken_graph.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

namespace {

Step small_llama(int tensor, int pipeline, int data, int chunks) {
  Step input;
  input.model =
      llama("small", {.layers = 8, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = tensor;
  input.layout.pipeline = pipeline;
  input.layout.data = data;
  input.layout.chunks = chunks;
  input.layout.sequence_parallel = tensor > 1;
  input.schedule = chunks > 1 ? "interleaved-1f1b" : "1f1b";
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.global_batch = 16 * data;
  return input;
}

// Forward 1, backward 2, everything else 0.
Durations unit_durations(const TaskGraph& graph) {
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.work(id);
    if (work.kind == WorkKind::segment) durations[id] = work.pass == Pass::forward ? 1 : 2;
  }
  return durations;
}

TaskGraph ordered(const Step& input) {
  TaskGraph graph = lower(input);
  set_global_order(graph, unit_durations(graph));
  return graph;
}

TEST(Lowering, WithoutCommunicationTimeGPipeAnd1F1BTakeNPlusDMinusOneSteps) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int pipeline : {2, 4, 8}) {
      Step input = small_llama(1, pipeline, 1, 1);
      input.schedule = schedule;
      const TaskGraph graph = ordered(input);
      const Timeline timeline = replay(graph, unit_durations(graph));
      EXPECT_DOUBLE_EQ(timeline.makespan_s, (graph.micro_batches + pipeline - 1) * 3.0) << schedule << pipeline;
    }
  }
}

// GPipe on two ranks, three micro-batches, F 1, B 2, a message x. The last forward arrives after 3 (blocking: 3 + 2x) +
// x. The other rank's backwards send two messages before its last one and one after.
TEST(Lowering, ARankThatBlocksOnItsMessagesPaysForEachOfThem) {
  Step input = small_llama(1, 2, 1, 1);
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
  for (const char* label :
       {"0F0.emb", "0F0.emb.rs_embed", "0F0.L3.norm1", "0F0.L3.ag1", "0F0.L3.attn", "0F0.L3.rs1", "0F0.L3.norm2",
        "0F0.L3.ag2", "0F0.L3.mlp", "0F0.L3.rs2", "0F0.head.ag_loss", "0B0.L3.mlp", "0B0.L3.ag2", "0.L3.norm_grad"}) {
    EXPECT_TRUE(seen.contains(label)) << label;
  }
  EXPECT_EQ(seen["0F0.L3.ag1"], 1) << "a collective is one node";
  EXPECT_EQ(seen["0F0.L3.attn"], 2) << "one compute task per tensor rank";
}

// 16 numbers per weight. The group sums both; other replicated weights only under sequence parallelism.
TEST(Lowering, NormsOfQueryAndKeyAreSummedOverTheTensorGroupInAnyCase) {
  const auto summed = [](bool norms, bool sequence_parallel) {
    Step input = small_llama(2, 1, 1, 1);
    Model model = input.model;
    model.runs[1].block.qk_norm = norms;
    input.model = model;
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

// 8 tensor ranks, 2 key-value heads of 16 numbers: ranks 0 to 3 have copies of the first. Keys' and values' rows of one
// head are 2 x 16 x 64 numbers; a slice of ZeRO 3 has no more than itself.
TEST(Lowering, GradientsOfCopiedHeadsAreSummedOnceOverTheRanksThatShareAHead) {
  for (const int zero : {0, 3}) {
    Step input = small_llama(8, 1, 2, 1);
    input.layout.zero = zero;
    input.model = llama("small", {.layers = 8,
                                  .hidden = 64,
                                  .ffn = 128,
                                  .heads = 8,
                                  .kv_heads = 2,
                                  .vocab = 256,
                                  .sequence = 32,
                                  .head_dim = 16});
    const TaskGraph graph = ordered(input);
    EXPECT_TRUE(check_graph(graph).empty()) << describe(graph, check_graph(graph).front());
    std::map<std::string, std::vector<std::vector<std::int32_t>>> groups;  // by label
    double bytes = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      if (graph.work(id).kind != WorkKind::kv_grad_reduce) continue;
      EXPECT_EQ(graph.communicator(graph.tasks[id]).name, "kv4");
      const auto members = members_of(graph, id);
      groups[label_of(graph, id)].emplace_back(members.begin(), members.end());
      bytes = graph.work(id).bytes;
    }
    EXPECT_EQ(groups.size(), 8U) << "layers";
    EXPECT_THAT(groups["0.L1.kv_grad"],
                testing::UnorderedElementsAre(std::vector{0, 1, 2, 3}, std::vector{4, 5, 6, 7},
                                              std::vector{8, 9, 10, 11}, std::vector{12, 13, 14, 15}));
    EXPECT_EQ(bytes, 2 * 16 * 64 * 4.0);
  }
}

TEST(Lowering, EveryLayoutIsOrderedCompletelyAndEveryBufferHasAWriter) {
  for (const int tensor : {1, 2}) {
    for (const int pipeline : {1, 2, 4}) {
      for (const int data : {1, 2}) {
        for (const int zero : {0, 1, 2, 3}) {
          for (const auto recompute : {Recompute::none, Recompute::full}) {
            for (const int chunks : {1, 2}) {
              if (chunks > 1 && pipeline == 1) continue;
              Step input = small_llama(tensor, pipeline, data, chunks);
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
              Step input = small_llama(tensor, pipeline, data, variant == 3 && pipeline > 1 ? 2 : 1);
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
                FAIL() << "t" << tensor << " c" << context << " p" << pipeline << " d" << data << " zero" << zero
                       << " variant " << variant << "\n"
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
    Step input = small_llama(tensor, 2, 1, 1);
    input.recompute = Recompute::full;
    const TaskGraph graph = ordered(input);
    int found = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      if (graph.work(id).pass != Pass::recompute) continue;
      for (const auto before : graph.predecessors[id]) found += label_of(graph, before) == "1B0.send";
    }
    EXPECT_EQ(found, tensor) << "the first recomputation of each rank of stage 0, micro-batch 0";
  }
}

TEST(Lowering, EverySavedBufferIsReadExactlyOnce) {
  for (const auto recompute : {Recompute::none, Recompute::full}) {
    Step input = small_llama(2, 2, 2, 2);
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
  Step input = small_llama(1, 1, 2, 1);
  input.layout.zero = 1;
  const TaskGraph graph = ordered(input);
  std::set<std::string> labels;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) labels.insert(label_of(graph, id));
  EXPECT_TRUE(labels.contains("0.L0.rs_grad"));
  EXPECT_TRUE(labels.contains("0.L0.ag_param"));
  EXPECT_EQ(graph.carried.size(), 2u * 10u) << "ten blocks on two ranks";
}

TEST(Lowering, ATiedHeadIsReducedBetweenFirstAndLastStage) {
  Step input = small_llama(1, 2, 1, 1);
  input.model = llama(
      "tied",
      {.layers = 8, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32, .tied = true});
  const TaskGraph graph = ordered(input);
  bool found = false;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (label_of(graph, id) != "emb.tied_grad") continue;
    found = true;
    EXPECT_EQ(members_of(graph, id).size(), 2u);
    EXPECT_EQ(graph.work(id).bytes, 256 * 64 * 4);
  }
  EXPECT_TRUE(found);
}

}  // namespace

// The inputs that sequence parallelism gathers twice, and what waits in between: shards before the projections, a
// second gather for each weight gradient, hidden behind the projection before it.

namespace {

constexpr Degrees tensor_pair{.tensor = 2, .pipeline = 2, .sequence_parallel = true};

TaskGraph graph_of(const Degrees& degrees, const std::string& schedule = "1f1b",
                   Recompute recompute = Recompute::none) {
  Step input = with_layout(tiny_llama(4, false), degrees);
  input.schedule = schedule;
  input.recompute = recompute;
  TaskGraph graph = lower(input);
  set_global_order(graph, unit_durations(graph));
  return graph;
}

std::set<std::string> gathers_of_micro_batch(const TaskGraph& graph, int micro_batch) {
  std::set<std::string> labels;
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    if (gathers_again(graph, graph.work(task)) && graph.tasks[task].micro_batch == micro_batch)
      labels.insert(label_of(graph, task));
  return labels;
}

TEST(GatheredInputs, OfQkvMlpAndHeadAreGatheredOnceMoreInTheBackwardPass) {
  const std::set<std::string> expected{"0B1.L0.ag1_again", "0B1.L0.ag2_again", "0B1.L1.ag1_again",
                                       "0B1.L1.ag2_again", "1B1.L2.ag1_again", "1B1.L2.ag2_again",
                                       "1B1.L3.ag1_again", "1B1.L3.ag2_again", "1B1.head.ag_head_again"};
  EXPECT_EQ(gathers_of_micro_batch(graph_of(tensor_pair), 1), expected);
}

TEST(GatheredInputs, AreGatheredForTheWeightGradientsWhereTheBackwardPassIsSplit) {
  const TaskGraph graph = graph_of(tensor_pair, "zb-h1");
  EXPECT_EQ(gathers_of_micro_batch(graph, 1).size(), 9U);
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    for (const BufferId in : graph.inputs[task]) {
      const std::int32_t writer = graph.buffers[in].writer;
      if (writer == none || !gathers_again(graph, graph.work(static_cast<TaskId>(writer)))) continue;
      EXPECT_EQ(graph.work(task).pass, Pass::weight_grad) << label_of(graph, task);
    }
  }
}

TEST(GatheredInputs, OfARecomputedLayerAreNotGatheredAThirdTime) {
  const std::set<std::string> head{"1B1.head.ag_head_again"};
  EXPECT_EQ(gathers_of_micro_batch(graph_of(tensor_pair, "1f1b", Recompute::full), 1), head);
}

TEST(GatheredInputs, AreGatheredOnceWithoutSequenceParallelism) {
  EXPECT_TRUE(gathers_of_micro_batch(graph_of({.tensor = 2, .pipeline = 2}), 1).empty());
}

TEST(GatheredInputs, KeepAGraphSound) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    for (const int zero : {0, 2, 3}) {
      Degrees degrees = tensor_pair;
      degrees.data = 2, degrees.zero = zero;
      const std::vector<Violation> violations = check_graph(graph_of(degrees, schedule));
      EXPECT_TRUE(violations.empty()) << schedule << " ZeRO " << zero
                                      << (violations.empty() ? "" : violations.front().message);
    }
  }
}

// Tokens × hidden of float64: shards of two inputs a layer and of the head's, and no whole one.
TEST(GatheredInputs, AreKeptAsShards) {
  const TaskGraph graph = graph_of({.tensor = 2, .sequence_parallel = true}, "gpipe");
  const double shard = 16 / 2 * 32 * 8;
  const RankMemory memory = memory_timeline(graph, replay(graph, unit_durations(graph)))[0];
  EXPECT_EQ(memory.parts[MemoryPart::projection_inputs] / shard, 8 * 4 * 2) << "micro-batches, layers, inputs";
}

// No rank holds more than two gathered inputs of the backward passes at a time: one in use, one on its way.
TEST(GatheredInputs, ComeAtMostOneProjectionAhead) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    const TaskGraph graph = graph_of(tensor_pair, schedule);
    const Durations durations = unit_durations(graph);
    const Timeline timeline = replay(graph, durations);
    std::map<double, int> changes;
    std::map<BufferId, double> until;
    for (TaskId task = 0; task < graph.tasks.size(); ++task)
      for (const BufferId in : graph.inputs[task]) until[in] = std::max(until[in], timeline.end[task]);
    for (BufferId b = 0; b < graph.buffers.size(); ++b) {
      const std::int32_t writer = graph.buffers[b].writer;
      if (graph.buffers[b].rank != 0 || writer == none ||
          !gathers_again(graph, graph.work(static_cast<TaskId>(writer))))
        continue;
      ++changes[timeline.end[static_cast<TaskId>(writer)]];
      --changes[until[b]];
    }
    int held = 0, most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, held += change);
    EXPECT_GE(most, 1) << schedule;
    EXPECT_LE(most, 2) << schedule;
  }
}

}  // namespace

namespace {

using namespace test;

// On rank 0, which has embedding and head: the last backward tasks of the two, and the reduction of their sum.
struct Ends {
  TaskId last = 0, before = 0, reduction = 0;
  bool head_is_last = false;
};
Ends ends_of(const TaskGraph& graph) {
  const auto is_of = [&](TaskId id, int block) {
    const Work& work = graph.work(id);
    if (work.kind != WorkKind::segment || work.pass == Pass::forward || graph.tasks[id].rank != 0) return false;
    const auto operators = graph.operators(work);
    return operators[work.first_op].block <= block && operators[work.last_op - 1].block >= block;
  };
  Ends ends;
  for (const TaskId id : graph.order) {
    if (graph.work(id).kind == WorkKind::grad_reduce && graph.work(id).block == 0 && members_of(graph, id).front() == 0)
      ends.reduction = id;
    const bool of_head = is_of(id, 7);
    if (!of_head && !is_of(id, 0)) continue;
    if (of_head != ends.head_is_last) ends.before = ends.last;
    ends.last = id;
    ends.head_is_last = of_head;
  }
  return ends;
}

// Llama 3.2 1B as published.
Step llama_1b() {
  Step input;
  input.model = llama("llama-3.2-1b", {.layers = 16,
                                       .hidden = 2048,
                                       .ffn = 8192,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .vocab = 128256,
                                       .sequence = 128,
                                       .tied = true});
  input.dtype = Dtype::float32;
  return input;
}

constexpr double published = 1235814400;  // parameters
constexpr double table = 128256.0 * 2048;

double parameters_held(const Step& input) {
  double bytes = 0;
  for (const StaticBytes& of_rank : static_bytes_of(input)) bytes += of_rank.weights;
  return bytes / 4 * input.layout.tensor;
}

TEST(SharedTable, OneStageHoldsThePublishedParametersOfLlama32) {
  Step input = llama_1b();
  EXPECT_EQ(parameters_held(input), published);
  input.layout.tensor = 2;
  EXPECT_EQ(parameters_held(input), published + 33 * 2048) << "norms are on both tensor ranks";
}

TEST(SharedTable, AVOfStagesHoldsThemOnceAndTwoEndsHoldTheTableTwice) {
  Step input = llama_1b();
  input.layout.pipeline = 2;
  input.global_batch = 4;
  EXPECT_EQ(parameters_held(input), published + table);
  input.layout.chunks = 2;
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    input.schedule = schedule;
    EXPECT_EQ(parameters_held(input), published) << schedule;
  }
}

TEST(SharedTable, ShardedGradientsKeepTwo) {
  Step input = llama_1b();
  input.layout.zero = 2;
  EXPECT_EQ(parameters_held(input), published) << "one replica shards nothing";
  input.layout.data = 2;
  input.global_batch = 2;
  EXPECT_EQ(parameters_held(input), published + table);
}

TEST(SharedTable, IsReducedAndUpdatedOnce) {
  const auto bytes_of_kind = [](const TaskGraph& graph, WorkKind kind, int block) {
    double bytes = 0;
    for (const Work& work : graph.works)
      if (work.kind == kind && work.block == block) bytes += work.bytes;
    return bytes;
  };
  const TaskGraph graph = sound({.data = 2, .tied = true, .clip_norm = 1});
  EXPECT_TRUE(check_graph(graph).empty());
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::grad_reduce, 0), 256 * 64 * 4.0);
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::grad_reduce, 7), 64 * 4.0) << "the last norm alone";
  EXPECT_EQ(bytes_of_kind(graph, WorkKind::tied_grad_reduce, 0), 0);
  double updated = 0;
  for (const Work& work : graph.works)
    if (work.kind == WorkKind::optimizer_step) updated += work.elements;
  EXPECT_EQ(updated, static_cast<double>(parameter_count(graph.step.model)));
}

TEST(SharedTable, StepsOfVSchedulesAreSound) {
  for (const char* schedule : {"zb-v", "dualpipe-v"})
    for (const int zero : {0, 1}) {
      Step input;
      input.model = llama("small", {6, 64, 128, 4, 4, 256, 32, true});
      input.layout = {.tensor = 2, .pipeline = 2, .data = 2};
      input.layout.chunks = 2, input.layout.zero = zero;
      input.schedule = schedule;
      input.clip_norm = 1;
      input.global_batch = 8;
      TaskGraph graph = lower(input);
      set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
      for (const Violation& violation : check_graph(graph))
        ADD_FAILURE() << schedule << zero << describe(graph, violation);
    }
}

// A reduction that waits for the earlier one (in all built-in schedules the head's) would run while the table's
// gradient still grows.
TEST(SharedTable, AReductionThatWaitsForOneOfTheTwoOnlyIsFound) {
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    for (const int pipeline : {1, 2, 3}) {
      Step input;
      input.model = llama("small", {6, 64, 128, 4, 4, 256, 32, true});
      input.layout = {.pipeline = pipeline, .data = 2};
      input.layout.chunks = pipeline == 1 ? 1 : 2;
      input.schedule = pipeline == 1 ? "1f1b" : schedule;
      input.global_batch = 16;
      TaskGraph graph = lower(input);
      set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
      ASSERT_TRUE(check_graph(graph).empty());
      const Ends ends = ends_of(graph);
      remove_edge(graph, ends.last, ends.reduction);
      add_edge(graph, ends.before, ends.reduction);
      EXPECT_THAT(first(check_graph(graph)), testing::HasSubstr("the last backward of its block"))
          << schedule << pipeline;
    }
  }
}

}  // namespace

}  // namespace slipway::test
