// Whole runs of real rank processes over Gloo: their files, and that these depend neither on the ranks' layout nor on
// the time of the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/trace/trace.h"
#include "schedules/lower/lowering.h"
#include "tests/support/rank_processes.h"
#include "tests/support/same_training.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

struct Layouts {
  int tensor = 1, pipeline = 1, data = 1, context = 1, zero = 0, chunks = 1;
  bool sequence_parallel = tensor > 1;
  bool ring = false;
};
struct Variant {
  bool tied = false;
  double clip_norm = 0;
  Dtype dtype = Dtype::float64;
};

Bundle bundle_of(const Layouts& layouts, int steps, const Variant& variant = {}) {
  Step input = tiny_input(tiny_llama(4, variant.tied));
  input.layout.tensor = layouts.tensor;
  input.layout.pipeline = layouts.pipeline;
  input.layout.data = layouts.data;
  input.layout.context = layouts.context;
  if (layouts.ring) input.layout.context_exchange = ContextExchange::ring;
  input.layout.zero = layouts.zero;
  input.layout.chunks = layouts.chunks;
  input.layout.sequence_parallel = layouts.sequence_parallel;
  if (layouts.chunks > 1) input.schedule = "interleaved-1f1b";
  input.dtype = input.gradient_dtype = variant.dtype;
  input.clip_norm = variant.clip_norm;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

std::vector<Ended> run(const Bundle& bundle, const std::string& folder, std::vector<std::string> more = {}) {
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  std::vector<std::string> words{folder + "/run.slip", "--out", folder};
  words.insert(words.end(), more.begin(), more.end());
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, rank_count(bundle.graph.step.layout), folder);
  return ranks.wait(120);
}

void expect_success(const std::vector<Ended>& ended) {
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.status, 0) << rank.errors;
    EXPECT_EQ(rank.errors, "");
  }
}

struct LossLine {
  int step = 0;
  long long samples = 0;
  double loss = 0, rate = 0;
};

std::vector<LossLine> lines_in(const std::string& folder) {
  std::ifstream file(folder + "/rank-0.losses");
  std::vector<LossLine> lines;
  for (LossLine line; file >> line.step >> line.samples >> line.loss >> line.rate;) lines.push_back(line);
  return lines;
}

std::vector<double> losses_in(const std::string& folder) {
  std::vector<double> losses;
  for (const LossLine& line : lines_in(folder)) {
    EXPECT_EQ(line.rate, 5e-3);
    EXPECT_EQ(line.samples, (line.step + 1) * 8);
    losses.push_back(line.loss);
  }
  return losses;
}

std::vector<TraceRecord> records_in(const std::string& folder, int rank) {
  std::ifstream file(folder + "/rank-" + std::to_string(rank) + ".records");
  std::vector<TraceRecord> records;
  for (std::string line; std::getline(file, line);) records.push_back(record_from_text(line));
  return records;
}

TEST(Run, EveryTaskOfEveryStepOfEveryRankHasExactlyOneRecord) {
  const std::string folder = temporary_folder().path("records");
  const Bundle bundle = bundle_of({.pipeline = 2, .data = 2}, 3);
  const auto ended = run(bundle, folder);
  expect_success(ended);
  for (int rank = 0; rank < 4; ++rank) {
    std::multiset<std::pair<int, std::string>> expected, recorded;
    for (TaskId task = 0; task < bundle.graph.tasks.size(); ++task) {
      const auto members = members_of(bundle.graph, task);
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      for (int step = 0; step < 3; ++step) expected.emplace(step, label_of(bundle.graph, task));
    }
    for (const TraceRecord& record : records_in(folder, rank)) recorded.emplace(record.step, record.label);
    EXPECT_EQ(recorded, expected);
  }
  EXPECT_THAT(ended[0].output, HasSubstr("step 3/3  loss "));
  EXPECT_EQ(ended[1].output, "");
}

// Transfers and collectives cannot end before all members have started, whichever clock stamped it.
TEST(Run, NoMemberOfACommunicationEndsBeforeTheOthersStartNorATaskBeforeItsInputs) {
  const std::string folder = temporary_folder().path("order");
  const Bundle bundle = bundle_of({.tensor = 2, .pipeline = 2}, 2);
  expect_success(run(bundle, folder));
  std::map<std::pair<int, std::string>, std::vector<TraceRecord>> tasks;  // by step and label, over ranks
  std::map<std::tuple<int, int, std::string>, TraceRecord> by_rank;
  for (int rank = 0; rank < 4; ++rank) {
    for (const TraceRecord& record : records_in(folder, rank)) {
      EXPECT_GE(record.start_s, 0);
      EXPECT_GE(record.end_s, record.start_s);
      if (record.kind == "all-reduce" || record.kind == "all-gather") {
        tasks[{record.step, record.label + "@" + std::to_string(record.group)}].push_back(record);
      }
      by_rank[{record.step, rank, record.label}] = record;
    }
  }
  EXPECT_FALSE(tasks.empty());
  for (const auto& [key, members] : tasks) {
    for (const TraceRecord& a : members) {
      for (const TraceRecord& b : members) EXPECT_GE(a.end_s, b.start_s) << key.second;
    }
  }
  for (TaskId task = 0; task < bundle.graph.tasks.size(); ++task) {
    for (const TaskId before : bundle.graph.predecessors[task]) {
      for (const int rank : members_of(bundle.graph, task)) {
        const auto first = by_rank.find({1, rank, label_of(bundle.graph, before)});
        if (first == by_rank.end()) continue;
        const TraceRecord& then = by_rank.at({1, rank, label_of(bundle.graph, task)});
        EXPECT_LE(first->second.end_s, then.start_s) << first->second.label << " before " << then.label;
      }
    }
  }
}

TEST(Run, ASecondRunGivesTheSameLossesBitForBit) {
  const Bundle bundle = bundle_of({.tensor = 2, .data = 2, .zero = 1}, 5);
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    const std::string folder = temporary_folder().path("again" + std::to_string(i));
    expect_success(run(bundle, folder));
    texts[i] = text_of_file(folder + "/rank-0.losses");
  }
  EXPECT_NE(texts[0], "");
  EXPECT_EQ(texts[0], texts[1]);
}

constexpr int training_steps = 20;

Trained train(const Layouts& layouts, const Variant& variant) {
  static int count = 0;
  const std::string folder = temporary_folder().path("layout" + std::to_string(count++));
  const Bundle bundle = bundle_of(layouts, training_steps, variant);
  const auto ended = run(bundle, folder, {"--dump-gradients", "1"});
  expect_success(ended);
  return trained(losses_in(folder), folder, static_cast<int>(ended.size()));
}

void expect_learning(const Trained& one) {
  ASSERT_EQ(one.losses.size(), std::size_t{training_steps});
  EXPECT_LT(one.losses.back(), 0.9 * one.losses.front()) << "the run must learn something";
}

// The full product of these values runs on virtual ranks in execute_layouts_test.cpp. Here every value of every degree
// meets real messages, clipping and a head tied across stages.
TEST(RealRanks, OfAnyLayoutGiveTheLossesAndGradientsOfOneProcess) {
  const Variant variant{.tied = true, .clip_norm = 0.5};
  const Trained one = train({}, variant);
  expect_learning(one);
  for (const Layouts& layouts :
       {Layouts{.pipeline = 2}, Layouts{.pipeline = 4}, Layouts{.pipeline = 2, .chunks = 2},
        Layouts{.tensor = 2, .sequence_parallel = false}, Layouts{.tensor = 2}, Layouts{.data = 2},
        Layouts{.data = 2, .zero = 1}, Layouts{.tensor = 2, .data = 2, .zero = 2}, Layouts{.context = 2},
        Layouts{.pipeline = 2, .data = 2, .zero = 3}, Layouts{.tensor = 2, .context = 2, .zero = 3},
        Layouts{.context = 2, .ring = true}, Layouts{.context = 4, .ring = true},
        Layouts{.tensor = 2, .context = 2, .zero = 3, .ring = true}}) {
    SCOPED_TRACE(testing::Message() << "tensor " << layouts.tensor << ", pipeline " << layouts.pipeline << ", data "
                                    << layouts.data << ", chunks " << layouts.chunks << ", context " << layouts.context
                                    << (layouts.ring ? " (ring)" : "") << ", ZeRO " << layouts.zero << ", SP "
                                    << layouts.sequence_parallel);
    expect_same_training(one, train(layouts, variant));
  }
}

constexpr Layouts everything_cut{.tensor = 2, .pipeline = 2, .data = 2, .zero = 1};

TEST(RealRanks, WithEverythingCutAndAnUntiedHeadGiveTheResultsOfOneProcess) {
  const Trained one = train({}, {});
  expect_learning(one);
  expect_same_training(one, train(everything_cut, {}));
}

// One rounding of float32 is 2^-24 = 6e-8. Sums in another order differ by a few of them a step, and 20 steps of Adam
// propagate that: 2e-5 allows some 300.
TEST(RealRanks, InFloat32FollowOneProcessWithinRoundOff) {
  const Variant variant{.dtype = Dtype::float32};
  const Trained one = train({}, variant), many = train(everything_cut, variant);
  expect_learning(one);
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(many.losses[step], one.losses[step], 2e-5 * one.losses[step]) << "step " << step;
}

TEST(Run, StepsAndGradientDumpsCanBeAskedFor) {
  const std::string folder = temporary_folder().path("asked");
  expect_success(run(bundle_of({.pipeline = 2}, 7), folder, {"--steps", "2", "--dump-gradients", "2"}));
  EXPECT_EQ(losses_in(folder).size(), 2u);
  for (const char* file : {"/gradients.0", "/gradients.1"}) EXPECT_NE(text_of_file(folder + file), "");
}

// 2 steps instead of 7: half of the decay is done after the first.
TEST(Run, ADecayToTheEndEndsWithTheStepsAskedForAndEachLineTellsItsRate) {
  const std::string folder = temporary_folder().path("decaying");
  Bundle bundle = bundle_of({}, 7);
  bundle.graph.step.optimizer.lr_schedule.decay = DecayStyle::linear;
  const auto ended = run(bundle, folder, {"--steps", "2"});
  expect_success(ended);
  std::vector<double> rates;
  for (const LossLine& line : lines_in(folder)) rates.push_back(line.rate);
  EXPECT_THAT(rates, testing::ElementsAre(5e-3, 2.5e-3));
  EXPECT_THAT(ended[0].output, testing::ContainsRegex("step 1/2  loss [0-9.]+  lr 5.00e-03  [0-9.]+ "
                                                      "s\nstep 2/2  loss [0-9.]+  lr 2.50e-03  [0-9.]+ s"));
}

}  // namespace
}  // namespace slipway::test
