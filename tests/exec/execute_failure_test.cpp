// When a rank fails, every other ends soon, and all name the rank that failed first and why, never an echo of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/process/arguments.h"
#include "scenarios/commands/execute/free_port.h"
#include "schedules/lower/lowering.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"
#include "tests/support/torchrun.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double limit_s = 10;     // promised: every survivor has ended within it
constexpr double starting_s = 60;  // on a busy machine

std::vector<std::string> words_for(const std::string& folder, const Bundle& bundle) {
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  return {folder + "/run.slip", "--out", folder};
}

std::string the_line(const Ended& rank) {
  EXPECT_EQ(std::count(rank.errors.begin(), rank.errors.end(), '\n'), 1) << rank.errors;
  return rank.errors.substr(0, rank.errors.find('\n'));
}

void expect_survivors_name(const std::vector<Ended>& ended, int failed, const std::string& cause) {
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (static_cast<int>(rank) == failed) continue;
    EXPECT_EQ(ended[rank].status, 1) << "rank " << rank;
    EXPECT_LT(ended[rank].seconds, limit_s) << "rank " << rank;
    const std::string line = the_line(ended[rank]);
    EXPECT_THAT(line,
                HasSubstr("rank " + std::to_string(rank) + " stops: rank " + std::to_string(failed) + " failed: "));
    EXPECT_THAT(line, HasSubstr(cause));
  }
}

class KilledRank : public testing::TestWithParam<int> {};

TEST_P(KilledRank, EndsAllOthersWithItsNameAndItsSignal) {
  const int killed = GetParam();
  const std::string folder = temporary_folder().path("killed" + std::to_string(killed));
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 4, folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
  ranks.mark();
  const std::string process = "process " + std::to_string(ranks.pid(killed)) + " on host ";
  ranks.kill(killed, SIGKILL);
  const auto ended = ranks.wait(2 * limit_s);
  EXPECT_EQ(ended[killed].status, 128 + SIGKILL);
  expect_survivors_name(ended, killed, "killed by signal 9 (" + process);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == killed) continue;
    const std::string records = text_of_file(folder + "/rank-" + std::to_string(rank) + ".records");
    EXPECT_THAT(records, HasSubstr("\n")) << "what had happened is written";
  }
  EXPECT_THAT(text_of_file(folder + "/rank-0.losses"), HasSubstr("\n2 24 ")) << "step 3/ was printed";
}
INSTANTIATE_TEST_SUITE_P(AnyRank, KilledRank, testing::Values(0, 1, 3));

// Its parent has collected it at once, so that /proc has no details: the message still names the rank.
TEST(CollectedRank, IsNamedWithoutItsSignal) {
  for (const int killed : {0, 2}) {
    const std::string folder = temporary_folder().path("collected" + std::to_string(killed));
    RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 4, folder);
    ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
    ranks.mark();
    ranks.kill(killed, SIGKILL);
    ranks.collect(killed);
    expect_survivors_name(ranks.wait(2 * limit_s), killed, "killed");
  }
}

TEST(FailingRank, GivesItsOwnCauseToAllOthers) {
  const std::string folder = temporary_folder().path("failing");
  Bundle bundle = endless_bundle(2, 2);
  bundle.run.data = folder + "/no-such-text.txt";
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, bundle), 4, folder);
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(the_line(rank), HasSubstr("failed: "));
    EXPECT_THAT(the_line(rank), HasSubstr("no-such-text.txt"));
  }
}

// The rank with the failure notifies all, also those on hosts from which its process cannot be seen.
TEST(RankWithAnotherBundle, TellsAllOthersWhatIsWrong) {
  const std::string folder = temporary_folder().path("other");
  Bundle other = endless_bundle(2, 2);
  words_for(folder + "/other", other);
  other.run.seed += 1;
  const auto words = words_for(folder, other);
  RankProcesses ranks("/bin/sh",
                      {"-c", "[ $RANK = 2 ] && at=" + folder + "/other || at=" + folder +
                                 "; exec " SLIPWAY_RANK_PROGRAM " $at/run.slip --connect-timeout 120 --out " + folder},
                      4, folder);
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(the_line(rank), HasSubstr("is not the one of the other ranks"));
    EXPECT_THAT(the_line(rank), Not(HasSubstr("(process")));
  }
}

// Each would write its shard where the others do not look, and every checkpoint would lack some.
TEST(RanksWithoutOneFolder, AreRefusedWhereCheckpointsAreDue) {
  const std::string folder = temporary_folder().path("folders");
  Bundle bundle = endless_bundle(2, 1);
  bundle.run.checkpoint_steps = 5;
  const auto words = words_for(folder, bundle);
  for (const char* own : {"/0", "/1"}) std::filesystem::create_directories(folder + own);
  RankProcesses ranks(
      "/bin/sh",
      {"-c", "exec " SLIPWAY_RANK_PROGRAM " " + folder + "/run.slip --connect-timeout 120 --out " + folder + "/$RANK"},
      2, folder);
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(the_line(rank), HasSubstr("rank 1 failed: "));
    EXPECT_THAT(the_line(rank), HasSubstr("is not that of rank 0"));
  }
  EXPECT_THAT(text_of_file(folder + "/log-0.out"), Not(HasSubstr("step 1/")));
  EXPECT_FALSE(std::filesystem::exists(folder + "/0/checkpoints")) << "a trace of the search for one folder is left";
}

TEST(TerminatedRank, SaysWhoEndedItWhenNobodyFailedBefore) {
  const std::string folder = temporary_folder().path("terminated");
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 4, folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
  ranks.mark();
  ranks.kill(2, SIGTERM);
  const auto ended = ranks.wait(2 * limit_s);
  expect_survivors_name(ended, 2, "ended by SIGTERM (sent by process " + std::to_string(getpid()));
  EXPECT_THAT(the_line(ended[2]), HasSubstr("rank 2 failed: ended by SIGTERM"));
}

TEST(TerminatedRun, EndsInOrderWithWhatItHasRecorded) {
  const std::string folder = temporary_folder().path("stopped");
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 4, folder);
  ASSERT_TRUE(ranks.printed(0, "step 3/", starting_s));
  for (int rank = 0; rank < 4; ++rank) ranks.kill(rank, SIGTERM);
  for (const Ended& rank : ranks.wait(2 * limit_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(the_line(rank), HasSubstr("ended by SIGTERM (sent by process " + std::to_string(getpid())));
  }
  EXPECT_THAT(text_of_file(folder + "/rank-0.losses"), HasSubstr("\n"));
}

// The process that runs `bundle` as this rank, started by another process; 0 if there is none.
pid_t process_of_rank(int rank, const std::string& bundle) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string folder = entry.path().string();
    const std::string command = text_of_file(folder + "/cmdline"), variables = text_of_file(folder + "/environ");
    if (command.rfind(SLIPWAY_RANK_PROGRAM, 0) != 0 || command.find(bundle) == std::string::npos) continue;
    const std::string wanted = std::string(1, '\0') + "RANK=" + std::to_string(rank) + std::string(1, '\0');
    if ((std::string(1, '\0') + variables).find(wanted) != std::string::npos) return std::stoi(entry.path().filename());
  }
  return 0;
}

// torchrun ends the survivors with SIGTERM as soon as it sees a rank fail.
TEST(KilledRankUnderTorchrun, IsNamedByEverySurvivor) {
  const std::string torchrun = torchrun_command();
  if (torchrun.empty()) GTEST_SKIP() << why_no_torchrun();
  for (const int killed : {0, 2}) {
    const std::string folder = temporary_folder().path("torchrun" + std::to_string(killed));
    words_for(folder, endless_bundle(2, 2));
    std::filesystem::remove_all(folder + "/log");
    const std::string command = "exec " + torchrun +
                                " --standalone --nproc-per-node 4 --no-python --redirects 3 --log-dir " + folder +
                                "/log " + SLIPWAY_RANK_PROGRAM + " " + folder + "/run.slip --out " + folder;
    RankProcesses agent("/bin/sh", {"-c", command}, 1, folder);
    const auto logs = [&](int rank, const std::string& file) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder + "/log")) {
        if (entry.path().filename() == file && entry.path().parent_path().filename() == std::to_string(rank)) {
          return text_of_file(entry.path().string());
        }
      }
      return std::string();
    };
    const auto started = Clock::now();
    while (!std::filesystem::exists(folder + "/log") || logs(0, "stdout.log").find("step 3/") == std::string::npos) {
      ASSERT_LT(std::chrono::duration<double>(Clock::now() - started).count(), starting_s);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    agent.mark();
    const pid_t pid = process_of_rank(killed, folder + "/run.slip");
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    EXPECT_LT(agent.wait(2 * limit_s)[0].seconds, limit_s);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == killed) continue;
      EXPECT_THAT(logs(rank, "stderr.log"), HasSubstr("rank " + std::to_string(rank) + " stops: rank " +
                                                      std::to_string(killed) + " failed: killed"));
    }
  }
}

// A bundle may come from `slipway lower`, which lowers what can be simulated. The messages are those of execute.
TEST(Start, ABundleThatCannotBeExecutedIsRefusedByEveryRankWithTheRemedyOfEachReason) {
  const std::string folder = temporary_folder().path("refused");
  Step input = tiny_input(tiny_llama(2, false));
  input.layout.data = 2;
  Bundle bundle = tiny_bundle(input);
  bundle.graph.step.optimizer.name = "lamb";
  bundle.run.data.clear();
  const auto words = words_for(folder, bundle);
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, 2, folder + "/logs");
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(
        rank.errors,
        HasSubstr(words[0] + ": run.optimizer.name: lamb is not executed; allowed: adamw, kfac; use one of them\n"));
    EXPECT_THAT(rank.errors, HasSubstr(words[0] + ": run.data: it is not set; name a text file"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/rank-0.records"));
}

TEST(Start, AWrongNumberOfRanksIsRefusedByEveryRankBeforeAnythingStarts) {
  const std::string folder = temporary_folder().path("world");
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 3, folder + "/logs");
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(the_line(rank), HasSubstr("is made for 4 ranks, but 3 were started"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/rank-0.records"));
}

TEST(Start, APortInUseIsNamedWithTheRemedy) {
  const std::string folder = temporary_folder().path("port");
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const std::string port = std::to_string(ntohs(address.sin6_port));
  auto words = words_for(folder, endless_bundle(2, 2));
  words.insert(words.end(), {"--connect-timeout", "3"});
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, 4, folder, {{"MASTER_PORT", port}});
  const auto ended = ranks.wait(starting_s);
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_THAT(the_line(ended[0]), HasSubstr("port " + port + " is in use on this host"));
  EXPECT_THAT(the_line(ended[0]), HasSubstr("set MASTER_PORT to a free port"));
  for (std::size_t rank = 1; rank < 4; ++rank) {  // these see a store that never answers
    EXPECT_EQ(ended[rank].status, 1);
    EXPECT_THAT(the_line(ended[rank]), HasSubstr("127.0.0.1:" + port));
  }
  close(listener);
}

TEST(Start, ASecondRunOnThePortOfAnotherIsRefusedAndDoesNotDisturbIt) {
  const std::string folder = temporary_folder().path("first"), second = temporary_folder().path("second");
  const std::string port = std::to_string(free_port());
  RankProcesses first(SLIPWAY_RANK_PROGRAM, words_for(folder, endless_bundle(2, 2)), 4, folder,
                      {{"MASTER_PORT", port}});
  ASSERT_TRUE(first.printed(0, "step 3/", starting_s));
  auto words = words_for(second, endless_bundle(2, 2));
  words.insert(words.end(), {"--steps", "2"});
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, 4, second, {{"MASTER_PORT", port}});
  const auto ended = ranks.wait(starting_s);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ended[rank].status, 1);
    EXPECT_THAT(the_line(ended[rank]), HasSubstr("MASTER_PORT")) << rank;
  }
  const auto steps = text_of_file(folder + "/log-0.out").size();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_GT(text_of_file(folder + "/log-0.out").size(), steps) << "the first run goes on";
}

// The others do not take it for a failed rank of theirs.
TEST(Start, ARankWithAnotherTokenIsRefusedAndMissingToTheOthers) {
  const std::string folder = temporary_folder().path("token");
  words_for(folder, endless_bundle(2, 1));
  const std::string command =
      "[ $RANK = 1 ] && SLIPWAY_TOKEN=other || SLIPWAY_TOKEN=mine; export SLIPWAY_TOKEN; exec " +
      std::string(SLIPWAY_RANK_PROGRAM) + " " + folder + "/run.slip --connect-timeout 8 --out " + folder;
  RankProcesses ranks("/bin/sh", {"-c", command}, 2, folder);
  const std::vector<Ended> ended = ranks.wait(starting_s);
  for (const Ended& rank : ended) EXPECT_EQ(rank.status, 1);
  EXPECT_THAT(the_line(ended[1]), HasSubstr("rank 1 failed: SLIPWAY_TOKEN is not that of the run at 127.0.0.1:"));
  EXPECT_THAT(the_line(ended[0]), HasSubstr("rank 1 did not join the run within 8 s"));
}

TEST(Start, AMissingRankIsNamed) {
  const std::string folder = temporary_folder().path("missing");
  auto words = words_for(folder, endless_bundle(2, 2));
  // The default wait of a rank; it is set here only because these tests use a longer one otherwise.
  words.insert(words.end(), {"--connect-timeout", std::to_string(static_cast<int>(connect_seconds_for(4, 0)))});
  const std::string port = std::to_string(free_port());
  std::map<std::string, std::string> of_four{{"MASTER_PORT", port}, {"WORLD_SIZE", "4"}};
  RankProcesses three(SLIPWAY_RANK_PROGRAM, words, 3, folder, of_four);
  for (const Ended& rank : three.wait(starting_s)) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(the_line(rank), HasSubstr("rank 3 did not join the run within 8 s"));
    EXPECT_LT(rank.seconds, 3 * 10.0);  // ten seconds are promised
  }
}

TEST(Start, ADamagedBundleIsRefused) {
  const std::string folder = temporary_folder().path("damaged");
  const auto words = words_for(folder, endless_bundle(2, 2));
  std::string text = text_of_file(words[0]);
  text[text.size() / 2] = text[text.size() / 2] == '1' ? '2' : '1';
  std::ofstream(words[0]) << text;
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, words, 4, folder);
  for (const Ended& rank : ranks.wait(starting_s)) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(the_line(rank), HasSubstr(words[0]));
  }
}

}  // namespace
}  // namespace slipway::test
