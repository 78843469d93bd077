// confirm with a shell script as the rank program, which reports steps of 10 s for any scenario.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "tests/support/rank_script.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

class Confirm : public RankScriptTest {
 protected:
  void SetUp() override {
    RankScriptTest::SetUp();
    prepare_records(3);
    rank_script("touch " + path("started") + "\n" + copying_script());
  }
  Answer confirm(const std::vector<std::string>& cases, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args{"confirm", tiny,         "--set",      "run.steps=3",
                                  "--out",   path("runs"), "--baseline", "as written:"};
    for (const std::string& one : cases) args.insert(args.end(), {"--case", one});
    args.insert(args.end(), more.begin(), more.end());
    return slipway_with(args);
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(Confirm, TheLastLineIsTheMedianCasesOwnAndTheLineBeforeNamesIt) {
  const Answer answer = confirm({"double: schedule.global_batch=16", "half: schedule.global_batch=4"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const std::vector<std::string> lines = lines_of(answer.out);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines.back(),
              testing::MatchesRegex("predicted [0-9]+\\.[0-9]{3} s, measured 10\\.000 s, off by [0-9]+\\.[0-9] %"));
  // All take 10 s here, so twice the work is off by more: the larger of the middle two.
  EXPECT_THAT(lines[lines.size() - 2],
              testing::StartsWith("Median error over 2 unseen cases, the larger of the middle two: "));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr(", of \"double\""));
  for (const std::string& line : lines) {
    if (line.starts_with("half")) {
      EXPECT_THAT(line, HasSubstr("5.000 s"));  // half the FLOPs of the baseline's 10 s
    }
    if (line.starts_with("double")) {
      EXPECT_THAT(line, HasSubstr("20.000 s"));
    }
  }
}

TEST_F(Confirm, EveryRoundExecutesTheBaselineAndEachCaseInAFolderOfItsOwn) {
  rank_script("[ $RANK = 0 ] && echo $OUT >> " + path("order") + "\n" + copying_script());
  const Answer answer = confirm({"twice as many: schedule.global_batch=16"}, {"--rounds", "2"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::ifstream in(path("order"));
  EXPECT_THAT(lines_of({std::istreambuf_iterator<char>(in), {}}),
              testing::ElementsAre(path("runs/as-written/round-1"), path("runs/twice-as-many/round-1"),
                                   path("runs/twice-as-many/round-2"), path("runs/as-written/round-2")));
}

TEST_F(Confirm, TheBaselineRunsBetweenTheCasesAndNoCaseFarFromIt) {
  rank_script("[ $RANK = 0 ] && echo $OUT >> " + path("order") + "\n" + copying_script());
  const Answer answer = confirm({"16: schedule.global_batch=16", "4: schedule.global_batch=4"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::ifstream in(path("order"));
  EXPECT_THAT(lines_of({std::istreambuf_iterator<char>(in), {}}),
              testing::ElementsAre(path("runs/16/round-1"), path("runs/as-written/round-1"), path("runs/4/round-1")));
}

TEST_F(Confirm, JsonHasExactlyTheDocumentedKeys) {
  const Answer answer = confirm({"half: schedule.global_batch=4"}, {"--json", "--rounds", "2"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  std::set<std::string> emitted, documented;
  for (const auto& [key, value] : json.items()) emitted.insert(key);
  for (const auto& [key, value] : json["cases"][0].items()) emitted.insert("cases[]." + key);
  const AnswerKeys keys = answers_of("confirm").front();
  for (const AnswerKey& key : keys.keys) documented.emplace(key.name);
  EXPECT_EQ(emitted, documented);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_DOUBLE_EQ(json["cases"][0]["scaled_s"], 5);  // half the FLOPs of the baseline's 10 s
  EXPECT_DOUBLE_EQ(json["cases"][0]["spread"], 0);    // every step takes 10 s here
}

TEST_F(Confirm, CanBeRepeatedInItsFolder) {
  for (int time = 0; time < 2; ++time) {
    const Answer answer = confirm({"double: schedule.global_batch=16"});
    EXPECT_EQ(answer.status, status_done) << answer.err;
  }
}

TEST_F(Confirm, ACaseThatCannotRunIsRefusedBeforeTheFirstOneStarts) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"rising: run.optimizer.lr_decay_style=linear run.optimizer.lr_warmup_samples=25", "case \"rising\": "},
      {"rising: run.optimizer.lr_decay_style=linear run.optimizer.lr_warmup_samples=25",
       "the warm-up of 25 sequences is longer than the training, with which the decay ends: 24 "},
      {"wrong: layout.tensr=2", "layout.tensr"},
      {"same: schedule.global_batch=8", "case \"same\" has the settings of the baseline"},
      {"good : run.seed=2", "case \"good\": another case's runs go to the same folder"},
      {"nameless", "expected \"NAME: key=value key=value\""}};
  for (const auto& [text, words] : refused) {
    const Answer answer = confirm({"good: schedule.global_batch=16", text});
    EXPECT_EQ(answer.status, status_usage) << answer.err;
    EXPECT_THAT(answer.err, HasSubstr(words));
  }
  EXPECT_FALSE(std::filesystem::exists(path("started")));
  EXPECT_FALSE(std::filesystem::exists(path("runs")));
}

TEST_F(Confirm, ARunThatFailsIsAFailure) {
  rank_script("exit 3");
  const Answer answer = confirm({"double: schedule.global_batch=16"});
  EXPECT_EQ(answer.status, status_failed);
  EXPECT_THAT(answer.err, HasSubstr("the run of \"as written\" failed"));
}

}  // namespace
}  // namespace slipway::test
