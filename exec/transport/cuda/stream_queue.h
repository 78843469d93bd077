// A GPU's DeviceQueue: a lane's queue is one CUDA stream, a mark is an event recorded in it.
//
// Times: an event has only its distance to another one. Now and then an anchor event is recorded in an idle stream and
// the host's clock is read beside it. A mark's time is that clock minus the distance to the anchor. Distances are float
// milliseconds (resolution about 1 us over 10 s), so the anchor must be near. It is renewed every tenth of a second,
// before the times of a step are read.
// Guarded by tests/exec/cuda_host_test.cpp, except what depends on a device that works by itself (tests/gpu).
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "exec/lanes/device_queue.h"

namespace slipway::exec {

std::unique_ptr<DeviceQueue> stream_queue(c10::Device device);

}  // namespace slipway::exec
