// libslipway as a program of somebody else sees it: nothing but its headers and its shared library, beside the answers of
// the command line.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <slipway/slipway.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
using slipway::Scenario;

const std::string llama = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

json answer_of(const std::string& words) {
  return json::parse(output_of(SLIPWAY_PROGRAM " " + words + " --json 2>/dev/null"));
}

Scenario small() {
  return Scenario::from_text(
      "model: {name: llama-3.1-8b, sequence: 2048}\n"
      "cluster: {machine: h100-80gb, nodes: 1, gpus_per_node: 8}\n"
      "layout: {tensor: 2, pipeline: 4}\n"
      "schedule: {name: 1f1b, micro_batch: 1, global_batch: 8}\n",
      "small.yaml");
}

// 1F1B with whole backwards, as the catalogue has it.
slipway::ActionLists one_forward_one_backward(const slipway::Shape& shape) {
  slipway::ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    const int warm_up = shape.pipeline - rank - 1;
    for (int step = 0; step < shape.micro_batches + warm_up; ++step) {
      auto& list = lists[static_cast<std::size_t>(rank)];
      if (step < shape.micro_batches) list.push_back({slipway::Pass::forward, rank, step});
      if (step >= warm_up) list.push_back({slipway::Pass::backward, rank, step - warm_up});
    }
  }
  return lists;
}

std::vector<slipway::Defect> refused(const std::function<void()>& work) {
  try {
    work();
  } catch (const slipway::Refusal& refusal) {
    return refusal.defects();
  }
  return {};
}

TEST(Library, PredictsToTheLastBitWhatTheCommandLineDoes) {
  for (const slipway::Settings& settings :
       {slipway::Settings{}, {{"layout.tensor", "4"}, {"layout.pipeline", "8"}}, {{"schedule.name", "zb-h1"}}}) {
    std::string words = "simulate " + llama;
    for (const auto& [key, value] : settings) words += " --set " + key + "=" + value;
    const json told = answer_of(words);
    const slipway::Prediction found = slipway::predict(Scenario::from_file(llama).with(settings));
    EXPECT_EQ(found.scenario, told["scenario"]);
    EXPECT_EQ(found.step_time_s, told["step_time_s"]);
    EXPECT_EQ(found.interval.value().low_s, told["step_time_low_s"]);
    EXPECT_EQ(found.interval.value().high_s, told["step_time_high_s"]);
    EXPECT_EQ(found.mfu, told["mfu"]);
    EXPECT_EQ(found.tokens_per_s, told["tokens_per_s"]);
    EXPECT_EQ(found.bubble_share, told["bubble_share"]);
    EXPECT_EQ(found.fits, told["fits"]);
  }
}

TEST(Library, ReadsAFileATextAndKeysAlike) {
  std::ifstream file(llama);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const double of_file = slipway::predict(Scenario::from_file(llama)).step_time_s;
  EXPECT_EQ(slipway::predict(Scenario::from_text(text)).step_time_s, of_file);
  const Scenario of_keys = Scenario::from_settings({{"model.name", "llama-3.1-8b"},
                                                    {"model.sequence", "8192"},
                                                    {"cluster", "{machine: h100-80gb, nodes: 8, gpus_per_node: 8}"},
                                                    {"layout.tensor", "8"},
                                                    {"layout.sequence_parallel", "true"},
                                                    {"layout.pipeline", "4"},
                                                    {"layout.zero", "1"},
                                                    {"schedule", "{name: 1f1b, micro_batch: 1, global_batch: 32}"}});
  EXPECT_EQ(slipway::predict(of_keys).step_time_s, of_file);
  EXPECT_EQ(slipway::predict(Scenario::from_text(of_keys.resolved())).step_time_s, of_file);
}

TEST(Library, RefusesWithKeyAndRemedyAllDefectsAtOnce) {
  const Scenario wrong = small().with({{"layout.tensor", "3"}, {"run.tokenz", "1"}});
  const std::vector<slipway::Defect> defects = refused([&] { slipway::predict(wrong); });
  EXPECT_EQ(defects.size(), wrong.defects().size());
  std::set<std::string> keys;
  for (const slipway::Defect& defect : defects) {
    keys.insert(defect.key);
    EXPECT_FALSE(defect.message.empty());
    EXPECT_FALSE(defect.remedy.empty());
  }
  EXPECT_TRUE(keys.contains("layout.tensor"));
  EXPECT_TRUE(keys.contains("run.tokenz"));
  EXPECT_TRUE(small().defects().empty());
  EXPECT_EQ(refused([] { slipway::predict(Scenario::from_file("/no/such/file.yaml")); }).size(), 1U);
  EXPECT_EQ(refused([] { slipway::predict(Scenario::from_text("model: [")); }).size(), 1U);
  slipway::PlanOptions unknown;
  unknown.keep = {"layout.tensors"};
  EXPECT_EQ(refused([&] { slipway::plan(small(), unknown); }).size(), 1U);
}

TEST(Library, RunsACallersScheduleAsTheSameOneOfTheCatalogue) {
  const Scenario own = small().with_schedule({"mine", one_forward_one_backward});
  EXPECT_EQ(slipway::predict(own).step_time_s, slipway::predict(small()).step_time_s);
  // With another shape it is asked anew.
  const slipway::Settings other{{"layout.pipeline", "2"}, {"schedule.global_batch", "16"}};
  EXPECT_EQ(slipway::predict(own.with(other)).step_time_s, slipway::predict(small().with(other)).step_time_s);
  // Whoever sets another name beside it means something else.
  const auto defects = own.with({{"schedule.name", "zb-h1"}}).defects();
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_EQ(defects[0].key, "schedule.name");
  EXPECT_FALSE(defects[0].remedy.empty());
  // Another scenario of the same process sees nothing of it.
  EXPECT_FALSE(small().with({{"schedule.name", "mine"}}).defects().empty());
}

TEST(Library, PlansWithACallersScheduleOverAllShapes) {
  std::set<std::pair<int, int>> shapes;
  const Scenario own = small().with_schedule({"mine", [&](const slipway::Shape& shape) {
                                                shapes.emplace(shape.pipeline, shape.micro_batches);
                                                if (shape.chunks > 1) throw std::invalid_argument("one stage a rank");
                                                return one_forward_one_backward(shape);
                                              }});
  slipway::PlanOptions options;
  options.workers = 1;
  const slipway::Plan found = slipway::plan(own, options);
  ASSERT_FALSE(found.best.empty());
  EXPECT_GT(shapes.size(), 5U);
  for (const slipway::PlannedLayout& row : found.best)
    EXPECT_EQ(slipway::predict(own.with(row.settings)).step_time_s, row.step_time_s);
  // What is found with it is what 1f1b gives, because it is 1f1b.
  slipway::PlanOptions keep;
  keep.keep = {"schedule.name"};
  EXPECT_EQ(slipway::plan(small(), keep).best.front().step_time_s, found.best.front().step_time_s);
}

TEST(Library, RefusesAScheduleThatIsNoWholeStep) {
  const auto refused_with = [&](const std::function<slipway::ActionLists(const slipway::Shape&)>& actions) {
    const auto defects = refused([&] { slipway::predict(small().with_schedule({"mine", actions})); });
    return defects.empty() ? std::string() : defects.front().message;
  };
  EXPECT_THAT(refused_with([](const slipway::Shape&) { return slipway::ActionLists(); }),
              testing::HasSubstr("0 lists for 4 pipeline ranks"));
  EXPECT_THAT(refused_with([](const slipway::Shape& shape) {
                auto lists = one_forward_one_backward(shape);
                lists[1].pop_back();
                return lists;
              }),
              testing::HasSubstr("no backward"));
  EXPECT_THAT(refused_with([](const slipway::Shape& shape) {
                auto lists = one_forward_one_backward(shape);
                lists[0][0].stage = -7;
                return lists;
              }),
              testing::HasSubstr("no whole step"));
  EXPECT_THAT(refused_with([](const slipway::Shape&) -> slipway::ActionLists {
                throw std::invalid_argument("only on Sundays");
              }),
              testing::HasSubstr("only on Sundays"));
}

TEST(Library, PlansAndExplainsAsTheCommandLine) {
  const json told = answer_of("plan " + llama + " --top 3");
  slipway::PlanOptions options;
  options.top = 3;
  const slipway::Plan found = slipway::plan(Scenario::from_file(llama), options);
  ASSERT_EQ(found.best.size(), told["best"].size());
  EXPECT_EQ(found.legal, told["legal"]);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_EQ(found.best[i].step_time_s, told["best"][i]["step_time_s"]);
    EXPECT_EQ(found.best[i].fit_probability, told["best"][i]["fit_probability"]);
  }
  const json why = answer_of("explain " + llama);
  const slipway::Explanation explanation = slipway::explain(Scenario::from_file(llama));
  EXPECT_EQ(explanation.step_time_s, why["step_time_s"]);
  ASSERT_EQ(explanation.levers.size(), why["levers"].size());
  for (std::size_t i = 0; i < explanation.levers.size(); ++i)
    EXPECT_EQ(explanation.levers[i].name, why["levers"][i]["lever"]);
}

TEST(Library, RefusesToKeepWhatIsNotSearchedAndSharesThatAreNone) {
  const auto says = [](const slipway::PlanOptions& options, const std::string& words) {
    const std::vector<slipway::Defect> defects = refused([&] { slipway::plan(small(), options); });
    return defects.size() == 1 && defects.front().message.find(words) != std::string::npos;
  };
  slipway::PlanOptions kept, share;
  kept.keep = {"layout.tenso"};
  share.memory_share = 80;
  EXPECT_TRUE(says(kept, "keep layout.tenso is no key that plan searches; did you mean 'keep layout.tensor'"));
  EXPECT_TRUE(says(share, "is no share; allowed: a number above 0 and up to 1"));
}

TEST(Library, SaysWhereNothingFitsWhatWould) {
  const slipway::Plan found =
      slipway::plan(Scenario::from_text("model: {name: llama-3.1-405b, sequence: 8192}\n"
                                        "cluster: {machine: h100-80gb, nodes: 1, gpus_per_node: 8}\n"
                                        "schedule: {name: 1f1b, global_batch: 8}\n"));
  EXPECT_TRUE(found.best.empty());
  EXPECT_LT(found.closest.value().fit_probability, 0.5);
  EXPECT_FALSE(found.remedies.empty());
}

TEST(Library, ShowsTheGraphThatIsSimulated) {
  const slipway::TaskGraph graph = slipway::task_graph(small());
  ASSERT_EQ(graph.order.size(), graph.tasks.size());
  std::vector<std::size_t> place(graph.tasks.size());
  for (std::size_t i = 0; i < graph.order.size(); ++i) place[graph.order[i]] = i;
  for (std::size_t task = 0; task < graph.tasks.size(); ++task)
    for (const std::uint32_t before : graph.predecessors[task]) EXPECT_LT(place[before], place[task]);
  std::map<std::string, int> kinds;
  for (const slipway::Task& task : graph.tasks) ++kinds[task.kind];
  EXPECT_GT(kinds["forward"], 0);
  EXPECT_GT(kinds["transfer"], 0);
  for (const slipway::Lane& lane : graph.lanes)
    for (std::size_t i = 1; i < lane.tasks.size(); ++i) EXPECT_LT(place[lane.tasks[i - 1]], place[lane.tasks[i]]);

  slipway::PredictOptions options;
  options.timeline = true;
  const slipway::Timeline timeline = slipway::predict(small(), options).timeline.value();
  ASSERT_EQ(timeline.rank.size(), timeline.end_s.size());
  for (std::size_t row = 0; row < timeline.rank.size(); ++row) {
    const slipway::Task& task = graph.tasks.at(static_cast<std::size_t>(timeline.task[row]));
    const double seconds = timeline.end_s[row] - timeline.start_s[row];
    if (task.rank >= 0) {
      EXPECT_EQ(task.rank, timeline.rank[row]);
      EXPECT_NEAR(seconds, task.seconds, 1e-9 + 1e-9 * task.seconds) << task.label;
    }
  }
}

TEST(Library, GivesTheSameBytesFromSeveralThreads) {
  const std::string alone = slipway::Scenario(small()).resolved();
  const double seconds = slipway::predict(small()).step_time_s;
  std::vector<std::thread> threads;
  std::vector<std::pair<double, std::string>> found(6);
  for (auto& answer : found)
    threads.emplace_back([&answer] { answer = {slipway::predict(small()).step_time_s, small().resolved()}; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& [step, text] : found) {
    EXPECT_EQ(step, seconds);
    EXPECT_EQ(text, alone);
  }
}

TEST(Library, PrintsNothingAndLeavesSignalsAndFilesAlone) {
  const auto state = [] {
    std::vector<std::string> found;
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGPIPE, SIGSEGV}) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      found.push_back(std::to_string(reinterpret_cast<std::uintptr_t>(action.sa_handler)));
    }
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      found.push_back(entry.path().string());
    return found;
  };
  const auto before = state();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  slipway::predict(small());
  refused([] { slipway::predict(small().with({{"layout.tensor", "3"}})); });
  slipway::plan(small());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(state(), before);
}

TEST(Library, EndsWhatIsInterrupted) {
  slipway::PredictOptions options;
  options.watch.interrupted = [] { return true; };
  const Scenario large = small().with({{"schedule.global_batch", "2048"}});
  options.timeline = true;
  options.all_ranks = true;
  EXPECT_THROW(slipway::predict(large, options), slipway::Interrupted);
  slipway::ExplainOptions why;
  why.watch.interrupted = options.watch.interrupted;
  EXPECT_THROW(slipway::explain(large, why), slipway::Interrupted);
}

}  // namespace
