#include "exec/operators/gathered_weights.h"

#include <ATen/ATen.h>

namespace slipway::exec {

namespace {

c10::StorageImpl& storage_of(const at::Tensor& flat) { return *flat.storage().unsafeGetStorageImpl(); }
std::size_t bytes_of_all(const at::Tensor& flat) {
  return static_cast<std::size_t>(flat.numel()) * flat.element_size();
}

}  // namespace

bool has_memory(const at::Tensor& flat) { return storage_of(flat).nbytes() > 0; }

void free_memory(const at::Tensor& flat) {
  storage_of(flat).set_data_ptr_noswap(c10::DataPtr(nullptr, flat.device()));
  storage_of(flat).set_nbytes(0);
}

void allocate_memory(const at::Tensor& flat) {
  if (has_memory(flat)) return;
  c10::StorageImpl& storage = storage_of(flat);
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes_of_all(flat)));
  storage.set_nbytes(bytes_of_all(flat));
}

at::Tensor take_memory(const at::Tensor& flat) {
  c10::StorageImpl& storage = storage_of(flat);
  const std::size_t bytes = storage.nbytes();
  at::DataPtr memory = storage.set_data_ptr(c10::DataPtr(nullptr, flat.device()));
  storage.set_nbytes(0);
  const at::Storage taken(at::Storage::use_byte_size_t(), bytes, std::move(memory), storage.allocator(), false);
  return at::empty({0}, flat.options()).set_(taken, 0, flat.sizes());
}

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

}  // namespace slipway::exec
