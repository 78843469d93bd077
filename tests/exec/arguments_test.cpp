#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/process/arguments.h"
#include "exec/process/environment.h"
#include "exec/process/node_list.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Arguments, ARunNeedsABundleAndAFolder) {
  const Arguments arguments = arguments_from({"run.slip", "--out", "dir", "--steps", "3", "--dump-gradients", "2"});
  EXPECT_EQ(arguments.mode, Arguments::Mode::run);
  EXPECT_EQ(arguments.bundle, "run.slip");
  EXPECT_EQ(arguments.out, "dir");
  EXPECT_EQ(arguments.steps, 3);
  EXPECT_EQ(arguments.dump_step, 2);
  EXPECT_EQ(arguments.threads, 1);
  EXPECT_FALSE(arguments.cuda_graphs);
  EXPECT_TRUE(arguments_from({"run.slip", "--cuda-graphs", "--out", "dir"}).cuda_graphs);
}

TEST(Arguments, ABundleThatWasCarriedElsewhereFindsItsDataThere) {
  const Arguments arguments =
      arguments_from({"run.slip", "--out", "dir", "--data", "here.txt", "--evaluation-data", "held-out.txt"});
  EXPECT_EQ(arguments.data, "here.txt");
  EXPECT_EQ(arguments.evaluation_data, "held-out.txt");
}

TEST(Arguments, MeasurementsNeedAFile) {
  const Arguments arguments = arguments_from({"--measure", "file", "--dtype", "float64"});
  EXPECT_EQ(arguments.mode, Arguments::Mode::measure);
  EXPECT_EQ(arguments.out, "file");
  EXPECT_EQ(arguments.dtype, Dtype::float64);
}

TEST(Arguments, HelpWinsOverWhateverElseIsThere) {
  EXPECT_EQ(arguments_from({"run.slip", "--help"}).mode, Arguments::Mode::help);
  EXPECT_EQ(arguments_from({"--version"}).mode, Arguments::Mode::version);
}

TEST(Arguments, MistakesAreNamed) {
  const auto refused = [](const std::vector<std::string>& words, const char* why) {
    EXPECT_THAT([&] { arguments_from(words); }, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refused({}, "no bundle was given");
  refused({"run.slip"}, "--out DIR is missing");
  refused({"a.slip", "b.slip", "--out", "d"}, "two bundles, a.slip and b.slip");
  refused({"run.slip", "--out"}, "--out needs a value");
  refused({"run.slip", "--out", "d", "--steps", "0"}, "--steps 0: expected a number of at least 1");
  refused({"run.slip", "--out", "d", "--steps", "many"}, "--steps many");
  refused({"run.slip", "--out", "d", "--colour", "red"}, "unknown option --colour");
  refused({"--measure", "f", "--dtype", "float16"}, "allowed are float32 and float64");
  refused({"run.slip", "--measure", "f"}, "--measure runs no bundle");
  refused({"--measure", "f", "--cuda-graphs"}, "--cuda-graphs is for running a bundle");
}

TEST(ConnectSeconds, EndEightSecondsAfterTheStartOfTheProcessAndAreFiveAtLeast) {
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 0), 8.1);
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 1.5), 6.6);
  EXPECT_DOUBLE_EQ(connect_seconds_for(2, 20), 5);
  EXPECT_DOUBLE_EQ(connect_seconds_for(1024, 1), 58.2);
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

EnvironmentMap torchrun_of_two() {
  return {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "4711"}};
}

TEST(Environment, TorchrunVariablesAreReadAsTheyAre) {
  const RankEnvironment at = rank_environment(torchrun_of_two());
  EXPECT_EQ(at.rank, 1);
  EXPECT_EQ(at.world, 2);
  EXPECT_EQ(at.local_rank, 1);
  EXPECT_EQ(at.store_host, "node7");
  EXPECT_EQ(at.store_port, 4711);
  EXPECT_FALSE(at.agent_store);
  EXPECT_EQ(at.launcher, "torchrun");
}

TEST(Environment, TheAgentStoreIsUsedUnderAPrefixOfItsRestartCount) {
  EnvironmentMap map = torchrun_of_two();
  map["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  map["TORCHELASTIC_RESTART_COUNT"] = "3";
  const RankEnvironment first = rank_environment(map);
  EXPECT_TRUE(first.agent_store);
  map["TORCHELASTIC_RESTART_COUNT"] = "4";
  EXPECT_NE(first.store_prefix, rank_environment(map).store_prefix);
}

TEST(Environment, SlurmRanksMeetOnTheFirstHostOfTheNodeList) {
  const EnvironmentMap map{{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODELIST", "gpu[07-08]"},
                           {"SLURM_JOB_ID", "12345"}};
  const RankEnvironment at = rank_environment(map);
  EXPECT_EQ(at.rank, 5);
  EXPECT_EQ(at.world, 8);
  EXPECT_EQ(at.local_rank, 1);
  EXPECT_EQ(at.store_host, "gpu07");
  EXPECT_EQ(at.store_port, 29500 + 345);
}

TEST(Environment, TheUsersMasterAddressWinsOverTheNodeList) {
  const EnvironmentMap map{{"SLURM_PROCID", "0"},  {"SLURM_NTASKS", "2"},     {"SLURM_LOCALID", "0"},
                           {"SLURM_STEP_ID", "0"}, {"SLURM_NODELIST", "a,b"}, {"MASTER_ADDR", "b"},
                           {"MASTER_PORT", "6000"}};
  EXPECT_EQ(rank_environment(map).store_host, "b");
  EXPECT_EQ(rank_environment(map).store_port, 6000);
}

TEST(Environment, RankVariablesWinOverSlurmAndOpenMpi) {
  EnvironmentMap map = torchrun_of_two();
  map["SLURM_PROCID"] = "0";
  map["SLURM_NTASKS"] = "1";
  map["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_EQ(rank_environment(map).rank, 1);
}

TEST(Environment, OpenMpiOnOneHostNeedsNoAddressAndOnSeveralAsksForOne) {
  EnvironmentMap map{{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(rank_environment(map).store_host, "127.0.0.1");
  EXPECT_EQ(rank_environment(map).store_port, 29500);
  map["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_THAT([&] { rank_environment(map); }, ThrowsMessage<std::runtime_error>(HasSubstr("MASTER_ADDR")));
}

TEST(Environment, WithoutALauncherThereIsOneRank) {
  const RankEnvironment at = rank_environment({{"HOME", "/root"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(at.rank, 0);
  EXPECT_EQ(at.world, 1);
  EXPECT_EQ(at.store_port, 0);
}

TEST(Environment, ASlurmBatchScriptIsNoRankThoughItHasTheVariablesOfOne) {
  EnvironmentMap map{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"MASTER_ADDR", "b"}};
  EXPECT_EQ(rank_environment(map).world, 1);
  map["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(rank_environment(map).world, 8);
  EXPECT_EQ(rank_environment(map).launcher, "srun");
}

TEST(Environment, ErrorsNameTheVariableAndItsValue) {
  const auto error_with = [](const char* name, const char* value, const char* expected) {
    EnvironmentMap map = torchrun_of_two();
    map[name] = value;
    EXPECT_THAT([&] { rank_environment(map); }, ThrowsMessage<std::runtime_error>(HasSubstr(expected)));
  };
  error_with("RANK", "two", "RANK=two");
  error_with("RANK", "2", "RANK=2 must be smaller than WORLD_SIZE=2");
  error_with("RANK", "", "RANK is not set");
  error_with("WORLD_SIZE", "", "WORLD_SIZE is not set");
  error_with("MASTER_PORT", "70000", "MASTER_PORT=70000");
  error_with("MASTER_PORT", "", "MASTER_PORT is not set");
  error_with("MASTER_ADDR", "", "MASTER_ADDR is not set");
}

TEST(Hosting, NumbersTheRanksOfEachProcessOneAfterTheOtherAndKeepsItsDevice) {
  EnvironmentMap map = torchrun_of_two();
  map["RANK"] = map["LOCAL_RANK"] = "1";
  const RankEnvironment four_each = hosting(rank_environment(map), 4);
  EXPECT_EQ(four_each.rank, 4);
  EXPECT_EQ(four_each.hosted, 4);
  EXPECT_EQ(four_each.world, 8);
  EXPECT_EQ(four_each.local_rank, 1);
  EXPECT_EQ(four_each.processes(), 2);
  for (int rank = -1; rank < 9; ++rank) EXPECT_EQ(four_each.hosts(rank), rank >= 4 && rank < 8) << rank;
  map["RANK"] = "0";
  const RankEnvironment first = hosting(rank_environment(map), 4);
  EXPECT_TRUE(first.hosts(3));
  EXPECT_FALSE(first.hosts(-1)) << "the launcher's agent is nobody's";
}

TEST(HostsStore, IsRank0WhereNoAgentDoes) {
  EnvironmentMap map = torchrun_of_two();
  EXPECT_FALSE(rank_environment(map).hosts_store());
  map["RANK"] = "0";
  EXPECT_TRUE(rank_environment(map).hosts_store());
  map["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_FALSE(rank_environment(map).hosts_store());
}

TEST(NodeList, BracketsExpandWithLeadingZerosAndSeveralGroups) {
  EXPECT_THAT(hosts_of_node_list("gpu[01-03,07]-a,login"),
              ElementsAre("gpu01-a", "gpu02-a", "gpu03-a", "gpu07-a", "login"));
  EXPECT_THAT(hosts_of_node_list("r[1-2]n[09-10]"), ElementsAre("r1n09", "r1n10", "r2n09", "r2n10"));
  EXPECT_THAT(hosts_of_node_list("single"), ElementsAre("single"));
}

TEST(NodeList, MalformedListsAreRefusedWithTheRemedy) {
  for (const char* list : {"gpu[1-", "gpu[a-b]", "gpu[3-1]", "a,,b", ""}) {
    EXPECT_THAT([&] { hosts_of_node_list(list); }, ThrowsMessage<std::runtime_error>(HasSubstr("MASTER_ADDR"))) << list;
  }
}

}  // namespace

}  // namespace slipway::test
