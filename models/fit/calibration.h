// Fits a machine profile to measured durations.
//
// An observation is a duration and a function that predicts it from a Machine. That function is the cost model of
// planning, so the fit and the planning give every number the same meaning. In the unknowns
//
//   1/gemm_efficiency, 1/attention_efficiency, seconds per byte of memory, launch_overhead, task_overhead
//   for messages: latency, seconds per byte of the link, seconds per byte added
//   for copies between host and GPU, each direction: latency, seconds per byte
//
// a duration is piecewise linear, because an operator is bound by arithmetic or by memory. So derivatives are taken at
// the present machine and a robust non-negative linear problem in relative residuals is solved (robust_fit.h). Both
// are repeated until nothing changes. gemm_half multiplies an unknown and is searched in one dimension around that.
// overlap_slowdown is the robust mean excess of tasks that ran beside communication.
//
// A parameter that the observations cannot separate from the others keeps its value, and its note gives the reason.
// Guarded by tests/models/calibration_test.cpp: known parameters are recovered from synthetic durations.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace slipway::models {

// A task whose rank communicated for at most this share of its time counts as undisturbed. Even if communication made
// it 1.4 times slower meanwhile, it would take 2 % longer, the scale on which fits are compared (least_squares.cpp).
// With a smaller share, a message that a task just touches would exclude its observation.
constexpr double undisturbed_share = 0.05;

enum class ObservationGroup : std::uint8_t { compute, node_link, network_link, host_to_device, device_to_host };
inline constexpr std::array link_groups{ObservationGroup::node_link, ObservationGroup::network_link,
                                        ObservationGroup::host_to_device, ObservationGroup::device_to_host};
inline constexpr std::array all_groups{ObservationGroup::compute, ObservationGroup::node_link,
                                       ObservationGroup::network_link, ObservationGroup::host_to_device,
                                       ObservationGroup::device_to_host};

// True for messages, whose reductions add what arrives; not for copies between host and GPU.
constexpr bool is_between_ranks(ObservationGroup group) {
  return group == ObservationGroup::node_link || group == ObservationGroup::network_link;
}

struct Observation {
  ObservationGroup group = ObservationGroup::compute;
  std::string kind;    // "gemm", "forward", "all-reduce": residuals are reported per kind
  std::string name;    // for the list of the worst
  double seconds = 0;  // measured work time, > 0
  double weight = 1;
  double overlap_share = 0;  // share of the duration during which its rank also communicated
  bool isolated = false;     // a micro-benchmark, not work inside a run
  bool of_pass = false;  // work inside a run: a part of a forward or backward pass, every operator of which is priced
  std::function<double(const Machine&)> predict;
};

// Work in a run takes longer than in isolation: f times as long (caches, the other lanes' threads), and a task h more (a
// thread that slept, code that others have pushed out of the caches). If both were observed, the run sets the level and
// micro-benchmarks the ratios: their seconds s count as f·s, and those of starting a task as f·s + h. f is the median of
// the large tasks, h that of the small ones of passes; 0 where a run has none. 1 and 0 where only one kind was observed.
struct RunCost {
  double factor = 1, task_s = 0;
};
using RunCosts = std::array<RunCost, all_groups.size()>;  // [by ObservationGroup]; task_s of computation alone

struct FittedParameter {
  std::string name, unit;
  double value = 0;
  double interval = 0;  // ± of the 95 % confidence interval; infinity when unknown
  std::string note;     // "fitted", or why the value was kept
};

struct KindResidual {
  std::string kind;
  std::size_t count = 0;
  double median_error = 0, worst_error = 0;  // relative, absolute values
  std::string worst_name;
};

struct Calibration {
  Machine machine;
  std::vector<FittedParameter> parameters;
  std::vector<KindResidual> residuals;  // sorted by kind
  double in_sample_error = 0;           // median of |predicted/measured − 1| over observations
  double left_out_error = 0;            // the same, each predicted by a fit without it; gives machine.spread
  RunCosts run_costs;
  int folds = 0;  // 0: too few observations to leave any out
};

struct CalibrationOptions {
  int folds = 5;
};

// `start` has the values that are not fitted and first guesses of the others. peak_flops must be set for every dtype of
// the observations. If start.memory_bandwidth is 0, or start.cores > 0 (a CPU, whose data sheet does not bound one
// rank's share), memory_bandwidth itself is fitted with efficiency 1; likewise a link's. Throws std::invalid_argument
// for no observation, or one that no Machine can predict.
Calibration calibrate(const Machine& start, const std::vector<Observation>& observations,
                      const CalibrationOptions& options = {});

}  // namespace slipway::models
