// Scores of left-out runs with the residual layer (models/fit/residual_layer.h); `validate --pooled` shows them
// separately. The layer is trained on the runs that the fit of physics has seen, never on those that are predicted.
//
//   kept runs ──fit──► constants ──► residuals of the kept runs ──► layer ──► left-out runs, corrected
//
// Guarded by tests/scenarios/pooled_test.cpp.
#pragma once

#include <functional>
#include <vector>

#include "models/fit/residual_layer.h"
#include "scenarios/laboratory/tables/pooled_runs.h"

namespace slipway::scenarios {

// Where a run is among others of its trainer and machine. Degrees, tokens and shapes count by log2, the rest as listed
// in the source.
std::vector<double> place_of(const PublishedRow& row);

// Predictions by run: seconds, and half of the 90 % interval of their logarithm. NaN where nothing is predicted.
struct LeftOut {
  std::vector<double> seconds, widths;
};

struct LeftOutBothWays {
  LeftOut physics, corrected;
};

// Predicts each part by a fit to the others; the fits begin at `fitted` and take the paths of the runs' last
// replay (PooledRuns::replay). Part −1 is in every fit. `each` is called after each part, last one too.
LeftOutBothWays left_out(PooledRuns& runs, const std::vector<int>& parts, const PooledConstants& fitted,
                         const std::function<void()>& each);
// The number of parts.
int count_of(const std::vector<int>& parts);

}  // namespace slipway::scenarios
