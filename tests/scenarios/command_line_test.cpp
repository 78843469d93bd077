// The frame around the commands: help, versions, usage errors.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/load_scenario.h"
#include "tests/support/command_test.h"
#include "tests/support/process_limits.h"

namespace slipway::test {

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
                Not(testing::ContainsRegex("\n[^ ]")));  // continued lines are indented below their option
    EXPECT_THAT(answer.err, IsEmpty());
  }
}

TEST(CommandLine, AnUnknownCommandNamesTheNearestOne) {
  for (const auto& args : std::vector<std::vector<std::string>>{{"simulat"}, {"help", "simulat"}, {"smulate"}}) {
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
  EXPECT_THAT(slipway_with({"simulate", "s.yaml", "--trac", "t.json"}).err, HasSubstr("unknown option '--trac'"));
}

CommandOptions options_of_a_test() {
  CommandOptions options("test FILE [options]", "Tests.", "slipway test x");
  options.positional("file", 1, 1).values("set", "K=V", "").value("out", "FILE", "").letter('o').flag("json", "");
  options.value("steps", "N", "");
  return options;
}

TEST(CommandOptions, TakesValuesFlagsAndArgumentsInAnyOrder) {
  CommandOptions options = options_of_a_test();
  std::ostringstream out;
  ASSERT_TRUE(options.parse({"--set", "a=1", "s.yaml", "--json", "--set=b=2", "-o", "-", "--steps", "12"}, out));
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
    EXPECT_EQ(command.answers != nullptr, slipway_with({name, "--help"}).out.find("\n  --json ") != std::string::npos);
    if (command.answers == nullptr) continue;
    ++with_json;
    const Answer alone = slipway_with({name, "--help-json"}), beside = slipway_with({name, "s.yaml", "--help-json"});
    EXPECT_EQ(alone.status, status_done) << name << alone.err;
    EXPECT_EQ(beside.status, status_done) << name << beside.err;
    EXPECT_EQ(beside.out, alone.out);
    EXPECT_THAT(alone.out, testing::StartsWith(command.answers().size() == 1 ? "  " : "slipway " + name));
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
  EXPECT_THAT(slipway_with({"execute", "s.yaml", "--steps", "3"}).err,
              HasSubstr("unknown option '--steps'; did you mean '--set run.steps=VALUE'?"));
  EXPECT_THAT(slipway_with({"plan", "s.yaml", "--global-batch=8"}).err,
              HasSubstr("'--set schedule.global_batch=VALUE'"));
  EXPECT_THAT(slipway_with({"plan", "s.yaml", "--csv", "x"}).err, Not(HasSubstr("did you mean")))
      << "a file, not what schedule.csv is";
}

TEST(CommandLine, AnOptionThatIsLikeNoOtherGetsNoSuggestion) {
  for (const std::string name : {"show", "lower"})
    EXPECT_THAT(slipway_with({name, "s.yaml", "--json"}).err,
                testing::AllOf(HasSubstr("unknown option '--json'"), Not(HasSubstr("did you mean"))));
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
  EXPECT_THAT(nearest("run", {"run.a", "run.b", "run.c", "run.d", "run.e"}), testing::SizeIs(4))
      << "more are no answer";
}

TEST(EditDistance, IsLevenshteinsWithSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1);
}

// A line's texts by a clock that the test moves: seconds of a real one depend on the machine.
class LineOfAClock {
 public:
  explicit LineOfAClock(bool terminal = false, int columns = 0)
      : line_(err_, "planning x", {.terminal = terminal, .columns = columns, .clock = [this] { return now_s; }}) {}
  ProgressLine& line() { return line_; }
  std::string printed() const { return err_.str(); }
  double now_s = 100;  // a clock begins anywhere

 private:
  std::ostringstream err_;
  ProgressLine line_;
};

TEST(ProgressLine, IsSilentForTwoSecondsAndThenALineEveryTwo) {
  LineOfAClock of;
  for (int tenths = 0; tenths < 85; ++tenths) {
    of.now_s = 100 + tenths / 10.0;
    of.line().report(tenths / 100.0);
    if (tenths < 20) {
      ASSERT_EQ(of.printed(), "") << tenths;
    }
  }
  EXPECT_EQ(of.printed(),
            "planning x: 20 % after 2 s, about 8 s left\n"
            "planning x: 40 % after 4 s, about 6 s left\n"
            "planning x: 60 % after 6 s, about 4 s left\n"
            "planning x: 80 % after 8 s, about 2 s left\n");
}

TEST(ProgressLine, NamesTheCurrentWorkAndTheRateOfWhatIsCounted) {
  LineOfAClock of;
  of.line().counts(1e6, "runs");
  of.now_s += 10;
  of.line().report(0.25, "simulating, 12 done");
  EXPECT_EQ(of.printed(), "planning x: simulating, 12 done, 25 % after 10 s, 25,000 runs/s, about 30 s left\n");
}

TEST(ProgressLine, TellsHowLongWorkIsExpectedToTakeThatCannotReportItsShare) {
  std::ostringstream err;
  {
    ProgressLine progress(err, "preparing x", {.quiet_s = 0.02});
    progress.expects(1000, "5.1 M tasks");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(err.str(), HasSubstr("preparing x, 5.1 M tasks: 0 s of about 1000 s\n"));
}

TEST(ProgressLine, EstimatesNothingFromNothingDone) {
  LineOfAClock of;
  of.line().counts(40, "runs");
  of.now_s += 3;
  of.line().report(0);
  of.now_s += 3;
  of.line().report(1);
  EXPECT_EQ(of.printed(), "planning x: 0 % after 3 s\nplanning x: 100 % after 6 s, 6.7 runs/s\n");
}

TEST(ProgressLine, IsRewrittenInPlaceOnATerminalAndLeavesNothingOfALongerOne) {
  LineOfAClock of(true);
  of.now_s += 4;
  of.line().report(0.5, "simulating the fastest");
  of.now_s += 0.1;
  of.line().report(1);
  const std::string longer = "planning x: simulating the fastest, 50 % after 4 s, about 4 s left",
                    shorter = "planning x: 100 % after 4 s";
  EXPECT_EQ(of.printed(), "\r" + longer + "\r" + shorter + std::string(longer.size() - shorter.size(), ' '));
}

// Takes a lock for as long as it prints, as an allocator does under AddressSanitizer.
class LockedOutput : public std::stringbuf {
 public:
  std::timed_mutex lock;
  std::atomic<int> prints{0};

 private:
  int sync() override {
    const std::lock_guard held(lock);
    ++prints;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return 0;
  }
};

TEST(ProgressLine, AChildThatIsForkedWhileItPrintsFindsNoLockHeld) {
  LockedOutput output;
  std::ostream err(&output);
  const ProgressLine line(err, "planning x", {.quiet_s = 0.01});
  constexpr int enough = 20;
  for (int forks = 0; output.prints < enough; ++forks) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(output.lock.try_lock_for(std::chrono::seconds(1)) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "after " << forks << " forks and " << output.prints << " lines";
  }
}

// A line that wraps cannot be rewritten: each report would leave its first half behind.
TEST(ProgressLine, IsNeverAsLongAsATerminalOfFortyColumns) {
  LineOfAClock of(true, 40);
  of.now_s += 4;
  of.line().report(0.5, "simulating the fastest, 12 done, at most 12 left");
  EXPECT_EQ(of.printed(), "\rplanning x: simulating the fastest, 12 ");
}

// A single simulation may take a minute, and reports come between two of them.
TEST(ProgressLine, TellsThatTheWorkGoesOnWhereNoReportComes) {
  std::ostringstream err, quick;
  {
    ProgressLine progress(err, "planning x", {.quiet_s = 0.01});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    progress.report(0.25, "simulating, 1 done");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(err.str(), testing::StartsWith("planning x: 0 s\nplanning x: 0 s\n"));
  EXPECT_THAT(err.str(), testing::EndsWith("planning x: simulating, 1 done, 25 % after 0 s, about 1 s left\n"));
  { const ProgressLine progress(quick, "planning x"); }
  EXPECT_THAT(quick.str(), IsEmpty());
}

TEST(ProgressLine, OfPreparingAScenarioTellsItsName) {
  std::ostringstream printed;
  const std::string example = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  prepared_showing(checked_scenario(example, {}), printed, {}, {.quiet_s = 0.001});
  EXPECT_THAT(printed.str(), testing::StartsWith("preparing llama-8b-64xh100: 0 s\n"));
}

}  // namespace

// Ctrl-C on the real program: a partial answer and exit status 1.

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::vector<std::string> minutes_of_simulation{
    "simulate", SLIPWAY_SOURCE_DIR "/scenarios/studies/scale/llama-8b-64xh100.yaml",
    "--set",    "schedule.global_batch=2000",
    "--exact",  "--steps",
    "20"};

// Starts slipway with arguments that keep it busy for a minute and more, and interrupts it once
// `when(standard error)` holds.
class Interrupted : public CommandTest {
 protected:
  int run(bool (*when)(const std::string& err), std::vector<std::string> arguments = minutes_of_simulation) {
    const std::string out = path("out.txt"), err = path("err.txt");
    std::filesystem::remove(err);  // of an earlier run
    arguments.insert(arguments.begin(), "slipway");
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      std::freopen(out.c_str(), "w", stdout);
      std::freopen(err.c_str(), "w", stderr);
      execv(SLIPWAY_PROGRAM, words.data());
      _exit(99);
    }
    for (int i = 0; i < 1200 * times_slower && !when(content_of(err)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto interrupted = std::chrono::steady_clock::now();
    kill(child, SIGINT);
    int status = 0;
    waitpid(child, &status, 0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - interrupted;
    EXPECT_LT(took.count(), 3 * times_slower) << arguments[1] << ": a second is promised; this machine may be busy";
    out_ = content_of(out), err_ = content_of(err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string out_, err_;
};

TEST_F(Interrupted, WhileItSimulatesTellsHowFarItCame) {
  EXPECT_EQ(run([](const std::string& err) { return err.find("simulating") != std::string::npos; }), 1) << err_;
  EXPECT_NE(out_.find("interrupted: "), std::string::npos) << out_ << err_;
  EXPECT_NE(out_.find("of simulated time"), std::string::npos) << out_;
  EXPECT_NE(out_.find("3 (rank 48)"), std::string::npos) << out_;
}

// The awaited line comes after two seconds of preparing. Three times the batch, so that as much is still to come.
TEST_F(Interrupted, WhileItPreparesEndsWithStatusOne) {
  std::vector<std::string> larger = minutes_of_simulation;
  larger.insert(larger.end(), {"--set", "schedule.global_batch=6000"});
  EXPECT_EQ(run([](const std::string& err) { return err.find("preparing") != std::string::npos; }, larger), 1) << err_;
  EXPECT_NE(err_.find("interrupted"), std::string::npos) << err_;
}

// Commands without a partial answer: they print that, with the status that help promises.
TEST_F(Interrupted, EveryCommandEndsWithStatusOneAndALine) {
  const std::vector<std::string> goodput{"goodput", minutes_of_simulation[1],  "--set",  "cluster.mtbf_per_node=1 min",
                                         "--set",   "run.checkpoint_cost=1 s", "--days", "17"};  // 980 M failures
  const std::vector<std::string> lower{"lower", minutes_of_simulation[1], "--set", "schedule.global_batch=6000",
                                       "-o",    path("run.slip")};
  for (const auto& arguments : {goodput, lower, {"validate", "--engine", "simulation"}}) {
    EXPECT_EQ(run([](const std::string& err) { return !err.empty(); }, arguments), 1) << arguments[0] << err_;
    EXPECT_NE(err_.find("slipway: interrupted before the answer was known"), std::string::npos) << arguments[0] << err_;
  }
}

TEST_F(Interrupted, WhileItStudiesKeepsThePointsThatAreDone) {
  std::string batches = "schedule.global_batch=32";
  for (int i = 2; i <= 1000; ++i) batches += "," + std::to_string(32 * i);
  const std::vector<std::string> study{
      "study", SLIPWAY_SOURCE_DIR "/scenarios/studies/scale/llama-8b-64xh100.yaml", "--vary", batches, "--jobs", "1"};
  EXPECT_EQ(run([](const std::string& err) { return err.find("studying") != std::string::npos; }, study), 1) << err_;
  EXPECT_NE(err_.find("interrupted; the table has"), std::string::npos) << err_;
  EXPECT_NE(out_.find("yes"), std::string::npos) << "the first point fits\n" << out_;
  EXPECT_NE(out_.find("32000: interrupted before its end"), std::string::npos) << out_;
}

}  // namespace

// What the commands refuse to write or to start, before they do anything; all reasons at once.

namespace {

using testing::HasSubstr;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

class Outputs : public CommandTest {
 protected:
  // A copy of the tiny scenario in the folder, which may be lost.
  void SetUp() override {
    CommandTest::SetUp();
    std::string text = text_of(tiny);
    replace(text, "machines/cpu-test.yaml", path("box.yaml"));
    replace(text, "../data/us-founding-documents.txt", path("data.txt"));
    std::ofstream(path("s.yaml")) << text;
    std::ofstream(path("box.yaml")) << text_of(SLIPWAY_SOURCE_DIR "/scenarios/examples/machines/cpu-test.yaml");
    std::ofstream(path("data.txt")) << std::string(10000, 'a');
  }
  static void replace(std::string& text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  }
  void refused(const std::vector<std::string>& args, const std::string& words) const {
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage) << args[0] << answer.err;
    EXPECT_THAT(answer.err, HasSubstr(words));
    EXPECT_EQ(answer.out, "");
  }
};

TEST_F(Outputs, AnInputIsNeverOverwrittenByWhateverNameItIsGiven) {
  const std::string s = path("s.yaml");
  std::filesystem::create_symlink(s, path("link.yaml"));
  std::ofstream(path("records.txt")) << "records";
  const std::size_t before = files();
  for (const std::string& input : {s, path("link.yaml"), path("box.yaml"), path("./data.txt")}) {
    refused({"lower", s, "-o", input}, "would overwrite");
    refused({"simulate", s, "--trace", input}, "would overwrite");
    refused({"execute", s, "--trace", input, "--out", path("run")}, "would overwrite");
    refused({"show", s, "--dot", input}, "would overwrite");
    refused({"calibrate", s, "--measure", "-o", input}, "would overwrite");
  }
  refused({"calibrate", s, "--measured", path("records.txt"), "-o", path("records.txt")}, "would overwrite");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(text_of(path("records.txt")), "records");
}

TEST_F(Outputs, AFolderAndADashAreNoFiles) {
  const std::string s = path("s.yaml");
  refused({"simulate", s, "--trace", path("")}, "is a folder; name a file in it");
  refused({"execute", s, "--trace", path(""), "--out", path("run")}, "is a folder; name a file in it");
  refused({"simulate", s, "--trace", "-"}, "--trace - is not standard output");
  refused({"lower", s, "-o", "-"}, "-o - is not standard output");
  EXPECT_EQ(files(), 3u);
}

TEST_F(Outputs, AnOutFolderThatCannotBeMadeIsToldBeforeAnythingStarts) {
  const Answer answer = slipway_with({"execute", path("s.yaml"), "--out", path("data.txt/run")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("data.txt is not a folder; name a folder that you may create"));
  EXPECT_EQ(answer.out, "");
}

TEST_F(Outputs, WhatCannotBeWrittenIsAMistakeOfTheUserKnownBeforeTheWork) {
  const std::string s = path("s.yaml"), nowhere = path("nowhere/x"),
                    table = SLIPWAY_SOURCE_DIR "/scenarios/studies/fujii-2024/runs.csv";
  refused({"simulate", s, "--trace", nowhere}, "--trace: cannot write " + nowhere);
  refused({"plan", s, "-o", nowhere}, "-o: cannot write " + nowhere);
  refused({"lower", s, "-o", nowhere}, "-o: cannot write " + nowhere);
  refused({"study", s, "--vary", "run.seed=1,2", "--csv", nowhere}, "--csv: cannot write " + nowhere);
  refused({"validate", table, "--rows", nowhere}, "--rows: cannot write " + nowhere);
  refused({"validate", table, "--constants", nowhere}, "--constants: cannot write " + nowhere);
  refused({"validate", table, "--rows", table}, "would overwrite");
  EXPECT_EQ(files(), 3u);
}

TEST_F(Outputs, StagesRanksAndBatchThatCannotBeAreReportedTogether) {
  std::vector<std::string> wrong{"simulate",          path("s.yaml"), "--set",
                                 "layout.pipeline=8", "--set",        "schedule.global_batch=9"};
  // Eight stages of four layers; eight ranks on two GPUs; data is to be derived and cannot be.
  for (const std::string batch : {"micro_batch 2; allowed", "micro_batch 2 x data 3 = 6; allowed"}) {
    refused(wrong, "8 stages are more than the model's 4");
    refused(wrong, "layout.data: ");
    refused(wrong, "the cluster's 2 GPUs");
    refused(wrong, "9 is not divisible by " + batch);
    wrong.insert(wrong.end(), {"--set", "layout.data=3"});
  }
}

TEST_F(Outputs, AMachineWithoutMeasuredRatesIsRefusedWithTheCommandThatMeasures) {
  std::string profile = text_of(path("box.yaml"));
  const std::size_t at = profile.find("\npeak_flops");
  ASSERT_NE(at, std::string::npos);
  profile.replace(at, profile.find('\n', at + 1) - at, "\npeak_flops: {}");
  std::ofstream(path("box.yaml")) << profile;
  const std::string s = path("s.yaml");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"simulate", s},
                                               {"execute", s, "--out", path("run")},
                                               {"confirm", s, "--baseline", "a:", "--case", "b: run.seed=2"}}) {
    refused(args, "(" + path("box.yaml") + ") has no measured rates yet; run `slipway calibrate " + s +
                      " --measure -o M.yaml`");
  }
  EXPECT_EQ(files(), 3u);
}

}  // namespace

}  // namespace slipway::test
