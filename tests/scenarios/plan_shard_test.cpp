// slipway plan on several machines: shards merge to the answer of one.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

class PlanShard : public CommandTest {
 protected:
  Answer plan(const std::vector<std::string>& more, const std::string& batch = "32") {
    std::vector<std::string> words{"plan",   llama,           "--set",  "schedule.global_batch=" + batch,
                                   "--keep", "layout.zero",   "--keep", "schedule.recompute",
                                   "--keep", "layout.context"};
    words.insert(words.end(), more.begin(), more.end());
    return slipway_with(words);
  }
  void run_shards(int count) {
    for (int number = 1; number <= count; ++number) {
      const Answer shard =
          plan({"--shard", std::to_string(number) + "/" + std::to_string(count), "--into", path("parts")});
      ASSERT_EQ(shard.status, status_done) << shard.err;
    }
  }
};

// Wall times are no part of the answer.
std::string without_times(const std::string& json) {
  nlohmann::json all = nlohmann::json::parse(json);
  all.erase("screening_s"), all.erase("simulation_s");
  return all.dump(1);
}

TEST_F(PlanShard, MergedTheyAreTheSameAnswerAsOneMachines) {
  const Answer alone = plan({"--json"});
  ASSERT_EQ(alone.status, status_done) << alone.err;
  for (const int count : {2, 5}) {
    run_shards(count);
    const Answer merged = plan({"--json", "--merge", path("parts")});
    ASSERT_EQ(merged.status, status_done) << merged.err;
    EXPECT_EQ(without_times(merged.out), without_times(alone.out)) << count;
    std::filesystem::remove_all(path("parts"));
  }
}

// A price of a shard is taken as it is: a merge with prices that were changed has them in its table.
TEST_F(PlanShard, AMergeSimulatesNothingThatAShardHasSimulated) {
  run_shards(1);
  const std::string file = path("parts") + "/shard-1-of-1.json";
  nlohmann::json shard = nlohmann::json::parse(text_of(file));
  for (nlohmann::json& row : shard["rows"]) row["values"][2] = 0.123456;  // MFU
  std::ofstream(file) << shard.dump(1);
  const Answer merged = plan({"--json", "--merge", path("parts")});
  ASSERT_EQ(merged.status, status_done) << merged.err;
  const nlohmann::json answer = nlohmann::json::parse(merged.out);
  for (const nlohmann::json& row : answer["best"]) EXPECT_EQ(row["mfu"], 0.123456);
}

TEST_F(PlanShard, AShardOfAnotherSearchIsRefused) {
  run_shards(1);
  const Answer other = plan({"--merge", path("parts")}, "64");
  EXPECT_EQ(other.status, status_usage);
  EXPECT_THAT(other.err, HasSubstr("is of another command"));
}

TEST_F(PlanShard, TheSlurmScriptNamesTheCommandOfItsTasksAndOfTheMerge) {
  const Answer script = plan({"--emit", "slurm", "--shards", "3", "--into", path("parts")});
  ASSERT_EQ(script.status, status_done) << script.err;
  EXPECT_THAT(script.out, HasSubstr("#SBATCH --array=1-3\n"));
  EXPECT_THAT(script.out, HasSubstr("exec slipway plan " + llama));
  EXPECT_THAT(script.out, HasSubstr("--shard \"$SLURM_ARRAY_TASK_ID/3\" --into " + path("parts")));
  EXPECT_THAT(script.out, HasSubstr("--merge " + path("parts")));
}

TEST_F(PlanShard, WrongUsesAreRefusedByName) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--shard", "0/4", "--into", path("p")}, "--shard 0/4 is no I/N"},
      {{"--shard", "1/4"}, "--shard needs --into"},
      {{"--shard", "1/4", "--into", path("p"), "--json"}, "exclude each other"},
      {{"--emit", "megatron", "--into", path("p")}, "--into is where --shard I/N writes"},
      {{"--emit", "slurm"}, "--emit needs --into"},
  };
  for (const auto& [words, reason] : mistakes) {
    const Answer answer = plan(words);
    EXPECT_EQ(answer.status, status_usage) << reason;
    EXPECT_THAT(answer.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(path("p")));
  }
}

}  // namespace
}  // namespace slipway::test
