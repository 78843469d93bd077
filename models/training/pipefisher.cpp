#include "models/training/pipefisher.h"

#include <cmath>
#include <stdexcept>

namespace slipway::models {
namespace {

void refuse_impossible(const PipeFisherInput& input) {
  if (input.stages < 1 || input.micro_batches < 1)
    throw std::invalid_argument("a pipeline needs at least one stage and one micro-batch");
  if (input.shape == PipelineShape::bidirectional && (input.stages % 2 != 0 || input.micro_batches < input.stages))
    throw std::invalid_argument(
        "a bidirectional pipeline needs an even number of stages and at least as many "
        "micro-batches");
}

void set_passes(const PipeFisherInput& input, PipeFisherModel& model) {
  const double stages = input.stages, micro_batches = input.micro_batches;
  if (input.shape == PipelineShape::one_way) {
    model.forward_passes = model.backward_passes = micro_batches + stages - 1;
  } else if (input.micro_batches == input.stages) {
    model.forward_passes = stages;
    model.backward_passes = 2 * stages - 2;
  } else {
    model.forward_passes = model.backward_passes = micro_batches + stages / 2 - 1;
  }
}

// Activations, factors (with their inverses) and parameters (with their gradients) of one device. A bidirectional
// pipeline keeps two stages there.
double memory_of(const PipeFisherInput& input) {
  const BlockTimes& t = input.stage;
  const double micro_batches = input.micro_batches;
  const double replicas = input.shape == PipelineShape::bidirectional ? 2 : 1;
  return t.activation_bytes * (input.recompute ? 1 : micro_batches) + t.peak_error_bytes +
         t.saved_error_bytes * micro_batches + replicas * (2 * t.factor_bytes + 2 * t.parameter_bytes);
}

}  // namespace

BlockTimes stage_times(const BlockTimes& block, int blocks) {
  BlockTimes stage = block;
  for (double* each :
       {&stage.forward_s, &stage.backward_s, &stage.curvature_s, &stage.inversion_s, &stage.precondition_s,
        &stage.parameter_bytes, &stage.activation_bytes, &stage.saved_error_bytes, &stage.factor_bytes})
    *each *= blocks;
  return stage;
}

PipeFisherModel pipefisher(const PipeFisherInput& input) {
  refuse_impossible(input);
  const BlockTimes& t = input.stage;
  const double micro_batches = input.micro_batches;
  const double again = input.recompute ? t.forward_s : 0;
  PipeFisherModel model;
  set_passes(input, model);
  const double useful = micro_batches * (t.forward_s + again + t.backward_s);
  const double kfac = micro_batches * t.curvature_s + t.inversion_s;
  model.pipeline_s = model.forward_passes * t.forward_s + model.backward_passes * (again + t.backward_s);
  model.bubble_s = model.pipeline_s - useful;
  model.ratio = kfac / model.bubble_s;
  model.utilization = useful / model.pipeline_s;
  model.refresh_steps = model.bubble_s > 0 ? static_cast<int>(std::ceil(model.ratio)) : 0;
  if (model.refresh_steps > 0) model.filled_utilization = (useful + kfac / model.refresh_steps) / model.pipeline_s;
  model.step_s = model.pipeline_s + t.precondition_s;
  model.unfilled_step_s = model.step_s + micro_batches * t.curvature_s;
  model.refresh_step_s = model.unfilled_step_s + t.inversion_s;
  const double sequences = micro_batches * static_cast<double>(t.micro_batch);
  model.first_order_per_s = sequences / model.pipeline_s;
  model.sequences_per_s = sequences / model.step_s;
  model.memory_bytes = memory_of(input);
  return model;
}

}  // namespace slipway::models
