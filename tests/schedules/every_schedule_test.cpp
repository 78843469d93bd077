// One scenario file runs every schedule of the catalogue by its name alone, in every command. A schedule that PyTorch's
// CSV can express comes back as the same step.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "schedules/step/action.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string compared = SLIPWAY_SOURCE_DIR "/scenarios/studies/schedules/gpt-4x8.yaml";

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Schedule& schedule : all_schedules()) list.push_back(schedule.name);
  return list;
}

TEST(Catalogue, HoldsTheFourteenSchedules) {
  EXPECT_THAT(names(), testing::IsSupersetOf({"gpipe", "1f1b", "interleaved-1f1b", "chimera", "zb-h1", "zb-h2", "zb-v",
                                              "dualpipe-v", "terapipe", "1f1b-merged", "dualpipe", "looped-bfs",
                                              "v-min", "v-half"}));
}

class EverySchedule : public CommandTest, public testing::WithParamInterface<std::string> {
 protected:
  const std::string& name() const { return GetParam(); }
  const Schedule& schedule() const { return *schedule_named(name()); }
  Answer run(const std::string& command, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {command, compared, "--set", "schedule.name=" + name()});
    const Answer answer = slipway_with(more);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer;
  }
};

TEST_P(EverySchedule, RunsInEveryCommandByItsNameAlone) {
  const auto simulated = nlohmann::json::parse(run("simulate", {"--json"}).out);
  EXPECT_TRUE(simulated["fits"]);
  EXPECT_GT(simulated["mfu"].get<double>(), 0.1);
  EXPECT_THAT(run("show").out, AllOf(HasSubstr("; " + name() + ", 8 micro-batches"), HasSubstr("rank 3 │")));
  EXPECT_THAT(run("memory").out, HasSubstr("Fits: "));
  run("lower", {"-o", path("run.slip")});
  EXPECT_THAT(text_of(path("run.slip")), HasSubstr(name()));
}

// The file is given with the name gpipe, so that the order can only come from it. Chimera's two copies of the model
// cannot be inferred from eight stages, so it keeps its name.
TEST_P(EverySchedule, ComesBackFromItsCsvOrSaysWhyNot) {
  const Answer csv = slipway_with({"show", compared, "--set", "schedule.name=" + name(), "--csv"});
  if (schedule().default_slices > 1) {
    EXPECT_EQ(csv.status, status_usage);
    EXPECT_THAT(csv.err, HasSubstr("PyTorch's schedule CSV has no slices, but schedule.slices is 4"));
    return;
  }
  ASSERT_EQ(csv.status, status_done) << csv.err;
  std::ofstream(path("s.csv")) << csv.out;
  const std::string carrier = schedule().copies > 1 ? name() : "gpipe";
  const Answer imported = slipway_with(
      {"simulate", compared, "--json", "--set", "schedule.name=" + carrier, "--set", "schedule.csv=" + path("s.csv")});
  ASSERT_EQ(imported.status, status_done) << imported.err;
  const auto theirs = nlohmann::json::parse(imported.out),
             ours = nlohmann::json::parse(run("simulate", {"--json"}).out);
  for (const char* key : {"step_time_s", "tasks", "peak_memory_bytes", "bubble_share"})
    EXPECT_EQ(theirs[key], ours[key]) << key;
}

INSTANTIATE_TEST_SUITE_P(ByName, EverySchedule, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

using ImpossibleSchedule = CommandTest;

TEST_F(ImpossibleSchedule, OddChimeraMarksTheMissingRankAndNoMicroBatchThatIsThere) {
  const Answer answer = slipway_with({"show", compared, "--set", "schedule.name=chimera", "--set", "layout.pipeline=3",
                                      "--set", "cluster.gpus_per_node=3"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("even number of pipeline ranks, not 3"), HasSubstr("rank 3 │")));
  EXPECT_THAT(answer.err, testing::Not(HasSubstr("F8")));  // there are eight micro-batches, 0 to 7
}

TEST_F(ImpossibleSchedule, EveryComplaintOfACsvNamesTheFile) {
  std::ofstream(path("s.csv")) << "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n";
  const Answer answer = slipway_with({"show", compared, "--set", "schedule.csv=" + path("s.csv")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, testing::Not(HasSubstr("correct ,")));
}

TEST_F(ImpossibleSchedule, ASlipOfThePenInACsvIsOneComplaintAndMakesNoStages) {
  std::ofstream(path("s.csv")) << "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,99F0,3B0\n";
  const Answer answer = slipway_with({"show", compared, "--set", "schedule.csv=" + path("s.csv"), "--set",
                                      "schedule.global_batch=2", "--set", "schedule.micro_batch=2"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("99F0 has a stage that is not among 0 to 3;"));
  EXPECT_THAT(answer.err, testing::Not(HasSubstr("has no")));
}

TEST_F(ImpossibleSchedule, AWildStageNumberInAWholeRowIsOneComplaint) {
  std::ofstream(path("s.csv")) << "0F0,0B0\n1F0,1B0\n2F0,2B0\n2000000000F0,2000000000B0\n";
  const Answer answer = slipway_with({"simulate", compared, "--set", "schedule.csv=" + path("s.csv"), "--set",
                                      "schedule.global_batch=2", "--set", "schedule.micro_batch=2"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("2000000000F0 and 1 other action have a stage that is not among 0 to 3;"));
  EXPECT_EQ(answer.err.find("schedule.csv:"), answer.err.rfind("schedule.csv:")) << answer.err;
}

TEST_F(ImpossibleSchedule, ACsvOfTwoDirectionsNamesTheScheduleThatHasThem) {
  const Answer csv = slipway_with({"show", compared, "--set", "schedule.name=chimera", "--csv"});
  std::ofstream(path("s.csv")) << csv.out;
  const Answer answer = slipway_with({"show", compared, "--set", "schedule.csv=" + path("s.csv")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("set schedule.name to chimera"), HasSubstr("rank 3 │")));
  EXPECT_THAT(answer.err, testing::Not(HasSubstr("has no")));
}

using TeraPipe = CommandTest;

TEST_F(TeraPipe, HasASmallerBubbleThanGPipeAndTheMoreSoTheMoreSlices) {
  double bubble = 1;
  for (const char* setting : {"schedule.name=gpipe", "schedule.slices=2", "schedule.slices=4", "schedule.slices=8"}) {
    const Answer answer =
        slipway_with({"simulate", compared, "--json", "--set", "schedule.name=terapipe", "--set", setting});
    const double share = nlohmann::json::parse(answer.out)["bubble_share"];
    EXPECT_LT(share, 0.9 * bubble) << setting;
    bubble = share;
  }
}

TEST_F(TeraPipe, IsRefusedWithOneErrorWhereItCannotBe) {
  const auto refusal = [](const std::string& setting) {
    const Answer answer = slipway_with({"simulate", compared, "--set", "schedule.name=terapipe", "--set", setting});
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 3) << answer.err;  // title, error, empty line
    return answer.err;
  };
  EXPECT_THAT(refusal("model=bert-base"), HasSubstr("terapipe needs causal attention, which bert-base does not have"));
  EXPECT_THAT(refusal("schedule.slices=3"), HasSubstr("schedule.slices = 3 does not divide model.sequence = 2048"));
  EXPECT_THAT(refusal("schedule.recompute=full"), HasSubstr("set schedule.recompute to selective"));
  EXPECT_THAT(refusal("layout.chunks=2"), HasSubstr("terapipe runs one stage per rank, not 2"));
}

}  // namespace
}  // namespace slipway::test
