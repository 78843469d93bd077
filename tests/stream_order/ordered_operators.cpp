#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "tests/stream_order/ordered_device.h"

namespace slipway::test {
namespace {

using Access = StreamOrder::Access;
const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

bool is_ours(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == ordered_device.type(); }

// The range from its first to its last element.
ByteRange bytes_of_tensor(const at::Tensor& tensor) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto each = static_cast<std::int64_t>(tensor.element_size()), begin = tensor.storage_offset() * each;
  return {begin, begin + (last + 1) * each};
}

// One call of an operator: its arguments as tensors of the host, and back.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack), name_(op.schema().name()) {}

  void run() {
    const at::AutoDispatchBelowADInplaceOrView below;
    take_arguments();
    op_.callBoxed(&stack_);
    return_results();
  }

 private:
  struct Pair {
    at::Tensor ours, host;
    bool written = false;
  };

  void take_arguments() {
    const auto& arguments = op_.schema().arguments();
    const std::size_t first = stack_.size() - arguments.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool written = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
      c10::IValue& value = stack_[first + i];
      if (value.isTensor()) {
        value = host(value.toTensor(), written);
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(host(tensor, written));
        value = std::move(list);
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
          list.push_back(tensor ? std::optional(host(*tensor, written)) : std::nullopt);
        value = std::move(list);
      } else if (value.isDevice() && value.toDevice().type() == ordered_device.type()) {
        value = c10::Device(c10::kCPU);
      }
    }
    // Reads come first: an operator may have read what it overwrites.
    for (const Access access : {Access::read, Access::write})
      for (const Pair& pair : pairs_)
        if ((access == Access::write) == pair.written) note_use(pair.ours, access, name_);
  }

  at::Tensor host(const at::Tensor& tensor, bool written) {
    if (!is_ours(tensor)) return tensor;
    pairs_.push_back({tensor, on_host(tensor), written});
    return pairs_.back().host;
  }

  void return_results() {
    const auto& returns = op_.schema().returns();
    const std::size_t first = stack_.size() - returns.size();
    for (std::size_t i = 0; i < returns.size(); ++i) {
      c10::IValue& value = stack_[first + i];
      if (value.isTensor()) {
        value = ours(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(ours(tensor));
        value = std::move(list);
      } else if (name_ != "aten::_fused_sdp_choice") {
        finish_this_stream();  // a number for the host
      }
    }
    for (Pair& pair : pairs_) {  // an empty `out` gets its memory from the operator
      if (!pair.written || pair.ours.sizes() == pair.host.sizes()) continue;
      const at::Tensor whole = made_of(pair.host);
      at::native::set_storage_cpu_(pair.ours, whole.storage(), 0, whole.sizes(), whole.strides());
    }
  }

  at::Tensor ours(const at::Tensor& result) const {
    if (!result.defined()) return result;
    for (const Pair& pair : pairs_) {
      if (pair.host.is_same(result)) return pair.ours;
      if (result.numel() > 0 && result.storage().is_alias_of(pair.host.storage()))
        return at::as_strided(pair.ours, result.sizes(), result.strides(),
                              pair.ours.storage_offset() + result.storage_offset());
    }
    return made_of(result);
  }

  at::Tensor made_of(const at::Tensor& result) const {
    const at::Tensor made = at::empty(result.sizes(), result.options().device(ordered_device)),
                     packed = result.contiguous();
    if (made.numel() > 0) note_use(made, Access::write, name_);
    if (made.numel() > 0) std::memcpy(made.mutable_data_ptr(), packed.const_data_ptr(), packed.nbytes());
    if (packed.is_same(result)) return made;
    return at::empty_strided(result.sizes(), result.strides(), made.options()).copy_(made);
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::string name_;
  std::vector<Pair> pairs_;
};

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &ordered_allocator(), keys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &ordered_allocator(), keys, c10::dtype_or_default(dtype));
}

// As at::native::copy_ has it, which does nothing then.
bool is_same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

// A copy to the host is waited for unless it is non-blocking; then its arrival is unknown.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (is_same_memory(self, source)) return self;
  note_use(source, Access::read, "copy");
  note_use(self, Access::write, "copy");
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    on_host(self).copy_(on_host(source));
  }
  if (is_ours(self)) return self;
  if (non_blocking) stream_order().complain("a copy to the host that it does not wait for");
  finish_this_stream();
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(storage), offset, size, stride);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("copy_", &copy);
}

}  // namespace

void note_use(const at::Tensor& tensor, Access access, const std::string& what) {
  if (!is_ours(tensor) || tensor.numel() == 0) return;
  stream_order().use(this_stream(), tensor.storage().data(), bytes_of_tensor(tensor), access, what);
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (!is_ours(tensor)) return tensor;
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  if (tensor.storage().data() == nullptr) throw std::runtime_error("a tensor is used whose memory is gone");
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(), options);
}

}  // namespace slipway::test
