// simulate, show, lower and list, run in this process on the example scenarios.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/chrome_trace.h"
#include "scenarios/json_summary.h"
#include "schedules/bundle.h"
#include "schedules/schedule_csv.h"
#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";
const std::string tiny = examples + "tiny-llama-cpu.yaml", llama = examples + "llama-8b-64xh100.yaml";

using Commands = CommandTest;

nlohmann::json summary_of(std::vector<std::string> args) {
  args.insert(args.begin(), "simulate");
  args.push_back("--json");
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return nlohmann::json::parse(answer.out);
}

TEST_F(Commands, SimulatePrintsTheAnswerFirstAndThenWhereTheTimeGoes) {
  const Answer answer = slipway_with({"simulate", tiny});
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.err, IsEmpty());
  const std::size_t step = answer.out.find("step time"), why = answer.out.find("Where the time goes");
  ASSERT_NE(why, std::string::npos);
  EXPECT_LT(step, why);
  EXPECT_THAT(answer.out, HasSubstr("fits: yes"));
  EXPECT_THAT(answer.out, HasSubstr("rank 1 │"));
}

TEST_F(Commands, SimulateSaysAtWhosePaceItWorksAndWhenNobodyTimedTheTrainer) {
  const Answer plain = slipway_with({"simulate", llama});
  const Answer paced = slipway_with({"simulate", llama, "--set", "cluster.stack=nanotron"});
  const Answer untimed = slipway_with({"simulate", llama, "--set", "cluster.stack=aa-scaling"});
  EXPECT_THAT(plain.out, Not(HasSubstr("at the pace of")));
  EXPECT_THAT(paced.out, HasSubstr("at the pace of nanotron"));
  EXPECT_THAT(untimed.out, HasSubstr("nobody timed aa-scaling on this machine: priced by its profile alone"));
}

TEST_F(Commands, SimulatePutsTheClosedFormOfMemoryBesideTheTimelineWhereThereIsOne) {
  EXPECT_THAT(slipway_with({"simulate", llama}).out, HasSubstr("closed form (Fujii et al. 2024)"));
  EXPECT_THAT(slipway_with({"simulate", examples + "tiny-llama-cpu.yaml", "--set", "schedule.name=gpipe"}).out,
              Not(HasSubstr("closed form")));
}

TEST_F(Commands, EveryKeyOfSimulateJsonIsDocumentedAndEveryDocumentedKeyIsThere) {
  const auto json =
      summary_of({llama, "--set", "run.tokens=1e12", "--set", "cluster.price_per_gpu_hour=2.5", "--set",
                  "schedule.fill=evaluation", "--set", "layout.tensor=1", "--set", "layout.sequence_parallel=false",
                  "--set", "layout.data=16", "--set", "schedule.global_batch=64"});
  const auto slow = summary_of({llama, "--set", "cluster.stragglers=[{node: 1, slowdown: 1.5}]"}),
             paced = summary_of({llama, "--set", "cluster.stack=nanotron"}),
             mixture = summary_of({examples + "mixtral-8x7b-64xh100.yaml"});
  std::vector<std::string> emitted, documented;
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  for (const auto* other : {&slow, &paced, &mixture})
    for (const auto& [key, value] : other->items())
      if (!json.contains(key)) emitted.push_back(key);
  for (const JsonKey& key : simulate_json_keys()) documented.emplace_back(key.name);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(documented));
  for (const char* needed : {"step_time_s", "mfu", "bubble_share", "exposed_comm_s", "peak_memory_bytes",
                             "fits", "tasks", "simulate_wall_s"}) {
    EXPECT_TRUE(json.contains(needed)) << needed;
  }
}

TEST_F(Commands, TheJsonSummaryIsConsistentWithItself) {
  const auto json =
      summary_of({llama, "--set", "run.tokens=1e12", "--set", "cluster.price_per_gpu_hour=2.5"});
  const double step = json["step_time_s"];
  EXPECT_NEAR(json["compute_share"].get<double>() + json["exposed_comm_share"].get<double>() +
                  json["bubble_share"].get<double>(),
              1, 1e-9);
  EXPECT_NEAR(json["exposed_comm_s"].get<double>(), json["exposed_comm_share"].get<double>() * step,
              1e-3 * step);
  EXPECT_NEAR(json["tokens_per_s"].get<double>(), 32 * 8192 / step, 1e-6 / step);
  EXPECT_EQ(json["peak_memory_bytes"].size(), 4u);  // pipeline 4
  EXPECT_TRUE(json["peak_memory_bytes"][0].is_number_integer());
  EXPECT_EQ(json["parameters"], 8030261248);        // Llama 3.1 8B as published
  EXPECT_EQ(json["ranks"], 64);
  // 1e12 tokens at that rate on 64 GPUs at 2.5 an hour
  const double seconds = 1e12 / (32 * 8192) * step;
  EXPECT_NEAR(json["days"].get<double>(), seconds / 86400, 1e-9 * seconds);
  EXPECT_NEAR(json["cost"].get<double>(), seconds / 3600 * 64 * 2.5, 1e-6 * seconds);
}

TEST_F(Commands, CostIsThereOnlyWithAPriceAndDaysOnlyWithTokens) {
  EXPECT_FALSE(summary_of({tiny}).contains("days"));
  const auto json = summary_of({tiny, "--set", "run.tokens=1e9"});
  EXPECT_TRUE(json.contains("gpu_hours"));
  EXPECT_FALSE(json.contains("cost"));
}

TEST_F(Commands, AScenarioThatDoesNotFitIsSimulatedAndTheVerdictIsNo) {
  const std::vector<std::string> huge{llama,
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
                                      "schedule.kernels=torch"};
  EXPECT_EQ(summary_of(huge)["fits"], false);
  std::vector<std::string> args = huge;
  args.insert(args.begin(), "simulate");
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.out, HasSubstr("fits: no"));
}

TEST_F(Commands, TheSameScenarioGivesTheSameBytes) {
  auto once = summary_of({tiny}), again = summary_of({tiny});
  once.erase("simulate_wall_s");
  again.erase("simulate_wall_s");
  EXPECT_EQ(once, again);
}

TEST_F(Commands, TheSameSeedGivesTheSameTraceByteForByte) {
  const auto trace = [&](const std::string& seed) {
    const std::string file = path("seed-" + seed + ".json");
    const Answer answer = slipway_with({"simulate", SLIPWAY_SOURCE_DIR "/scenarios/scale/llama-8b-64xh100.yaml", "--set",
                                        "schedule.global_batch=8", "--set",
                                        "cluster.stragglers=[{sigma: 0.02, seed: " + seed + "}]", "--trace", file});
    EXPECT_EQ(answer.status, status_done) << answer.err;
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string once = trace("1");
  EXPECT_GT(once.size(), 1000000u);
  EXPECT_TRUE(once == trace("1"));
  EXPECT_FALSE(once == trace("2"));
}

TEST_F(Commands, TheTraceHoldsEveryTaskOfEveryStepOnEveryMember) {
  const Answer answer = slipway_with({"simulate", tiny, "--trace", path("t.json"), "--steps", "2"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  std::ifstream in(path("t.json"));
  const Trace trace = read_chrome_trace(in, "t.json");
  EXPECT_EQ(trace.engine, "simgrid");
  EXPECT_EQ(trace.scenario, "tiny-llama-cpu");
  EXPECT_EQ(trace.steps, 2);
  EXPECT_EQ(trace.ranks, 2);
  const auto count = [&](const std::string& label) {
    return std::count_if(trace.records.begin(), trace.records.end(),
                         [&](const TraceRecord& record) { return record.label == label; });
  };
  EXPECT_EQ(count("0F0"), 2);       // one rank, two steps
  EXPECT_EQ(count("0F0.send"), 4);  // sender and receiver, two steps
  EXPECT_EQ(files(), 1u);           // no temporary file is left
}

TEST_F(Commands, AWrongScenarioIsStatusTwoAndNothingIsWritten) {
  std::ofstream(path("wrong.yaml"))
      << "model: {name: llama-3.1-8b}\ncluster: {machine: h100-80gb, nodes: 1, "
         "gpus_per_node: 8}\nlayout: {tensr: 4}\nschedule: {global_batch: -1}\n";
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"simulate", path("wrong.yaml"), "--trace", path("t.json")},
        std::vector<std::string>{"lower", path("wrong.yaml"), "-o", path("run.slip")},
        std::vector<std::string>{"show", path("wrong.yaml"), "--dot", path("g.dot")},
        std::vector<std::string>{"simulate", tiny, "--set", "layout.pipeline=7", "--trace",
                                 path("t.json")}}) {
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("layout."));
    EXPECT_THAT(answer.out, IsEmpty());
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_THAT(slipway_with({"simulate", path("wrong.yaml")}).err, HasSubstr("wrong.yaml:3: layout.tensr"));
}

TEST_F(Commands, ATraceThatCannotBeWrittenIsStatusTwoAndNamesThePath) {
  const Answer answer = slipway_with({"simulate", tiny, "--trace", path("no/such/folder/t.json")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("no/such/folder/t.json"));
}

TEST_F(Commands, LowerWritesABundleThatReadsBack) {
  const Answer answer = slipway_with({"lower", tiny, "-o", path("run.slip"), "--set", "run.steps=7"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("run.slip: 2 ranks"));
  std::ifstream in(path("run.slip"));
  const Bundle bundle = read_bundle(in, "run.slip");
  EXPECT_EQ(bundle.scenario, "tiny-llama-cpu");
  EXPECT_EQ(bundle.run.steps, 7);
}

TEST_F(Commands, ShowPrintsTheGridOfAScheduleThatAPersonCanCheck) {
  const Answer answer = slipway_with({"show", tiny, "--micro-batches", "2"});
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.out, HasSubstr("rank 0 │ 0F0 0F1  .  0B0  .  0B1\nrank 1 │  .  1F0 1B0 1F1 1B1  .\n"));
}

TEST_F(Commands, ShowRefusesAGridThatNobodyCanReadAndNamesWhatCanBeRead) {
  const Answer answer = slipway_with({"show", tiny, "--micro-batches", "1000000"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("columns for 1000000 micro-batches; allowed: up to 1000"), HasSubstr("--micro-batches 16"), HasSubstr("--csv")));
  EXPECT_EQ(slipway_with({"show", tiny, "--micro-batches", "1000"}).status, status_done);
  EXPECT_EQ(slipway_with({"show", tiny, "--micro-batches", "1001", "--csv"}).status, status_done);
}

TEST_F(Commands, ShowWritesDotToAFileOrAloneToStandardOutput) {
  ASSERT_EQ(slipway_with({"show", tiny, "--dot", path("g.dot")}).status, status_done);
  std::ifstream in(path("g.dot"));
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(file, testing::StartsWith("digraph"));
  EXPECT_EQ(slipway_with({"show", tiny, "--dot", "-"}).out, file);
}

TEST_F(Commands, ShowCsvIsPyTorchsAndReadsBack) {
  std::istringstream csv(slipway_with({"show", tiny, "--csv"}).out);
  const ActionLists lists = read_schedule_csv(csv, "csv");
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0].size(), 8u);  // four micro-batches, F and B
}

TEST_F(Commands, AnExportedScheduleSimulatesLikeTheNamedOne) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{}, {"--set", "schedule.name=interleaved-1f1b"}}) {
    std::vector<std::string> show{"show", tiny, "--csv"}, named{tiny};
    show.insert(show.end(), settings.begin(), settings.end());
    named.insert(named.end(), settings.begin(), settings.end());
    const Answer csv = slipway_with(show);
    ASSERT_EQ(csv.status, status_done) << csv.err;
    std::ofstream(path("s.csv")) << csv.out;
    // gpipe is named, so that the order can only come from the file.
    const auto imported =
        summary_of({tiny, "--set", "schedule.name=gpipe", "--set", "schedule.csv=" + path("s.csv")});
    EXPECT_EQ(imported["step_time_s"], summary_of(named)["step_time_s"]);
    EXPECT_EQ(imported["tasks"], summary_of(named)["tasks"]);
  }
}

// The last two give the period: of one step only the makespan would be known.
TEST_F(Commands, OneStepHasNoPeriod) {
  const Answer answer = slipway_with({"simulate", tiny, "--steps", "1"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("--steps"));
}

TEST_F(Commands, AScheduleWithAMissingActionIsRefusedWithTheGrid) {
  std::ofstream(path("s.csv")) << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n";
  const Answer answer = slipway_with({"simulate", tiny, "--set", "schedule.global_batch=4", "--set",
                                      "schedule.csv=" + path("s.csv")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("micro-batch 1 of stage 1 has no backward"));
  EXPECT_THAT(answer.err, HasSubstr("rank 1 │"));
  EXPECT_THAT(answer.err, HasSubstr("*1B1?*"));
  std::ofstream(path("s.csv")) << "0F0,0X1\n";
  EXPECT_THAT(slipway_with({"simulate", tiny, "--set", "schedule.csv=" + path("s.csv")}).err,
              HasSubstr("s.csv:1: cell 2 '0X1'"));
}

TEST_F(Commands, ListPrintsEveryTopicAndRefusesOthersNamingTheNearest) {
  const std::vector<std::pair<std::string, std::string>> topics{{"models", "llama-3.1-8b"},
                                                                {"machines", "h100-80gb"},
                                                                {"schedules", "1f1b"},
                                                                {"keys", "layout.tensor"},
                                                                {"json-keys", "step_time_s"}};
  for (const auto& [topic, word] : topics) {
    const Answer answer = slipway_with({"list", topic});
    EXPECT_EQ(answer.status, status_done);
    EXPECT_THAT(answer.out, HasSubstr(word));
  }
  const Answer wrong = slipway_with({"list", "model"});
  EXPECT_EQ(wrong.status, status_usage);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'slipway list models'?"));
}

}  // namespace
}  // namespace slipway
