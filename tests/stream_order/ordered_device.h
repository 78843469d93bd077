// A device on the processor that LibTorch takes for an accelerator with streams. Operators run at once, so results are
// right. A StreamOrder first gets what each of them reads and writes, with the stream of the thread. The device is
// PrivateUse1, LibTorch's place for unknown devices. So tensors of the host and of the device are different things, and
// every value for the host is a visible copy. Autograd runs backward passes on a thread of the device's own with the
// streams of the forward, as for CUDA.
//
//   ordered_memory.cpp     allocator, streams and events, as LibTorch's guard of a device
//   ordered_operators.cpp  every operator: its tensors are noted, the processor runs it in their memory
//   device.cpp             exec/transport/device.h on it; with the program's main.cpp it is slipway-rank-ordered
//
// Guarded by tests/stream_order/ordered_device_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <string>

#include "tests/stream_order/stream_order.h"

namespace slipway::test {

inline const c10::Device ordered_device{c10::DeviceType::PrivateUse1, 0};

StreamOrder& stream_order();  // of this process
c10::Allocator& ordered_allocator();

// The stream of this thread; 0 until it is set.
int this_stream();
void work_on(int stream);
// Returns when everything that was started on this thread's stream is done.
void finish_this_stream();

// This thread now starts a read or write of `tensor`. Tensors of the host are ignored.
void note_use(const at::Tensor& tensor, StreamOrder::Access access, const std::string& what);
// The same memory as a tensor of the host. A tensor of the host is returned unchanged.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace slipway::test
