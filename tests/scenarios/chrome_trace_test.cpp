#include "scenarios/predict/chrome_trace.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace slipway::test {
namespace {

Trace random_trace(unsigned seed, int records) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> any(0, 1e3);
  Trace trace{"libtorch", "tiny \"quoted\" é", "model: llama\nschedule: 1f1b\t", 3, 4, {}, {}};
  const char* lanes[] = {"compute", "tp", "pp.forward.0-1"};
  for (int i = 0; i < records; ++i) {
    const double start = any(random);
    trace.records.push_back({i % 4, i % 3, lanes[random() % 3], std::to_string(i) + "F0.\\x", "forward", start,
                             start + any(random) * 1e-7, any(random) * 1e-9, any(random) * 1e15, any(random), i % 5 - 1,
                             any(random), any(random) * 2});
  }
  for (int i = 0; i < 4; ++i) trace.losses.push_back({i, 8 * (i + 1), any(random)});
  trace.losses[2].learning_rate = any(random);  // the others as of earlier versions
  trace.losses[2].batch = 24;
  trace.losses[2].gradient_square = any(random);
  trace.losses[2].gradient_variance = any(random);
  return trace;
}

std::string written(const Trace& trace) {
  std::ostringstream out;
  write_chrome_trace(out, trace);
  return out.str();
}

Trace read_back(const std::string& text) {
  std::istringstream in(text);
  return read_chrome_trace(in, "t.json");
}

bool same(const TraceRecord& a, const TraceRecord& b) {
  return a.step == b.step && a.rank == b.rank && a.lane == b.lane && a.label == b.label && a.kind == b.kind &&
         a.start_s == b.start_s && a.end_s == b.end_s && a.wait_s == b.wait_s && a.flops == b.flops &&
         a.bytes == b.bytes && a.group == b.group && a.memory_bytes == b.memory_bytes &&
         a.memory_peak_bytes == b.memory_peak_bytes;
}

TEST(ChromeTrace, ReadingAFileBackGivesTheSameTraceBitForBit) {
  const Trace trace = random_trace(7, 500);
  const Trace back = read_back(written(trace));
  EXPECT_EQ(back.engine, trace.engine);
  EXPECT_EQ(back.scenario, trace.scenario);
  EXPECT_EQ(back.summary, trace.summary);
  EXPECT_EQ(back.ranks, 3);
  EXPECT_EQ(back.steps, 4);
  EXPECT_EQ(back.window, 1);
  ASSERT_EQ(back.records.size(), trace.records.size());
  for (std::size_t i = 0; i < trace.records.size(); ++i) EXPECT_TRUE(same(back.records[i], trace.records[i])) << i;
  ASSERT_EQ(back.losses.size(), 4u);
  EXPECT_EQ(back.losses[2].loss, trace.losses[2].loss);
  EXPECT_EQ(back.losses[2].samples, 24);
  EXPECT_EQ(back.losses[2].learning_rate, trace.losses[2].learning_rate);
  EXPECT_EQ(back.losses[1].learning_rate, std::nullopt);
  EXPECT_EQ(back.losses[2].batch, trace.losses[2].batch);
  EXPECT_EQ(back.losses[2].gradient_square, trace.losses[2].gradient_square);
  EXPECT_EQ(back.losses[2].gradient_variance, trace.losses[2].gradient_variance);
  EXPECT_EQ(back.losses[1].batch, std::nullopt);
}

TEST(ChromeTrace, EveryTaskIsACompleteEventInMicrosecondsOnAThreadNamedLikeItsLane) {
  Trace trace = random_trace(1, 1);
  trace.records[0] = {2, 1, "tp", "2F0.L5.ag1", "all-gather", 0.5, 0.75, 0.125, 0, 4096, 3};
  const auto document = nlohmann::json::parse(written(trace));
  nlohmann::json task, thread;
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("ph") == "X") task = event;
    if (event.at("name") == "thread_name") thread = event;
  }
  EXPECT_EQ(task.at("name"), "2F0.L5.ag1");
  EXPECT_EQ(task.at("pid"), 1);
  EXPECT_EQ(task.at("ts").get<double>(), 500000.0);
  EXPECT_EQ(task.at("dur").get<double>(), 250000.0);
  EXPECT_EQ(task.at("args").at("wait_s").get<double>(), 0.125);
  EXPECT_EQ(task.at("args").at("bytes").get<double>(), 4096.0);
  EXPECT_EQ(thread.at("args").at("name"), "tp");
  EXPECT_EQ(thread.at("tid"), task.at("tid"));
}

// The maximum from its start on, the rest from its end on. Equal values are not repeated.
TEST(ChromeTrace, MemoryIsACounterOfTheRankThatEachComputeTaskMoves) {
  Trace trace = random_trace(1, 2);
  trace.records[0] = {2, 1, "compute", "2F0", "forward", 0.5, 0.75, 0, 0, 0, -1, 3e9, 4e9};
  trace.records[1] = {2, 1, "compute", "2F1", "forward", 0.75, 1, 0, 0, 0, -1};
  trace.records.push_back({2, 1, "compute", "2F2", "forward", 1, 1.25, 0, 0, 0, -1, 3e9, 3e9});
  trace.records.push_back({2, 1, "tp", "2F2.ag1", "all-gather", 1.25, 1.5, 0, 0, 0, 2, 5e9, 6e9});
  std::vector<nlohmann::json> counters;
  const auto document = nlohmann::json::parse(written(trace));
  for (const auto& event : document.at("traceEvents"))
    if (event.at("ph") == "C") counters.push_back(event);
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].at("pid"), 1);
  EXPECT_EQ(counters[0].at("ts").get<double>(), 500000.0);
  EXPECT_EQ(counters[0].at("args").at("bytes").get<double>(), 4e9);
  EXPECT_EQ(counters[1].at("ts").get<double>(), 750000.0);
  EXPECT_EQ(counters[1].at("args").at("bytes").get<double>(), 3e9);
  EXPECT_EQ(read_back(written(trace)).records[1].memory_peak_bytes, 0) << "not known";
}

TEST(ChromeTrace, PredictedPeaksOfTheRanksAreInTheHeader) {
  Trace trace = random_trace(1, 2);
  EXPECT_TRUE(read_back(written(trace)).peak_bytes.empty());
  trace.peak_bytes = {1.5e9, 2.25e9, 1.0 / 3};
  EXPECT_EQ(read_back(written(trace)).peak_bytes, trace.peak_bytes);
}

TEST(ChromeTrace, TheStepsAfterWhichTasksRepeatAreKept) {
  Trace trace = random_trace(3, 2);
  trace.window = 2;
  EXPECT_EQ(read_back(written(trace)).window, 2);
  trace.step_low_s = 1.25, trace.step_high_s = 1.75;
  EXPECT_EQ(read_back(written(trace)).step_low_s, 1.25);
  EXPECT_EQ(read_back(written(trace)).step_high_s, 1.75);
  trace.window = 5;  // a training may end within one
  std::string text = written(trace);
  EXPECT_EQ(read_back(text).window, 5);
  text.replace(text.find("\"window\":5"), 10, "\"window\":0");
  EXPECT_THROW(read_back(text), std::runtime_error);
}

TEST(ChromeTrace, ALossThatIsNoNumberSurvivesAsNull) {
  Trace trace = random_trace(3, 2);
  trace.losses[1].loss = std::nan("");
  trace.losses[1].gradient_square = trace.losses[1].gradient_variance = std::nan("");
  const LossPoint back = read_back(written(trace)).losses[1];
  EXPECT_TRUE(std::isnan(back.loss));
  EXPECT_TRUE(std::isnan(back.gradient_square.value()));
  EXPECT_TRUE(std::isnan(back.gradient_variance.value()));
}

TEST(ChromeTrace, ATraceWithoutRecordsIsValidJson) {
  EXPECT_TRUE(nlohmann::json::accept(written(Trace{})));
  EXPECT_TRUE(read_back(written(Trace{})).records.empty());
}

// Labels for readers count steps from 1, the trace's own field from 0.
TEST(ChromeTrace, ATaskOfAStepThatIsNotThereIsNamedWithItsStepFromOne) {
  Trace trace = random_trace(2, 1);
  trace.ranks = 2, trace.steps = 2;
  trace.records[0].rank = 1, trace.records[0].step = 2;
  EXPECT_THAT([&] { read_back(written(trace)); }, testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr(
                                                      " is of rank 1, step 3, but there are 2 ranks and 2 steps")));
  trace.records[0].step = std::numeric_limits<int>::max();  // found by the fuzzer
  EXPECT_THAT([&] { read_back(written(trace)); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("step 2147483648, but")));
}

TEST(ChromeTrace, AForeignOrCutFileIsRefusedByName) {
  const std::string text = written(random_trace(2, 3));
  for (const std::string& wrong :
       {std::string("hello"), std::string("{\"traceEvents\":[]}"), text.substr(0, text.size() / 2),
        std::string("[1, 2]"), std::string("\xff\xfe"), std::string()}) {
    try {
      read_back(wrong);
      ADD_FAILURE() << "accepted: " << wrong.substr(0, 40);
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("t.json: not a trace written by slipway"));
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("json.exception")));
    }
  }
}

// The error for a trace of one task when `at` (a JSON pointer) holds `value`, or nothing.
std::string refusal_with(const std::string& at, const std::optional<nlohmann::json>& value) {
  auto document = nlohmann::json::parse(written(random_trace(1, 1)));
  for (auto& event : document["traceEvents"])
    if (event["ph"] == "X") document["task"] = event;
  const nlohmann::json task = document["task"];
  document.erase("task");
  document["traceEvents"] = {
      {{"ph", "M"}, {"name", "thread_name"}, {"pid", task["pid"]}, {"tid", task["tid"]}, {"args", {{"name", "x"}}}},
      task};
  const nlohmann::json::json_pointer place(at);
  if (value)
    document[place] = *value;
  else
    document[place.parent_pointer()].erase(place.back());
  try {
    read_back(document.dump());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(ChromeTrace, AValueOfTheWrongTypeIsNamedByItsPlaceInTheFile) {
  EXPECT_EQ(refusal_with("/traceEvents/1/args/start_s", 0.25), "") << "the rest of it is right";
  const std::string remedy = "); give a file that simulate --trace or execute wrote";
  const auto refusal = [&](const std::string& reason) {
    return "t.json: not a trace written by slipway (" + reason + remedy;
  };
  EXPECT_EQ(refusal_with("/traceEvents/1/args/start_s", "x"),
            refusal("traceEvents[1]: args.start_s is \"x\", where a number belongs"));
  EXPECT_EQ(refusal_with("/traceEvents/1/args/step", 1.5),
            refusal("traceEvents[1]: args.step is 1.5, where a whole number belongs"));
  EXPECT_EQ(refusal_with("/traceEvents/1/pid", 5000000000),
            refusal("traceEvents[1]: pid is 5000000000, where a smaller number belongs"));
  EXPECT_EQ(refusal_with("/traceEvents/1/args", std::nullopt), refusal("traceEvents[1]: args is missing"));
  EXPECT_EQ(refusal_with("/traceEvents/1/args", "x"),
            refusal("traceEvents[1]: args is \"x\", where an object belongs"));
  EXPECT_EQ(refusal_with("/traceEvents/0", 5), refusal("traceEvents[0]: a task comes before the name of its lane"));
  EXPECT_EQ(refusal_with("/traceEvents", nlohmann::json::object()), refusal("traceEvents is {}, where a list belongs"));
  EXPECT_EQ(refusal_with("/traceEvents", nlohmann::json::array({5})),
            refusal("an item of traceEvents is 5, where an object belongs"));
  EXPECT_EQ(refusal_with("/otherData", 5), refusal("otherData is 5, where an object belongs"));
  EXPECT_EQ(refusal_with("/otherData/ranks", "2"), refusal("otherData.ranks is \"2\", where a whole number belongs"));
  EXPECT_EQ(refusal_with("/otherData/losses", nlohmann::json::array({5})),
            refusal("otherData.losses[0].step is missing"));
  EXPECT_EQ(refusal_with("/otherData/peak_bytes", nlohmann::json::array({1, "x"})),
            refusal("otherData.peak_bytes[1] is \"x\", where a number belongs"));
}

TEST(ChromeTrace, ListsWithinListsAreRefusedWhateverTheirDepth) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  std::istringstream in("{\"otherData\": " + deep + ", \"traceEvents\": []}");
  try {
    read_chrome_trace(in, "t.json");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("otherData is an array, where an object belongs"));
  }
}

}  // namespace
}  // namespace slipway::test
