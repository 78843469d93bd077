// What a checkpoint takes from the buckets and gives back to them.
#include <ATen/ATen.h>

#include "exec/buckets.h"
#include "exec/parameter_state.h"
#include "exec/storage_memory.h"

namespace slipway {

void Buckets::save(ShardWriter& out) const {
  for (const auto& [block, mine] : buckets_) {
    if (slice_count_ == 1 && replica_of(mine.stage) > 0) continue;
    for (const ShardedParameter& parameter : mine.parameters.parameters) {
      const FlatRange range = range_within(parameter, mine.begin, mine.end);
      if (range.empty() || (parameter.meta.shard_dim < 0 && at_.tensor > 0)) continue;
      add_entry(out, parameter.meta, parameter.pieces, range.from - parameter.offset, range.to - parameter.offset,
                mine.optimizer.state(range.from, range.to));
    }
  }
}

void Buckets::load(const CheckpointReader& checkpoint) {
  at::NoGradGuard no_grad;
  for (auto& [block, mine] : buckets_) {
    for (ShardedParameter& parameter : mine.parameters.parameters) {
      const ParameterState shard =
          shard_of(whole_parameter(checkpoint, parameter.meta), parameter.meta, parameter.pieces);
      if (has_memory(mine.parameters.weights))  // under ZeRO 3 they are gathered from the slices
        mine.parameters.weights.narrow(0, parameter.offset, parameter.elements).copy_(shard.master);
      const FlatRange range = range_within(parameter, mine.begin, mine.end);
      if (range.empty()) continue;
      const auto part = [&](const at::Tensor& all) {
        return all.narrow(0, range.from - parameter.offset, range.elements());
      };
      mine.optimizer.restore(range.from, range.to,
                         {part(shard.master), part(shard.mean), part(shard.square), shard.updates});
    }
  }
}

}  // namespace slipway
