// Random small scenarios through every engine: closed-form bound, list replay, SimGrid with and without what a
// simulation leaves out, the bundle, and its ranks' token run. They agree to 1e-9. A scenario on which they do not is
// made as small as it can be and printed.
//
// SLIPWAY_DRAWN_SCENARIOS=5000 runs so many instead of a few hundred, SLIPWAY_DRAWN_FIRST=N begins with another number.
// `make differential` does both on all cores.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "models/machine/priced_cluster.h"
#include "scenarios/commands/execute/bundle.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/priced_step.h"
#include "scenarios/predict/simulated_step.h"
#include "schedules/bound/estimate.h"
#include "schedules/bundle/bundle.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/durations.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"
#include "sim/together.h"
#include "tests/support/drawn_scenario.h"
#include "tests/support/same_graph.h"
#include "tests/support/scenario_file.h"
#include "tests/support/token_run.h"

namespace slipway::test {
namespace {

constexpr double tolerance = 1e-9;

struct Disagreement {
  std::string check, message;
};

// Compares numbers and dates of one scenario, and keeps the first that differ.
class Comparison {
 public:
  const std::optional<Disagreement>& first() const { return first_; }
  std::map<std::string, int>& tally() { return tally_; }
  // What is compared now, for what is thrown meanwhile.
  void begin(const char* doing) { doing_ = doing; }
  const char* doing() const { return doing_; }

  void fail(const std::string& check, const std::string& message) {
    if (!first_) first_ = Disagreement{check, message};
  }
  void near(const std::string& check, const std::string& what, double a, double b, double scale,
            double within = tolerance) {
    if (!(std::abs(a - b) <= within * scale)) fail(check, what + ": " + text(a) + " and " + text(b));
  }
  void near(const std::string& check, const std::string& what, double a, double b) {
    near(check, what, a, b, std::max(std::abs(a), std::abs(b)));
  }
  void at_most(const std::string& check, const std::string& what, double small, double large) {
    if (!(small <= large * (1 + tolerance))) fail(check, what + ": " + text(small) + " is more than " + text(large));
  }
  // Every date within 1e-9 of the end of the steps.
  void same_dates(const std::string& check, const TaskGraph& graph, const std::vector<double>& a,
                  const std::vector<double>& b, double end_s) {
    each_date(check, graph, a, b, [&](double x, double y) { return std::abs(x - y) <= tolerance * end_s; });
  }
  void not_earlier(const std::string& check, const TaskGraph& graph, const std::vector<double>& later,
                   const std::vector<double>& earlier, double end_s) {
    each_date(check, graph, later, earlier, [&](double x, double y) { return x >= y - tolerance * end_s; });
  }

  static std::string text(double number) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", number);
    return digits;
  }

 private:
  template <typename Good>
  void each_date(const std::string& check, const TaskGraph& graph, const std::vector<double>& a,
                 const std::vector<double>& b, const Good& good) {
    if (a.size() != b.size()) return fail(check, "other numbers of tasks");
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!good(a[i], b[i]))
        return fail(check, label_of(graph, static_cast<TaskId>(i % graph.tasks.size())) + " of step " +
                               std::to_string(i / graph.tasks.size() + 1) + " at " + text(a[i]) + " and at " +
                               text(b[i]));
  }

  std::optional<Disagreement> first_;
  std::map<std::string, int> tally_;
  const char* doing_ = "simulation";
};

// Ranks whose speed changes while they compute: the list replay knows nothing of that.
bool speeds_change(const Cluster& cluster) {
  return cluster.ranks_per_gpu > 1 ||
         std::any_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& group) {
           return group.machine.cores > 0 || group.machine.overlap_slowdown != 1;
         });
}
// Then prices are those of the link's mean.
bool links_flap(const Cluster& cluster) {
  const auto& ports = cluster.degradation.ports;
  return std::any_of(ports.begin(), ports.end(), [](const SlowPort& port) { return port.down > 0; });
}

constexpr int steps = 3;

// Contention makes tasks longer, never shorter.
void compare_contention(const PreparedStep& whole, const Timeline& simulated, Comparison& found) {
  found.begin("contention");
  if (links_flap(whole.scenario.cluster)) return;
  const Timeline replayed = replay(whole.graph, whole.durations, steps);
  found.not_earlier("starts under contention", whole.graph, simulated.start, replayed.start, simulated.makespan_s);
  found.not_earlier("ends under contention", whole.graph, simulated.end, replayed.end, simulated.makespan_s);
}

// With links so wide that no message waits for another, SimGrid and the replay have the same dates.
void compare_wide_links(Scenario scenario, Comparison& found) {
  found.begin("wide links");
  if (speeds_change(scenario.cluster) || links_flap(scenario.cluster)) return;
  for (Fabric& fabric : scenario.cluster.fabrics) {
    fabric.bandwidth = 1e24, fabric.own = true;
    fabric.parameters.erase("link_bandwidth"), fabric.parameters.erase("global_bandwidth");
  }
  const PreparedStep wide = prepared_step(std::move(scenario));
  const Timeline replayed = replay(wide.graph, wide.durations, steps);
  const Timeline simulated = simulate(wide.graph, wide.cluster, wide.durations, {}).timeline;
  found.same_dates("starts with wide links", wide.graph, simulated.start, replayed.start, replayed.makespan_s);
  found.same_dates("ends with wide links", wide.graph, simulated.end, replayed.end, replayed.makespan_s);
  ++found.tally()["replayed with wide links"];
}

// With messages of no bytes between stages, and collectives as durations.
void compare_closed_forms(const PreparedStep& bare, Comparison& found) {
  found.begin("closed forms");
  const PricedCluster& cluster = bare.cluster;
  if (speeds_change(cluster) || links_flap(cluster)) return;
  TaskGraph graph = bare.graph;
  for (Work& work : graph.works)
    if (work.kind == WorkKind::transfer) work.bytes = 0;
  const Durations durations = order_and_price(graph, cluster);
  SimulationOptions options;
  options.collectives = CollectiveFidelity::closed_form;
  const Timeline replayed = replay(graph, durations, steps);
  const Timeline simulated = simulate(graph, cluster, durations, options).timeline;
  found.same_dates("starts of closed forms", graph, simulated.start, replayed.start, replayed.makespan_s);
  found.same_dates("ends of closed forms", graph, simulated.end, replayed.end, replayed.makespan_s);
  ++found.tally()["replayed with closed forms"];
}

// A job alone among several is the job alone.
void compare_job(const PreparedStep& bare, const Timeline& simulated, Comparison& found) {
  found.begin("a job alone");
  PricedCluster cluster = bare.cluster;
  if (cluster.ranks_per_gpu > 1) return;
  if (cluster.gpu_of_rank.empty())
    for (int rank = 0; rank < rank_count(bare.scenario.step.layout); ++rank) cluster.gpu_of_rank.push_back(rank);
  const Job jobs[] = {{bare.graph, cluster, bare.durations, steps}};
  PricedCluster hardware = cluster;
  hardware.gpu_of_rank.clear();
  const Timeline timeline = simulate_together(hardware, jobs, {}).front();
  found.same_dates("starts of a job alone", bare.graph, timeline.start, simulated.start, simulated.makespan_s);
  found.same_dates("ends of a job alone", bare.graph, timeline.end, simulated.end, simulated.makespan_s);
}

// The critical path sums to the step, with prices made anew.
void compare_critical_path(const Scenario& scenario, const PreparedStep& bare, double replayed_s, Comparison& found) {
  found.begin("critical path");
  PricedStep priced(scenario);
  found.near("critical path", "its step and the replay", priced.replay(), replayed_s);
  found.near("critical path", "its sum and the replay", priced.seconds(bare.cluster), replayed_s);
}

double fullest(const TaskGraph& graph, const Timeline& timeline) {
  double most = 0;
  for (const RankMemory& rank : memory_timeline(graph, timeline)) most = std::max(most, rank.peak);
  return most;
}

// The closed form is a lower bound of time and memory; of one rank it is the step itself.
void compare_bounds(const PreparedStep& bare, const Timeline& simulated, Comparison& found) {
  found.begin("bounds");
  const Step& step = bare.scenario.step;
  StepEstimator estimator(step, bare.cluster);
  const StepEstimate estimate = estimator.estimate(step);
  const double passes_s = estimator.passes_bound(step);
  const StepTerms& t = estimate.terms;
  found.near("terms of the bound", "their sum and the bound",
             t.compute + t.tensor + t.context + t.pipeline + t.data + t.optimizer + t.host, estimate.bound_s);
  found.at_most("bound", "it and that of the passes", estimate.bound_s, passes_s);
  const double simulated_s = step_time_of(bare.graph, simulated);
  found.at_most("bound", "that of the passes and the simulated step", passes_s, simulated_s);
  found.at_most("bound of memory", "it and the timeline", estimate.memory_bytes, fullest(bare.graph, simulated));
  ++found.tally()["bounded"];
  if (links_flap(bare.cluster)) return;
  const double replayed_s = step_time_of(bare.graph, replay(bare.graph, bare.durations, steps));
  if (!speeds_change(bare.cluster))
    found.at_most("bound", "that of the passes and the replayed step", passes_s, replayed_s);
  const Levers& levers = step.levers;
  const bool copies = !levers.offloaded.empty() || levers.offloaded_layers > 0 || step.optimizer.offload_fraction > 0;
  const bool plain = schedule_of(step).searched && step.layout.chunks == 1 && step.slices == 1;
  if (rank_count(step.layout) > 1 || copies || !plain || uses_kfac(step) || is_degraded(bare.cluster)) return;
  found.near("bound of one rank", "it and the step", passes_s, replayed_s);
  ++found.tally()["exact bounds"];
}

void compare_answers(const std::string& check, const SimulatedStep& part, const SimulatedStep& whole,
                     Comparison& found) {
  const auto metrics = [](const SimulatedStep& step) {
    return metrics_of(step.prepared.graph, step.simulation.timeline, 1e15, periodic_of(step));
  };
  const StepMetrics a = metrics(part), b = metrics(whole);
  found.near(check, "step", a.step_time_s, b.step_time_s);
  found.near(check, "makespan", part.makespan_s, whole.makespan_s);
  found.near(check, "MFU", a.mfu, b.mfu);
  found.near(check, "share of compute", a.compute_share, b.compute_share, 1, 1e-6);
  // At the end of a step of fewer periods hosts have gained less on their devices (simulated_step_test.cpp).
  const double lead = part.periodic ? 1e-4 : 1e-6;
  found.near(check, "share of bubbles", a.bubble_share, b.bubble_share, 1, lead);
  found.near(check, "share of exposed communication", a.exposed_comm_share, b.exposed_comm_share, 1, lead);
  const auto memory = [](const SimulatedStep& step) {
    return stage_memory(step.prepared, step.simulation.timeline, periodic_of(step));
  };
  const std::vector<StageMemory> m = memory(part), n = memory(whole);
  if (m.size() != n.size()) return found.fail(check, "other numbers of pipeline ranks");
  for (std::size_t rank = 0; rank < m.size(); ++rank)
    found.near(check, "memory of pipeline rank " + std::to_string(rank), m[rank].use.peak, n[rank].use.peak);
}

// What a simulation leaves out does not change its answer.
void compare_shortened(const Scenario& scenario, const SimulatedStep& whole, Comparison& found) {
  found.begin("what is left out");
  struct Way {
    const char* name;
    StepOptions options;
  };
  const Way ways[] = {{"chains", {.representatives_only = false, .chains = true, .periodic = false}},
                      {"representatives", {.representatives_only = true, .chains = false, .periodic = false}},
                      {"left-out micro-batches", {.representatives_only = false, .chains = false, .periodic = true}},
                      {"all that a simulation leaves out", {}}};
  for (const Way& way : ways) {
    const SimulatedStep part = simulated_step(scenario, way.options);
    compare_answers(way.name, part, whole, found);
    if (way.options.chains && way.options.periodic) {
      found.tally()["in part"] += part.periodic ? 1 : 0;
      found.tally()["represented"] += simulated_ranks(part.prepared) < rank_count(scenario.step.layout) ? 1 : 0;
    }
  }
}

// The ranks' token run has the dates of the replay, and ends; also where a step's buffers are those of the step before.
void compare_token_run(const TaskGraph& graph, const Durations& durations, Comparison& found) {
  Durations without_hosts = durations;
  without_hosts.host = {};
  const Timeline replayed = replay(graph, without_hosts, steps);
  const TokenRun run = TokenRunner(graph, durations.seconds, steps, false).run();
  if (!run.defect.empty()) return found.fail("token run", run.defect);
  found.same_dates("starts of the token run", graph, run.start, replayed.start, replayed.makespan_s);
  const TokenRun reusing = TokenRunner(graph, durations.seconds, steps, true).run();
  if (!reusing.defect.empty()) return found.fail("token run that reuses buffers", reusing.defect);
  ++found.tally()["token runs"];
}

std::string written(const Bundle& bundle) {
  std::ostringstream out;
  write_bundle(out, bundle);
  return out.str();
}

// What ranks read is what was written, and they can run every step program of it.
void compare_bundle(const PreparedStep& whole, Comparison& found) {
  found.begin("bundle");
  std::vector<PreparedStep> larger;
  try {
    check_ladder(whole.scenario);
    larger = larger_steps(whole);
  } catch (const UsageError&) {
    ++found.tally()["batches that cannot grow"];
    return;
  }
  const std::string text = written(bundle_of(whole, larger));
  std::istringstream in(text);
  const Bundle read = read_bundle(in, "bundle");
  if (written(read) != text) found.fail("bundle", "it is another one when it was read and written again");
  if (const std::string lost = difference(read.graph, whole.graph); !lost.empty()) found.fail("bundle", lost);
  const std::vector<const TaskGraph*> programs = programs_of(read);
  for (std::size_t i = 0; i < programs.size(); ++i)
    compare_token_run(*programs[i], i == 0 ? whole.durations : larger[i - 1].durations, found);
  found.tally()["grown"] += grows(read) ? 1 : 0;
}

void compare_engines(const Scenario& scenario, Comparison& found) {
  const SimulatedStep whole =
      simulated_step(scenario, {.representatives_only = false, .chains = false, .periodic = false});
  const PreparedStep bare = prepared_unchecked(scenario);
  compare_contention(whole.prepared, whole.simulation.timeline, found);
  compare_wide_links(scenario, found);
  compare_closed_forms(bare, found);
  compare_bundle(whole.prepared, found);
  const bool filled = has_bubble_work(scenario);
  found.tally()["with bubble work"] += filled ? 1 : 0;
  const Timeline simulated =
      filled ? simulate(bare.graph, bare.cluster, bare.durations, {}).timeline : whole.simulation.timeline;
  compare_bounds(bare, simulated, found);
  compare_job(bare, simulated, found);
  const double replayed_s = step_time_of(bare.graph, replay(bare.graph, bare.durations, steps));
  found.near("replay in part", "step", replayed_step_s(scenario), replayed_s);
  compare_critical_path(scenario, bare, replayed_s, found);
  compare_shortened(scenario, whole, found);
}

struct Result {
  bool refused = false;
  std::string refusal;
  Comparison found;
};

// `folder` has the machines.
Result result_of(const DrawnScenario& drawn, const ScenarioFolder& folder) {
  Result result;
  const LoadResult loaded = folder.load(drawn.yaml());
  if (!loaded.errors.empty()) {
    result.refused = true;
    result.refusal = loaded.errors.front().key + ": " + loaded.errors.front().message;
    return result;
  }
  try {
    compare_engines(loaded.scenario, result.found);
  } catch (const UsageError& error) {
    result.refused = true;
    result.refusal = error.what();
  } catch (const std::exception& error) {
    result.found.fail(std::string("exception: ") + result.found.doing(), error.what());
  }
  return result;
}

DrawnScenario smallest_of(const DrawnScenario& drawn, const std::string& check, const ScenarioFolder& folder) {
  return smallest(drawn, [&](const DrawnScenario& smaller) {
    const Result result = result_of(smaller, folder);
    return result.found.first() && result.found.first()->check == check;
  });
}

int number_of(const char* variable, int fallback) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : fallback;
}

constexpr int parts = 8;  // run side by side

class DrawnScenarios : public testing::TestWithParam<int> {};

TEST_P(DrawnScenarios, AgreeInEveryEngine) {
  const ScenarioFolder folder;
  for (const auto& [name, text] : drawn_machines()) folder.write(name, text);
  const int count = number_of("SLIPWAY_DRAWN_SCENARIOS", 320), first = number_of("SLIPWAY_DRAWN_FIRST", 1);
  const bool tells_refusals = std::getenv("SLIPWAY_DRAWN_REFUSALS") != nullptr;
  std::map<std::string, int> tally;
  int defects = 0;
  for (int number = first + GetParam(); number < first + count; number += parts) {
    const DrawnScenario drawn = drawn_scenario(static_cast<std::uint64_t>(number));
    Result result = result_of(drawn, folder);
    ++tally[result.refused ? "refused" : "compared"];
    if (result.refused && tells_refusals) std::printf("%d: %s\n", number, result.refusal.c_str());
    for (const auto& [what, times] : result.found.tally()) tally[what] += times;
    if (!result.found.first()) continue;
    const Disagreement& is = *result.found.first();
    const DrawnScenario small = smallest_of(drawn, is.check, folder);
    const Result again = result_of(small, folder);
    ADD_FAILURE() << "scenario " << number << ", " << is.check << ": " << is.message
                  << "\nThe smallest one: " << (again.found.first() ? again.found.first()->message : "none") << "\n"
                  << small.yaml();
    if (++defects == 3) break;  // the first ones say enough
  }
  std::string text;
  for (const auto& [what, times] : tally) text += (text.empty() ? "" : ", ") + std::to_string(times) + " " + what;
  std::printf("%s\n", text.c_str());
  if (count < 320) return;
  EXPECT_GT(tally["compared"], tally["refused"]);
  for (const char* what :
       {"replayed with wide links", "replayed with closed forms", "bounded", "represented", "token runs"})
    EXPECT_GT(tally[what], 0) << what;
}

// The smallest ones of defects that were found among thousands, each with what was wrong.
TEST(DrawnScenariosOfDefects, AgreeNow) {
  const ScenarioFolder folder;
  for (const auto& [name, text] : drawn_machines()) folder.write(name, text);
  using Keys = std::vector<std::pair<std::string, std::string>>;
  const Keys tiny{{"model.family", "llama"}, {"model.layers", "1"}, {"model.hidden", "4"},  {"model.ffn", "2"},
                  {"model.heads", "2"},      {"model.vocab", "2"},  {"model.sequence", "2"}};
  const std::vector<std::pair<const char*, Keys>> found{
      {"the bound counted sums of experts' loads, which are sent beside the experts' products",
       {{"model.experts", "2"},
        {"model.experts_per_token", "1"},
        {"cluster.machine", "./gpu.yaml"},
        {"cluster.gpus_per_node", "2"},
        {"layout.tensor", "2"},
        {"layout.sequence_parallel", "true"},
        {"layout.expert", "2"},
        {"layout.expert_tensor", "1"},
        {"schedule.global_batch", "1"},
        {"run.balancing_loss", "0.01"}}},
      {"the bound let ranks share a processor as one GPU",
       {{"cluster.machine", "./cores.yaml"},
        {"cluster.gpus_per_node", "1"},
        {"cluster.ranks_per_gpu", "2"},
        {"schedule.global_batch", "2"}}},
      {"a block was reduced before its norms' gradients were made",
       {{"cluster.machine", "./gpu.yaml"},
        {"cluster.gpus_per_node", "4"},
        {"layout.tensor", "2"},
        {"layout.zero", "2"},
        {"schedule.name", "1f1b-merged"},
        {"schedule.global_batch", "4"},
        {"schedule.delay_wgrad", "true"}}},
      {"the bound took the last micro-batch for that of the last backward",
       {{"model.layers", "3"},
        {"cluster.machine", "./gpu.yaml"},
        {"cluster.gpus_per_node", "4"},
        {"layout.pipeline", "2"},
        {"layout.zero", "1"},
        {"schedule.name", "looped-bfs"},
        {"schedule.global_batch", "4"}}},
      {"the bound let the lane wait for the message behind an embedding alone",
       {{"model.layers", "4"},
        {"model.ffn", "6"},
        {"model.sequence", "1"},
        {"cluster.machine", "./slow.yaml"},
        {"cluster.nodes", "4"},
        {"cluster.gpus_per_node", "1"},
        {"layout.tensor", "2"},
        {"layout.pipeline", "2"},
        {"layout.split", "[0, 1, 1, 2]"},
        {"schedule.name", "v-half"},
        {"schedule.global_batch", "3"}}},
      {"a merged schedule of one micro-batch has no pairs, but its weight gradients are delayed",
       {{"model.layers", "4"},
        {"model.hidden", "128"},
        {"model.ffn", "256"},
        {"model.heads", "4"},
        {"model.vocab", "512"},
        {"model.sequence", "64"},
        {"cluster.machine", "./gpu.yaml"},
        {"cluster.gpus_per_node", "2"},
        {"layout.pipeline", "2"},
        {"schedule.name", "1f1b-merged"},
        {"schedule.global_batch", "1"},
        {"schedule.delay_wgrad", "true"}}},
      {"the bound summed a tied table's gradients over a weak pair of nodes, around which the ring goes",
       {{"model.layers", "4"},
        {"model.hidden", "256"},
        {"model.ffn", "512"},
        {"model.heads", "4"},
        {"model.vocab", "16384"},
        {"model.sequence", "64"},
        {"model.tied", "true"},
        {"cluster.machine", "./gpu.yaml"},
        {"cluster.nodes", "4"},
        {"cluster.gpus_per_node", "1"},
        {"cluster.link_factors", "[{nodes: [0, 2], factor: 0.05}]"},
        {"layout.pipeline", "2"},
        {"layout.data", "2"},
        {"layout.zero", "2"},
        {"schedule.global_batch", "4"}}},
      {"the bound let products lose time beside the reduction of a tied head, which comes behind them",
       {{"model.layers", "10"},
        {"model.hidden", "1024"},
        {"model.ffn", "4096"},
        {"model.heads", "16"},
        {"model.vocab", "128000"},
        {"model.sequence", "1024"},
        {"model.tied", "true"},
        {"cluster.machine", "h100-80gb"},
        {"cluster.nodes", "4"},
        {"cluster.gpus_per_node", "1"},
        {"layout.pipeline", "2"},
        {"layout.chunks", "2"},
        {"layout.data", "2"},
        {"layout.zero", "0"},
        {"layout.split", "[1, 4, 1, 4]"},
        {"schedule.name", "interleaved-1f1b"},
        {"schedule.global_batch", "64"},
        {"schedule.micro_batch", "8"}}},
      {"a message between stages took the slower of both ways",
       {{"model.layers", "2"},
        {"cluster.machine", "./gpu.yaml"},
        {"cluster.nodes", "2"},
        {"cluster.gpus_per_node", "2"},
        {"cluster.fabrics",
         "[{scope: node, bandwidth: 10 GB/s, latency: 2 us}, {scope: cluster, bandwidth: 100 MB/s, latency: 5 us, "
         "topology: rail-optimised}]"},
        {"cluster.slow_links", "[{node: 0, bandwidth: 0.3, gpu: 0}]"},
        {"layout.pipeline", "4"},
        {"schedule.global_batch", "1"}}},
      {"among several jobs, a message did not wait for a host that waits for its device",
       {{"model.layers", "5"},
        {"model.hidden", "128"},
        {"model.ffn", "15"},
        {"model.heads", "1"},
        {"model.vocab", "1"},
        {"model.sequence", "1"},
        {"model.experts", "7"},
        {"model.experts_per_token", "1"},
        {"model.experts_every", "2"},
        {"model.tied", "true"},
        {"cluster.machine", "h100-80gb"},
        {"cluster.gpus_per_node", "4"},
        {"layout.pipeline", "2"},
        {"layout.chunks", "3"},
        {"schedule.name", "interleaved-1f1b"},
        {"schedule.global_batch", "4"}}},
  };
  for (const auto& [what, keys] : found) {
    DrawnScenario scenario{tiny};
    for (const auto& [key, value] : keys) {
      std::erase_if(scenario.keys, [&](const auto& other) { return other.first == key; });
      scenario.keys.emplace_back(key, value);
    }
    const Result result = result_of(scenario, folder);
    EXPECT_FALSE(result.refused) << what << ": " << result.refusal;
    EXPECT_FALSE(result.found.first()) << what << ": " << result.found.first()->message;
  }
}

// A few hundred have everything that an engine treats in its own way.
TEST(DrawnScenarioTexts, HaveEveryScheduleAndEveryKeyThatChangesAStep) {
  std::string all;
  for (std::uint64_t number = 1; number <= 320; ++number) all += drawn_scenario(number).yaml();
  for (const Schedule& schedule : all_schedules())
    EXPECT_NE(all.find("name: " + schedule.name + "\n"), std::string::npos) << schedule.name;
  for (const char* part : {"experts: 8",
                           "kv_latent",
                           "predicted_tokens",
                           "groups:",
                           "ranks_per_gpu",
                           "stragglers",
                           "slow_links",
                           "link_factors",
                           "gpus_per_port",
                           "fat-tree",
                           "tree\n",
                           "hierarchical",
                           "trainer: megatron-core",
                           "zero: 1",
                           "zero: 2",
                           "zero: 3",
                           "replicate",
                           "context: 2",
                           "ring\n",
                           "expert: 4",
                           "deepep",
                           "split: balanced",
                           "split: [",
                           "placement",
                           "slices",
                           "recompute: full",
                           "recompute_modules",
                           "offload:",
                           "offload_layers",
                           "cuda_graphs",
                           "group:",
                           "overlap_tensor",
                           "fill: evaluation",
                           "fill: none",
                           "kfac",
                           "offload_fraction",
                           "lora",
                           "clip_norm",
                           "fp8:",
                           "routing_skew",
                           "balancing_loss",
                           "expert_capacity",
                           "rule: stages",
                           "rule: norm-test"})
    EXPECT_NE(all.find(part), std::string::npos) << part;
}

INSTANTIATE_TEST_SUITE_P(Part, DrawnScenarios, testing::Range(0, parts));

TEST(SmallestScenario, KeepsOnlyWhatShowsADefect) {
  const DrawnScenario drawn = drawn_scenario(1);
  DrawnScenario seeded = drawn;
  seeded.set("layout.zero", 3);
  seeded.set("schedule.slices", 16);
  const DrawnScenario small = smallest(seeded, [](const DrawnScenario& scenario) {
    bool zero = false, slices = false;
    for (const auto& [key, value] : scenario.keys) {
      zero = zero || (key == "layout.zero" && value >= "2");
      slices = slices || (key == "schedule.slices" && std::stoi(value) >= 5);
    }
    return zero && slices;
  });
  EXPECT_EQ(small.yaml(), "layout:\n  zero: 2\nschedule:\n  slices: 5\n");
}

}  // namespace
}  // namespace slipway::test
