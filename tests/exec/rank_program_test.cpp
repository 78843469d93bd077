#include "scenarios/commands/execute/rank_program.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

std::optional<JoinedRank> joined_in(const std::map<std::string, std::string>& environment) {
  return joined_rank([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(JoinedRank, RecognisesTorchrunSrunAndMpirun) {
  EXPECT_EQ(joined_in({{"RANK", "2"}, {"WORLD_SIZE", "4"}})->launcher, "torchrun");
  EXPECT_EQ(joined_in({{"RANK", "2"}, {"WORLD_SIZE", "4"}})->rank, 2);
  EXPECT_EQ(joined_in({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}})->world, 8);
  EXPECT_EQ(joined_in({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}})->launcher, "mpirun");
}

TEST(JoinedRank, NoneWithoutVariablesNorInASlurmBatchScript) {
  EXPECT_FALSE(joined_in({}));
  EXPECT_FALSE(joined_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  EXPECT_FALSE(joined_in({{"WORLD_SIZE", "8"}}));
}

TEST(JoinedRank, AHalfSetOrMalformedEnvironmentIsNamed) {
  EXPECT_THAT(
      [] {
        joined_in({{"RANK", "1"}});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("WORLD_SIZE is not")));
  EXPECT_THAT(
      [] {
        joined_in({{"RANK", "one"}, {"WORLD_SIZE", "2"}});
      },
      testing::ThrowsMessage<std::runtime_error>(HasSubstr("RANK='one'")));
}

TEST(LocalRanks, GetTheEnvironmentThatTorchrunWouldSet) {
  const std::vector<RankProcess> ranks = local_ranks("/bin/slipway-rank", {"run.slip", "--out", "d"}, 2, 1, "d");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].environment.at("RANK"), "1");
  EXPECT_EQ(ranks[1].environment.at("LOCAL_RANK"), "1");
  EXPECT_EQ(ranks[1].environment.at("WORLD_SIZE"), "2");
  EXPECT_EQ(ranks[1].environment.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(ranks[0].environment.at("MASTER_PORT"), ranks[1].environment.at("MASTER_PORT"));
  EXPECT_THAT(ranks[0].command,
              testing::ElementsAre("/bin/slipway-rank", "run.slip", "--out", "d", "--connect-timeout", "60"));
  EXPECT_EQ(ranks[1].error_file, "d/rank-1.error");
  const std::string token = ranks[0].environment.at("SLIPWAY_TOKEN");
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(ranks[1].environment.at("SLIPWAY_TOKEN"), token);
  EXPECT_NE(local_ranks("/bin/slipway-rank", {}, 2, 1, "d")[0].environment.at("SLIPWAY_TOKEN"), token);
}

TEST(LocalRanks, ThatShareAGpuAreOneProcessWhichIsToldHowMany) {
  const std::vector<RankProcess> processes = local_ranks("/bin/slipway-rank", {"run.slip", "--out", "d"}, 8, 4, "d");
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[1].rank, 4) << "its first rank";
  EXPECT_EQ(processes[1].environment.at("RANK"), "1");
  EXPECT_EQ(processes[1].environment.at("WORLD_SIZE"), "2");
  EXPECT_EQ(processes[1].error_file, "d/rank-4.error");
  EXPECT_THAT(processes[1].command, testing::IsSupersetOf({"--ranks-per-process", "4"}));
}

TEST(RankProgram, AMissingProgramIsNamedWithTheRemedy) {
  ::setenv("SLIPWAY_RANK", "/nowhere/slipway-rank", 1);
  EXPECT_THAT([] { rank_program(); },
              testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("/nowhere/slipway-rank is not there or cannot be executed; set SLIPWAY_RANK")));
  ::unsetenv("SLIPWAY_RANK");
}

class PackedRankProgram : public CommandTest {
 protected:
  void script(const std::string& name, const std::string& body) const {
    std::ofstream(path(name)) << "#!/bin/sh\n" << body << '\n';
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
  }
  void SetUp() override {
    CommandTest::SetUp();
    script("slipway-rank", "exit 0");
    ::setenv("SLIPWAY_RANK", path("slipway-rank").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("SLIPWAY_RANK");
    CommandTest::TearDown();
  }
};

TEST_F(PackedRankProgram, IsTakenWhereItFindsPyTorch) {
  script("find-torch", "echo /opt/torch");
  EXPECT_EQ(rank_program(), path("slipway-rank"));
}

TEST_F(PackedRankProgram, WithoutPyTorchIsRefusedInTheWordsOfItsFinder) {
  script("find-torch", "echo 'there is no PyTorch 2.11 here; install it' >&2; exit 2");
  EXPECT_THAT([] { rank_program(); },
              testing::ThrowsMessage<std::runtime_error>("there is no PyTorch 2.11 here; install it"));
}

using FirstCause = CommandTest;

LaunchResult ended(std::vector<RankEnd> ends) {
  LaunchResult result;
  result.ends = std::move(ends);
  result.first_failure = result.ends.front();
  return result;
}

TEST_F(FirstCause, IsTheRanksVerdictEvenWhenAnotherRankEndedBefore) {
  std::ofstream(path("failure")) << "1 out of memory in step 3, 2F0\n";
  const LaunchResult result = ended({{0, 1, 0, false, ""}, {1, 1, 0, false, ""}});
  EXPECT_EQ(first_cause(result, path("")), "rank 1 failed: out of memory in step 3, 2F0");
}

TEST_F(FirstCause, ASignalIsToldByWhoCollectedTheProcess) {
  std::ofstream(path("failure")) << "1 killed or ended without a report (process 7 on host x)\n";
  const LaunchResult result = ended({{1, -1, 9, false, ""}, {0, 1, 0, false, ""}});
  EXPECT_EQ(first_cause(result, path("")), "rank 1 was killed by signal 9 (Killed)");
}

TEST_F(FirstCause, IsNotOurOwnSignalToARankThatOutlivedTheFirst) {
  std::ofstream(path("failure")) << "1 ended by SIGTERM (sent by process 42)\n";
  const LaunchResult result = ended({{0, -1, 9, false, ""}, {1, 1, 0, true, ""}});
  EXPECT_EQ(first_cause(result, path("")), "rank 0 was killed by signal 9 (Killed)");
}

TEST_F(FirstCause, OfARankThatWeHadToEndIsWhatTheOthersSayOfItUnlessThatIsOurSignal) {
  std::ofstream(path("failure")) << "1 no heartbeat for 30 s; it lives, but does not answer (stopped?)\n";
  const LaunchResult result = ended({{0, 1, 0, false, ""}, {1, -1, 9, true, ""}});
  EXPECT_EQ(first_cause(result, path("")),
            "rank 1 failed: no heartbeat for 30 s; it lives, but does not answer (stopped?)");
}

TEST_F(FirstCause, WithoutAVerdictIsWhatARankSaidBeforeWhoEndedFirst) {
  EXPECT_EQ(cause_in("step 3/8  loss 5.1"), "");
  EXPECT_EQ(cause_in("rank 12 stops: rank 0 failed: no space"), "rank 0 failed: no space");
  const std::string reported = cause_in("rank 0 failed: no space");
  EXPECT_EQ(first_cause(ended({{1, 1, 0, false, ""}}), path(""), reported), "rank 0 failed: no space");
  EXPECT_EQ(first_cause(ended({{1, -1, 9, false, ""}}), path(""), reported), "rank 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(first_cause(ended({{1, 2, 0, false, "no bundle"}}), path(""), reported),
            "rank 1 ended with exit status 2: no bundle");
}

TEST_F(FirstCause, WithoutAVerdictItIsTheFirstThatEnded) {
  EXPECT_EQ(first_cause(ended({{3, 2, 0, false, "no bundle"}}), path("")),
            "rank 3 ended with exit status 2: no bundle");
}

}  // namespace
}  // namespace slipway::test
