// A GPU's DeviceQueue: a lane's queue is a CUDA stream of its own, a mark an event that is recorded in it.
//
// Times: an event knows only its distance to another one. Now and then an event is recorded in an idle stream and the
// host's clock is read beside it; a mark's time is that clock minus the distance to this anchor. Distances are float
// milliseconds (resolution about 1 us over 10 s), so the anchor must be near: it is renewed every tenth of a second, before the times of a step
// are read.
// Guarded by tests/exec/cuda_host_test.cpp, but for what depends on a device that works by itself (tests/gpu).
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "exec/lanes/device_queue.h"

namespace slipway::exec {

std::unique_ptr<DeviceQueue> stream_queue(c10::Device device);

}  // namespace slipway::exec
