#include "exec/gathered_weights.h"

#include "exec/storage_memory.h"

namespace slipway {

GatheredWeights::GatheredWeights(at::Tensor flat) : flat_(std::move(flat)) { free_memory(flat_); }

GatheredWeights::Use GatheredWeights::use() {
  const std::lock_guard lock(mutex_);
  const bool is_new = uses_++ == 0;
  if (is_new) allocate_memory(flat_);
  const auto end = [self = shared_from_this()](void*) {
    const std::lock_guard guard(self->mutex_);
    if (--self->uses_ == 0) free_memory(self->flat_);
  };
  return {std::shared_ptr<void>(this, end), is_new};
}

}  // namespace slipway
