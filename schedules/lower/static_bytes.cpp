#include "schedules/lower/static_bytes.h"

#include <algorithm>

#include "schedules/lower/kfac_shares.h"
#include "schedules/step/block_elements.h"
#include "schedules/step/placement.h"

namespace slipway::schedules {
namespace {

// Bytes per parameter: bf16 and fp16 weights keep an fp32 master copy beside Adam's two moments (12 bytes, Fujii 2024);
// with moments of 2 bytes 8. Wider weights are their own master. What is in the host's memory does not count.
double optimizer_bytes_per_parameter(const Step& step) {
  const double moments = 2.0 * bytes_of(step.optimizer.moment_dtype);
  const double on_device = 1 - step.optimizer.offload_fraction;
  return on_device * (bytes_of(step.dtype) == 2 ? 4.0 + moments : 2.0 * bytes_of(step.dtype));
}

// `linears` of the elements have copies in the narrow format, beside those in the dtype or in their place.
StaticBytes static_bytes(double elements, double trained, double linears, double shards, const Step& step) {
  const int zero = step.layout.zero;
  const auto narrow = format_of(step.narrow);
  const NarrowHabits habits = narrow_habits(step);
  const double copies = narrow ? copies_of(step.narrow, habits) * weight_bytes(*narrow) * linears : 0;
  const double wide = narrow && habits.gathers_weights ? elements - linears : elements;
  return {(wide * bytes_of(step.dtype) + copies) / (zero >= 3 ? shards : 1),
          trained * bytes_of(step.gradient_dtype) / (zero >= 2 ? shards : 1),
          trained * optimizer_bytes_per_parameter(step) / (zero >= 1 ? shards : 1)};
}

// A schedule's placement holds for any number of micro-batches; every schedule runs twice as many as ranks.
Placement placement_for_any_batch(const Step& step) {
  const Schedule& schedule = schedule_of(step);
  const ScheduleShape shape{step.layout.pipeline, step.layout.chunks, 2 * step.layout.pipeline, step.slices,
                            schedule.copies};
  if (step.actions != nullptr) return placement_of(*step.actions, shape);
  return placement_of(schedule.refuse(shape) ? ActionLists{} : schedule.actions(shape), shape);
}

// K-FAC holds no moments for these matrices.
double moments_of(const std::vector<KfacPlace>& matrices, Dtype dtype) {
  double elements = 0;
  for (const KfacPlace& place : matrices)
    elements += static_cast<double>(place.linear.in) * static_cast<double>(place.linear.out);
  return elements * 2.0 * std::max(4, bytes_of(dtype));
}

}  // namespace

StaticBytes static_bytes_of(const BlockElements& held, const Step& step, int copies) {
  const Layout& layout = step.layout;
  const double shards = static_cast<double>(shards_of(layout)) * copies;
  const auto dense = static_cast<double>(held.dense), experts = static_cast<double>(held.experts);
  const StaticBytes bytes =
      static_bytes(dense, static_cast<double>(held.trained()), static_cast<double>(held.linears), shards, step);
  if (held.experts == 0) return bytes;
  const StaticBytes more = static_bytes(experts, static_cast<double>(held.trained_experts()), experts,
                                        static_cast<double>(expert_data_of(layout)) * copies, step);
  return {bytes.weights + more.weights, bytes.gradients + more.gradients, bytes.optimizer + more.optimizer};
}

std::vector<StaticBytes> static_bytes_of(const Step& step) {
  const Layout& layout = step.layout;
  const std::vector<BlockRange> parts = split_blocks(step.model, layout);
  const Placement placement = placement_for_any_batch(step);
  const auto elements = elements_of_blocks(step, shares_table(step.model, layout, placement));
  const std::vector<Block> blocks = blocks_of(step.model);
  std::vector<BlockRange> stages;
  for (int copy = 0; copy < placement.copies; ++copy) stages.insert(stages.end(), parts.begin(), parts.end());
  std::vector<StaticBytes> result;
  for (int pipeline = 0; pipeline < layout.pipeline; ++pipeline) {
    BlockElements held;
    for (int stage = 0; stage < placement.stages(); ++stage) {
      if (placement.rank[stage] != pipeline) continue;
      const BlockRange& part = stages[stage];
      for (int block = part.first; block < part.last; ++block) held += elements[block];
    }
    result.push_back(static_bytes_of(held, step, placement.copies));
    if (!uses_kfac(step)) continue;
    const std::vector<KfacPlace> places = kfac_places(blocks, placement, stages, pipeline);
    result.back().optimizer +=
        most_kfac_inverse_bytes(places, layout.data * layout.context * placement.copies, step.dtype) -
        moments_of(places, step.dtype);
  }
  return result;
}

}  // namespace slipway::schedules
