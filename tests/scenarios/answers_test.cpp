#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <set>

#include "scenarios/commands/command_line/terminal_timeline.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "tests/support/command_test.h"

namespace slipway::test {

namespace {

TEST(Readable, SecondsHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(readable_seconds(0), "0 s");
  EXPECT_EQ(readable_seconds(3.21e-6), "3.21 µs");
  EXPECT_EQ(readable_seconds(0.4123), "412 ms");
  EXPECT_EQ(readable_seconds(0.99999), "1.00 s");
  EXPECT_EQ(readable_seconds(12.345), "12.3 s");
  EXPECT_EQ(readable_seconds(9000), "2.50 h");
  EXPECT_EQ(readable_seconds(864000), "10.0 days");
}

TEST(Readable, BytesAreBinary) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1536), "1.50 KiB");
  EXPECT_EQ(readable_bytes(80.0 * (1 << 30)), "80.0 GiB");
}

TEST(Readable, SharesHaveNoZeroWithASign) {
  EXPECT_EQ(readable_share(-1e-9), "0.0 %");
  EXPECT_EQ(readable_share(-0.002), "-0.2 %");
}

TEST(Readable, CountsHaveGroupsOfThreeOrAPrefix) {
  EXPECT_EQ(readable_count(7), "7");
  EXPECT_EQ(readable_count(1234), "1,234");
  EXPECT_EQ(readable_count(999999), "999,999");
  EXPECT_EQ(readable_count(-123456), "-123,456");
  EXPECT_EQ(readable_count(8.03e9), "8.03 G");
}

TEST(Readable, NounsFollowTheirNumber) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(1200, "task"), "1,200 tasks");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
}

TEST(AlignedTable, TheFirstColumnIsLeftTheOthersRightAndWidthIsWhatOneSees) {
  EXPECT_EQ(aligned_table({{"kind", "time"}, {"forward", "3 µs"}, {"b", "12 ms"}}, "  "),
            "  kind      time\n  forward   3 µs\n  b        12 ms\n");
}

}  // namespace

namespace {

struct Part {
  std::string name;
  double seconds = 0;
};
struct Whole {
  double b_s = 0.1 + 0.2;
  int a = 3;
  std::vector<Part> parts{{"z", 1.5}, {"y", std::nan("")}};
  std::optional<Part> found;
  double twice() const { return 2 * b_s; }
};

Description<Part> part_keys() {
  return Description<Part>()
      .key("seconds", "s", "how long", &Part::seconds)
      .column("time", readable_seconds)
      .key("name", "text", "what", &Part::name)
      .column("part");
}

std::vector<std::string> names(const std::vector<AnswerKey>& keys) {
  std::vector<std::string> all;
  for (const AnswerKey& key : keys) all.push_back(key.name);
  return all;
}

TEST(Description, KeysComeInTheOrderOfTheirDeclarationAndNumbersRoundTrip) {
  const auto description = Description<Whole>()
                               .key("b_s", "s", "a member", &Whole::b_s)
                               .key("twice", "s", "a member function", &Whole::twice)
                               .key("a", "count", "a lambda", [](const Whole& whole) { return whole.a; });
  EXPECT_EQ(description.text({}),
            "{\n  \"b_s\": 0.30000000000000004,\n  \"twice\": 0.6000000000000001,\n  \"a\": 3\n}\n");
}

TEST(Description, TheKeysOfObjectsInsideComeFromTheirOwnDescription) {
  const auto description = Description<Whole>()
                               .list("parts", "all", &Whole::parts, part_keys())
                               .object("found", "one of them", &Whole::found, part_keys())
                               .listed_elsewhere();
  const auto json = nlohmann::json::parse(description.text({}));
  EXPECT_EQ(json["parts"][0], (nlohmann::json{{"name", "z"}, {"seconds", 1.5}}));
  EXPECT_FALSE(json.contains("found"));
  EXPECT_EQ(names(description.keys()), (std::vector<std::string>{"parts", "parts[].seconds", "parts[].name", "found"}));
  Whole whole;
  whole.found = Part{"x", 1};
  EXPECT_EQ(nlohmann::json::parse(description.text(whole))["found"]["name"], "x");
}

TEST(Description, NamedObjectsAreAMap) {
  const auto by_name = [](const Whole& whole) {
    return std::map<std::string, Part>{{"first", whole.parts[0]}, {"second", whole.parts[1]}};
  };
  const auto description = Description<Whole>().map("parts", "by name", by_name, part_keys());
  EXPECT_EQ(nlohmann::json::parse(description.text({}))["parts"]["first"]["seconds"], 1.5);
  EXPECT_EQ(names(description.keys()), (std::vector<std::string>{"parts", "parts.*.seconds", "parts.*.name"}));
}

TEST(Description, NumbersThatJsonCannotHoldBecomeNull) {
  const auto description = Description<Whole>().list("parts", "all", &Whole::parts, part_keys());
  EXPECT_TRUE(nlohmann::json::parse(description.text({}))["parts"][1]["seconds"].is_null());
}

TEST(Description, WhatIsNotThereIsAbsentOrNull) {
  const auto never = [](const Whole&) { return false; };
  const auto description = Description<Whole>()
                               .key("a", "count", "absent", &Whole::a)
                               .when(never)
                               .key("b_s", "s", "null", &Whole::b_s)
                               .when(never)
                               .else_null();
  EXPECT_EQ(description.text({}), "{\n  \"b_s\": null\n}\n");
  EXPECT_TRUE(description.keys()[0].optional);
  EXPECT_FALSE(description.keys()[1].optional);
}

TEST(Description, KeysOfAnotherDescriptionStandBesideItsOwn) {
  const auto description =
      Description<Whole>().key("a", "count", "its own", &Whole::a).include(part_keys(), &Whole::found);
  EXPECT_EQ(names(description.keys()), (std::vector<std::string>{"a", "seconds", "name"}));
  EXPECT_EQ(description.text({}), "{\n  \"a\": 3\n}\n");
  Whole whole;
  whole.found = Part{"x", 1};
  EXPECT_EQ(nlohmann::json::parse(description.text(whole))["name"], "x");
}

TEST(Description, TablesHaveTheKeysThatHaveAColumn) {
  EXPECT_EQ(part_keys().table(std::vector<Part>{{"z", 1.5}}),
            (std::vector<std::vector<std::string>>{{"time", "part"}, {"1.50 s", "z"}}));
}

TEST(Description, TablesLeaveOutAColumnThatIsEmptyInEveryRow) {
  const auto more = [](const Part& part) { return part.seconds > 1 ? "more" : "-"; };
  const auto description = Description<Part>()
                               .key("name", "text", "its own", &Part::name)
                               .column("part")
                               .only_column("than 1 s", more)
                               .if_any();
  EXPECT_EQ(description.table(std::vector<Part>{{"y", 0.5}, {"z", 1.5}}),
            (std::vector<std::vector<std::string>>{{"part", "than 1 s"}, {"y", "-"}, {"z", "more"}}));
  EXPECT_EQ(description.table(std::vector<Part>{{"y", 0.5}}), (std::vector<std::vector<std::string>>{{"part"}, {"y"}}));
}

TEST(AnswerKeys, EveryKeyIsNamedOnceAndHasUnitAndMeaning) {
  const std::string listed = slipway_with({"list", "json-keys"}).out;
  for (const Command& command : all_commands()) {
    if (command.answers == nullptr) continue;
    for (const AnswerKeys& answer : command.answers()) {
      EXPECT_THAT(listed, testing::HasSubstr("slipway " + answer.command + "\n" + describe(answer.keys)));
      std::set<std::string> known;
      for (const AnswerKey& key : answer.keys) {
        EXPECT_TRUE(known.insert(key.name).second) << answer.command << ": " << key.name;
        EXPECT_FALSE(key.unit.empty() || key.meaning.empty()) << answer.command << ": " << key.name;
      }
    }
  }
}

}  // namespace

// The contents of a prediction's first line, and the default dtype.

namespace {

using testing::HasSubstr;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

nlohmann::json summary_of(std::vector<std::string> args) {
  args.insert(args.begin(), "simulate");
  args.push_back("--json");
  return nlohmann::json::parse(slipway_with(args).out);
}

std::string headline_of(std::vector<std::string> settings) {
  std::vector<std::string> args{"simulate", llama};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  const std::string out = slipway_with(args).out;
  return out.substr(0, out.find('\n'));
}

TEST(Headline, TheHeadlineNamesRecomputationAndKernelsThatAreNotTheDefault) {
  EXPECT_THAT(headline_of({}), testing::EndsWith("bfloat16"));
  EXPECT_THAT(headline_of({"schedule.recompute=full"}), testing::EndsWith("bfloat16, recompute full"));
  EXPECT_THAT(headline_of({"schedule.recompute=selective", "schedule.kernels=torch"}),
              testing::EndsWith("bfloat16, recompute selective, kernels torch"));
  EXPECT_THAT(headline_of({"schedule.name=terapipe", "schedule.slices=8"}), testing::EndsWith("bfloat16, 8 slices"));
}

// Jiang et al. 2024: 47B parameters, of which a token uses 13B.
TEST(Headline, OfAMixtureOfExpertsItTellsHowManyParametersATokenGoesThrough) {
  EXPECT_THAT(headline_of({}), HasSubstr("llama-3.1-8b (8.03 G parameters), sequence"));
  EXPECT_THAT(headline_of({"model=mixtral-8x7b", "model.sequence=8192"}),
              HasSubstr("(46.7 G parameters, 12.9 G active), sequence"));
  EXPECT_NEAR(summary_of({llama, "--set", "model=mixtral-8x7b", "--set", "model.sequence=8192"})["active_parameters"]
                  .get<double>(),
              12.9e9, 5e7);
  EXPECT_FALSE(summary_of({llama}).contains("active_parameters"));
}

// V100s have no bfloat16: their 16 bits are float16, with a peak of 125 and not 15.7 TFLOP/s.
TEST(Headline, GpusWithoutBfloat16TrainInFloat16AndNotSilentlyInFloat32) {
  EXPECT_THAT(headline_of({"cluster.machine=v100-32gb", "schedule.kernels=fused_softmax"}), HasSubstr(", float16"));
  EXPECT_THAT(headline_of({"cluster.machine=v100-32gb", "schedule.kernels=fused_softmax", "run.dtype=float32"}),
              HasSubstr(", float32"));
  const std::vector<std::string> v100{llama, "--set", "cluster.machine=v100-32gb", "--set",
                                      "schedule.kernels=fused_softmax"};  // it has no flash attention
  std::vector<std::string> v100_whole = v100;
  v100_whole.insert(v100_whole.end(), {"--set", "run.dtype=float32"});
  const auto half = summary_of(v100), whole = summary_of(v100_whole);
  EXPECT_NEAR(whole["mfu"].get<double>() * whole["step_time_s"].get<double>() /
                  (half["mfu"].get<double>() * half["step_time_s"].get<double>()),
              125 / 15.7, 1e-9);
  EXPECT_LT(half["peak_memory_bytes"][0], whole["peak_memory_bytes"][0]);
  // On a GPU that has both, float16 takes the time and the memory of bfloat16.
  auto brain = summary_of({llama}), other = summary_of({llama, "--set", "run.dtype=float16"});
  for (const char* same : {"step_time_s", "mfu", "peak_memory_bytes"}) EXPECT_EQ(brain[same], other[same]) << same;
}

}  // namespace

namespace {

using testing::HasSubstr;

std::string cells(const std::string& text) {
  const std::string bar = "│";
  const std::size_t from = text.find(bar) + bar.size();
  return text.substr(from, text.find(bar, from) - from);
}

TEST(TerminalTimeline, AColumnIsASliceOfTimeAndTheLetterWhatRanInIt) {
  // 12 s on 12 columns: name "rank 0" and three more characters make 21.
  const TimelinePicture picture{{{"rank 0", {{0, 3, 'F'}, {5, 11, 'B'}, {11, 12, 'O'}}}}, 0, 12, 1};
  EXPECT_EQ(cells(draw(picture, 21)), "FFF··BBBBBBO");
}

TEST(TerminalTimeline, ASliceWithSeveralTasksShowsTheLongest) {
  const TimelinePicture picture{{{"rank 0", {{0, 0.4, 'F'}, {0.4, 1, 'B'}, {9.7, 10, 'O'}}}}, 0, 10, 1};
  EXPECT_EQ(cells(draw(picture, 19)), "B·········");
}

TEST(TerminalTimeline, ManyTasksInEachSliceTakeTurnsInProportionToTheirTime) {
  TimelineRow row{"rank 0", {}};
  for (int i = 0; i < 300; ++i) {  // ten pairs per column: one third forward, two thirds backward
    row.spans.push_back({3.0 * i, 3.0 * i + 1, 'F'});
    row.spans.push_back({3.0 * i + 1, 3.0 * i + 3, 'B'});
  }
  const std::string text = cells(draw({{row}, 0, 900, 1}, 39));
  EXPECT_EQ(std::count(text.begin(), text.end(), 'F'), 10);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'B'), 20);
}

TEST(TerminalTimeline, TellsHowLongAColumnIsWhatLettersMeanAndHowManyRanksAreHidden) {
  const std::string text = draw({{{"rank 0", {{0, 5, 'F'}}}}, 0, 10, 9}, 19);
  EXPECT_THAT(text, HasSubstr("one column = 1.00 s, F forward, · idle"));
  EXPECT_THAT(text, HasSubstr("8 ranks not shown"));
  EXPECT_THAT(text, testing::Not(HasSubstr("backward")));
}

TEST(TerminalTimeline, OfAMeasuredTraceOnlyComputeLanesAndTheAskedStepAreDrawn) {
  Trace trace;
  trace.records = {{0, 0, "compute", "0F0", "forward", 0, 1, 0, 0, 0, -1},
                   {1, 0, "compute", "0F0", "forward", 10, 15, 0, 0, 0, -1},
                   {1, 0, "dp", "x", "all-reduce", 15, 30, 0, 0, 0, 2},
                   {1, 0, "compute", "opt", "optimizer", 15, 20, 0, 0, 0, -1}};
  const TimelinePicture picture = picture_of(trace, Layout{}, 1);
  EXPECT_EQ(picture.begin_s, 10);
  EXPECT_EQ(picture.end_s, 20);
  EXPECT_EQ(cells(draw(picture, 19)), "FFFFFOOOOO");
}

TEST(TerminalTimeline, ABigLayoutShowsTheFirstRankOfEveryPipelineRank) {
  Layout layout;
  layout.tensor = 8;
  layout.pipeline = 4;
  const TimelinePicture picture = picture_of(Trace{}, layout, 0);
  ASSERT_EQ(picture.rows.size(), 4u);
  EXPECT_EQ(picture.rows[1].name, "rank 8");
  EXPECT_EQ(picture.ranks, 32);
}

TEST(TerminalTimeline, EveryKindOfComputeTaskHasALetter) {
  for (const char* kind :
       {"forward", "backward", "input-grad", "weight-grad", "recompute", "optimizer", "grad-norm", "tied-grad"}) {
    EXPECT_NE(letter_of_kind(kind), '?') << kind;
  }
}

}  // namespace

}  // namespace slipway::test
