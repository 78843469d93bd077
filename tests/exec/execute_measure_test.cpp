// The micro-benchmark mode with two real ranks: every kind of measurement is present, positive and complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "exec/rank/measure.h"
#include "exec/transport/local_transport.h"
#include "models/fit/measurement.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

TEST(Measure, TwoRanksWriteEveryKindOfMeasurement) {
  const std::string folder = temporary_folder().path("measure");
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {"--measure", folder + "/m"}, 2, folder);
  const auto ended = ranks.wait(300);
  for (const Ended& rank : ended) EXPECT_EQ(rank.status, 0) << rank.errors;
  // At 0.05 s for each of more than a hundred, it takes longer than the two seconds of silence.
  EXPECT_THAT(ended[0].output, testing::ContainsRegex("[0-9]+ micro-benchmarks after [0-9]+ s, now [a-z-]+\n"));
  EXPECT_EQ(ended[1].output, "");
  const std::regex line_form("measure ([a-z_-]+)( [a-z_]+=[a-z0-9_]+)* dtype=float32 seconds=([0-9.e-]+)");
  for (const char* file : {"/m.0", "/m.1"}) {
    std::ifstream in(folder + file);
    std::set<std::string> kinds;
    for (std::string line; std::getline(in, line);) {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(line, parts, line_form)) << line;
      EXPECT_GT(std::stod(parts[3]), 0) << line;
      kinds.insert(parts[1]);
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"gemm", "attention", "elementwise", "launch", "optimizer", "task_overhead",
                                            "transfer", "all-reduce", "all-gather", "reduce-scatter", "all-to-all"}));
  }
}

// Sizes by members: every size in pairs and among all four, which calibrate reads and fits to a link.
TEST(Measure, FourRanksExchangeRowsInGroupsOfTwoAndFour) {
  LocalGroups groups;
  std::array<std::string, 4> lines;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      const auto group = groups.join({0, "world", {0, 1, 2, 3}}, rank, nullptr);
      const int first = rank / 2 * 2;
      const auto pair = groups.join({1 + rank / 2, "pair", {first, first + 1}}, rank, nullptr);
      MeasureContext context{at::kFloat, at::kCPU, " dtype=float32", rank, 4, [&] { group->barrier(); }};
      measure_messages(context, group.get(), pair.get(), {{2, pair.get()}, {4, group.get()}});
      lines[static_cast<std::size_t>(rank)] = context.lines;
    });
  for (std::thread& rank : ranks) rank.join();
  std::vector<Measurement> exchanges;
  std::map<std::string, std::set<std::string>> sizes;  // by members
  for (const std::string& of_rank : lines) {
    std::istringstream in(of_rank);
    for (const Measurement& each : read_measurements(in, "m"))
      if (each.what == "all-to-all")
        exchanges.push_back(each), sizes[each.fields.at("members")].insert(each.fields.at("bytes"));
  }
  EXPECT_EQ(exchanges.size(), 4U * 2 * 8);
  EXPECT_EQ(sizes["2"].size(), 8U);
  EXPECT_EQ(sizes["2"], sizes["4"]);
  const Link link = calibrate(Machine{}, observations_of(merged(exchanges))).machine.node_link;
  EXPECT_GT(link.bandwidth, 1e7) << "no memory is that slow";
  EXPECT_LT(link.bandwidth, 1e13);
}

// The copy measurements of a GPU's ranks, run within the host's memory: calibrate reads the lines and fits a rate.
TEST(Measure, CopiesOfEachDirectionAreReadByCalibrate) {
  MeasureContext context{at::kFloat, at::kCPU, " dtype=float32", 0, 1, [] {}};
  measure_copies(context, /*pinned=*/false);
  std::istringstream lines(context.lines);
  const std::vector<Observation> observations = observations_of(read_measurements(lines, "m.0"));
  std::map<ObservationGroup, int> count;
  for (const Observation& observation : observations) ++count[observation.group];
  EXPECT_EQ(count[ObservationGroup::host_to_device], 8);
  EXPECT_EQ(count[ObservationGroup::device_to_host], 8);
  const Machine fitted = calibrate(Machine{}, observations).machine;
  for (const Link& way : {fitted.host_to_device, fitted.device_to_host}) {
    EXPECT_GT(way.bandwidth, 1e8) << "no memory is that slow";
    EXPECT_LT(way.bandwidth, 1e12);
  }
}

}  // namespace
}  // namespace slipway::test
