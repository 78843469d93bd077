// The cause of a trace: simulations of machines in which one constant or one link differs from the profile, with noise on
// every task, and the cause that is found.
#include "scenarios/search/trace_causes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "models/machine/degradation.h"
#include "scenarios/predict/simulated_step.h"
#include "schedules/draw/timeline_trace.h"
#include "tests/support/example.h"

namespace slipway::test {
namespace {

StepOptions whole() {
  StepOptions options;
  options.makespan = options.periodic = false;
  return options;
}

// Each task of a rank, or of a group, takes exp(N(0, noise)) times as long. The draw is that of its step and label.
void add_noise(double noise, Trace& trace) {
  for (TraceRecord& record : trace.records) {
    const auto who = static_cast<std::uint64_t>(record.group >= 0 ? record.group : 100000 + record.rank);
    const std::uint64_t what =
        std::hash<std::string>()(record.label) ^ (who << 20) ^ static_cast<std::uint64_t>(record.step);
    const double factor = spread_factor(Spread::lognormal, noise, 7, what);
    record.end_s = record.start_s + record.wait_s + factor * work_seconds(record);
  }
}

Trace trace_of_run(const Scenario& truth, double noise = 0.02) {
  StepOptions options = whole();
  options.representatives_only = false;
  const SimulatedStep step = simulated_step(truth, options);
  Trace trace = trace_of(step.prepared.graph, step.simulation.timeline, "simgrid");
  add_noise(noise, trace);
  return trace;
}

TraceFindings findings_of(const Scenario& scenario, const Scenario& truth, double noise = 0.02) {
  return trace_findings(simulated_step(scenario, whole()), trace_of_run(truth, noise));
}

// The scenarios, small enough to be simulated often.
const std::vector<std::string> few_layers{"model.layers=8", "schedule.global_batch=8"};
Scenario dense() { return loaded("llama-8b-64xh100.yaml", few_layers); }
std::vector<std::string> with(std::vector<std::string> overrides, const std::string& more) {
  overrides.push_back(more);
  return overrides;
}
const std::vector<std::string> few_experts{"model.layers=4",          "cluster.nodes=4", "layout.tensor=2",
                                           "layout.pipeline=2",       "layout.data=8",   "layout.expert=8",
                                           "schedule.global_batch=32"};
const std::vector<std::string> on_four_nodes{"cluster.nodes=4",   "cluster.gpus_per_node=2", "layout.tensor=2",
                                             "layout.pipeline=2", "layout.data=2",           "model.hidden=256",
                                             "model.ffn=640",     "model.sequence=256"};
const std::vector<std::string> with_context{"model.layers=8",           "layout.tensor=2", "layout.context=4",
                                            "layout.pipeline=2",        "layout.data=4",   "schedule.global_batch=16",
                                            "cluster.machine=a100-80gb"};

struct Perturbed {
  std::string what;
  Scenario scenario, truth;
  std::vector<std::string> causes;  // ids that name it
};

// A constant of a step (models/machine/step_constants.h) on all machines.
Scenario with_constant(const Scenario& scenario, double StepConstants::*constant, double factor) {
  Scenario truth = scenario;
  truth.step_constants = [scenario, constant, factor](const Machine& machine) {
    StepConstants constants = constants_on(scenario, machine);
    constants.*constant *= factor;
    return constants;
  };
  return truth;
}

// A number of the machine's profile.
Scenario with_machine(const Scenario& scenario, const std::function<void(Machine&)>& change) {
  Scenario truth = scenario;
  std::vector<Machine> machines;
  for (const NodeGroup& group : scenario.cluster.groups) {
    machines.push_back(group.machine);
    change(machines.back());
  }
  truth.cluster = with_machines(truth.cluster, machines);
  return truth;
}

std::vector<Perturbed> perturbed() {
  std::vector<Perturbed> all;
  const Scenario llama = dense(), experts = loaded("mixtral-8x7b-64xh100.yaml", few_experts),
                 cores = loaded("tiny-llama-cpu.yaml", on_four_nodes),
                 context = loaded("llama-8b-64xh100.yaml", with_context);
  const auto add = [&](const char* what, const Scenario& scenario, Scenario truth, std::vector<std::string> causes) {
    all.push_back({what, scenario, std::move(truth), std::move(causes)});
  };
  // A dense model of tensor, pipeline and data ranks on 64 H100.
  add("products at 0.7", llama, with_constant(llama, &StepConstants::gemm, 0.7), {"products"});
  add("attention at 0.5", llama, with_constant(llama, &StepConstants::attention, 0.5), {"attention"});
  add("NVLink at 0.5", llama, with_machine(llama, [](Machine& m) { m.node_link.bandwidth *= 0.5; }),
      {"node_bandwidth"});
  add("InfiniBand at 0.3", llama, with_machine(llama, [](Machine& m) { m.network_link.bandwidth *= 0.3; }),
      {"network_bandwidth"});
  add("memory at 0.6", llama, with_machine(llama, [](Machine& m) { m.memory_bandwidth *= 0.6; }), {"memory_bandwidth"});
  add("messages in a node start late", llama, with_constant(llama, &StepConstants::node_start, 3), {"node_starts"});
  add("a GPU 1.3 times as slow", llama,
      loaded("llama-8b-64xh100.yaml", with(few_layers, "cluster.stragglers=[{node: 2, gpu: 5, slowdown: 1.3}]")),
      {"gpu:21"});
  add("a node 1.2 times as slow", llama,
      loaded("llama-8b-64xh100.yaml", with(few_layers, "cluster.stragglers=[{node: 3, slowdown: 1.2}]")), {"node:3"});
  add("NVLink of a node at 0.4", llama,
      loaded("llama-8b-64xh100.yaml", with(few_layers, "cluster.slow_links=[{node: 1, fabric: 0, bandwidth: 0.4}]")),
      {"port:node:1"});
  // Three times as slow, they still keep ahead of the GPUs: nothing differs and no cause is found.
  add("the hosts 10 times as slow", llama, with_constant(llama, &StepConstants::host_kernel, 10), {"launches"});
  // Experts on ranks of their own, on 32 H100.
  add("products at 0.8, with experts", experts, with_constant(experts, &StepConstants::gemm, 0.8), {"products"});
  add("NVLink at 0.4, with experts", experts, with_machine(experts, [](Machine& m) { m.node_link.bandwidth *= 0.4; }),
      {"node_bandwidth"});
  add("the optimizer at 0.4, with experts", experts, with_constant(experts, &StepConstants::update_bytes, 2.5),
      {"optimizer"});
  add("a GPU 1.15 times as slow, with experts", experts,
      loaded("mixtral-8x7b-64xh100.yaml", with(few_experts, "cluster.stragglers=[{node: 0, gpu: 3, slowdown: 1.15}]")),
      {"gpu:3"});
  // Keys and values between context ranks, on 64 A100.
  add("attention at 0.6, with context", context, with_constant(context, &StepConstants::attention, 0.6), {"attention"});
  add("InfiniBand at 0.25, with context", context,
      with_machine(context, [](Machine& m) { m.network_link.bandwidth *= 0.25; }), {"network_bandwidth"});
  // CPU ranks with a profile of one's own.
  add("products at 0.5, on cores", cores, with_machine(cores, [](Machine& m) { m.gemm_efficiency *= 0.5; }),
      {"products"});
  add("the network at 0.4, on cores", cores, with_machine(cores, [](Machine& m) { m.network_link.bandwidth *= 0.4; }),
      {"network_bandwidth"});
  add("a core 1.4 times as slow", cores,
      loaded("tiny-llama-cpu.yaml", with(on_four_nodes, "cluster.stragglers=[{node: 1, gpu: 1, slowdown: 1.4}]")),
      {"gpu:3"});
  add("a weak pair of nodes", cores,
      loaded("tiny-llama-cpu.yaml", with(on_four_nodes, "cluster.link_factors=[{nodes: [0, 2], factor: 0.2}]")),
      {"nodes:0-2"});
  return all;
}

// A cause is found when it is the first one. Two of twenty may be missed.
TEST(TraceCauses, OfTwentyPerturbedTracesAtLeastEighteenAreFound) {
  int found = 0;
  const std::vector<Perturbed> all = perturbed();
  ASSERT_EQ(all.size(), 20);
  for (const Perturbed& each : all) {
    const TraceFindings findings = findings_of(each.scenario, each.truth);
    std::string first = findings.agrees() ? "the tasks agree" : "no cause";
    if (!findings.causes.empty()) first = findings.causes.front().id;
    const bool is_found = std::find(each.causes.begin(), each.causes.end(), first) != each.causes.end();
    found += is_found ? 1 : 0;
    std::string list;
    for (const TraceCause& cause : findings.causes)
      list += " " + cause.id + "@" + std::to_string(cause.speed) + "=" + std::to_string(cause.explained);
    list += "; step " + std::to_string(findings.measured_step_s / findings.predicted_step_s);
    std::cout << (is_found ? "found:  " : "missed: ") << each.what << ": " << first << ";" << list << "\n";
  }
  EXPECT_GE(found, 18);
}

// Noise alone has no cause.
TEST(TraceCauses, OfARunAsPredictedAreNone) {
  const Scenario scenario = dense();
  EXPECT_TRUE(findings_of(scenario, scenario, 0.03).causes.empty());
  EXPECT_TRUE(findings_of(scenario, scenario, 0).agrees());
  EXPECT_TRUE(findings_of(scenario, scenario, 0).causes.empty());
}

TEST(TraceCauses, SayHowSlowAGpuIs) {
  const Scenario scenario = dense();
  const TraceFindings findings = findings_of(
      scenario,
      loaded("llama-8b-64xh100.yaml", with(few_layers, "cluster.stragglers=[{node: 2, gpu: 5, slowdown: 1.3}]")), 0);
  ASSERT_FALSE(findings.causes.empty());
  EXPECT_EQ(findings.causes.front().id, "gpu:21");
  EXPECT_NEAR(findings.causes.front().speed, 1 / 1.3, 0.01);
  EXPECT_GT(findings.causes.front().of_its_own, 0.95);
}

TEST(TraceCauses, SayHowSlowALinkIs) {
  const Scenario scenario = dense();
  const TraceFindings findings =
      findings_of(scenario, with_machine(scenario, [](Machine& m) { m.node_link.bandwidth *= 0.5; }), 0);
  ASSERT_FALSE(findings.causes.empty());
  EXPECT_EQ(findings.causes.front().id, "node_bandwidth");
  EXPECT_NEAR(findings.causes.front().speed, 0.5, 0.02);
}

TEST(TraceCauses, ATraceOfAnotherScenarioIsRefused) {
  const Scenario scenario = dense();
  EXPECT_THROW(trace_findings(simulated_step(loaded("tiny-llama-cpu.yaml"), whole()), trace_of_run(scenario, 0)),
               std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
