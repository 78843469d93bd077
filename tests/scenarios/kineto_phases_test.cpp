// `slipway compare` with a trace of PyTorch's profiler. A profiler's trace that is made of a prediction's own tasks has the
// prediction's phases; a timeline that a person can add up has the sums that a person finds.
#include "scenarios/commands/command_line/named_trace.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/commands/kineto/step_phases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_test.h"
#include "tests/support/kineto_file.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::map<std::string, double> by_name(const StepPhases& of) {
  std::map<std::string, double> phases;
  for (const PhaseTime& each : of.phases) phases[each.phase] = each.seconds;
  return phases;
}

class KinetoPhases : public CommandTest {
 protected:
  // The tiny Llama with two tensor and two data ranks.
  std::string predicted() {
    const Answer answer =
        slipway_with({"simulate", std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/tiny-llama-cpu.yaml", "--set",
                      "layout.pipeline=1", "--set", "layout.tensor=2", "--set", "layout.data=2", "--set",
                      "cluster.gpus_per_node=4", "--trace", path("predicted.json")});
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return path("predicted.json");
  }
  KinetoTrace read(const KinetoFile& file) {
    file.write(path("t.json"));
    return read_kineto(path("t.json"));
  }
};

// Two steps of 1 ms: forward 300 µs, backward 400 µs beside an all-reduce that ends 100 µs later, optimizer 50 µs.
KinetoFile two_steps(const std::string& description) {
  KinetoFile file;
  for (int step = 0; step < 2; ++step) {
    const double at = 1e-3 * step;
    file.op(fmt::format("ProfilerStep#{}", step), at, at + 0.9e-3, {}, "user_annotation");
    file.op("aten::mm", at + 10e-6, at + 20e-6);
    file.kernel("gemm", at + 12e-6, at + 100e-6, 300e-6);
    file.op("autograd::engine::evaluate_function: MmBackward0", at + 30e-6, at + 60e-6, {}, "cpu_op", 200);
    file.op("aten::mm", at + 35e-6, at + 50e-6, {}, "cpu_op", 200);
    file.kernel("gemm", at + 40e-6, at + 400e-6, 400e-6, 7, 200);
    file.message("allreduce", 1e6, 1e6, "Float", 2, "[0, 1]", description, at + 70e-6, at + 500e-6, 400e-6);
    file.op("Optimizer.step#AdamW.step", at + 80e-6, at + 95e-6, {}, "user_annotation");
    file.op("aten::_fused_adamw_", at + 82e-6, at + 92e-6);
    file.kernel("multi_tensor_apply_kernel", at + 85e-6, at + 950e-6, 50e-6);
  }
  return file;
}

TEST_F(KinetoPhases, AMomentCountsAsTheKernelThatRunsElseAsTheMessageElseAsIdle) {
  const StepPhases of = phases_of(read(two_steps("mesh_dp_shard")));
  EXPECT_EQ(of.steps, 1);
  EXPECT_NEAR(of.step_s, 1e-3, 1e-8);
  const auto phases = by_name(of);
  EXPECT_NEAR(phases.at("forward"), 300e-6, 1e-8);
  EXPECT_NEAR(phases.at("backward"), 400e-6, 1e-8);
  EXPECT_NEAR(phases.at("data messages, exposed"), 100e-6, 1e-8);
  EXPECT_NEAR(phases.at("optimizer"), 50e-6, 1e-8);
  EXPECT_NEAR(phases.at("idle"), 150e-6, 1e-8);
}

TEST_F(KinetoPhases, TheNameOfAProcessGroupSaysTheAxis) {
  for (const auto& [description, axis] : std::map<std::string, std::string>{{"mesh_tp", "tensor"},
                                                                            {"TENSOR_MODEL_PARALLEL_GROUP", "tensor"},
                                                                            {"DATA_PARALLEL_GROUP_WITH_CP", "data"},
                                                                            {"EXPERT_MODEL_PARALLEL_GROUP", "expert"},
                                                                            {"mesh_cp", "context"},
                                                                            {"mesh_pp", "pipeline"},
                                                                            {"default_pg", "other groups"}})
    EXPECT_TRUE(by_name(phases_of(read(two_steps(description)))).contains(axis + " messages, exposed")) << description;
}

// Each task of the prediction's rank 0 as one kernel of the same interval.
KinetoFile made_of(const Trace& trace) {
  KinetoFile file("NVIDIA H100 80GB HBM3", 0, 4);
  const std::map<std::string, std::string> operators = {
      {"forward", "aten::mm"},
      {"optimizer", "Optimizer.step#AdamW.step"},
      {"backward", "autograd::engine::evaluate_function: MmBackward0"}};
  constexpr double early = 1e-3;  // the host is ahead
  double host = 0;
  std::map<int, std::pair<double, double>> steps;
  for (const TraceRecord& record : trace.records) {
    if (record.rank != 0) continue;
    host += 10e-6;
    auto& [from, to] = steps.try_emplace(record.step, record.step + host, 0).first->second;
    const double launch = record.step + host;
    to = launch + 10e-6;
    if (record.lane != "compute") {
      const bool of_all = record.lane == "world";
      file.message("allreduce", 10, 10, "Float", of_all ? 4 : 2, "[0, 1]",
                   of_all ? "default_pg" : "mesh_" + record.lane, launch, early + record.start_s,
                   record.end_s - record.start_s);
      continue;
    }
    const auto name = operators.find(record.kind);
    file.op(name == operators.end() ? "aten::mm" : name->second, launch - 1e-6, launch + 2e-6);
    file.kernel("kernel", launch, early + record.start_s, record.end_s - record.start_s);
  }
  for (const auto& [step, times] : steps)
    file.op(fmt::format("ProfilerStep#{}", step), times.first - 2e-6, times.second, {}, "user_annotation", 300);
  return file;
}

TEST_F(KinetoPhases, ATraceOfAPredictionsOwnTasksHasItsPhases) {
  const std::string prediction = predicted();
  // The last step with a successor, and that one's first task.
  Trace trace = trace_from(prediction);
  const int last = trace.steps - 2;
  std::erase_if(trace.records, [&](const TraceRecord& record) { return record.step < last; });
  made_of(trace).write_gzip(path("t.json.gz"));
  const Answer answer = slipway_with({"compare", prediction, path("t.json.gz"), "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_NEAR(json.at("step_error").get<double>(), 0, 1e-3);
  std::map<std::string, std::pair<double, double>> phases;
  for (const auto& each : json.at("phases"))
    phases[each.at("phase")] = {each.at("predicted_s").get<double>(), each.at("measured_s").get<double>()};
  for (const char* phase :
       {"backward", "tensor messages, exposed", "data messages, exposed", "all ranks messages, exposed", "optimizer"}) {
    ASSERT_TRUE(phases.contains(phase)) << phase << "\n" << answer.out;
    EXPECT_NEAR(phases[phase].second / phases[phase].first, 1, 0.01) << phase;
  }
  const Answer text = slipway_with({"compare", prediction, path("t.json.gz")});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("tensor messages, exposed"), HasSubstr("Rank 0: the last step of the prediction")));
}

TEST_F(KinetoPhases, APageHasTheStepOfBothByPhase) {
  const std::string prediction = predicted();
  two_steps("mesh_dp").write_gzip(path("t.json.gz"));
  const Answer answer = slipway_with({"compare", prediction, path("t.json.gz"), "--report", path("page.html")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("note: the profiler's trace is of 1 rank"));
  const std::string page = text_of(path("page.html"));
  for (const char* shown :
       {"The step, predicted: ", "The step, measured: 1.00 ms", "data messages, exposed", "By phase"})
    EXPECT_THAT(page, HasSubstr(shown));
}

TEST_F(KinetoPhases, ExplainTakesTheMeanStepAsItsMeasurement) {
  const std::string example = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/llama-8b-64xh100.yaml";
  two_steps("mesh_dp").write_gzip(path("t.json.gz"));
  const Answer of_trace = slipway_with({"explain", example, "--run", path("t.json.gz"), "--json"}),
               of_time = slipway_with({"explain", example, "--measured", "1 ms", "--json"});
  ASSERT_EQ(of_trace.status, status_done) << of_trace.err;
  const auto trace = nlohmann::json::parse(of_trace.out), time = nlohmann::json::parse(of_time.out);
  EXPECT_NEAR(trace["measured"]["step_s"], 1e-3, 1e-9);
  EXPECT_EQ(trace["levers"], time["levers"]);
  const Answer without = slipway_with({"explain", "--run", path("t.json.gz")});
  EXPECT_EQ(without.status, status_usage);
  EXPECT_THAT(without.err, HasSubstr("the scenario file (YAML) is missing"));
}

}  // namespace
}  // namespace slipway::test
