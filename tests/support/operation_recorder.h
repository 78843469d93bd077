// A recorder in place of a device that records what starts on it (exec/lanes/segment_replay.h). It notes every ATen
// operation below autograd and repeats them at a replay, on the very tensors of the recording. As with a CUDA graph, no
// line of the recorded function runs then. It finds what would be a silent error on a device:
//
//   an operation that hands a number to the host                    an error at once
//   recordings of a pool in another order than they were made       an error at once
//   what an earlier replay has left is read, in or out of the pool  NaN: a pool's first replay spoils all it has made
//
// Only the memory of freed values is not reused. Recording runs the operations here, but their results are then
// spoiled, because on a device they would not exist.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/lanes/segment_replay.h"
#include "schedules/time/replay.h"

namespace slipway::test {

class OperationRecorder : public SegmentCapture {
 public:
  int recorded = 0, replayed = 0;

  int new_pool() override { return next_pool_++; }

  std::unique_ptr<Recording> record(int pool, const std::function<void()>& work) override {
    auto recording = std::make_unique<Operations>(*this, pools_[pool]);
    recording->record(work);
    ++recorded;
    return recording;
  }

 private:
  class Operations;
  struct Pool {
    std::vector<Operations*> recordings;
    std::size_t next = 0;
  };

  static bool share_memory(const at::Tensor& a, const at::Tensor& b) {
    return a.has_storage() && b.has_storage() && a.storage().data() == b.storage().data();
  }
  static std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values) {
    std::vector<at::Tensor> found;
    for (const c10::IValue& value : values) {
      if (value.isTensor() && value.toTensor().defined()) found.push_back(value.toTensor());
      if (value.isTensorList())
        for (const at::Tensor& tensor : value.toTensorVector()) found.push_back(tensor);
      if (value.isOptionalTensorList())
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
          if (tensor && tensor->defined()) found.push_back(*tensor);
    }
    return found;
  }

  class Operations : public Recording {
   public:
    Operations(OperationRecorder& recorder, Pool& pool) : recorder_(recorder), pool_(pool) {}
    ~Operations() override { std::erase(pool_.recordings, this), pool_.next = 0; }

    void record(const std::function<void()>& work) {
      if (pool_.next != 0) throw std::logic_error("recorded before its pool's recordings were replayed");
      pool_.recordings.push_back(this);
      pool_.next = pool_.recordings.size() - 1;
      {
        Operations*& current = recording_now();
        current = this;
        const c10::impl::IncludeDispatchKeyGuard noting(c10::DispatchKeySet(c10::DispatchKey::Fake));
        try {
          work();
        } catch (...) {
          current = nullptr;
          throw;
        }
        current = nullptr;
      }
      undo_in_place();
      spoil();
    }

    void replay() override {
      if (pool_.recordings[pool_.next] != this) throw std::logic_error("replayed in another order than recorded");
      if (pool_.next == 0)
        for (Operations* const each : pool_.recordings) each->spoil();
      pool_.next = (pool_.next + 1) % pool_.recordings.size();
      const at::NoGradGuard no_grad;
      const at::AutoDispatchBelowADInplaceOrView below;
      for (const Operation& operation : operations_) operation.redo();
      ++recorder_.replayed;
    }

    static void note(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
      const c10::impl::ExcludeDispatchKeyGuard once(c10::DispatchKeySet(c10::DispatchKey::Fake));
      Operations* const current = recording_now();
      if (current == nullptr) return op.callBoxed(stack);
      const std::string& name = op.schema().name();
      if (name == "aten::_local_scalar_dense" || name == "aten::equal" || name == "aten::nonzero")
        throw std::runtime_error("recorded work looks at a number: " + name);
      const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
      Operation operation{op, {stack->end() - count, stack->end()}, {}, {}};
      current->keep_what_changes(operation);
      op.callBoxed(stack);
      const auto made = static_cast<std::ptrdiff_t>(op.schema().returns().size());
      operation.outputs.assign(stack->end() - made, stack->end());
      const std::vector<at::Tensor> read = tensors_in(operation.inputs);
      for (const at::Tensor& output : tensors_in(operation.outputs))
        if (std::none_of(read.begin(), read.end(), [&](const at::Tensor& t) { return share_memory(t, output); }))
          operation.made.push_back(output);
      current->operations_.push_back(std::move(operation));
    }

   private:
    struct Operation {
      c10::OperatorHandle op;
      std::vector<c10::IValue> inputs, outputs;
      std::vector<at::Tensor> made;  // outputs with memory of their own

      void redo() const {
        torch::jit::Stack stack(inputs.begin(), inputs.end());
        op.callBoxed(&stack);
        const std::vector<at::Tensor> now = tensors_in({stack.begin(), stack.end()}), then = tensors_in(outputs);
        for (std::size_t i = 0; i < then.size(); ++i)
          if (!share_memory(now[i], then[i]) && then[i].numel() > 0) at::Tensor(then[i]).copy_(now[i]);
      }
    };

    // Recorded work is not done: weights' gradients, to which it adds, must be unchanged.
    void keep_what_changes(const Operation& operation) {
      const auto& arguments = operation.op.schema().arguments();
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        const bool changes = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
        if (!changes) continue;
        for (const at::Tensor& tensor : tensors_in({operation.inputs[i]})) before_.emplace_back(tensor, tensor.clone());
      }
    }
    void undo_in_place() {
      const at::NoGradGuard no_grad;
      const at::AutoDispatchBelowADInplaceOrView below;
      for (std::size_t i = before_.size(); i-- > 0;) before_[i].first.copy_(before_[i].second);
      before_.clear();
    }
    void spoil() {
      const at::NoGradGuard no_grad;
      const at::AutoDispatchBelowADInplaceOrView below;
      for (const Operation& operation : operations_)
        for (at::Tensor made : operation.made)
          if (made.is_floating_point()) made.fill_(std::numeric_limits<double>::quiet_NaN());
    }
    static Operations*& recording_now() {
      static thread_local Operations* current = nullptr;
      return current;
    }

    OperationRecorder& recorder_;
    Pool& pool_;
    std::vector<Operation> operations_;
    std::vector<std::pair<at::Tensor, at::Tensor>> before_;
  };

 public:
  static void note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    Operations::note(op, keys, stack);
  }

 private:
  std::map<int, Pool> pools_;
  int next_pool_ = 0;
};

// `Fake` lies between autograd and the device's own kernels, and nothing else uses it here.
TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&OperationRecorder::note>());
}

}  // namespace slipway::test
