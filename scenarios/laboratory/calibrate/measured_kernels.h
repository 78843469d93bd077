// The constants of a GPU's kernels (models/machine/kernels.h) from `slipway-rank --measure` and from tasks of an executed
// run: the same form as of the built-in machines. A GPU of whose kind there are measurements is fitted around them, and has
// theirs where nothing was measured.
// Guarded by tests/scenarios/calibrate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/fit/measurement.h"
#include "scenarios/laboratory/kernels/kernels_report.h"

namespace slipway::scenarios {

struct MeasuredKernels {
  std::vector<FittedKernel> fitted;  // empty: nothing prices products in bfloat16, without which no step is priced so
  std::string too_few;               // "attention bfloat16 96 (3)": kernels with too few shapes for a fit; empty: none
  std::string not_used;              // "elementwise (8), optimizer (2)": what constants of a step price; empty: none
};

// `start`: the machine as it was, with the peaks of its data sheet. CPU ranks have no kernels of this form. `few`: the
// shapes are those of one run, and move known constants however few they are (kernel_fit.h).
MeasuredKernels measured_kernels(const std::vector<Measurement>& measurements, const Machine& start, bool few = false);

// The same from tasks of a run, around `machine`: what products and attention take, with a trainer's constants of a step
// (priced_cluster.h). Kernels of which the tasks say nothing are left out, and so are tasks beside messages. Empty where
// fewer than least_shapes are left.
std::vector<FittedKernel> traced_kernels(const std::vector<Observation>& observations, const Machine& machine);

// The observations that no kernel's constants describe: messages from rank to rank, and copies to and from the host.
std::vector<Observation> beside_kernels(std::vector<Observation> observations);

}  // namespace slipway::scenarios
