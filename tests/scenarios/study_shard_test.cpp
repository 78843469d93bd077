// slipway study on several machines: shards, their merging, the Slurm script.
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "scenarios/commands/command_line/shard.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml";

class StudyShard : public CommandTest {
 protected:
  // The study of these tests with further words. One of its five points is refused.
  Answer study(const std::vector<std::string>& more, const std::string& values = "1,2,3,4,8") {
    std::vector<std::string> words{"study", tiny, "--vary", "schedule.micro_batch=" + values};
    words.insert(words.end(), more.begin(), more.end());
    return slipway_with(words);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  void run_shards(int count) {
    for (int number = 1; number <= count; ++number) {
      const Answer shard =
          study({"--shard", std::to_string(number) + "/" + std::to_string(count), "--into", path("parts")});
      ASSERT_EQ(shard.status, status_done) << shard.err;
    }
  }
};

TEST(StudyShards, HaveEveryPointOnce) {
  for (const int count : {1, 2, 3, 7, 12}) {
    std::multiset<std::size_t> all;
    for (int number = 1; number <= count; ++number)
      for (const std::size_t at : points_in({number, count}, 10)) all.insert(at);
    EXPECT_EQ(all, (std::multiset<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << count;
  }
}

TEST_F(StudyShard, AFileThatIsAnotherShardOrLacksValuesIsRefusedByName) {
  run_shards(2);
  const std::string second = path("parts") + "/shard-2-of-2.json", good = text_of(second);
  std::filesystem::copy_file(path("parts") + "/shard-1-of-2.json", second,
                             std::filesystem::copy_options::overwrite_existing);
  Answer merged = study({"--merge", path("parts")});
  EXPECT_EQ(merged.status, status_usage);
  EXPECT_THAT(merged.err, HasSubstr("shard-2-of-2.json is another shard under this name"));
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\"part\": 1", "\"part\": 99"}, {"\"values\": [", "\"values\": [1.5, "}}) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(second) << text;
    merged = study({"--merge", path("parts")});
    EXPECT_EQ(merged.status, status_usage) << to;
    EXPECT_THAT(merged.err, HasSubstr("shard-2-of-2.json has ")) << to;
  }
}

TEST_F(StudyShard, MergedTheyAreTheSameBytesAsOneMachine) {
  for (const int count : {2, 7}) {  // more shards than points: some have none
    run_shards(count);
    for (const std::vector<std::string>& output : {std::vector<std::string>{}, {"--json"}}) {
      std::vector<std::string> merge{"--merge", path("parts"), "--csv", path("m.csv"), "--plot", path("m.svg")};
      std::vector<std::string> alone{"--csv", path("m2.csv"), "--plot", path("m2.svg")};
      merge.insert(merge.end(), output.begin(), output.end());
      alone.insert(alone.end(), output.begin(), output.end());
      const Answer merged = study(merge), one = study(alone);
      ASSERT_EQ(merged.status, status_done) << merged.err;
      const std::size_t files = merged.out.find("\ntable: ");
      EXPECT_EQ(merged.out.substr(0, files), one.out.substr(0, files));
      EXPECT_EQ(text_of(path("m.csv")), text_of(path("m2.csv")));
      EXPECT_EQ(text_of(path("m.svg")), text_of(path("m2.svg")));
    }
    std::filesystem::remove_all(path("parts"));
  }
}

TEST_F(StudyShard, AMissingADamagedAndAForeignShardAreNamedAndNothingIsWritten) {
  run_shards(3);
  const std::string second = path("parts") + "/shard-2-of-3.json";
  const std::string whole = text_of(second);
  const auto refused = [&](const std::string& reason, const std::string& values = "1,2,3,4,8") {
    const Answer answer = study({"--merge", path("parts"), "--csv", path("m.csv")}, values);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(path("m.csv")));
  };
  refused("is of another command", "1,2");
  std::filesystem::remove(second);
  refused("shard-2-of-3.json cannot be read; run this shard");
  write("parts/shard-2-of-3.json", whole.substr(0, whole.size() / 2));
  refused("shard-2-of-3.json is no whole file of a shard");
  std::filesystem::remove_all(path("parts"));
  refused("there is no shard-1-of-N.json");
}

TEST_F(StudyShard, AScenarioThatWasEditedMeanwhileIsNotMerged) {
  write("s.yaml", text_of(tiny));
  const std::vector<std::string> words{"study", path("s.yaml"), "--vary", "schedule.micro_batch=1,2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return slipway_with(all);
  };
  ASSERT_EQ(with({"--shard", "1/1", "--into", path("parts")}).status, status_done);
  ASSERT_EQ(with({"--merge", path("parts")}).status, status_done);
  write("s.yaml", text_of(tiny) + "# changed\n");
  EXPECT_THAT(with({"--merge", path("parts")}).err, HasSubstr("other contents of the scenario's files"));
}

TEST_F(StudyShard, WrongUsesAreRefusedByName) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--shard", "0/4", "--into", path("p")}, "--shard 0/4 is no I/N"},
      {{"--shard", "5/4", "--into", path("p")}, "--shard 5/4 is no I/N"},
      {{"--shard", "2", "--into", path("p")}, "--shard 2 is no I/N"},
      {{"--shard", "1/4"}, "--shard needs --into"},
      {{"--into", path("p")}, "--into is where --shard I/N writes"},
      {{"--shard", "1/4", "--into", path("p"), "--csv", path("c")}, "exclude each other"},
      {{"--shard", "1/4", "--into", path("p"), "--merge", path("p")}, "exclude each other"},
      {{"--emit", "pbs", "--into", path("p")}, "allowed: slurm"},
      {{"--emit", "slurm"}, "--emit needs --into"},
      {{"--emit", "slurm", "--into", path("p"), "--csv", path("c")}, "exclude each other"},
  };
  for (const auto& [words, reason] : mistakes) {
    const Answer answer = study(words);
    EXPECT_EQ(answer.status, status_usage) << reason;
    EXPECT_THAT(answer.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(path("p")));
  }
}

// The script with `sbatch` played by a shell: each task of the array runs, then the command of its comment.
TEST_F(StudyShard, TheSlurmScriptsTasksGiveTheStudy) {
  const Answer script = study({"--emit", "slurm", "--shards", "3", "--into", path("parts of mine")});
  ASSERT_EQ(script.status, status_done) << script.err;
  EXPECT_THAT(script.out, HasSubstr("#SBATCH --array=1-3\n"));
  write("job.sh", script.out);
  std::filesystem::create_directories(path("bin"));
  std::filesystem::create_symlink(SLIPWAY_PROGRAM, path("bin/slipway"));
  const std::string here = "PATH='" + path("bin") + "':$PATH ";
  for (const char* task : {"1", "2", "3"})
    ASSERT_EQ(std::system((here + "SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_ID=" + task + " bash '" + path("job.sh") +
                           "' >/dev/null")
                              .c_str()),
              0);
  const std::size_t begin = script.out.find("#   slipway study") + 4;
  const std::string merge = script.out.substr(begin, script.out.find('\n', begin) - begin);
  ASSERT_EQ(std::system((here + merge + " --csv '" + path("m.csv") + "' >/dev/null").c_str()), 0);
  study({"--csv", path("alone.csv")});
  EXPECT_EQ(text_of(path("m.csv")), text_of(path("alone.csv")));
}

}  // namespace
}  // namespace slipway::test
