#include "models/fit/calibration.h"
#include "models/machine/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "models/machine/collectives.h"
#include "models/machine/cost.h"

namespace slipway::test {
namespace {

Machine truth() {
  Machine machine;
  machine.name = "truth";
  machine.cores = 2;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 80e9;
  machine.gemm_efficiency = 0.9, machine.gemm_half = 24;
  machine.attention_efficiency = 0.4;
  machine.memory_bandwidth = 6e9;
  machine.launch_overhead = 8e-6, machine.task_overhead = 40e-6;
  machine.node_link = {"loopback", 2e9, 60e-6, 1};
  machine.reduce_bandwidth = 4e9;
  return machine;
}

// The start of a calibration: a CPU with two cores and the best rate it has seen.
Machine beginner() {
  Machine machine;
  machine.name = "beginner";
  machine.cores = 2;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 80e9;
  return machine;
}

// Multiplies every time by 1 ± noise, and every n-th by 4 or 1/4.
class Clock {
 public:
  explicit Clock(double noise = 0, std::size_t wild = 0, std::uint64_t seed = 5)
      : random_(seed), normal_(0, noise), wild_(wild) {}
  Observation observed(Observation observation, const Machine& machine) {
    const double overlap = 1 + (machine.overlap_slowdown - 1) * observation.overlap_share;
    observation.seconds = observation.predict(machine) * overlap * std::exp(normal_(random_));
    if (wild_ > 0 && ++count_ % wild_ == 0) observation.seconds *= count_ % (2 * wild_) == 0 ? 4 : 0.25;
    return observation;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::size_t wild_, count_ = 0;
};

Operator matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.kind = OpKind::qkv;
  op.dtype = Dtype::float32;
  op.m = m, op.n = n, op.k = k;
  op.forward_flops = 2.0 * static_cast<double>(m * n * k);
  op.forward_bytes = 4.0 * static_cast<double>(m * k + k * n + m * n);
  return op;
}

Operator attention(std::int64_t tokens, std::int64_t head_dim) {
  Operator op = matmul(tokens, tokens, head_dim);
  op.kind = OpKind::attention;
  return op;
}

Operator stream(double bytes) {
  Operator op;
  op.kind = OpKind::add;
  op.dtype = Dtype::float32;
  op.forward_bytes = bytes;
  return op;
}

Observation compute(const std::string& kind, std::vector<Operator> operators, double tasks, double overlap_share = 0) {
  Observation observation;
  observation.kind = kind;
  observation.name = kind + std::to_string(operators.front().forward_flops);
  observation.overlap_share = overlap_share;
  observation.predict = [operators, tasks](const Machine& machine) {
    return tasks * machine.task_overhead + operators_seconds(machine, operators, Direction::forward);
  };
  return observation;
}

Observation message(Collective collective, int members, double bytes) {
  Observation observation;
  observation.group = ObservationGroup::node_link;
  observation.kind = name_of(collective);
  observation.name = observation.kind + std::to_string(bytes);
  observation.predict = [=](const Machine& machine) {
    return ring_seconds(collective, members, bytes, machine.node_link.latency,
                        machine.node_link.bandwidth * machine.node_link.efficiency, machine.reduce_bandwidth);
  };
  return observation;
}

std::vector<Observation> micro_benchmarks(Clock clock, const Machine& machine) {
  std::vector<Observation> result;
  for (const std::int64_t size : {16, 32, 64, 128, 256, 512, 1024}) {
    for (const std::int64_t tokens : {256, 1024})
      result.push_back(compute("gemm", {matmul(tokens, size, 4 * size)}, 0));
  }
  for (const std::int64_t tokens : {128, 512, 2048}) result.push_back(compute("attention", {attention(tokens, 64)}, 0));
  for (const double bytes : {1e4, 1e5, 1e6, 1e7, 1e8}) result.push_back(compute("elementwise", {stream(bytes)}, 0));
  result.push_back(compute("launch", {stream(4)}, 0));
  for (const double bytes : {1e3, 1e5}) result.push_back(compute("task", {stream(bytes)}, 1));
  for (const double bytes : {1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7}) {
    for (const auto collective : {Collective::send, Collective::all_reduce, Collective::all_gather,
                                  Collective::reduce_scatter, Collective::all_to_all}) {
      result.push_back(message(collective, 2, bytes));
    }
  }
  for (Observation& observation : result) observation = clock.observed(std::move(observation), machine);
  return result;
}

const FittedParameter& parameter(const Calibration& calibration, const std::string& name) {
  for (const FittedParameter& fitted : calibration.parameters) {
    if (fitted.name == name) return fitted;
  }
  throw std::logic_error("no parameter " + name);
}

void expect_recovered(const Machine& fitted, const Machine& expected, double tolerance) {
  const auto near = [&](const char* name, double a, double b) { EXPECT_NEAR(a / b, 1, tolerance) << name; };
  const auto peak = static_cast<std::size_t>(Dtype::float32);
  near("GEMM rate", fitted.peak_flops[peak] * fitted.gemm_efficiency,
       expected.peak_flops[peak] * expected.gemm_efficiency);
  near("attention rate", fitted.peak_flops[peak] * fitted.attention_efficiency,
       expected.peak_flops[peak] * expected.attention_efficiency);
  near("gemm_half", fitted.gemm_half, expected.gemm_half);
  near("memory", fitted.memory_bandwidth * fitted.memory_efficiency, expected.memory_bandwidth);
  near("launch", fitted.launch_overhead, expected.launch_overhead);
  near("task", fitted.task_overhead, expected.task_overhead);
  near("latency", fitted.node_link.latency, expected.node_link.latency);
  near("bandwidth", fitted.node_link.bandwidth, expected.node_link.bandwidth);
  near("reduce", fitted.reduce_bandwidth, expected.reduce_bandwidth);
}

// Copies of 4 KiB to 64 MiB at 55 and 45 GB/s: each way has its own parameters, and they do not affect messages.
TEST(Calibration, CopiesBetweenHostAndGpuGiveLatencyAndBandwidthOfEachDirection) {
  Machine start;
  start.memory_bandwidth = 3e12;
  start.node_link = {"nvlink", 450e9, 5e-6, 0.8};
  std::vector<Observation> copies;
  for (const auto& [group, link, bandwidth, latency] :
       {std::tuple(ObservationGroup::host_to_device, &Machine::host_to_device, 55e9, 8e-6),
        std::tuple(ObservationGroup::device_to_host, &Machine::device_to_host, 45e9, 12e-6)}) {
    for (double bytes = 4096; bytes < 1e8; bytes *= 4) {
      Observation copy;
      copy.group = group;
      copy.kind = "copy";
      copy.seconds = latency + bytes / bandwidth;
      copy.isolated = true;
      copy.predict = [bytes, way = link](const Machine& m) {
        return (m.*way).latency + bytes / ((m.*way).bandwidth * (m.*way).efficiency);
      };
      copies.push_back(copy);
    }
  }
  const Calibration result = calibrate(start, copies);
  EXPECT_NEAR(result.machine.host_to_device.bandwidth, 55e9, 1e6);
  EXPECT_NEAR(result.machine.device_to_host.bandwidth, 45e9, 1e6);
  EXPECT_NEAR(result.machine.host_to_device.latency, 8e-6, 1e-9);
  EXPECT_NEAR(result.machine.device_to_host.latency, 12e-6, 1e-9);
  EXPECT_EQ(parameter(result, "device_to_host.bandwidth").note, "fitted");
  EXPECT_EQ(result.machine.node_link.efficiency, 0.8);
  EXPECT_EQ(result.machine.reduce_bandwidth, 0);
}

TEST(Calibration, RecoversKnownParametersFromExactMeasurements) {
  const Calibration result = calibrate(beginner(), micro_benchmarks(Clock(), truth()));
  expect_recovered(result.machine, truth(), 1e-3);
  EXPECT_LT(result.in_sample_error, 1e-4);
  EXPECT_LT(result.left_out_error, 1e-2);
}

TEST(Calibration, RecoversThemWithinTenPercentUnderThreePercentNoiseAndStatesTheInterval) {
  const Calibration result = calibrate(beginner(), micro_benchmarks(Clock(0.03), truth()));
  expect_recovered(result.machine, truth(), 0.1);
  const FittedParameter& half = parameter(result, "gemm_half");
  EXPECT_EQ(half.note, "fitted");
  EXPECT_LT(std::abs(half.value - 24), 2 * half.interval);
  EXPECT_LT(half.interval, 10);
  EXPECT_GT(result.machine.spread, 0.02);  // the noise is 3 %
  EXPECT_LT(result.machine.spread, 0.06);
  EXPECT_GT(parameter(result, "node_link.latency").interval, 0);
}

// The truth lies within Student's 90 % (2.132 deviations, of five fits) of the fitted value in about nine of ten fits.
TEST(Calibration, DeviationsOfItsNumbersHoldTheTruthAsOftenAsTheySay) {
  constexpr int repetitions = 40;
  std::map<std::string, int> held;
  for (int seed = 0; seed < repetitions; ++seed) {
    Machine fitted = calibrate(beginner(), micro_benchmarks(Clock(0.03, 0, 100 + seed), truth())).machine;
    for (const FittedDeviation& each : fitted.deviations) {
      Machine known = truth();
      const double off = std::log(*fitted_number(fitted, each.name) / *fitted_number(known, each.name));
      double variance = 0;
      for (const double part : each.parts) variance += part * part;
      held[each.name] += std::abs(off) <= 2.132 * std::sqrt(variance) ? 1 : 0;
    }
  }
  for (const char* name : {"memory_bandwidth", "node_link.bandwidth", "node_link.latency", "reduce_bandwidth"}) {
    EXPECT_GE(held[name], 30) << name;
    EXPECT_LT(held[name], repetitions) << name;
  }
}

TEST(Calibration, IsNotMovedByOutliers) {
  const Calibration result = calibrate(beginner(), micro_benchmarks(Clock(0.005, 9), truth()));
  expect_recovered(result.machine, truth(), 0.1);
}

TEST(Calibration, FindsTheSlowdownOfTasksThatRunBesideCommunication) {
  Machine machine = truth();
  machine.overlap_slowdown = 1.3;
  Clock clock(0.01);
  auto observations = micro_benchmarks(Clock(0.01), machine);
  for (const std::int64_t size : {128, 256, 512}) {
    for (const double share : {0.6, 1.0}) {
      observations.push_back(clock.observed(compute("forward", {matmul(512, size, size)}, 1, share), machine));
    }
  }
  const Calibration result = calibrate(beginner(), observations);
  EXPECT_NEAR(result.machine.overlap_slowdown, 1.3, 0.03);
  expect_recovered(result.machine, machine, 0.1);
}

// Tasks of one shape: their GEMMs, attention, memory and overheads always come together.
TEST(Calibration, KeepsWhatTheMeasurementsCannotTellApartAndSaysSo) {
  Machine start = beginner();
  start.memory_bandwidth = 6e9, start.gemm_half = 24, start.launch_overhead = 8e-6;
  start.task_overhead = 40e-6, start.attention_efficiency = 0.4;
  std::vector<Observation> observations(
      4, Clock().observed(compute("forward", {matmul(512, 256, 256), attention(256, 64), stream(1e6)}, 1), truth()));
  const Calibration result = calibrate(start, observations);
  EXPECT_NEAR(result.machine.gemm_efficiency, 0.9, 1e-6);
  EXPECT_EQ(result.machine.memory_bandwidth, 6e9);
  EXPECT_EQ(result.machine.gemm_half, 24);
  for (const char* name :
       {"memory_bandwidth", "attention_efficiency", "launch_overhead", "task_overhead", "gemm_half"}) {
    EXPECT_THAT(parameter(result, name).note, testing::StartsWith("kept")) << name;
  }
}

// The run sets the level, the benchmarks the ratios: everything takes 1.4 times as long in the run.
TEST(Calibration, LetsTheRunSetTheLevelAndBenchmarksTheRatios) {
  auto observations = micro_benchmarks(Clock(), truth());
  for (Observation& observation : observations) observation.isolated = true;
  for (const std::int64_t size : {128, 256}) {
    observations.push_back(
        Clock().observed(compute("forward", {matmul(512, size, size), attention(256, 64), stream(1e6)}, 1), truth()));
    observations.back().seconds *= 1.4;
  }
  const Calibration result = calibrate(beginner(), observations);
  EXPECT_NEAR(result.run_costs[0].factor, 1.4, 0.01);
  EXPECT_EQ(result.run_costs[1].factor, 1);
  const Machine& fitted = result.machine;
  const auto peak = static_cast<std::size_t>(Dtype::float32);
  EXPECT_NEAR(fitted.peak_flops[peak] * fitted.gemm_efficiency * 1.4 / 72e9, 1, 0.02);
  EXPECT_NEAR(fitted.memory_bandwidth * 1.4 / 6e9, 1, 0.02);
  EXPECT_NEAR(fitted.attention_efficiency / fitted.gemm_efficiency, 0.4 / 0.9, 0.01);
  EXPECT_NEAR(fitted.gemm_half, 24, 1);
}

// Of tasks of many sizes it tells what a run multiplies from what it adds to each: 1.3 times, and 200 us.
TEST(Calibration, TellsWhatATaskOfARunCostsBesidesItsWork) {
  auto observations = micro_benchmarks(Clock(), truth());
  std::erase_if(observations, [](const Observation& each) { return each.kind == "task"; });
  for (Observation& observation : observations) observation.isolated = true;
  Observation dispatched;  // as slipway-rank --measure measures it
  dispatched.kind = dispatched.name = "task_overhead", dispatched.isolated = true;
  dispatched.predict = [](const Machine& machine) { return machine.task_overhead; };
  observations.push_back(Clock().observed(std::move(dispatched), truth()));
  for (const std::int64_t size : {16, 32, 64, 128, 256, 512}) {
    observations.push_back(Clock().observed(compute("forward", {matmul(512, size, size), stream(1e5)}, 1), truth()));
    observations.back().seconds = observations.back().seconds * 1.3 + 200e-6;
    observations.back().of_pass = true;
  }
  // Norms of gradients have small tensors, and costs of their own.
  for (const double bytes : {1e4, 2e4, 3e4, 4e4}) {
    observations.push_back(Clock().observed(compute("grad-norm", {stream(bytes)}, 1), truth()));
    observations.back().seconds += 900e-6;
    observations.back().weight = 1e-3;
  }
  const Calibration result = calibrate(beginner(), observations);
  EXPECT_NEAR(result.run_costs[0].factor, 1.3, 0.01);
  EXPECT_NEAR(result.run_costs[0].task_s, 200e-6, 2e-6);
  EXPECT_NEAR(result.machine.task_overhead, 1.3 * truth().task_overhead + 200e-6, 3e-6);
}

TEST(Calibration, KeepsAnEfficiencyBelowOneWhereThePeakIsFromADataSheet) {
  Machine gpu = beginner();
  gpu.cores = 0;
  gpu.memory_bandwidth = 12e9;
  gpu.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 60e9;  // less than what is measured
  const Calibration result = calibrate(gpu, micro_benchmarks(Clock(), truth()));
  EXPECT_LE(result.machine.gemm_efficiency, 1);
  EXPECT_THAT(parameter(result, "gemm_efficiency").note, testing::HasSubstr("bound"));
  EXPECT_EQ(result.machine.memory_bandwidth, 12e9);
  EXPECT_NEAR(result.machine.memory_efficiency, 0.5, 0.02);
}

TEST(Calibration, RaisesAMeasuredPeakThatTheFitSurpasses) {
  Machine start = beginner();
  start.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 50e9;
  const Calibration result = calibrate(start, micro_benchmarks(Clock(), truth()));
  EXPECT_NEAR(result.machine.peak_flops[static_cast<std::size_t>(Dtype::float32)], 72e9, 0.1e9);
  EXPECT_NEAR(result.machine.gemm_efficiency, 1, 1e-12);
}

TEST(Calibration, ReportsResidualsPerKindAndNamesTheWorst) {
  auto observations = micro_benchmarks(Clock(), truth());
  observations[2].seconds *= 1.5;
  const Calibration result = calibrate(beginner(), observations);
  const auto gemm = std::find_if(result.residuals.begin(), result.residuals.end(),
                                 [](const KindResidual& kind) { return kind.kind == "gemm"; });
  ASSERT_NE(gemm, result.residuals.end());
  EXPECT_EQ(gemm->count, 14U);
  EXPECT_EQ(gemm->worst_name, observations[2].name);
  EXPECT_NEAR(gemm->worst_error, 1.0 / 3, 0.02);
  EXPECT_LT(gemm->median_error, 0.01);
}

TEST(Calibration, RefusesToFitNothing) {
  EXPECT_THROW(calibrate(beginner(), {}), std::invalid_argument);
  auto observations = micro_benchmarks(Clock(), truth());
  observations[0].seconds = 0;
  EXPECT_THROW(calibrate(beginner(), observations), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
