#include "scenarios/laboratory/calibrate/trace_observations.h"
#include "models/machine/priced_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "schedules/draw/timeline_trace.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"

namespace slipway::test {
namespace {

Machine truth() {
  Machine machine;
  machine.name = "truth";
  machine.cores = 4;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 80e9;
  machine.gemm_efficiency = 0.7, machine.gemm_half = 24;
  machine.attention_efficiency = 0.3;
  machine.memory_bandwidth = 6e9;
  machine.launch_overhead = 8e-6, machine.task_overhead = 40e-6;
  machine.node_link = {"loopback", 2e9, 60e-6, 1};
  machine.reduce_bandwidth = 4e9;
  return machine;
}

PricedCluster cluster_of(const Machine& machine) {
  PricedCluster cluster;
  cluster.groups = {{machine, 1, 4}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

std::shared_ptr<const TaskGraph> graph_of(int tensor, int pipeline, int data, std::int64_t hidden = 128) {
  Step input;
  input.model = llama(
      "small",
      {.layers = 4, .hidden = hidden, .ffn = 3 * hidden, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 64});
  input.layout.tensor = tensor, input.layout.pipeline = pipeline, input.layout.data = data;
  input.layout.sequence_parallel = tensor > 1;
  input.micro_batch = 2;
  input.dtype = Dtype::float32;
  input.global_batch = 8 * data;
  input.clip_norm = 1;
  auto graph = std::make_shared<TaskGraph>(lower(input));
  set_global_order(*graph, durations_of(*graph, cluster_of(truth())));
  return graph;
}

// A run on the invented machine: two steps, the first three times slower.
Trace executed(const std::shared_ptr<const TaskGraph>& graph) {
  const Durations durations = durations_of(*graph, cluster_of(truth()));
  Trace trace = trace_of(*graph, replay(*graph, durations, 2), "libtorch");
  for (TraceRecord& record : trace.records) {
    if (record.step == 0) record.end_s += 2 * work_seconds(record);
  }
  return trace;
}

TEST(TraceObservations, AFitToTheTracesOfAMachinePredictsThatMachineOnALayoutItHasNotSeen) {
  std::vector<Observation> observations;
  for (const auto& graph : {graph_of(1, 2, 1), graph_of(2, 2, 1), graph_of(1, 2, 2), graph_of(1, 2, 1, 256)}) {
    const auto more = observations_of(executed(graph), graph, cluster_of(truth()), "t.json");
    observations.insert(observations.end(), more.begin(), more.end());
  }
  Machine start;
  start.cores = 4;
  start.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 60e9;
  const Calibration calibration = calibrate(start, observations);
  EXPECT_LT(calibration.in_sample_error, 0.01);

  const auto unseen = graph_of(2, 1, 2, 512);
  const Durations expected = durations_of(*unseen, cluster_of(truth()));
  const Durations predicted = durations_of(*unseen, cluster_of(calibration.machine));
  const double makespan = replay(*unseen, expected).makespan_s;
  EXPECT_NEAR(replay(*unseen, predicted).makespan_s / makespan, 1, 0.03);
}

TEST(TraceObservations, LeaveTheFirstStepOutAndCountEqualWorkOnce) {
  const auto graph = graph_of(1, 2, 1);
  const auto observations = observations_of(executed(graph), graph, cluster_of(truth()), "t.json");
  EXPECT_LE(observations.size(), graph->works.size());
  for (const Observation& observation : observations) {
    EXPECT_NEAR(observation.predict(truth()) / observation.seconds, 1, 1e-6) << observation.name;
  }
}

// Every thread wakes up 20 us late.
TEST(TraceObservations, OfProcessorsCountTheTimeThatAThreadTakesToWakeUp) {
  const auto graph = graph_of(2, 2, 1);
  const auto with = [&](int cores) {
    Machine machine = truth();
    machine.cores = cores;
    Trace late = executed(graph);
    for (TraceRecord& record : late.records) record.start_s += 20e-6;
    std::map<std::string, double> change;
    const auto as_was = observations_of(executed(graph), graph, cluster_of(machine), "t.json");
    const auto observations = observations_of(late, graph, cluster_of(machine), "t.json");
    for (std::size_t i = 0; i < observations.size(); ++i)
      change[observations[i].kind] =
          std::max(change[observations[i].kind], as_was.at(i).seconds - observations[i].seconds);
    return change;
  };
  const auto processors = with(4), gpus = with(0);
  for (const char* kind : {"backward", "all-gather", "reduce-scatter", "optimizer"}) {
    EXPECT_NEAR(processors.at(kind), 0, 1e-9) << kind;
    EXPECT_NEAR(gpus.at(kind), 20e-6, 1e-9) << kind;
  }
}

TEST(TraceObservations, AreTheMeanOfTheirInstancesWithoutTheFarthest) {
  const auto graph = graph_of(1, 1, 1);
  const auto backward = [&](double every_other, double one) {
    Trace trace = trace_of(*graph, replay(*graph, durations_of(*graph, cluster_of(truth())), 8), "libtorch");
    int seen = 0;
    for (TraceRecord& record : trace.records)
      if (record.step > 0 && record.kind == "backward")
        record.end_s = record.start_s + work_seconds(record) * (++seen == 11 ? one : seen % 2 == 0 ? every_other : 1);
    for (const Observation& each : observations_of(trace, graph, cluster_of(truth()), "t.json"))
      if (each.kind == "backward") return each.seconds;
    return 0.0;
  };
  const double alike = backward(1, 1);
  EXPECT_NEAR(backward(1.2, 1) / alike, 1.1, 1e-6) << "a median would be one of the two";
  EXPECT_NEAR(backward(1, 100) / alike, 1, 1e-6);
}

TEST(TraceObservations, KnowWhichTasksRanBesideCommunication) {
  const auto graph = graph_of(1, 2, 2);
  const auto observations = observations_of(executed(graph), graph, cluster_of(truth()), "t.json");
  const auto beside = std::count_if(observations.begin(), observations.end(), [](const Observation& observation) {
    return observation.group == ObservationGroup::compute && observation.overlap_share > 0.5;
  });
  EXPECT_GT(beside, 0);
  const auto alone = observations_of(executed(graph_of(1, 1, 1)), graph_of(1, 1, 1), cluster_of(truth()), "t.json");
  for (const Observation& observation : alone) EXPECT_EQ(observation.overlap_share, 0) << observation.name;
}

TEST(TraceObservations, RefuseATraceOfAnotherScenarioAndAPrediction) {
  const auto message = [](const Trace& trace, const std::shared_ptr<const TaskGraph>& graph) {
    try {
      observations_of(trace, graph, cluster_of(truth()), "t.json");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Trace other = executed(graph_of(1, 2, 2));
  other.scenario = "two-replicas", other.summary = "model:\n  pages: of YAML\n";
  EXPECT_THAT(message(other, graph_of(1, 2, 1)),
              testing::HasSubstr("which the scenario does not have; the trace is of "
                                 "another scenario (two-replicas); give the scenario"));
  // The same labels, twice as wide.
  EXPECT_THAT(message(executed(graph_of(1, 2, 1, 256)), graph_of(1, 2, 1)),
              testing::AllOf(testing::HasSubstr("ran 0F0, with "),
                             testing::HasSubstr("in the scenario; the trace is of another scenario")));
  Trace prediction = executed(graph_of(1, 2, 1));
  prediction.engine = "simgrid";
  EXPECT_THAT(message(prediction, graph_of(1, 2, 1)), testing::HasSubstr("a prediction; calibrate needs"));
}

TEST(TraceObservations, TheBestTaskRateIsThatOfTheFastestRecord) {
  Trace trace;
  trace.records.resize(3);
  trace.records[0].end_s = 2, trace.records[0].flops = 10;
  trace.records[1].end_s = 1, trace.records[1].flops = 20;
  EXPECT_EQ(best_task_rate(trace), 20);
}

}  // namespace
}  // namespace slipway::test
