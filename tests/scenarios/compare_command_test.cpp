#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/commands/compare/comparison.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/predict/description.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `steps` equal steps of one rank: forward for f seconds, backward for b, 1 s idle, and an all-reduce that
// waits 0.25 s and works 0.5 s.
Trace regular(int steps, double f, double b) {
  Trace trace;
  trace.scenario = "regular";
  trace.ranks = 1;
  trace.steps = steps;
  for (int k = 0; k < steps; ++k) {
    const double at = k * (f + b + 1);
    trace.records.push_back({k, 0, "compute", "0F0", "forward", at, at + f, 0, 0, 0, -1});
    trace.records.push_back({k, 0, "compute", "0B0", "backward", at + f, at + f + b, 0, 0, 0, -1});
    trace.records.push_back({k, 0, "dp", "0.rs", "all-reduce", at + f, at + f + 0.75, 0.25, 0, 0, 0});
  }
  return trace;
}

const KindComparison& kind_of(const Comparison& comparison, const std::string& name) {
  for (const KindComparison& kind : comparison.kinds) {
    if (kind.kind == name) return kind;
  }
  throw std::logic_error(name);
}

TEST(Comparison, ATraceAgreesWithItself) {
  const Comparison same = compare_traces(regular(3, 2, 4), regular(3, 2, 4));
  EXPECT_EQ(same.step_error(), 0);
  EXPECT_EQ(same.joined, 3);
  for (const KindComparison& kind : same.kinds) EXPECT_EQ(kind.predicted_s, kind.measured_s);
  EXPECT_THAT(same.only_predicted, IsEmpty());
  EXPECT_THAT(same.only_measured, IsEmpty());
}

// A send of 0.2 ms, the time in which the system takes the bytes, that arrive after 55 ms.
TEST(Comparison, ASendIsComparedByWhenItsBytesArrive) {
  Trace predicted = regular(3, 2, 4), measured = regular(5, 2, 4);
  for (Trace* trace : {&predicted, &measured}) {
    trace->ranks = 2;
    for (std::size_t i = 0, end = trace->records.size(); i < end; ++i) {  // both ranks do the same
      trace->records.push_back(trace->records[i]);
      trace->records.back().rank = 1;
    }
    for (int step = 0; step < trace->steps; ++step)
      for (int rank = 0; rank < 2; ++rank) {
        const double at = 7.0 * step + 2, end = at + (trace == &measured && rank == 0 ? 0.0002 : 0.055);
        trace->records.push_back({step, rank, "pp.forward.0-1", "0F0.send", "transfer", at, end, 0, 0, 0, 1});
      }
  }
  const Comparison comparison = compare_traces(predicted, measured);
  EXPECT_NEAR(kind_of(comparison, "transfer").error(), 0, 1e-9);
}

TEST(Comparison, MemoryIsThePredictedPeakOfEachRankAgainstTheLargestMeasuredInTheCountedSteps) {
  Trace predicted = regular(3, 2, 4), measured = regular(5, 2, 4);
  for (TraceRecord& record : measured.records) record.memory_peak_bytes = 100 * 1024;
  measured.records[0].memory_peak_bytes = 900 * 1024;  // step 0 warms up
  measured.records[4].memory_peak_bytes = 200 * 1024;
  EXPECT_THAT(compare_traces(predicted, measured).memory, IsEmpty()) << "an older prediction";
  predicted.peak_bytes = {150 * 1024};
  predicted.records[1].memory_peak_bytes = 150 * 1024;
  const Comparison c = compare_traces(predicted, measured);
  ASSERT_EQ(c.memory.size(), 1u);
  EXPECT_EQ(c.memory[0].predicted_bytes, 150 * 1024);
  EXPECT_EQ(c.memory[0].measured_bytes, 200 * 1024);
  EXPECT_THAT(
      report_text(c),
      HasSubstr("Peak memory of tensors per rank:\n  rank  predicted  measured    error  predicted in  measured in\n"
                "  0       150 KiB   200 KiB  -25.0 %           0B0          0B0\n"));
  const auto json = nlohmann::json::parse(comparison_description().text(c));
  EXPECT_EQ(json.at("memory").at(0).at("measured_bytes"), 200 * 1024);
  EXPECT_EQ(json.at("memory").at(0).at("error"), -0.25);
  EXPECT_EQ(json.at("memory").at(0).at("measured_task"), "0B0");
  for (TraceRecord& record : measured.records) record.memory_peak_bytes = 0;
  EXPECT_THAT(compare_traces(predicted, measured).memory, IsEmpty()) << "nothing was measured";
}

TEST(Comparison, ErrorsAreOfStepAndKindAndTheWorstTaskComesFirst) {
  const Comparison c = compare_traces(regular(3, 2, 4), regular(10, 2.5, 3));
  EXPECT_EQ(c.predicted_step_s, 7);
  EXPECT_EQ(c.measured_step_s, 6.5);
  EXPECT_THAT(c.step_error(), DoubleNear(7 / 6.5 - 1, 1e-12));
  EXPECT_EQ(kind_of(c, "forward").predicted_s, 2);
  EXPECT_EQ(kind_of(c, "forward").measured_s, 2.5);
  EXPECT_EQ(kind_of(c, "all-reduce").measured_s, 0.5);
  EXPECT_EQ(kind_of(c, "all-reduce").measured_wait_s, 0.25);
  EXPECT_EQ(c.worst.front().label, "0B0");
  EXPECT_EQ(c.predicted_idle_s, 1);
  EXPECT_EQ(c.measured_idle_s, 1);
}

TEST(Comparison, ASlowFirstStepAndASingleSlowTaskDoNotMoveTheMedian) {
  Trace measured = regular(11, 2, 4);
  for (TraceRecord& record : measured.records) {
    if (record.step == 0 && record.label == "0F0") record.start_s -= 100;
    if (record.step == 5 && record.label == "0F0") record.end_s += 0.5;
  }
  const Comparison c = compare_traces(regular(3, 2, 4), measured);
  EXPECT_EQ(c.step_error(), 0);
  EXPECT_EQ(kind_of(c, "forward").measured_s, 2);
}

TEST(Comparison, TasksOfOneSideAreListedByRankAndLabel) {
  Trace predicted = regular(3, 2, 4), measured = regular(3, 2, 4);
  std::erase_if(measured.records, [](const TraceRecord& record) { return record.label == "0.rs"; });
  predicted.records[3].label = "9F9";
  predicted.records[3].step = 1;
  const Comparison c = compare_traces(predicted, measured);
  EXPECT_THAT(c.only_predicted, ElementsAre("rank 0: 0.rs", "rank 0: 9F9"));
  EXPECT_THAT(c.only_measured, ElementsAre("rank 0: 0F0"));
  EXPECT_EQ(c.joined, 1);
  EXPECT_THAT(report_text(c), HasSubstr("2 tasks only in the predicted trace: rank 0: 0.rs, rank 0: 9F9"));
}

TEST(Comparison, TracesWithoutACommonTaskAreRefused) {
  Trace other = regular(3, 2, 4);
  for (TraceRecord& record : other.records) record.label += "'";
  EXPECT_THROW(compare_traces(regular(3, 2, 4), other), std::invalid_argument);
}

class CompareCommand : public CommandTest {
 protected:
  // The name selects the engine: p.json is a prediction, m.json measured.
  std::string file(const std::string& name, Trace trace) const {
    trace.engine = name == "m.json" ? "libtorch" : "simgrid";
    std::ofstream out(path(name));
    write_chrome_trace(out, trace);
    return path(name);
  }
};

TEST_F(CompareCommand, PrintsTheStepErrorFirstThenKindsAndWorstTasks) {
  const Answer answer = slipway_with({"compare", file("p.json", regular(3, 2, 4)), file("m.json", regular(5, 2, 3))});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out,
              testing::MatchesRegex("[^\n]*predicted[^\n]*\n  step time +7.00 s +6.00 s +\\+16.7 %\n(.|\n)*"));
  EXPECT_THAT(answer.out, HasSubstr("waiting"));
  EXPECT_THAT(answer.out, HasSubstr("rank 0: 0B0"));
  EXPECT_THAT(answer.err, IsEmpty());
}

// Keys at every depth; keys of objects in a list "k" are written "k[].key".
void collect_keys(const nlohmann::json& object, const std::string& prefix, std::set<std::string>& keys) {
  for (const auto& [key, value] : object.items()) {
    keys.insert(prefix + key);
    if (value.is_object()) collect_keys(value, prefix + key + ".", keys);
    if (!value.is_array()) continue;
    for (const auto& element : value) {
      if (element.is_object()) collect_keys(element, prefix + key + "[].", keys);
    }
  }
}

TEST_F(CompareCommand, JsonHasExactlyTheDocumentedKeys) {
  Trace predicted = regular(3, 2, 4), measured = regular(5, 2, 3);
  predicted.peak_bytes = {1e6};
  predicted.step_low_s = 6.5, predicted.step_high_s = 7.5;
  for (TraceRecord& record : measured.records) record.memory_peak_bytes = 2e6;
  const Answer answer = slipway_with({"compare", file("p.json", predicted), file("m.json", measured), "--json"});
  const auto json = nlohmann::json::parse(answer.out);
  std::set<std::string> emitted, documented;
  collect_keys(json, "", emitted);
  for (const AnswerKey& key : comparison_description().keys())
    if (key.name != "window") documented.emplace(key.name);  // work in the bubbles: execute_kfac_command_test.cpp
  EXPECT_EQ(emitted, documented);
  const std::string listed = slipway_with({"list", "json-keys"}).out;
  for (const std::string& key : emitted) EXPECT_THAT(listed, HasSubstr("\n  " + key + "  "));
  EXPECT_THAT(json["step_error"].get<double>(), DoubleNear(7.0 / 6 - 1, 1e-12));
  EXPECT_EQ(json["kinds"].size(), 3u);
}

TEST_F(CompareCommand, SaysWhetherTheMeasuredStepIsInsideTheInterval) {
  Trace predicted = regular(3, 2, 4);
  const auto compared = [&](double low, double high) {
    predicted.step_low_s = low, predicted.step_high_s = high;
    return slipway_with({"compare", file("p.json", predicted), file("m.json", regular(5, 2, 3))}).out;  // 7 s, 6 s
  };
  EXPECT_THAT(compared(5.5, 8.5), HasSubstr("The measured step is inside the 90 % interval of the prediction, 5.50 s"));
  EXPECT_THAT(compared(6.5, 7.5), HasSubstr("The measured step is outside the 90 % interval"));
  EXPECT_THAT(compared(0, 0), testing::Not(HasSubstr("interval")));
}

TEST_F(CompareCommand, OtherSettingsAreNamedButNotTheMachinesFigures) {
  Trace predicted = regular(3, 2, 4), measured = regular(3, 2, 4);
  predicted.summary = "cluster:\n  machine: fitted.yaml\nlayout:\n  tensor: 2\n";
  measured.summary = "cluster:\n  machine: first.yaml\nlayout:\n  tensor: 1\n";
  const Answer noted = slipway_with({"compare", file("p.json", predicted), file("m.json", measured)});
  EXPECT_EQ(noted.status, status_done);
  EXPECT_EQ(noted.err,
            "note: the traces were made with different settings\n"
            "  predicted: tensor: 2\n  measured:  tensor: 1\n");
}

TEST_F(CompareCommand, TracesInTheWrongOrderOrTwoOfAKindAreRefused) {
  const std::string p = file("p.json", regular(3, 2, 4)), m = file("m.json", regular(3, 2, 4));
  for (const auto& [first, second] : {std::pair{m, p}, {p, p}, {m, m}}) {
    const Answer answer = slipway_with({"compare", first, second});
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_THAT(answer.err, HasSubstr("give PREDICTED MEASURED, in this order"));
  }
}

TEST_F(CompareCommand, WhatIsNoCompleteTraceIsWrongUsageWithTheRemedy) {
  const std::string p = file("p.json", regular(3, 2, 4)), whole = text_of(file("m.json", regular(3, 2, 4)));
  Trace out_of_range = regular(3, 2, 4);
  out_of_range.records[2].step = 7;
  const std::string beyond = text_of(file("m.json", out_of_range));
  out_of_range.records.clear();
  const std::string none = text_of(file("m.json", out_of_range));
  for (const std::string& text : {std::string(), std::string("step,loss\n"), std::string("{}"), std::string("[1, 2]"),
                                  whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 3), beyond, none}) {
    std::ofstream(path("m.json")) << text;
    const Answer answer = slipway_with({"compare", p, path("m.json")});
    EXPECT_EQ(answer.status, status_usage) << text;
    EXPECT_THAT(answer.err, HasSubstr(path("m.json")));
    EXPECT_THAT(answer.err, HasSubstr("give a file that simulate --trace or execute wrote"));
    EXPECT_THAT(answer.out, IsEmpty());
  }
  Trace other = regular(3, 2, 4);
  for (TraceRecord& record : other.records) record.label += "'";
  const Answer answer = slipway_with({"compare", p, file("m.json", other)});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("no task (rank, label) in common"));
}

TEST_F(CompareCommand, MissingFilesAreWrongUsage) {
  file("p.json", regular(3, 2, 4));
  EXPECT_EQ(slipway_with({"compare", path("p.json"), path("none.json")}).status, status_usage);
  EXPECT_EQ(slipway_with({"compare", path("p.json")}).status, status_usage);
}

}  // namespace
}  // namespace slipway::test
