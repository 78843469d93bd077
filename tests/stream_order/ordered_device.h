// A device on the processor that LibTorch takes for an accelerator with streams: operators are done at
// once, so results are right, and what each of them reads and writes is told to a StreamOrder beforehand,
// with the stream that the thread works on. It is PrivateUse1, the place that LibTorch keeps for devices it
// does not know; so tensors of the host and of the device are different things, what the host looks at is a
// copy that is seen, and autograd runs backward passes on a thread of the device's own with the streams of
// the forward, as it does for CUDA.
//
//   ordered_memory.cpp     allocator, streams and events, as LibTorch's guard of a device
//   ordered_operators.cpp  every operator: its tensors are noted, the processor does it in their memory
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

// The one that this thread works on; 0 until it is told otherwise.
int this_stream();
void work_on(int stream);
// Returns when all is done that was started on this thread's stream.
void finish_this_stream();

// `tensor` is read or written by what this thread starts now. Nothing to do for tensors of the host.
void note_use(const at::Tensor& tensor, StreamOrder::Access access, const std::string& what);
// The same memory as a tensor of the host; a tensor of the host is itself.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace slipway::test
