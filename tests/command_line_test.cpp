// The frame around the commands: help, versions, usage errors.
#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "scenarios/commands/options.h"
#include "scenarios/commands/progress.h"
#include "scenarios/language/nearest.h"
#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(CommandLine, WithoutArgumentsAndWithHelpItListsEveryCommand) {
  for (const auto& args : std::vector<std::vector<std::string>>{{}, {"help"}, {"--help"}}) {
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done);
    for (const Command& command : all_commands()) {
      EXPECT_THAT(answer.out, HasSubstr("  " + std::string(command.name) + " "));
    }
  }
}

TEST(CommandLine, TheVersionIsTheBuilds) {
  const Answer answer = slipway_with({"--version"});
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.out, testing::MatchesRegex("slipway [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLine, HelpOfEveryCommandHasAUsageLineAndAnExampleOfThatCommand) {
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    const Answer answer = slipway_with({name, "--help"});
    EXPECT_EQ(answer.status, status_done);
    EXPECT_THAT(answer.out, HasSubstr("Usage: slipway " + name));
    EXPECT_THAT(answer.out, HasSubstr("Example:\n  slipway " + name));
    EXPECT_EQ(slipway_with({"help", name}).out, answer.out);
    const std::size_t options = answer.out.find("Options:\n") + 9;
    EXPECT_THAT(answer.out.substr(options, answer.out.find("\n\n", options) - options),
                Not(testing::ContainsRegex("\n[^ ]")));  // lines that go on are below their option
    EXPECT_THAT(answer.err, IsEmpty());
  }
}

TEST(CommandLine, AnUnknownCommandNamesTheNearestOne) {
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"simulat"}, {"help", "simulat"}, {"smulate"}}) {
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("did you mean 'slipway simulate'?"));
    EXPECT_THAT(answer.out, IsEmpty());
  }
}

TEST(CommandLine, AWordThatIsLikeNoCommandGetsNoSuggestion) {
  const Answer answer = slipway_with({"frobnicate"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_EQ(answer.err, "slipway: unknown command 'frobnicate' (`slipway help` lists all)\n");
}

TEST(CommandLine, AnUnknownOptionOfAnyCommandIsRefusedByName) {
  for (const Command& command : all_commands()) {
    const Answer answer = slipway_with({std::string(command.name), "--hlep"});
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("unknown option '--hlep'; did you mean '--help'?"));
  }
}

TEST(CommandLine, AnOptionIsNeverAnAbbreviation) {
  EXPECT_THAT(slipway_with({"simulate", "s.yaml", "--trac", "t.json"}).err,
              HasSubstr("unknown option '--trac'"));
}

CommandOptions options_of_a_test() {
  CommandOptions options("test FILE [options]", "Tests.", "slipway test x");
  options.positional("file", 1, 1)
      .values("set", "K=V", "")
      .value("out", "FILE", "")
      .letter('o')
      .flag("json", "");
  options.value("steps", "N", "");
  return options;
}

TEST(CommandOptions, TakesValuesFlagsAndArgumentsInAnyOrder) {
  CommandOptions options = options_of_a_test();
  std::ostringstream out;
  ASSERT_TRUE(
      options.parse({"--set", "a=1", "s.yaml", "--json", "--set=b=2", "-o", "-", "--steps", "12"}, out));
  EXPECT_THAT(options.arguments(), ElementsAre("s.yaml"));
  EXPECT_THAT(options.all("set"), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(options.text("out"), "-");
  EXPECT_TRUE(options.has("json"));
  EXPECT_EQ(options.integer("steps", 3, 1), 12);
}

TEST(CommandOptions, EveryMistakeNamesTheOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{}, "the file is missing"},
      {{"a", "b"}, "unexpected argument 'b'"},
      {{"a", "--out"}, "--out"},
      {{"a", "--json=1"}, "--json"},
      {{"a", "--out", "x", "--out", "y"}, "option '--out' is given twice"},
      {{"a", "-x"}, "unknown option '-x'"},
  };
  for (const auto& [args, words] : mistakes) {
    CommandOptions options = options_of_a_test();
    std::ostringstream out;
    try {
      options.parse(args, out);
      ADD_FAILURE() << words;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
      EXPECT_THAT(error.what(), HasSubstr("usage: slipway test FILE"));
    }
  }
}

TEST(CommandLine, TheShortHelpOfACommandIsItsHelp) {
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    const Answer answer = slipway_with({name, "-h"});
    EXPECT_EQ(answer.status, status_done) << name;
    EXPECT_EQ(answer.out, slipway_with({name, "--help"}).out);
  }
}

TEST(CommandLine, TheMeaningOfJsonKeysIsPrintedAlsoBesideAScenario) {
  int with_json = 0;
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    if (slipway_with({name, "--help"}).out.find("\n  --json ") == std::string::npos) continue;
    ++with_json;
    const Answer alone = slipway_with({name, "--help-json"}), beside = slipway_with({name, "s.yaml", "--help-json"});
    EXPECT_EQ(alone.status, status_done) << name << alone.err;
    EXPECT_EQ(beside.status, status_done) << name << beside.err;
    EXPECT_EQ(beside.out, alone.out);
    EXPECT_THAT(alone.out, testing::StartsWith("  "));
  }
  EXPECT_GE(with_json, 9);
}

TEST(CommandLine, AKeyWithoutSetIsShownWithIt) {
  for (const std::string word : {"layout.tensor=4", "--layout.tensor=4"}) {
    const Answer answer = slipway_with({"simulate", "s.yaml", word});
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("'" + word + "'; did you mean '--set layout.tensor=4'?"));
  }
  EXPECT_THAT(slipway_with({"simulate", "s.yaml", "--layout.tensor"}).err, HasSubstr("'--set layout.tensor=VALUE'"));
  EXPECT_THAT(slipway_with({"simulate", "s.yaml", "more.yaml"}).err, Not(HasSubstr("did you mean")));
}

TEST(CommandLine, AnOptionThatIsTheNameOfANumberOfTheScenarioIsToldItsKey) {
  EXPECT_THAT(slipway_with({"execute", "s.yaml", "--steps", "3"}).err, HasSubstr("unknown option '--steps'; did you mean '--set run.steps=VALUE'?"));
  EXPECT_THAT(slipway_with({"plan", "s.yaml", "--global-batch=8"}).err, HasSubstr("'--set schedule.global_batch=VALUE'"));
  EXPECT_THAT(slipway_with({"plan", "s.yaml", "--csv", "x"}).err, Not(HasSubstr("did you mean"))) << "a file, not what schedule.csv is";
}

TEST(CommandLine, AnOptionThatIsLikeNoOtherGetsNoSuggestion) {
  for (const std::string name : {"show", "lower"})
    EXPECT_THAT(slipway_with({name, "s.yaml", "--json"}).err, testing::AllOf(HasSubstr("unknown option '--json'"), Not(HasSubstr("did you mean"))));
}

TEST(CommandOptions, ANumberOutOfRangeIsRefused) {
  for (const char* text : {"0", "-1", "2x", "1.5", "99999999999"}) {
    CommandOptions options = options_of_a_test();
    std::ostringstream out;
    options.parse({"a", std::string("--steps=") + text}, out);
    try {
      options.integer("steps", 3, 1);
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is no whole number from 1 to 2147483647"));
    }
  }
}

TEST(Nearest, WordsThatBeginWithWhatWasTypedWinAndAreAllNamed) {
  const std::vector<std::string> machines{"a100-40gb", "h100-80gb", "h100-94gb", "h200"};
  EXPECT_THAT(nearest("h100", machines), ElementsAre("h100-80gb", "h100-94gb"));
  EXPECT_THAT(nearest("h20", machines), ElementsAre("h200"));
  EXPECT_EQ(suggestion("h100", machines), "; did you mean 'h100-80gb' or 'h100-94gb'?");
}

TEST(Nearest, ElseTheFewestEditsAndElseTheLettersInTheirOrder) {
  const std::vector<std::string> dtypes{"float64", "float32", "bfloat16"};
  EXPECT_THAT(nearest("flaot32", dtypes), ElementsAre("float32"));
  EXPECT_THAT(nearest("bf16", dtypes), ElementsAre("bfloat16"));
  EXPECT_THAT(nearest("int8", dtypes), IsEmpty());
  EXPECT_THAT(nearest("", dtypes), IsEmpty());
  EXPECT_THAT(nearest("run", {"run.a", "run.b", "run.c", "run.d", "run.e"}), testing::SizeIs(4)) << "more are no answer";
}

TEST(EditDistance, IsLevenshteinsWithSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1);
}

TEST(Ticking, TellsThatTheWorkGoesOnUntilItEnds) {
  std::ostringstream told, quick;
  {
    const Ticking ticking(told, "planning x", std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(told.str(), testing::MatchesRegex("(planning x: 0 s\n)+"));
  { const Ticking ticking(quick, "planning x"); }
  EXPECT_THAT(quick.str(), IsEmpty());
}

TEST(Ticking, PlanningOfAScenarioTellsItsName) {
  std::ostringstream told;
  const std::string example = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  planned(checked_scenario(example, {}), told, {}, std::chrono::milliseconds(1));
  EXPECT_THAT(told.str(), testing::StartsWith("planning llama-8b-64xh100: 0 s\n"));
}

TEST(ProgressLine, NamesWhatIsDoneAndTheTimeThatIsLeft) {
  std::ostringstream err;
  ProgressLine(err, "planning x", false, 0).report(0.5, "simulating the fastest, 12 done, at most 12 left");
  EXPECT_THAT(err.str(), HasSubstr("planning x: simulating the fastest, 12 done, at most 12 left, 50 % after 0 s, about 0 s left"));
}

// A single simulation may take a minute, and reports come between two of them.
TEST(ProgressLine, TellsThatTheWorkGoesOnWhereNoReportComes) {
  std::ostringstream err;
  {
    ProgressLine progress(err, "planning x", false, 0.01);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.report(0.25, "simulating, 1 done");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(err.str(), testing::StartsWith("planning x: 0 s\nplanning x: 0 s\n"));
  EXPECT_THAT(err.str(), testing::EndsWith("planning x: simulating, 1 done, 25 % after 0 s, about 1 s left\n"));
}

TEST(ProgressLine, IsSilentForTheFirstSecondsAndThenALineAtATime) {
  std::ostringstream quiet, loud;
  ProgressLine(quiet, "simulating x", false, 60).report(0.5);
  EXPECT_THAT(quiet.str(), IsEmpty());
  ProgressLine(loud, "simulating x", false, 0).report(0.5);
  EXPECT_THAT(loud.str(), HasSubstr("simulating x: 50 % after 0 s\n"));
}

}  // namespace
}  // namespace slipway
