// K-FAC's work behind the step instead of in its bubbles: invariant I12 (schedules/graph/fill_checks.cpp) bounds how long it may
// take, and that bound holds where reductions of factors wait for each other, too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_test.h"

namespace slipway {
namespace {

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

// With three replicas and more a factor's reduction takes longer than the curvature that the next one waits for.
TEST(KfacBehindTheStep, RunsWithAnyNumberOfReplicasInEverySchedule) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "chimera"})
    for (const int data : {1, 2, 3, 4, 8}) {
      std::vector<std::string> args{"simulate", tiny, "--json"};
      for (const std::string& setting :
           {std::string("run.optimizer.name=kfac"), std::string("run.optimizer.refresh_steps=2"), std::string("schedule.fill=none"),
            fmt::format("schedule.name={}", schedule), fmt::format("layout.data={}", data),
            fmt::format("cluster.gpus_per_node={}", 2 * data), std::string("schedule.micro_batch=1"),
            fmt::format("schedule.global_batch={}", 2 * data)})
        args.insert(args.end(), {"--set", setting});
      const Answer answer = slipway_with(args);
      ASSERT_EQ(answer.status, status_done) << schedule << ", data " << data << ": " << answer.err;
      const auto json = nlohmann::json::parse(answer.out);
      EXPECT_GT(json["step_time_s"], json["unfilled_step_time_s"]);
    }
}

}  // namespace
}  // namespace slipway
