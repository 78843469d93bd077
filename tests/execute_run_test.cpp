// Whole runs of real rank processes over Gloo: what they write, and that it does not depend on how the
// ranks are laid out nor on when it is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/trace.h"
#include "schedules/graph/lowering.h"
#include "tests/rank_processes.h"
#include "tests/tiny_runs.h"

namespace slipway {
namespace {

using testing::HasSubstr;

struct Layouts {
  int tensor = 1, pipeline = 1, data = 1, zero = 0;
};

Bundle bundle_of(const Layouts& layouts, int steps) {
  LoweringInput input = tiny_input(tiny_llama(4, false));
  input.layout.tensor = layouts.tensor;
  input.layout.pipeline = layouts.pipeline;
  input.layout.data = layouts.data;
  input.layout.zero = layouts.zero;
  input.layout.sequence_parallel = layouts.tensor > 1;
  input.shape.sharding = sharding_of(input.layout);
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

std::vector<Ended> run(const Bundle& bundle, const std::string& folder,
                       std::vector<std::string> more = {}) {
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  std::vector<std::string> words{folder + "/run.slip", "--out", folder};
  words.insert(words.end(), more.begin(), more.end());
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, rank_count(bundle.graph.layout), folder);
  return ranks.wait(120);
}

void expect_success(const std::vector<Ended>& ended) {
  for (const Ended& rank : ended) {
    EXPECT_EQ(rank.status, 0) << rank.errors;
    EXPECT_EQ(rank.errors, "");
  }
}

std::vector<double> losses_in(const std::string& folder) {
  std::ifstream file(folder + "/rank-0.losses");
  std::vector<double> losses;
  int step = 0;
  long long samples = 0;
  for (double loss = 0; file >> step >> samples >> loss;) {
    EXPECT_EQ(samples, (step + 1) * 8);
    losses.push_back(loss);
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

TEST(Run, AnyLayoutGivesTheLossesOfOneProcess) {
  const auto losses_of = [](const Layouts& layouts) {
    static int count = 0;
    const std::string folder = temporary_folder().path("layout" + std::to_string(count++));
    expect_success(run(bundle_of(layouts, 20), folder));
    return losses_in(folder);
  };
  const std::vector<double> one = losses_of({});
  ASSERT_EQ(one.size(), 20u);
  EXPECT_LT(one.back(), 0.9 * one.front()) << "the run must learn something";
  for (const Layouts& layouts :
       {Layouts{.pipeline = 2}, Layouts{.tensor = 2}, Layouts{.data = 2, .zero = 1},
        Layouts{.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}}) {
    const std::vector<double> losses = losses_of(layouts);
    ASSERT_EQ(losses.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(losses[i], one[i], 1e-9 * one[i]);
  }
}

TEST(Run, StepsAndGradientDumpsCanBeAskedFor) {
  const std::string folder = temporary_folder().path("asked");
  expect_success(run(bundle_of({.pipeline = 2}, 7), folder, {"--steps", "2", "--dump-gradients", "1"}));
  EXPECT_EQ(losses_in(folder).size(), 2u);
  for (const char* file : {"/gradients.0", "/gradients.1"}) EXPECT_NE(text_of_file(folder + file), "");
}

}  // namespace
}  // namespace slipway
