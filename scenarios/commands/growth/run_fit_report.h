// The answer of `slipway growth --fit RUN`: the noise scale measured by the norm test of an executed run, the law of
// its loss, and their errors:
//
//   the run's end      the mean loss and the noise scale of its last steps by a fit to its beginning
//   unseen runs        tokens to a loss, and the last loss, of runs with other batches
//
// Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/fit/executed_run.h"
#include "models/fit/gradient_noise.h"
#include "scenarios/commands/growth/executed_losses.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct RunFitRequest {
  double floor = 0;                   // nats
  std::optional<double> exponent;     // exponent of the noise scale; unset: fitted
  double from_tokens = 0;             // earlier losses and norms do not count
  std::optional<double> target_loss;  // unset: the highest last loss of all runs
};

// Prediction of the run's last steps from the steps before `fitted`.
struct RunEnd {
  std::size_t fitted = 0;            // steps
  double predicted = 0, before = 0;  // loss: by the fit; mean of the last steps before `fitted`, a guess without a law
  double noise_tokens = 0;           // by the fit
};

struct UnseenRun {
  ExecutedRun run;
  double last_loss = 0, predicted_loss = 0;        // means over its last steps
  std::optional<double> tokens, predicted_tokens;  // to the target; unset where it is not reached
};

struct RunFitAnswer {
  ExecutedRun run;
  RunFitRequest request;
  std::size_t from = 0;  // the first step that counts
  MeasuredNoise noise;
  RunFit fit;
  double last_loss = 0;              // mean over the last steps
  std::optional<double> last_noise;  // tokens, there
  std::vector<RunEnd> ends;          // by fitted steps, ascending; those with enough steps
  double target_loss = 0;
  std::vector<UnseenRun> unseen;
};

// A twelfth of the steps, at least one. The last loss is a mean over these.
std::size_t last_steps(std::size_t steps);

// Throws UsageError where the run has no norms or cannot be fitted, and for a target that the run does not reach.
RunFitAnswer fitted_run(ExecutedRun run, std::vector<ExecutedRun> unseen, const RunFitRequest& request);

std::string run_fit_text(const RunFitAnswer& answer);
// The description of --json.
const Description<RunFitAnswer>& run_fit_description();

}  // namespace slipway::scenarios
