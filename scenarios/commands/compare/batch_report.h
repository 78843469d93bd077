// The measurements of an executed run with a growing batch: for each batch the step time, beside the simulated one, and
// the noise of the gradients.
//
//   batch  steps     step time  tokens/s  noise scale
//   16     1 to 12   0.10 s     10 k      21 sequences
//   32     13 to 40  0.19 s     11 k      35 sequences
//
// Noise scale B = batch · Σ Var / Σ (‖g‖² − Var) over the batch's steps (models/training/norm_test.h). Sums, because
// the estimate of one step is a ratio of two noisy numbers. Guarded by tests/scenarios/batch_report_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/step_times.h"

namespace slipway::scenarios {

struct BatchMeasured {
  std::int64_t batch = 0;
  int first = 0, last = 0;       // steps of the trace, from 0
  std::optional<double> step_s;  // median of the steps with a successor of the same batch
  // Sequences; unset where nothing was measured, infinite where the gradients have no signal above the noise.
  std::optional<double> noise_scale;
};

// In order of time. Empty where the batch stayed. `times`: the trace's.
std::vector<BatchMeasured> batches_of(const Trace& trace, const StepTimes& times);

// The batch with the most steps. `batches` is not empty.
const BatchMeasured& longest_of(const std::vector<BatchMeasured>& batches);

// The batches of a run, in order of time; empty where the batch stayed.
std::vector<std::int64_t> batches_in(const Trace& trace);
// The steps of one batch as a separate trace. The steps keep their places in the training through the losses. Throws
// std::invalid_argument with the trace's batches where it has no such batch.
Trace steps_of_batch(const Trace& trace, std::int64_t batch);

struct BatchRow {
  BatchMeasured measured;
  int first_step = 0, last_step = 0;  // of the training, from 1
  std::optional<double> tokens_per_s, predicted_step_s;
};
// `sequence`: tokens. `predicted_s`: simulated step times by batch; may be empty.
std::vector<BatchRow> batch_rows(const std::vector<BatchMeasured>& batches, double sequence, int steps_before,
                                 const std::map<std::int64_t, double>& predicted_s);
// The keys of a batch and its columns.
const Description<BatchRow>& batch_keys();

}  // namespace slipway::scenarios
