#include "exec/progress.h"

namespace slipway {

double learning_rate_of(const Bundle& bundle, const Progress& first, int step) {
  const std::int64_t batch = bundle.graph.global_batch;
  LearningRateSchedule schedule = bundle.run.optimizer.lr_schedule;
  if (schedule.decay_samples == 0)
    schedule.decay_samples = samples_at_end(first, bundle.run.steps, batch);
  return learning_rate(bundle.run.optimizer.lr, schedule, first.samples + step * batch, batch);
}

}  // namespace slipway
