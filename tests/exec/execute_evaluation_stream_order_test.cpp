// Evaluation on the ordered device (tests/stream_order/): no stream reads, writes or frees weights, residuals or sums
// that another one still uses, and the losses are those of virtual ranks.
#include <gmock/gmock.h>

#include "tests/support/evaluation_runs.h"
#include "tests/support/rank_processes.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {
namespace {

void expect_no_race(const Step& input, double item_s) {
  static int count = 0;
  const std::string folder = temporary_folder().path("ordered" + std::to_string(count++));
  std::filesystem::create_directories(folder);
  Bundle bundle = evaluating(input, item_s);
  SCOPED_TRACE(input.schedule + ", window of " + std::to_string(bundle.graph.window));
  bundle.run.steps = 3 * bundle.graph.window;
  write_bundle_file(folder + "/run.slip", bundle);
  RankProcesses ranks(SLIPWAY_ORDERED_RANK_PROGRAM,
                      {folder + "/run.slip", "--out", folder, "--connect-timeout", "120", "--ranks-per-process",
                       std::to_string(rank_count(bundle.graph.step.layout))},
                      1, folder);
  const Ended process = ranks.wait(120).front();
  EXPECT_EQ(process.status, 0);
  EXPECT_EQ(process.errors, "");
  VirtualRanks expected(bundle, at::kCPU);
  std::ifstream file(folder + "/rank-0.losses");
  const std::string mark = "evaluation=";
  for (int window = 0; window < 3; ++window) {
    expected.run_step(window);
    std::string line;
    for (int step = 0; step < bundle.graph.window; ++step) ASSERT_TRUE(std::getline(file, line));
    const std::size_t at = line.find(mark);
    ASSERT_NE(at, std::string::npos) << line;
    const double same = expected.take_evaluation(window).value();
    EXPECT_NEAR(std::stod(line.substr(at + mark.size())), same, 1e-9 * same) << "window " << window;
  }
}

TEST(EvaluationStreams, OfReplicasAndStagesLeaveNoRaceBetweenLanes) {
  for (const char* schedule : {"1f1b", "chimera"}) {
    Step input = with_layout(tiny_llama(2, true), {.pipeline = 2, .data = 2});
    input.schedule = schedule;
    for (const double item_s : {0.3, 2.5}) expect_no_race(input, item_s);
  }
}

}  // namespace
}  // namespace slipway::test
