// slipway memory, run in this process.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/search/memory_changes.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";
const std::string tiny = examples + "tiny-llama-cpu.yaml", llama = examples + "llama-8b-64xh100.yaml";

class MemoryCommand : public CommandTest {
 protected:
  static std::vector<std::string> too_big() {
    return {llama,
            "--set",
            "layout.tensor=1",
            "--set",
            "layout.sequence_parallel=false",
            "--set",
            "layout.data=16",
            "--set",
            "schedule.global_batch=64",
            "--set",
            "layout.zero=0",
            "--set",
            "schedule.micro_batch=4"};
  }
  static Answer memory(std::vector<std::string> args, const std::vector<std::string>& more = {}) {
    args.insert(args.begin(), "memory");
    args.insert(args.end(), more.begin(), more.end());
    return slipway_with(args);
  }
  static nlohmann::json summary(const std::vector<std::string>& args) {
    const Answer answer = memory(args, {"--json"});
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
};

TEST_F(MemoryCommand, PrintsTheVerdictFirstThenEveryStagePartByPart) {
  const Answer answer = memory({llama});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_LT(answer.out.find("Fits: pipeline rank"), answer.out.find("closed form"));
  for (const char* text :
       {"90 %: ", "it fits with a probability of", "At 99 %: fits", "80 % rule", "Pipeline rank 0, by part",
        "Pipeline rank 3, by part", "attention (q, k, v, output)", "logits and loss"})
    EXPECT_THAT(answer.out, HasSubstr(text));
  EXPECT_THAT(answer.out, Not(HasSubstr("Changes that save memory")));
}

TEST_F(MemoryCommand, NamesTheStageTheTaskAndTheCheapestChangeThatFits) {
  const Answer answer = memory(too_big());
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("Does not fit: pipeline rank"));
  EXPECT_THAT(answer.out, HasSubstr("it peaks in "));
  EXPECT_THAT(answer.out, HasSubstr("Cheapest that fits: "));
}

// Two stages of the same layers; the first keeps two micro-batches. On the smaller GPU it is too large.
class MemoryOfUnequalGpus : public MemoryCommand {
 protected:
  std::vector<std::string> placed(const std::string& nodes) {
    const std::string file = path("mixed.yaml");
    std::ofstream(file)
        << "model: {family: llama, layers: 16, hidden: 2048, ffn: 5632, heads: 16, vocab: 32000, sequence: 4096}\n"
           "cluster: {groups: [{machine: h100-80gb, nodes: 1, gpus_per_node: 1}, "
           "{machine: a100-40gb, nodes: 1, gpus_per_node: 1}]}\n"
           "layout: {pipeline: 2}\nschedule: {micro_batch: 8, global_batch: 32}\n";
    return {file, "--set", "layout.placement=" + nodes};
  }
  static Answer simulated(std::vector<std::string> args) {
    args.insert(args.begin(), "simulate");
    return slipway_with(args);
  }
};

TEST_F(MemoryOfUnequalGpus, JudgesEachStageByItsOwnGpu) {
  const auto large_first = summary(placed("[0, 1]")), small_first = summary(placed("[1, 0]"));
  EXPECT_TRUE(large_first["fits"]);
  EXPECT_FALSE(small_first["fits"]);
  EXPECT_EQ(small_first["fullest_stage"], 0);
  EXPECT_EQ(small_first["stages"][0]["estimate"], large_first["stages"][0]["estimate"]);  // the same stage
  EXPECT_EQ(small_first["stages"][0]["fits"], false);
  EXPECT_EQ(small_first["stages"][1]["fits"], true);
  EXPECT_LT(small_first["stages"][0]["capacity_bytes"], small_first["stages"][1]["capacity_bytes"]);
  EXPECT_THAT(
      memory(placed("[1, 0]")).out,
      testing::ContainsRegex("Does not fit: pipeline rank 0 .* of 40.0 GiB of a100-40gb; it fits with a probability"));
  EXPECT_THAT(memory(placed("[0, 1]")).out, testing::ContainsRegex("1 \\(rank 1\\).*40.0 GiB of a100-40gb"));
}

TEST_F(MemoryOfUnequalGpus, IsJudgedPerStageBySimulateToo) {
  const Answer small_first = simulated(placed("[1, 0]")), large_first = simulated(placed("[0, 1]"));
  EXPECT_THAT(large_first.out, HasSubstr("(fits: yes)"));
  EXPECT_THAT(small_first.out, HasSubstr("(fits: no)"));
  EXPECT_THAT(small_first.out, testing::ContainsRegex("0 \\(rank 0\\).* 40.0 GiB of a100-40gb +no "));
  EXPECT_THAT(small_first.out, testing::ContainsRegex("1 \\(rank 1\\).* 79.6 GiB of h100-80gb +yes "));
}

TEST_F(MemoryCommand, OfATrainerTheVerdictIsItsOwn) {
  const auto book = summary({llama});
  const auto trainer = summary({llama, "--set", "cluster.trainer=nanotron"});
  EXPECT_EQ(book["trainer"], "generic");
  EXPECT_TRUE(book["trainer_machine"].is_null());
  EXPECT_EQ(trainer["trainer"], "nanotron");
  EXPECT_EQ(trainer["trainer_machine"], "h100-80gb");
  EXPECT_GT(trainer["peak_bytes"], book["peak_bytes"]);
  EXPECT_EQ(trainer["closed_form_bytes"], book["closed_form_bytes"]) << "the author's stays";
  EXPECT_LT(trainer["peak_least_bytes"], trainer["peak_bytes"]);
  EXPECT_GT(trainer["peak_most_bytes"], trainer["peak_bytes"]);
  EXPECT_EQ(trainer["fits_cautious"], trainer["fit_probability"].get<double>() >= 0.99);
  EXPECT_GT(trainer["stages"][0]["estimate"]["tables"], 0);
  EXPECT_EQ(trainer["fits_cautious"].is_boolean(), true);
}

TEST_F(MemoryCommand, SaysWhenNobodyMeasuredTheTrainerOnThisMachine) {
  const Answer answer = memory({llama, "--set", "cluster.trainer=aa-scaling"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("as aa-scaling (no run of it known on h100-80gb) takes it"));
}

TEST_F(MemoryCommand, AnUnknownTrainerIsOneErrorThatListsThem) {
  const Answer answer = memory({llama, "--set", "cluster.trainer=nanotorn"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("there is no trainer 'nanotorn'"));
  EXPECT_THAT(answer.err, HasSubstr("did you mean 'nanotron'?"));
}

// The advice is applied: with these overrides the scenario fits, at the promised step time, and no other change that
// fits is faster.
TEST_F(MemoryCommand, TheCheapestChangeReallyFitsAndCostsWhatItSays) {
  const auto before = summary(too_big());
  ASSERT_EQ(before["fits"], false);
  const auto& best = before["changes"][0];
  EXPECT_EQ(before["cheapest_change"], best["change"]);
  std::vector<std::string> args = too_big();
  for (const std::string each : best["set"]) args.insert(args.end(), {"--set", each});
  const auto after = summary(args);
  EXPECT_EQ(after["fits"], true);
  EXPECT_EQ(after["peak_bytes"], best["peak_bytes"]);
  EXPECT_DOUBLE_EQ(after["step_time_s"], best["step_time_s"]);
  for (const auto& other : before["changes"]) {
    if (other["fits"] == true) {
      EXPECT_GE(other["step_time_s"].get<double>(), best["step_time_s"].get<double>());
    }
  }
}

// Two changes of one degree are one sentence.
TEST(MemoryChanges, OfOneDegreeAreNamedOnceFromFirstToLast) {
  const std::vector<std::string> overrides{"layout.tensor=1", "layout.sequence_parallel=false", "layout.pipeline=1",
                                           "layout.data=1024", "layout.zero=0"};  // 70 G parameters: nothing helps
  const LoadResult loaded = load_scenario(examples + "llama-70b-1024xh100.yaml", overrides);
  ASSERT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  const ChangeSearch search = search_changes(
      loaded.scenario, overrides, [](double) {}, 2);
  bool twice = false;
  for (const TriedChange& tried : search.tried) {
    const std::string& name = tried.variation.words;
    twice |= name == "ZeRO 2 instead of 0";
    EXPECT_THAT(name, Not(HasSubstr("ZeRO 2 instead of 1"))) << name;
  }
  EXPECT_TRUE(twice);
}

TEST_F(MemoryCommand, EveryKeyOfTheJsonIsDocumentedAndEveryDocumentedKeyIsThere) {
  const auto json = summary(too_big()), trained = summary({llama, "--set", "cluster.trainer=nanotron"});
  std::vector<std::string> emitted, documented;
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  for (const auto& [key, value] : trained.items())
    if (!json.contains(key)) emitted.push_back(key);
  for (const std::string& key : outermost(answers_of("memory").front()))
    if (key != "no_closed_form") documented.push_back(key);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(documented));
  for (const auto& stage : json["stages"])
    for (const char* column : {"timeline", "estimate"}) {
      std::int64_t total = 0;
      for (const auto& [part, bytes] : stage[column].items())
        if (part != "total") total += bytes.get<std::int64_t>();
      EXPECT_NEAR(static_cast<double>(total), stage[column]["total"].get<double>(), 18);
    }
}

TEST_F(MemoryCommand, AModelWithoutAClosedFormSaysSoAndHasTheOtherColumns) {
  const auto json = summary({examples + "gpt3-175b-1024xa100.yaml", "--set", "cluster.nodes=8", "--set",
                             "layout.data=1", "--set", "schedule.global_batch=16"});
  EXPECT_TRUE(json["closed_form_bytes"].is_null());
  EXPECT_THAT(json["no_closed_form"], HasSubstr("Llama"));
  EXPECT_GT(json["stages"][0]["estimate"]["mlp"], 0);
}

// K-FAC in the bubbles keeps inputs and errors longer than the passes do: a part of its own, in both sums.
TEST_F(MemoryCommand, WhatIsKeptForWorkInTheBubblesIsCountedAndNamed) {
  const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml";
  const auto filled = summary({bert}),
             plain = summary({bert, "--set", "schedule.fill=none", "--set", "run.optimizer=adamw"});
  double kept = 0;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto& with = filled["stages"][stage];
    EXPECT_EQ(with["estimate"].value("kept_for_bubble_work", 0.0), with["timeline"].value("kept_for_bubble_work", 0.0));
    EXPECT_EQ(plain["stages"][stage]["timeline"].value("kept_for_bubble_work", 0.0), 0);
    kept = std::max(kept, with["timeline"].value("kept_for_bubble_work", 0.0));
  }
  EXPECT_GT(kept, 100e6);
  EXPECT_THAT(memory({bert}).out, HasSubstr("kept for bubble work"));
}

TEST_F(MemoryCommand, ChangesAreTriedOnRequestAlthoughItFits) {
  EXPECT_THAT(memory({tiny}, {"--changes"}).out, HasSubstr("Changes that save memory"));
}

TEST_F(MemoryCommand, TheStepTimeThatChangesAreComparedWithHasItsInterval) {
  const auto json = summary({llama});
  EXPECT_LT(json["step_time_low_s"], json["step_time_s"]);
  EXPECT_LT(json["step_time_s"], json["step_time_high_s"]);
  EXPECT_THAT(memory({llama}, {"--changes"}).out, HasSubstr(", 90 % interval: "));
}

TEST_F(MemoryCommand, AWrongScenarioIsStatusTwo) {
  const Answer answer = memory({tiny, "--set", "layout.pipeline=7"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("layout.pipeline"));
}

TEST_F(MemoryCommand, TheSameScenarioGivesTheSameBytes) { EXPECT_EQ(memory(too_big()).out, memory(too_big()).out); }

}  // namespace
}  // namespace slipway::test
