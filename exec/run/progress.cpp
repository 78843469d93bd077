#include "exec/run/progress.h"

namespace slipway::exec {

double learning_rate_of(const Bundle& bundle, const Progress& before, std::int64_t batch) {
  LearningRateSchedule schedule = bundle.graph.step.optimizer.lr_schedule;
  if (schedule.decay_samples == 0) schedule.decay_samples = samples_at_end(before, bundle.run.steps, batch);
  return learning_rate(bundle.graph.step.optimizer.lr, schedule, before.samples, batch);
}

}  // namespace slipway::exec
