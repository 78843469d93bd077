// What a checkpoint takes from the buckets and gives back to them.
#include <ATen/ATen.h>

#include <algorithm>

#include "exec/buckets.h"
#include "exec/parameter_state.h"
#include "exec/storage_memory.h"

namespace slipway {
namespace {

struct Span {
  std::int64_t from = 0, to = 0;  // in the block's flat tensors
};

Span common(const ShardedParameter& parameter, std::int64_t begin, std::int64_t end) {
  return {std::max(begin, parameter.offset), std::min(end, parameter.offset + parameter.elements)};
}

}  // namespace

void Buckets::save(ShardWriter& out) const {
  for (const auto& [block, mine] : buckets_) {
    if (slice_count_ == 1 && replica_of(mine.stage) > 0) continue;
    for (const ShardedParameter& parameter : mine.parameters.parameters) {
      const Span span = common(parameter, mine.begin, mine.end);
      if (span.from >= span.to || (parameter.meta.shard_dim < 0 && at_.tensor > 0)) continue;
      add_entry(out, parameter.meta, parameter.pieces, span.from - parameter.offset, span.to - parameter.offset,
                mine.adamw.state(span.from, span.to));
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
      const Span span = common(parameter, mine.begin, mine.end);
      if (span.from >= span.to) continue;
      const auto part = [&](const at::Tensor& all) {
        return all.narrow(0, span.from - parameter.offset, span.to - span.from);
      };
      mine.adamw.restore(span.from, span.to,
                         {part(shard.master), part(shard.mean), part(shard.square), shard.updates});
    }
  }
}

}  // namespace slipway
