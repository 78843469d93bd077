// simulate, show, lower and list, run in this process on the example scenarios.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/execute/bundle.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "schedules/bundle/bundle.h"
#include "schedules/catalogue/schedule_csv.h"
#include "tests/support/command_test.h"
#include "tests/support/same_graph.h"

namespace slipway::test {

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

TEST_F(Commands, SimulateSaysAsWhoseStepItPricesAndWhenNobodyTimedTheTrainerOrTheMachine) {
  const Answer plain = slipway_with({"simulate", llama});
  const Answer trained = slipway_with({"simulate", llama, "--set", "cluster.trainer=nanotron"});
  const Answer untimed = slipway_with({"simulate", llama, "--set", "cluster.trainer=aa-scaling"});
  const Answer unmeasured = slipway_with({"simulate", tiny, "--set", "cluster.trainer=nanotron"});
  EXPECT_THAT(plain.out, Not(HasSubstr("; as ")));
  EXPECT_THAT(trained.out, HasSubstr("as nanotron trains"));
  EXPECT_THAT(trained.out, Not(HasSubstr("None of the fitted runs")));
  EXPECT_THAT(untimed.out, HasSubstr("as aa-scaling trains"));
  EXPECT_THAT(untimed.out, HasSubstr("None of the fitted runs is of aa-scaling on h100-80gb"));
  EXPECT_THAT(unmeasured.out,
              HasSubstr("this machine has no measured kernels: priced by its profile, not as nanotron trains"));
}

// Megatron-Bridge reduces what it keeps, aa-scaling keeps 16 bits and reduces in 32.
TEST_F(Commands, GradientsOfTwiceTheWidthNeedMoreMemoryWhereTheRunDecidesWhatIsKept) {
  const auto needed = [](const std::string& trainer, const std::string& dtype) {
    const Answer answer = slipway_with(
        {"simulate", llama, "--json", "--set", "cluster.trainer=" + trainer, "--set", "run.gradient_dtype=" + dtype});
    return nlohmann::json::parse(answer.out)["needed_memory_bytes"][0].get<double>();
  };
  EXPECT_GT(needed("megatron-bridge", "float32"), 1.02 * needed("megatron-bridge", "bfloat16"));
  EXPECT_EQ(needed("aa-scaling", "float32"), needed("aa-scaling", "bfloat16"));
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
             trained = summary_of({llama, "--set", "cluster.trainer=nanotron"}),
             timed = summary_of({tiny, "--timeline"}),
             mixture = summary_of(
                 {examples + "mixtral-8x7b-64xh100.yaml", "--set", "layout.expert=2", "--set", "run.routing_skew=0.5"});
  std::vector<std::string> emitted;
  for (const auto& [key, value] : json.items()) emitted.push_back(key);
  for (const auto* other : {&slow, &trained, &mixture, &timed})
    for (const auto& [key, value] : other->items())
      if (!json.contains(key)) emitted.push_back(key);
  EXPECT_THAT(emitted, testing::UnorderedElementsAreArray(outermost(answers_of("simulate").front())));
  for (const char* needed : {"step_time_s", "mfu", "megatron_tflops_per_gpu", "bubble_share", "exposed_comm_s",
                             "peak_memory_bytes", "fits", "tasks", "simulate_wall_s"}) {
    EXPECT_TRUE(json.contains(needed)) << needed;
  }
}

TEST_F(Commands, TheTimelineIsTheLastStepOfTheTraceAsColumns) {
  const auto json = summary_of({tiny, "--timeline", "--all-ranks", "--trace", path("trace.json")});
  const auto& timeline = json["timeline"];
  std::ifstream file(path("trace.json"));
  const Trace trace = read_chrome_trace(file, "trace.json");
  std::size_t at = 0;
  for (const TraceRecord& record : trace.records) {
    if (record.step != trace.steps - 1) continue;
    EXPECT_EQ(timeline["rank"][at], record.rank);
    EXPECT_EQ(timeline["task"][at], record.label);
    EXPECT_EQ(timeline["lane"][at], record.lane);
    EXPECT_NEAR(timeline["end_s"][at].get<double>(), record.end_s, 1e-9);
    if (record.kind == "forward") {
      const std::string label = std::to_string(timeline["stage"][at].get<int>()) + "F" +
                                std::to_string(timeline["micro_batch"][at].get<int>());
      EXPECT_TRUE(record.label.starts_with(label)) << record.label << " " << label;
    }
    ++at;
  }
  EXPECT_GT(at, 0u);
  for (const auto& [name, column] : timeline.items()) EXPECT_EQ(column.size(), at) << name;
  EXPECT_EQ(slipway_with({"simulate", tiny, "--timeline"}).status, status_usage);
}

TEST_F(Commands, TheJsonSummaryIsConsistentWithItself) {
  const auto json = summary_of({llama, "--set", "run.tokens=1e12", "--set", "cluster.price_per_gpu_hour=2.5"});
  const double step = json["step_time_s"];
  EXPECT_NEAR(json["compute_share"].get<double>() + json["exposed_comm_share"].get<double>() +
                  json["bubble_share"].get<double>(),
              1, 1e-9);
  EXPECT_NEAR(json["exposed_comm_s"].get<double>(), json["exposed_comm_share"].get<double>() * step, 1e-3 * step);
  EXPECT_NEAR(json["tokens_per_s"].get<double>(), 32 * 8192 / step, 1e-6 / step);
  EXPECT_EQ(json["peak_memory_bytes"].size(), 4u);  // pipeline 4
  EXPECT_TRUE(json["peak_memory_bytes"][0].is_number_integer());
  EXPECT_EQ(json["parameters"], 8030261248);  // Llama 3.1 8B as published
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
    const Answer answer = slipway_with({"simulate", SLIPWAY_SOURCE_DIR "/scenarios/studies/scale/llama-8b-64xh100.yaml",
                                        "--set", "schedule.global_batch=8", "--set",
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
  std::ofstream(path("wrong.yaml")) << "model: {name: llama-3.1-8b}\ncluster: {machine: h100-80gb, nodes: 1, "
                                       "gpus_per_node: 8}\nlayout: {tensr: 4}\nschedule: {global_batch: -1}\n";
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"simulate", path("wrong.yaml"), "--trace", path("t.json")},
        std::vector<std::string>{"lower", path("wrong.yaml"), "-o", path("run.slip")},
        std::vector<std::string>{"show", path("wrong.yaml"), "--dot", path("g.dot")},
        std::vector<std::string>{"simulate", tiny, "--set", "layout.pipeline=7", "--trace", path("t.json")}}) {
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

// Hosts that launch many small kernels decide this step; they launch those of the bubbles too.
TEST_F(Commands, WorkInTheBubblesNeverMakesAStepShorter) {
  std::vector<std::string> words{llama};
  for (const char* setting :
       {"cluster.trainer=nanotron", "layout.tensor=1", "layout.sequence_parallel=false", "layout.data=16",
        "layout.zero=0", "schedule.global_batch=128", "model.sequence=128", "model.hidden=512", "model.ffn=1024",
        "model.heads=8", "model.kv_heads=8", "model.vocab=4096"})
    words.insert(words.end(), {"--set", setting});
  const double unfilled = summary_of(words)["step_time_s"];
  words.insert(words.end(), {"--set", "schedule.fill=evaluation"});
  EXPECT_GE(summary_of(words)["step_time_s"].get<double>(), unfilled);
}

// A rank lowers the step of a bundle. What it makes is the graph that was prepared.
TEST_F(Commands, BundlesOfEveryKindOfGraphReadBackAsThatGraph) {
  std::ofstream(path("s.csv")) << slipway_with({"show", tiny, "--csv", "--set", "schedule.name=zb-h1"}).out;
  const std::string four = "cluster.gpus_per_node=4", experts = "model.experts=4 model.experts_per_token=2";
  const std::string imported = "schedule.name=gpipe schedule.csv=" + path("s.csv");
  for (const std::string& settings :
       {std::string("layout.pipeline=1 layout.data=2 layout.zero=3 schedule.recompute=full"),
        four + " layout.tensor=2 layout.sequence_parallel=true layout.zero=1",
        four + " layout.tensor=4 layout.pipeline=1", four + " layout.context=2 layout.context_exchange=ring",
        std::string("schedule.name=interleaved-1f1b layout.chunks=2"), std::string("schedule.name=chimera"),
        std::string("schedule.name=zb-v"), std::string("schedule.name=terapipe schedule.slices=4"),
        std::string("schedule.name=dualpipe"), imported,
        std::string("run.optimizer.name=kfac schedule.fill=kfac schedule.kernels=torch"),
        std::string("run.optimizer.name=kfac schedule.fill=none run.optimizer.refresh_steps=3"),
        std::string("schedule.fill=evaluation schedule.evaluation_micro_batches=2"),
        four + " layout.pipeline=1 layout.data=4 layout.expert=4 " + experts,
        four +
            " layout.tensor=2 layout.sequence_parallel=true layout.pipeline=1 layout.data=2 layout.expert=2 "
            "layout.expert_tensor=1 " +
            experts,
        std::string("training.growth.rule=linear training.growth.warmup=32 training.growth.largest=16")}) {
    std::vector<std::string> words{"lower", tiny, "-o", path("run.slip")};
    std::istringstream each(settings);
    for (std::string word; each >> word;) words.insert(words.end(), {"--set", word});
    const Answer answer = slipway_with(words);
    ASSERT_EQ(answer.status, status_done) << settings << '\n' << answer.err;
    std::ifstream in(path("run.slip"));
    const Bundle read = read_bundle(in, settings);
    words.erase(words.begin(), words.begin() + 4);
    std::erase(words, "--set");
    const PreparedStep prepared = prepared_step(checked_scenario(tiny, words));
    EXPECT_EQ(difference(read.graph, prepared.graph), "") << settings;
    const std::vector<PreparedStep> larger = larger_steps(prepared);
    ASSERT_EQ(read.larger.size(), larger.size());
    for (std::size_t i = 0; i < larger.size(); ++i) EXPECT_EQ(difference(read.larger[i], larger[i].graph), "") << i;
  }
}

TEST_F(Commands, ShowPrintsTheGridOfAScheduleThatAPersonCanCheck) {
  const Answer answer = slipway_with({"show", tiny, "--micro-batches", "2"});
  EXPECT_EQ(answer.status, status_done);
  EXPECT_THAT(answer.out, HasSubstr("rank 0 │ 0F0 0F1  .  0B0  .  0B1\nrank 1 │  .  1F0 1B0 1F1 1B1  .\n"));
}

TEST_F(Commands, ShowRefusesAGridThatNobodyCanReadAndNamesWhatCanBeRead) {
  const Answer answer = slipway_with({"show", tiny, "--micro-batches", "1000000"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("columns for 1000000 micro-batches; allowed: up to 1000"),
                                HasSubstr("--micro-batches 16"), HasSubstr("--csv")));
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
    // The name is gpipe, so that the order can only come from the file.
    const auto imported = summary_of({tiny, "--set", "schedule.name=gpipe", "--set", "schedule.csv=" + path("s.csv")});
    EXPECT_EQ(imported["step_time_s"], summary_of(named)["step_time_s"]);
    EXPECT_EQ(imported["tasks"], summary_of(named)["tasks"]);
  }
}

// The last two steps give the period: with one step only the makespan would be known.
TEST_F(Commands, OneStepHasNoPeriod) {
  const Answer answer = slipway_with({"simulate", tiny, "--steps", "1"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("--steps"));
}

TEST_F(Commands, AScheduleWithAMissingActionIsRefusedWithTheGrid) {
  std::ofstream(path("s.csv")) << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n";
  const Answer answer =
      slipway_with({"simulate", tiny, "--set", "schedule.global_batch=4", "--set", "schedule.csv=" + path("s.csv")});
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

// `simulate --beside`: two trainings in one cluster, on the command line.

namespace {

using testing::HasSubstr;

// Two nodes of two GPUs behind one NIC each; data parallel over both, nothing overlaps the reduction.
const char* scenario =
    "model: {family: llama, layers: 4, hidden: 1024, ffn: 2816, heads: 8, vocab: 8192, sequence: 1024}\n"
    "cluster:\n"
    "  machine: h100-80gb\n"
    "  trainer: deepspeed\n"
    "  nodes: 1\n"
    "  gpus_per_node: 2\n"
    "  fabrics:\n"
    "    - {scope: node}\n"
    "    - {scope: cluster, bandwidth: 1 GB/s, latency: 5 us, gpus_per_port: 2}\n"
    "layout: {data: 2}\n"
    "schedule: {name: 1f1b, global_batch: 2}\n";

class Beside : public CommandTest {
 protected:
  Beside() {
    SetUp();
    std::ofstream(path("a.yaml")) << scenario;
    std::ofstream(path("b.yaml")) << scenario;
  }
  nlohmann::json summary(std::vector<std::string> more) {
    std::vector<std::string> args{"simulate", path("a.yaml"), "--beside", path("b.yaml"), "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
};

TEST_F(Beside, TwoEqualJobsThatShareNicsDoubleTheirExposedCommunication) {
  // GPU by GPU each job has one GPU of either node: its ring crosses the NIC that the other job's ring crosses.
  const nlohmann::json json = summary({"--place", "alternate-gpus"});
  const nlohmann::json alone =
      nlohmann::json::parse(slipway_with({"simulate", path("a.yaml"), "--set", "cluster.nodes=2", "--set",
                                          "cluster.gpus_per_node=1", "--json"})
                                .out);
  const double step = alone["step_time_s"], exposed = alone["exposed_comm_s"];
  ASSERT_GT(exposed, 0.5 * step);
  for (const int job : {0, 1}) {
    EXPECT_NEAR(json["alone_s"][job], step, 1e-6 * step);
    EXPECT_NEAR(json["beside_s"][job], step + exposed,
                0.02 * step);  // the reduction that overlaps also waits
    EXPECT_GE(json["periods"][job], 2);
  }
}

TEST_F(Beside, JobsInNodesOfTheirOwnOnANonBlockingNetworkDoNotNoticeEachOther) {
  const nlohmann::json json = summary({});
  EXPECT_EQ(json["gpus"], nlohmann::json::parse("[2, 2]"));
  for (const int job : {0, 1}) {
    const double alone = json["alone_s"][job], together = json["beside_s"][job];
    EXPECT_NEAR(together, alone, 1e-9 * alone);
  }
}

// CPU ranks share the two cores of their node: four ranks of a job on a node of its own, two of each job on common ones.
TEST_F(Beside, CpuRanksSlowEachOtherOnCommonNodesOnly) {
  std::vector<std::string> settings;
  for (const std::string set : {"--set", "--beside-set"})
    for (const std::string& key :
         {std::string("cluster.machine=" SLIPWAY_SOURCE_DIR "/scenarios/examples/machines/cpu-test.yaml"),
          std::string("cluster.trainer=generic"), std::string("run.dtype=float32"),
          std::string("cluster.gpus_per_node=4"), std::string("layout.data=4"), std::string("schedule.global_batch=4")})
      settings.insert(settings.end(), {set, key});
  const nlohmann::json apart = summary(settings);
  settings.insert(settings.end(), {"--place", "alternate-gpus"});
  const nlohmann::json common = summary(settings);
  for (const int job : {0, 1}) {
    EXPECT_NEAR(apart["beside_s"][job], apart["alone_s"][job], 1e-9 * apart["alone_s"][job].get<double>());
    EXPECT_GT(common["beside_s"][job], 1.5 * common["alone_s"][job].get<double>());
    EXPECT_NEAR(common["beside_s"][job], apart["alone_s"][job], 0.1 * apart["alone_s"][job].get<double>());
  }
}

TEST_F(Beside, PrintsATableOfBoth) {
  const Answer answer = slipway_with({"simulate", path("a.yaml"), "--beside", path("b.yaml"), "--beside-set",
                                      "model.layers=2", "--place", "alternate-gpus"});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("beside the other"));
  EXPECT_THAT(answer.out, testing::ContainsRegex("\n  a  +2 .*\n  b  +2 "));
}

TEST_F(Beside, SaysWhatCannotBeNeighbours) {
  const auto refused = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"simulate", path("a.yaml")});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    return answer.err;
  };
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--beside-set", "cluster.machine=a100-80gb"}),
              HasSubstr("make them the same"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--place", "anywhere"}), HasSubstr("alternate-nodes"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--beside-set", "foo.bar=3"}),
              testing::AllOf(HasSubstr("--beside-set foo.bar=3: "), testing::Not(HasSubstr("--set foo"))));
  EXPECT_THAT(refused({"--place", "packed"}), HasSubstr("--beside FILE"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--steps", "4"}), HasSubstr("--steps"));
  EXPECT_THAT(refused({"--beside", path("none.yaml")}), HasSubstr("none.yaml"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--set",
                       "cluster.fabrics.1={scope: cluster, topology: {kind: torus, shape: [2]}}"}),
              HasSubstr("does not fit"));
}

}  // namespace

// Bubble work from the command line: the values of the paper's case, what is refused, what is printed.

namespace {

using testing::HasSubstr;

const std::string bert = SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/bert-base.yaml";

class FillCommand : public CommandTest {
 protected:
  static nlohmann::json summary(std::vector<std::string> overrides) {
    std::vector<std::string> args{"simulate", bert, "--json"};
    for (const std::string& each : overrides) args.insert(args.end(), {"--set", each});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
  static std::string refusal(const std::string& command, const std::vector<std::string>& overrides) {
    std::vector<std::string> args{command, bert};
    for (const std::string& each : overrides) args.insert(args.end(), {"--set", each});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage) << answer.out;
    return answer.err;
  }
};

TEST_F(FillCommand, WhereStagesAreUnevenItSaysWhyThereIsNoClosedForm) {
  const auto text = [](const std::string& stages, const std::string& nodes) {
    return slipway_with({"simulate", bert, "--set", "layout.pipeline=" + stages, "--set", "cluster.nodes=" + nodes,
                         "--set", "schedule.global_batch=256"})
        .out;
  };
  EXPECT_THAT(text("8", "2"), HasSubstr("No closed form (Osawa et al. 2022): "));
  EXPECT_THAT(text("4", "1"), HasSubstr("Closed form without communication (Osawa et al. 2022):"));
  EXPECT_THAT(text("4", "1"), testing::Not(HasSubstr("No closed form")));
}

// Osawa et al. 2022: BERT-Base, three blocks a stage, four stages, four micro-batches of 32, one replica.
TEST_F(FillCommand, GPipeReachesItsCeilingOf88Point7PercentWithARefreshEveryThreeSteps) {
  const auto json = summary({});
  EXPECT_EQ(json["fill"], "kfac");
  EXPECT_EQ(json["refresh_steps"], 3);
  EXPECT_NEAR(json["utilization_before"], 4.0 / 7, 1e-6);
  EXPECT_NEAR(json["utilization"], 0.8874, 5e-5);
  EXPECT_NEAR(json["utilization_ceiling"], 0.8874, 5e-5);
  EXPECT_EQ(json["behind_s"], 0);
  EXPECT_NEAR(json["step_time_s"], json["unfilled_step_time_s"], 1e-6);
}

TEST_F(FillCommand, OneFOneBReachesFourFifths) {
  const auto json = summary({"schedule.name=1f1b"});
  EXPECT_GE(json["utilization"], 0.8);
  EXPECT_LE(json["utilization"].get<double>(), json["utilization_ceiling"].get<double>() + 1e-9);
  EXPECT_NEAR(json["step_time_s"], json["unfilled_step_time_s"], 1e-6);
}

TEST_F(FillCommand, UnfilledKfacRunsBehindTheStepAsInTheClosedForm) {
  const auto filled = summary({});
  const auto json = summary({"schedule.fill=none", "run.optimizer.refresh_steps=1"});
  EXPECT_EQ(json["refresh_steps"], 1);
  // T_pipe + T_prec + N·T_curv + T_inv of three blocks.
  EXPECT_NEAR(json["step_time_s"].get<double>() - filled["step_time_s"].get<double>(),
              3 * (4 * 25.546598434448242e-3 + 71.66688442230225e-3), 1e-6);
}

TEST_F(FillCommand, KfacIsPricedFromAMachineProfileWithoutATable) {
  const auto json = summary({"cluster.block_times=", "cluster.fabrics=", "schedule.kernels=torch"});
  EXPECT_EQ(json["fill"], "kfac");
  EXPECT_GT(json["utilization"], json["utilization_before"]);
}

TEST_F(FillCommand, TheReportSaysWhatFillingDidAndDrawsTheWindow) {
  const Answer answer = slipway_with({"simulate", bert});
  for (const char* text : {"Bubbles filled with kfac", "88.7 %", "3 steps", "C curvature", "V inversion",
                           "One window of 3 steps alone", "Osawa et al. 2022"})
    EXPECT_THAT(answer.out, HasSubstr(text));
}

TEST_F(FillCommand, WhatCannotBeCombinedIsRefusedWithTheKey) {
  EXPECT_THAT(refusal("simulate", {"run.optimizer=adamw"}), HasSubstr("schedule.fill: there is no K-FAC work"));
  EXPECT_THAT(refusal("simulate", {"schedule.fill=evaluation"}), HasSubstr("schedule.fill: the bubbles take one kind"));
  EXPECT_THAT(refusal("simulate", {"run.optimizer=adamw", "schedule.fill=evaluation",
                                   "cluster.block_times=", "layout.pipeline=2", "layout.tensor=2"}),
              HasSubstr("layout.tensor: evaluation in the bubbles passes whole layers"));
  EXPECT_THAT(refusal("simulate", {"run.optimizer.refresh_steps=2"}), HasSubstr("run.optimizer.refresh_steps"));
  EXPECT_THAT(refusal("simulate", {"schedule.micro_batch=3", "schedule.global_batch=12"}),
              HasSubstr("cluster.block_times: the block table bert-base-p100 has no row for micro-batch 3"));
  EXPECT_THAT(refusal("simulate", {"layout.pipeline=2", "layout.tensor=2"}), HasSubstr("layout.tensor: K-FAC"));
  EXPECT_THAT(refusal("simulate", {"layout.pipeline=2", "layout.zero=1", "schedule.global_batch=256"}),
              HasSubstr("layout.zero: K-FAC"));
  EXPECT_THAT(refusal("execute", {}), HasSubstr("run.data: it is not set"));
  EXPECT_THAT(refusal("plan", {}), HasSubstr("slipway study"));
}

TEST_F(FillCommand, WithoutABubbleThereIsNoCeilingAboveWhatIsReachedWithoutFilling) {
  const auto json = summary({"layout.pipeline=1", "cluster.gpus_per_node=1"});
  EXPECT_NEAR(json["utilization_before"], 1, 1e-9);
  EXPECT_NEAR(json["utilization_ceiling"], 1, 1e-9);
}

TEST_F(FillCommand, EvaluationFillsSchedulesWithStagesInAVAndHasNoKfacModelBesideIt) {
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    const std::vector<std::string> args{"simulate", bert,
                                        "--set",    "run.optimizer=adamw",
                                        "--set",    "schedule.fill=evaluation",
                                        "--set",    std::string("schedule.name=") + schedule};
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    EXPECT_THAT(answer.out, testing::Not(testing::ContainsRegex("[Cc]losed form .*Osawa")));
  }
}

TEST_F(FillCommand, ABadBlockTableIsNamedWithItsLine) {
  const std::string file = path("bad.yaml");
  std::ofstream(file) << "source: test\nhidden: 768\nffn: 3072\nheads: 12\nsequence: 128\ndtype: float32\n"
                         "rows:\n  - {micro_batch: 32, forward: 1 ms}\n";
  EXPECT_THAT(refusal("simulate", {"cluster.block_times=" + file}), HasSubstr("bad.yaml:8: rows.0.backward"));
}

}  // namespace

}  // namespace slipway::test
