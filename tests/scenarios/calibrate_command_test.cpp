// `slipway calibrate` as a user calls it, on measurements and traces of an invented, hence known, machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/machine/cost.h"
#include "models/machine/priced_cluster.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/laboratory/calibrate/measure_machine.h"
#include "scenarios/language/profiles.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/draw/timeline_trace.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string scenario_path = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/tiny-llama-cpu.yaml";

Machine truth() {
  Machine machine;
  machine.name = "truth";
  machine.cores = 2;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float64)] = 30e9;
  machine.gemm_efficiency = 0.8, machine.gemm_half = 16;
  machine.attention_efficiency = 0.3;
  machine.memory_bandwidth = 5e9;
  machine.launch_overhead = 2e-6, machine.task_overhead = 15e-6;
  machine.node_link = {"loopback", 3e9, 40e-6, 1};
  machine.reduce_bandwidth = 6e9;
  return machine;
}

// The output of slipway-rank --measure on that machine. `where`: of messages, as calibrate finds it in the scenario.
std::string measured_on(const Machine& machine, const std::string& where = "") {
  std::ostringstream lines;
  for (const int m : {64, 256, 1024}) {
    for (const int n : {16, 64, 256, 1024}) {
      lines << "measure gemm pass=forward m=" << m << " n=" << n << " k=512 dtype=float64\n";
    }
  }
  for (const int s : {128, 512})
    lines << "measure attention pass=forward batch_heads=8 s=" << s << " d=64 dtype=float64\n";
  for (const char* bytes : {"1e4", "1e6", "1e8"})
    lines << "measure elementwise op=add bytes=" << bytes << " dtype=float64\n";
  lines << "measure launch dtype=float64\nmeasure task_overhead lanes=2 dtype=float64\n";
  for (const char* bytes : {"1e3", "1e5", "1e7"}) {
    for (const char* what : {"transfer", "all-reduce", "all-gather"}) {
      lines << "measure " << what << " bytes=" << bytes << " members=2 dtype=float64\n";
    }
  }
  // The seconds come from the cost model.
  std::istringstream unfinished(lines.str());
  std::ostringstream result;
  result.precision(17);
  for (std::string line; std::getline(unfinished, line);) {
    const bool message = line.find("members=") != std::string::npos;
    std::istringstream one(line + (message ? where : "") + " seconds=1");
    result << line << " seconds=" << observations_of(read_measurements(one, "test")).at(0).predict(machine) << "\n";
  }
  return result.str();
}

class CalibrateCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("slipway-calibrate-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  // A rank program that is a shell script.
  std::string script(const std::string& body) {
    const std::string path = write("rank", "#!/bin/sh\n" + body);
    ::chmod(path.c_str(), 0755);
    return path;
  }
  int run(std::vector<std::string> args) {
    args.insert(args.begin(), {"calibrate", scenario_path});
    out_.str("");
    err_.str("");
    return run_slipway(args, out_, err_);
  }
  std::string profile() const { return (folder_ / "fitted.yaml").string(); }
  Machine fitted() const {
    std::ifstream file(profile());
    std::stringstream text;
    text << file.rdbuf();
    Defects defects;
    const auto machine = machine_from_yaml(text.str(), profile(), defects);
    EXPECT_TRUE(machine.has_value());
    return machine.value_or(Machine{});
  }

  fs::path folder_;
  std::ostringstream out_, err_;
};

void expect_is_truth(const Machine& machine, double tolerance) {
  const auto near = [&](const char* what, double a, double b) { EXPECT_NEAR(a / b, 1, tolerance) << what; };
  const auto peak = static_cast<std::size_t>(Dtype::float64);
  near("GEMM", machine.peak_flops[peak] * machine.gemm_efficiency, 24e9);
  near("half", machine.gemm_half, 16);
  near("attention", machine.peak_flops[peak] * machine.attention_efficiency, 9e9);
  near("memory", machine.memory_bandwidth, 5e9);
  near("link", machine.node_link.bandwidth, 3e9);
  near("latency", machine.node_link.latency, 40e-6);
}

// Two nodes of one GPU: messages went between nodes, and the fitted profile must be able to price that very scenario.
TEST_F(CalibrateCommand, MessagesOfRanksThatAreAloneOnTheirNodesFitTheNetwork) {
  Machine machine = truth();
  machine.network_link = {"ethernet", 2e9, 50e-6, 1};
  const std::string lines = write("m.0", measured_on(machine, " link=network"));
  const std::vector<std::string> alone{"--set", "cluster.nodes=2", "--set", "cluster.gpus_per_node=1"};
  std::vector<std::string> fit{"--measured", lines, "-o", profile()};
  fit.insert(fit.end(), alone.begin(), alone.end());
  ASSERT_EQ(run(fit), status_done) << err_.str();
  EXPECT_NEAR(fitted().network_link.bandwidth / 2e9, 1, 0.02);
  EXPECT_NEAR(fitted().network_link.latency / 50e-6, 1, 0.02);
  std::vector<std::string> simulate{"simulate", scenario_path, "--set", "cluster.machine=" + profile()};
  simulate.insert(simulate.end(), alone.begin(), alone.end());
  EXPECT_EQ(run_slipway(simulate, out_, err_), status_done) << err_.str();
}

// Two nodes of two: pairs of neighbours are inside a node, and what all four exchange goes between the nodes.
TEST_F(CalibrateCommand, MessagesOfMoreRanksThanANodeHasFitTheNetwork) {
  Machine machine = truth();
  machine.network_link = {"ethernet", 1e7, 1e-3, 1};
  std::string lines = measured_on(machine);
  for (const char* bytes : {"1e3", "1e5", "1e7"})
    for (const char* what : {"all-reduce", "all-gather"}) {
      const std::string line = std::string("measure ") + what + " bytes=" + bytes + " members=4 dtype=float64";
      std::istringstream one(line + " link=network per_node=2 seconds=1");
      const double seconds = observations_of(read_measurements(one, "test")).at(0).predict(machine);
      lines += fmt::format("{} seconds={:.17g}\n", line, seconds);
    }
  ASSERT_EQ(run({"--measured", write("m.0", lines), "-o", profile(), "--set", "cluster.nodes=2", "--set",
                 "cluster.gpus_per_node=2", "--set", "layout.data=2"}),
            status_done)
      << err_.str();
  EXPECT_NEAR(fitted().network_link.bandwidth / 1e7, 1, 0.02);
  EXPECT_NEAR(fitted().network_link.latency / 1e-3, 1, 0.02);
  EXPECT_NEAR(fitted().node_link.bandwidth / 3e9, 1, 0.02);
}

TEST_F(CalibrateCommand, WritesAProfileOfTheMachineThatWasMeasuredAndSaysWhereItComesFrom) {
  const std::string lines = write("m.0", measured_on(truth()));
  ASSERT_EQ(run({"--measured", lines, "-o", profile()}), status_done) << err_.str();
  const Machine machine = fitted();
  expect_is_truth(machine, 0.02);
  EXPECT_EQ(machine.name, "fitted");
  EXPECT_EQ(machine.cores, 2);
  EXPECT_THAT(machine.provenance.source, HasSubstr("slipway calibrate " + scenario_path + " --measured"));
  EXPECT_THAT(machine.provenance.source, HasSubstr("peak_flops is the best measured GEMM rate"));
  EXPECT_EQ(machine.provenance.date.size(), 10U);
  EXPECT_EQ(machine.provenance.machine, host_description());
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::float32)], 0) << "not measured";
}

TEST_F(CalibrateCommand, PrintsValuesIntervalsResidualsAndTheLeftOutError) {
  const std::string lines = write("m.0", measured_on(truth()));
  ASSERT_EQ(run({"--measured", lines, "-o", profile()}), status_done) << err_.str();
  for (const char* text :
       {"gemm_efficiency", "node_link.latency", "± ", "all-reduce", "median error of all rows", "left out (5 folds)"}) {
    EXPECT_THAT(out_.str(), HasSubstr(text));
  }
}

TEST_F(CalibrateCommand, WarnsWhenTheFitIsNoGoodForRowsThatItHasNotSeen) {
  const std::string good = write("m.0", measured_on(truth()));
  ASSERT_EQ(run({"--measured", good, "-o", profile()}), status_done) << err_.str();
  EXPECT_THAT(err_.str(), Not(HasSubstr("warning")));
  std::istringstream lines(measured_on(truth()));
  std::ostringstream noisy;
  const double factors[] = {1, 6, 0.3, 12, 0.1};
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    const std::size_t at = line.rfind('=') + 1;
    noisy << line.substr(0, at) << std::stod(line.substr(at)) * factors[row % 5] << '\n';
  }
  ASSERT_EQ(run({"--measured", write("m.1", noisy.str()), "-o", profile()}), status_done) << err_.str();
  EXPECT_THAT(err_.str(), testing::ContainsRegex("warning: the median error of rows that the fit had not seen is "
                                                 "[0-9.]+ %; .*Measure while nothing else runs"));
}

TEST_F(CalibrateCommand, RunsTheRankProgramOncePerRankOfTheMachine) {
  const std::string lines = write("lines", measured_on(truth()));
  const std::string program = script(
      "[ \"$WORLD_SIZE\" = 2 ] && [ -n \"$MASTER_PORT\" ] && [ \"$4\" = float64 ] || exit 9\n"
      "cp " +
      lines + " \"$2.$RANK\"\n");
  ASSERT_EQ(run({"--measure", "--rank-program", program, "-o", profile()}), status_done) << err_.str();
  expect_is_truth(fitted(), 0.02);
}

TEST_F(CalibrateCommand, ARankThatFailsIsNamedAndNothingIsWritten) {
  const std::string program = script("echo no such device >&2; exit 3\n");
  EXPECT_EQ(run({"--measure", "--rank-program", program, "-o", profile()}), status_failed);
  EXPECT_THAT(err_.str(), HasSubstr("the micro-benchmarks failed: rank "));
  EXPECT_THAT(err_.str(), HasSubstr("no such device"));
  EXPECT_FALSE(fs::exists(profile()));
}

// A GPU of a kind that is known, with products at nine tenths of what that kind reaches.
Machine slower_gpu() {
  Machine machine = built_in_machine("h100-80gb");
  GemmConstants& products = machine.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)].value();
  products.share *= 0.9, products.launch *= 2;
  return machine;
}

// The output of slipway-rank --measure there: 30 products, ten attentions of one width, two of another, ten all-reduces.
std::string measured_on_gpu(const Machine& machine) {
  std::vector<std::string> lines;
  for (const int m : {256, 1024, 4096, 8192, 16384})
    for (const int n : {1024, 4096, 14336})
      for (const char* pass : {"forward", "weight_grad"})
        lines.push_back(fmt::format("gemm pass={} m={} n={} k=4096 dtype=bfloat16", pass, m, n));
  for (const int s : {512, 1024, 2048, 4096, 8192})
    for (const int heads : {16, 64})
      lines.push_back(fmt::format("attention pass=forward batch_heads={} s={} d=128 dtype=bfloat16", heads, s));
  for (const int s : {512, 1024})
    lines.push_back(fmt::format("attention pass=forward batch_heads=16 s={} d=64 dtype=bfloat16", s));
  for (int power = 20; power < 30; ++power)
    lines.push_back(fmt::format("all-reduce bytes={} members=8 dtype=bfloat16", 1 << power));
  for (const int bytes : {1024, 1 << 20, 1 << 26})
    lines.push_back(fmt::format("transfer bytes={} members=2 dtype=bfloat16", bytes));
  lines.push_back("all-reduce bytes=1024 members=8 dtype=bfloat16");
  lines.push_back("attention pass=backward batch_heads=16 s=1024 d=128 dtype=bfloat16");
  for (const int bytes : {1 << 20, 1 << 26}) lines.push_back(fmt::format("elementwise bytes={} dtype=bfloat16", bytes));
  lines.push_back("launch dtype=bfloat16");
  lines.push_back("optimizer elements=1048576 dtype=bfloat16");
  std::string text;
  for (const std::string& line : lines) {
    std::istringstream one("measure " + line + " seconds=1");
    const auto measurements = read_measurements(one, "test");
    double seconds = observations_of(measurements).at(0).predict(machine);
    for (const auto& [key, table] : kernel_tables(measurements, machine))
      seconds = seconds_of(table, values_of(machine.kernels, key).value(), table.rows.at(0));
    text += fmt::format("measure {} seconds={}\n", line, seconds);
  }
  return text;
}

TEST_F(CalibrateCommand, AGpusMicroBenchmarksGiveTheConstantsOfItsKernelsByWhichATrainersStepIsPriced) {
  const std::string lines = write("m.0", measured_on_gpu(slower_gpu()));
  const std::string scenario = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/llama-8b-64xh100.yaml";
  std::vector<std::string> args{"calibrate", scenario, "--measured", lines, "-o", profile()};
  ASSERT_EQ(run_slipway(args, out_, err_), status_done) << err_.str();
  const Machine machine = fitted(), before = built_in_machine("h100-80gb"), truth = slower_gpu();
  const auto bfloat16 = static_cast<std::size_t>(Format::bfloat16);
  EXPECT_NEAR(machine.kernels.gemm[bfloat16]->share / truth.kernels.gemm[bfloat16]->share, 1, 0.01);
  EXPECT_NEAR(machine.kernels.gemm[bfloat16]->launch / truth.kernels.gemm[bfloat16]->launch, 1, 0.1);
  EXPECT_NEAR(attention_of(machine.kernels, Format::bfloat16, 128)->share,
              attention_of(before.kernels, Format::bfloat16, 128)->share, 0.01);
  EXPECT_TRUE(machine.kernels.measured);
  EXPECT_EQ(machine.generation, before.generation);
  EXPECT_EQ(machine.peak_flops, before.peak_flops) << "a data sheet's, not measured";
  // Not measured, or in too few shapes: as of the kind.
  for (const KernelKey key :
       {KernelKey{KernelKind::gemm, Format::fp8}, KernelKey{KernelKind::attention, Format::bfloat16, 64}}) {
    const KernelValues mine = values_of(machine.kernels, key).value(), kinds = values_of(before.kernels, key).value();
    for (std::size_t i = 0; i < mine.size(); ++i)
      EXPECT_NEAR(mine[i], kinds[i], 1e-3 * kinds[i]) << models::name_of(key);
  }
  EXPECT_EQ(keys_of(machine.kernels), keys_of(before.kernels));
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("gemm bfloat16"), HasSubstr("left out"),
                                HasSubstr("too few shapes for a fit (at least 10): attention bfloat16 64 (2)"),
                                HasSubstr("measured and not used, as constants of a step price them (`slipway list "
                                          "constants`): all-reduce (1), attention (1), elementwise (2), launch (1), "
                                          "optimizer (1)\n")));

  const auto step_s = [&](const std::string& of_machine) {
    std::ostringstream out, err;
    EXPECT_EQ(run_slipway({"simulate", scenario, "--json", "--set", "cluster.machine=" + of_machine}, out, err),
              status_done)
        << err.str();
    return nlohmann::json::parse(out.str());
  };
  const auto built_in = step_s("h100-80gb"), own = step_s(profile());
  EXPECT_GT(own["step_time_s"].get<double>(), built_in["step_time_s"].get<double>());
  EXPECT_TRUE(own.contains("spread_of_constants")) << "priced as trained, with the interval of the constants";
}

// Of a run of the scenario on the true machine.
Trace executed(const Scenario& scenario) {
  TaskGraph graph = lower(scenario.step);
  Cluster cluster = scenario.cluster;
  cluster.groups[0].machine = truth();
  cluster.fabrics = default_fabrics(cluster.groups);
  const Durations durations = durations_of(graph, PricedCluster(cluster));
  set_global_order(graph, durations);
  return trace_of(graph, replay(graph, durations, 3), "libtorch");
}

TEST_F(CalibrateCommand, FitsTheTraceOfAnExecutedRun) {
  std::ofstream file(folder_ / "t.json");
  write_chrome_trace(file, executed(load_scenario(scenario_path, {}).scenario));
  file.close();

  const std::string lines = write("m.0", measured_on(truth()));
  ASSERT_EQ(run({"--measured", lines, "--trace", (folder_ / "t.json").string(), "-o", profile()}), status_done)
      << err_.str();
  expect_is_truth(fitted(), 0.05);
  EXPECT_THAT(fitted().provenance.source, HasSubstr("micro-benchmarks and 1 trace"));
  ASSERT_EQ(run({"--trace", (folder_ / "t.json").string(), "-o", profile()}), status_done) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("kept: the measurements cannot separate it from the others"));

  EXPECT_EQ(run({"--trace", (folder_ / "t.json").string(), "--set", "layout.pipeline=1", "-o", profile()}),
            status_usage);
  EXPECT_THAT(err_.str(), HasSubstr("the trace is of another scenario"));
}

// A trace holds what it executed, so that runs of several layouts can be given at once.
TEST_F(CalibrateCommand, FitsTracesOfLayoutsThatTheScenarioDoesNotHave) {
  std::vector<std::string> args;
  for (const std::string layout : {"layout.pipeline=1", "layout.data=1"}) {
    const Scenario scenario = load_scenario(scenario_path, {layout}).scenario;
    Trace trace = executed(scenario);
    trace.scenario = scenario.name, trace.summary = scenario.resolved;
    const std::string path = (folder_ / (layout + ".json")).string();
    std::ofstream file(path);
    write_chrome_trace(file, trace);
    args.insert(args.end(), {"--trace", path});
  }
  args.insert(args.end(), {"--measured", write("m.0", measured_on(truth())), "-o", profile()});
  ASSERT_EQ(run(args), status_done) << err_.str();
  expect_is_truth(fitted(), 0.05);
  EXPECT_THAT(fitted().provenance.source, HasSubstr("micro-benchmarks and 2 traces"));
}

TEST_F(CalibrateCommand, ARunOnAGpuMovesTheConstantsOfItsKernels) {
  const std::string path = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/llama-8b-64xh100.yaml";
  const std::vector<std::string> small{"model.layers=8",         "cluster.nodes=1", "layout.pipeline=2",
                                       "layout.tensor=4",        "layout.data=1",   "schedule.global_batch=4",
                                       "cluster.trainer=generic"};
  Scenario scenario = load_scenario(path, small).scenario;
  scenario.cluster.groups[0].machine = slower_gpu();
  TaskGraph graph = lower(scenario.step);
  const Durations durations = durations_of(graph, priced_cluster(scenario));
  set_global_order(graph, durations);
  const Timeline timeline = replay(graph, durations, 3);
  {
    std::ofstream file(folder_ / "t.json");
    write_chrome_trace(file, trace_of(graph, timeline, "libtorch"));
  }
  std::vector<std::string> args{"calibrate", path, "--trace", (folder_ / "t.json").string(), "-o", profile()};
  for (const std::string& key : small) args.insert(args.end(), {"--set", key});
  ASSERT_EQ(run_slipway(args, out_, err_), status_done) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("gemm bfloat16"));

  // The profile prices the run that it was fitted to.
  const Machine machine = fitted(), truth = slower_gpu();
  const auto bfloat16 = static_cast<std::size_t>(Format::bfloat16);
  EXPECT_NEAR(machine.kernels.gemm[bfloat16]->share / truth.kernels.gemm[bfloat16]->share, 1, 0.03);
  Scenario again = load_scenario(path, small).scenario;
  again.cluster.groups[0].machine = machine;
  TaskGraph same = lower(again.step);
  const Durations predicted = durations_of(same, priced_cluster(again));
  set_global_order(same, predicted);
  EXPECT_NEAR(replay(same, predicted, 3).makespan_s / timeline.makespan_s, 1, 0.02);
}

TEST_F(CalibrateCommand, MistakesAreUsageErrorsThatSayWhatToDo) {
  const auto mistake = [&](const std::vector<std::string>& args) {
    EXPECT_EQ(run(args), status_usage);
    EXPECT_FALSE(fs::exists(profile()));
    return err_.str();
  };
  EXPECT_THAT(mistake({"--measure"}), HasSubstr("give -o FILE"));
  EXPECT_THAT(mistake({"-o", profile()}), HasSubstr("give --measure, --measured FILE, --trace FILE or --kineto FILE"));
  EXPECT_THAT(mistake({"--measured", "/no/such/file", "-o", profile()}), HasSubstr("cannot read /no/such/file"));
  EXPECT_THAT(mistake({"--measure", "--rank-program", "/no/such/program", "-o", profile()}),
              HasSubstr("there is no /no/such/program"));
  const std::string cpu = write("slipway-rank", ""), gpu = write("slipway-rank-cuda", "");
  for (const std::string dtype : {"bfloat16", "float16"})
    EXPECT_THAT(mistake({"--measure", "--rank-program", cpu, "--set", "cluster.machine=h100-80gb", "--set",
                         "run.dtype=" + dtype, "-o", profile()}),
                testing::AllOf(HasSubstr("on this machine's CPU (" + cpu + "), but run.dtype is " + dtype),
                               HasSubstr("give --set run.dtype=float32"), testing::Not(HasSubstr("--dtype"))));
  EXPECT_THAT(mistake({"--measure", "--rank-program", gpu, "--set", "cluster.machine=h100-80gb", "--set",
                       "run.dtype=float16", "-o", profile()}),
              HasSubstr("float32 or float64 or bfloat16, but run.dtype is float16"));
  const std::string words = write("words", "no trace and no measurement\n"), json = write("x.json", "{\"a\": 1}");
  const std::string cut = write("cut.json", "{\"otherData\": {\"engine\": \"libt");
  for (const std::string& path : {words, json, cut, folder_.string()}) {
    EXPECT_THAT(mistake({"--trace", path, "-o", profile()}), HasSubstr("give a file that simulate --trace or execute"));
  }
  for (const std::string& path : {words, json, write("empty", "")}) {
    EXPECT_THAT(mistake({"--measured", path, "-o", profile()}), HasSubstr("give a file that `slipway-rank --measure`"));
  }
  EXPECT_THAT(mistake({"--measure", "--set", "layout.tensor=7", "-o", profile()}), HasSubstr("layout"));
}

}  // namespace
}  // namespace slipway::test
