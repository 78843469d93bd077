// Memory records of real rank processes: at least what they must hold, more where more micro-batches wait for their
// backward pass, and equal whether or not ranks share a process.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/trace/trace.h"
#include "schedules/lower/lowering.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/replay.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

constexpr int steps = 3;

Bundle bundle_of(const Degrees& degrees, const std::string& schedule = "1f1b") {
  Step input = with_layout(tiny_llama(4, false), degrees);
  input.schedule = schedule;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

// Records by rank.
std::vector<std::vector<TraceRecord>> records_of(const Bundle& bundle, int ranks_per_process = 1) {
  static int count = 0;
  const std::string folder = temporary_folder().path("memory" + std::to_string(count++));
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  const int ranks = rank_count(bundle.graph.step.layout);
  RankProcesses processes(
      SLIPWAY_RANK_PROGRAM,
      {folder + "/run.slip", "--out", folder, "--ranks-per-process", std::to_string(ranks_per_process)},
      ranks / ranks_per_process, folder);
  for (const Ended& process : processes.wait(120)) EXPECT_EQ(process.status, 0) << process.errors;
  std::vector<std::vector<TraceRecord>> records(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder + "/rank-" + std::to_string(rank) + ".records");
    for (std::string line; std::getline(file, line);) records[rank].push_back(record_from_text(line));
  }
  return records;
}

double peak_of(const std::vector<TraceRecord>& records) {
  double peak = 0;
  for (const TraceRecord& record : records)
    if (record.step == steps - 1) peak = std::max(peak, record.memory_peak_bytes);
  return peak;
}

// In float64: weight, gradient and AdamW's two moments, 8 bytes each. There is no other master weight.
double held_by(const Bundle& bundle, std::size_t rank) {
  const StaticBytes& fixed = bundle.graph.static_bytes[rank];
  return fixed.weights / 8 * 4 * 8;
}

TEST(MeasuredMemory, OfARankIsAtLeastWhatItHoldsAllTheTimeAndComesBackToItEveryStep) {
  const Bundle bundle = bundle_of({.pipeline = 2});
  const auto records = records_of(bundle);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::vector<double> at_end(steps);
    for (const TraceRecord& record : records[rank]) {
      EXPECT_GE(record.memory_bytes, held_by(bundle, rank)) << record.label;
      EXPECT_GE(record.memory_peak_bytes, record.memory_bytes) << record.label;
      if (record.kind == "optimizer") at_end[record.step] = record.memory_bytes;
    }
    EXPECT_LT(at_end[1], held_by(bundle, rank) * 1.05) << "activations are gone";
    EXPECT_NEAR(at_end[2], at_end[1], 0.04 * at_end[1]) << "nothing piles up; a message may be on its way still";
  }
}

// GPipe keeps all 8 micro-batches of the first stage, 1F1B two of them.
TEST(MeasuredMemory, GrowsWithTheMicroBatchesThatWaitForTheirBackwardPass) {
  const Bundle few = bundle_of({.pipeline = 2}), all = bundle_of({.pipeline = 2}, "gpipe");
  const double kept_by_few = peak_of(records_of(few)[0]) - held_by(few, 0),
               kept_by_all = peak_of(records_of(all)[0]) - held_by(all, 0);
  EXPECT_GT(kept_by_all, 2.5 * kept_by_few);
  EXPECT_LT(kept_by_all, 4.5 * kept_by_few);
}

TEST(MeasuredMemory, IsTheSameForRanksThatShareAProcess) {
  const Bundle bundle = bundle_of({.pipeline = 2, .data = 2});
  const auto apart = records_of(bundle), together = records_of(bundle, 4);
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_NEAR(peak_of(together[rank]), peak_of(apart[rank]), 0.1 * peak_of(apart[rank])) << rank;
}

// Long sequences: activations are most of the memory. On processors fewer keys than queries are repeated.
Step long_sequences(const Degrees& degrees, const std::string& schedule = "1f1b",
                    Recompute recompute = Recompute::none) {
  const Model model = llama(
      "long-llama", {.layers = 4, .hidden = 64, .ffn = 176, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 256});
  Step input = with_layout(model, degrees);
  input.global_batch = 4;
  input.schedule = schedule;
  input.recompute = recompute;
  return input;
}

// The fullest rank's measured peak, as a share of the task graph's peak of that rank.
double measured_share(const Step& input) {
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  const std::vector<RankMemory> predicted =
      memory_timeline(bundle.graph, replay(bundle.graph, unit_durations(bundle.graph)));
  const auto records = records_of(bundle);
  double share = 0;
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    share = std::max(share, peak_of(records[rank]) / predicted[rank].peak);
  return share;
}

// Without any gathers a rank holds 10 to 15 % more than the graph counts (statistics, and what kernels keep). With them
// it is as much, in either engine. Gathered inputs that stayed would add 10 %, and so would uncounted keys and values.
constexpr double most = 1.17;

TEST(MeasuredMemory, UnderSequenceParallelismIsThatOfTheTaskGraphWhichKeepsShardsOfGatheredInputs) {
  const Degrees both{.tensor = 2, .pipeline = 2, .sequence_parallel = true};
  for (const double share :
       {measured_share(long_sequences({.tensor = 2, .sequence_parallel = true})),
        measured_share(long_sequences(both, "gpipe")), measured_share(long_sequences(both, "zb-h1")),
        measured_share(long_sequences(both, "1f1b", Recompute::full))}) {
    EXPECT_GT(share, 1);
    EXPECT_LT(share, most);
  }
}

// Between input and weight gradients a product's input and its output's gradient stay, and nothing else.
TEST(MeasuredMemory, OfASplitBackwardIsThatOfTheTaskGraphWhichKeepsWhatWeightGradientsNeed) {
  for (const auto& [schedule, chunks] : {std::pair{"zb-h1", 1}, std::pair{"zb-h2", 1}, std::pair{"zb-v", 2}})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Step input = long_sequences({.pipeline = 2, .chunks = chunks}, schedule, recompute);
      input.kernels = Kernels::flash2;  // on processors norms keep copies
      const double share = measured_share(input);
      EXPECT_GT(share, 1) << schedule;
      EXPECT_LT(share, most) << schedule;
    }
}

TEST(MeasuredMemory, UnderContextParallelismIsThatOfTheTaskGraphWhichKeepsGatheredKeysAndValues) {
  for (const double share : {measured_share(long_sequences({.context = 2})),
                             measured_share(long_sequences({.pipeline = 2, .context = 2}, "gpipe")),
                             measured_share(long_sequences({.tensor = 2, .context = 2, .sequence_parallel = true}))}) {
    EXPECT_GT(share, 1);
    EXPECT_LT(share, most);
  }
}

// A rank keeps a share of gradients (ZeRO 2) and weights (ZeRO 3) only.
TEST(MeasuredMemory, FallsWithEachStageOfZero) {
  const auto at_end = [](int zero) {
    double bytes = 0;
    const auto records = records_of(bundle_of({.data = 2, .zero = zero}));
    for (const TraceRecord& record : records[0])
      if (record.kind == "optimizer" && record.step == steps - 1) bytes = record.memory_bytes;
    return bytes;
  };
  const double none = at_end(0), one = at_end(1), two = at_end(2), three = at_end(3);
  EXPECT_NEAR(one / none, 3.0 / 4, 0.01) << "half of the moments; gradients are reduced in place";
  EXPECT_NEAR(two / none, 2.5 / 4, 0.04) << "half of the gradients";
  EXPECT_NEAR(three / none, 2.0 / 4, 0.04) << "half of all";
}

// Tensor parallelism makes several segments of a block. The first of them in the backward pass takes the memory of the
// whole gradient, in the task graph as in the run.
TEST(MeasuredMemory, UnreducedGradientsBeginWithTheFirstBackwardSegmentOfABlock) {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    const Model model =
        llama("wide-llama",
              {.layers = 2, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 64});
    Step input = with_layout(model, {.tensor = 2, .data = 2, .zero = 2});
    input.global_batch = 2;
    input.recompute = recompute;
    Bundle bundle = tiny_bundle(input);
    bundle.run.steps = steps;
    const TaskGraph& graph = bundle.graph;
    const auto size = [](const Buffer& b) { return b.kind == BufferKind::bucket && b.rank == 0 ? b.bytes : 0; };
    const Buffer& first_of_layers = *std::ranges::max_element(graph.buffers, {}, size);
    const double bytes = first_of_layers.bytes;
    EXPECT_EQ(label_of(graph, graph.tasks[static_cast<TaskId>(first_of_layers.writer)]), "0B0.L1.add2");
    const auto records = records_of(bundle);
    double before = 0;
    for (const TraceRecord& record : records[0]) {
      if (record.step != steps - 1 || record.lane != "compute") continue;
      if (record.label.starts_with("0B0.L1.")) {
        EXPECT_EQ(record.memory_bytes - before > 0.7 * bytes, record.label == "0B0.L1.add2") << record.label;
      }
      before = record.memory_bytes;
    }
  }
}

// ZB-H1 runs several input-gradient passes before the first weight-gradient pass. ZeRO 2's unreduced gradients must
// begin with the latter, as in the task graph, or the gradients of all blocks would be held at once.
TEST(MeasuredMemory, UnreducedGradientsOfASplitBackwardBeginWithTheWeightPass) {
  const Bundle bundle = bundle_of({.pipeline = 2, .data = 2, .zero = 2}, "zb-h1");
  const auto records = records_of(bundle);
  const double weights_of_block = bundle.graph.static_bytes[0].weights / 3;  // an embedding and two like blocks
  int input_passes = 0;
  double before = 0;
  for (const TraceRecord& record : records[0]) {
    if (record.step == steps - 1 && record.kind == "weight-grad") break;  // from here on reductions have memory too
    // An embedding has no weight-gradient pass.
    if (record.step == steps - 1 && record.kind == "input-grad" && record.label.find(".emb") == std::string::npos) {
      ++input_passes;
      EXPECT_LT(record.memory_bytes - before, 0.5 * weights_of_block) << record.label;
    }
    if (record.lane == "compute") before = record.memory_bytes;
  }
  EXPECT_GT(input_passes, 0);
}

}  // namespace
}  // namespace slipway::test
