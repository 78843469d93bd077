// A flat tensor whose memory comes and goes while its views stay. ZeRO 2 and 3 save the memory of gradients and weights
// that are not needed at present. It is an error to read or write a view without memory; only the order of tasks
// prevents it.
// Guarded by tests/exec/gathered_weights_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>

#include "models/namespaces.h"

namespace slipway::exec {

// `flat` owns its storage. allocate_memory leaves it uninitialised and requires that there is none.
void free_memory(const at::Tensor& flat);
void allocate_memory(const at::Tensor& flat);
bool has_memory(const at::Tensor& flat);
// Hands the memory to a new tensor of the same shape; `flat` has none afterwards.
at::Tensor take_memory(const at::Tensor& flat);

// A block's whole weights under ZeRO 3: their memory exists only while a task needs them.
//
//   gather ─ use() ─► forward segments ─ last reader done ─► freed        gather again ─► backward ─► freed
//
// Parameters, and what autograd has saved of them, are views of one storage whose memory comes and goes. So a forward's
// saved weights hold nothing until the backward's gather has filled them again. Two passes may overlap: the memory
// lives from the first use to the end of the last.
// Guarded by tests/exec/gathered_weights_test.cpp.

// Must be made by std::make_shared, because the result of use() keeps it.
class GatheredWeights : public std::enable_shared_from_this<GatheredWeights> {
 public:
  // `flat` owns its storage; its memory is freed at once.
  explicit GatheredWeights(at::Tensor flat);

  // The memory exists until the last returned hold is dropped. `is_new`: it was just allocated and is uninitialised.
  // May be called and dropped on any thread.
  struct Use {
    std::shared_ptr<void> hold;
    bool is_new = false;
  };
  Use use();
  // The flat weights for a gather to write: autograd does not count it as a change.
  at::Tensor target() const { return flat_.variable_data(); }

 private:
  at::Tensor flat_;
  std::mutex mutex_;
  int uses_ = 0;
};

}  // namespace slipway::exec
