// Levers of the batch: how many sequences a micro-batch has.
#include "scenarios/search/levers.h"

namespace slipway::scenarios {
namespace {

Lever micro_batch_times(int factor) {
  return {"micro-batch x " + std::to_string(factor), [factor](Scenario& scenario) -> std::string {
            Step& step = scenario.step;
            const std::int64_t before = step.micro_batch;
            step.micro_batch *= factor;
            if (step.global_batch % (step.micro_batch * step.layout.data) != 0)
              return "a global batch of " + std::to_string(step.global_batch) + " on " +
                     std::to_string(step.layout.data) + " replicas has no micro-batches of " +
                     std::to_string(before * factor) + " sequences";
            return "";
          }};
}

std::string halve_micro_batch(Scenario& scenario) {
  std::int64_t& size = scenario.step.micro_batch;
  if (size % 2 != 0) return "a micro-batch of " + std::to_string(size) + " sequences cannot be halved";
  size /= 2;
  return "";
}

}  // namespace

std::vector<Lever> batch_levers() {
  return {micro_batch_times(2), micro_batch_times(4), {"micro-batch / 2", halve_micro_batch}};
}

}  // namespace slipway::scenarios
