// slipway plan --emit: which row the launch arguments are of, and what the trainer refuses.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";
const std::string tiny = examples + "tiny-llama-cpu.yaml";

using PlanEmit = CommandTest;

// With several micro-batches the winner shards optimizer states alone (ZeRO 1), which torchtitan has not.
TEST_F(PlanEmit, EmitsTheFirstRowThatTheTrainerRunsAsPlanned) {
  const std::string file = path("winner.yaml");
  const std::vector<std::string> args{"plan",   examples + "llama-8b-64xh100.yaml",
                                      "--keep", "layout.tensor",
                                      "--set",  "layout.tensor=2",
                                      "--keep", "layout.pipeline",
                                      "--set",  "layout.pipeline=1",
                                      "--set",  "schedule.global_batch=256",
                                      "--set",  "run.clip_norm=1",
                                      "--emit", "torchtitan",
                                      "--top",  "40",
                                      "-o",     file};
  const Answer answer = slipway_with(args);
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::vector<std::string> as_json = args;
  as_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(slipway_with(as_json).out);
  const std::size_t row = json["launch_row"].get<std::size_t>() - 1;
  ASSERT_GT(row, 0U);
  EXPECT_EQ(json["best"][0]["zero"], 1);
  EXPECT_NE(json["best"][row]["zero"], 1);
  EXPECT_THAT(json["launch_version"].get<std::string>(), HasSubstr("torchtitan 0.3.0"));
  EXPECT_THAT(answer.out, HasSubstr("The trainer may refuse the winner: ZeRO 1"));
  EXPECT_THAT(answer.out, HasSubstr("Row " + std::to_string(row + 1) + " is the fastest row that it runs"));
  // The file is row 1, the arguments are not its.
  EXPECT_THAT(answer.out, HasSubstr("winner: " + file + " (row 1; the arguments below are those of row " +
                                    std::to_string(row + 1) + ")\n"));
  EXPECT_THAT(text_of(file), HasSubstr("zero: 1"));
}

// 10,000 tokens are less than 2001 samples: no other layout and no longer table would help.
TEST_F(PlanEmit, SaysWhatTheTrainerRefusesWhateverTheLayoutIs) {
  const std::vector<std::string> args{
      "plan", tiny, "--emit", "megatron", "--set", "run.tokens=10000", "--set", "run.optimizer.lr_warmup_samples=2001"};
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out,
              HasSubstr("The trainer refuses these arguments with any layout: the warm-up of 2001 samples "));
  std::vector<std::string> as_json = args;
  as_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(slipway_with(as_json).out);
  EXPECT_THAT(json["may_be_refused"].back().get<std::string>(), HasSubstr("lower run.optimizer.lr_warmup_samples"));
}

}  // namespace
}  // namespace slipway::test
