// K-FAC on the ordered device (tests/stream_order/): no stream reads, writes or frees sums, inverses or gathered
// gradients that another one still uses, and the losses are those of virtual ranks.
#include <gmock/gmock.h>

#include "tests/support/kfac_runs.h"
#include "tests/support/rank_processes.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {
namespace {

void expect_no_race(const Step& input, const KfacWindow& window) {
  static int count = 0;
  const std::string folder = temporary_folder().path("ordered" + std::to_string(count++));
  std::filesystem::create_directories(folder);
  Bundle bundle = kfac_bundle(input, window);
  SCOPED_TRACE(input.schedule + ", window of " + std::to_string(bundle.graph.window));
  bundle.run.steps = 3 * bundle.graph.window;
  bundle.run.checkpoint_steps = bundle.graph.window;
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
  for (int step = 0; step < bundle.run.steps; ++step) {
    if (step % bundle.graph.window == 0) expected.run_step(step / bundle.graph.window);
    long long at = 0, samples = 0;
    double loss = 0, rate = 0;
    ASSERT_TRUE(file >> at >> samples >> loss >> rate) << "step " << step;
    const double same = expected.take_loss(step);
    EXPECT_NEAR(loss, same, 1e-9 * same) << "step " << step;
  }
}

TEST(KfacStreams, OfReplicasAndStagesLeaveNoRaceBetweenLanes) {
  for (const char* schedule : {"1f1b", "chimera"}) {
    Step input = with_layout(tiny_llama(2, true), {.pipeline = 2, .data = 2});
    input.schedule = schedule;
    input.clip_norm = 0.5;
    expect_no_race(input, {.filled = true, .bubble_work_seconds = 0.3});
    expect_no_race(input, {.refresh_steps = 1});
  }
}

}  // namespace
}  // namespace slipway::test
