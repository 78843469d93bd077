// A flat tensor whose memory comes and goes while its views stay: what ZeRO 2 and 3 save is the memory of gradients
// and weights that nobody needs now. To read or write a view while the memory is gone is an error that only the
// order of tasks rules out.
// Guarded by tests/exec/gathered_weights_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>

#include "models/namespaces.h"

namespace slipway::exec {

// `flat` owns its storage. allocate: uninitialised, where there is none.
void free_memory(const at::Tensor& flat);
void allocate_memory(const at::Tensor& flat);
bool has_memory(const at::Tensor& flat);
// Hands the memory to a new tensor of the same shape; `flat` has none afterwards.
at::Tensor take_memory(const at::Tensor& flat);

// A block's whole weights under ZeRO 3: their memory is there only while a task needs them.
//
//   gather ─ use() ─► forward segments ─ last reader done ─► freed        gather again ─► backward ─► freed
//
// Parameters, and what autograd has saved of them, are views of one storage; only its memory comes and goes, so a
// forward's saved weights hold nothing until the backward's gather has filled them again. Two passes may
// overlap: the memory lives from the first use to the end of the last.
// Guarded by tests/exec/gathered_weights_test.cpp.

// Made by std::make_shared: what use() returns keeps it.
class GatheredWeights : public std::enable_shared_from_this<GatheredWeights> {
 public:
  // `flat` owns its storage; its memory is freed at once.
  explicit GatheredWeights(at::Tensor flat);

  // Memory is there until the last returned hold is dropped. `is_new`: it has just been allocated and holds nothing
  // yet. May be called and dropped on any thread.
  struct Use {
    std::shared_ptr<void> hold;
    bool is_new = false;
  };
  Use use();
  // The flat weights as a gather may write them: autograd does not count it as a change.
  at::Tensor target() const { return flat_.variable_data(); }

 private:
  at::Tensor flat_;
  std::mutex mutex_;
  int uses_ = 0;
};

}  // namespace slipway::exec
