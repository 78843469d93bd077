// A GPU of round numbers, for tests that compute the same small step in two ways. Its links are so slow that every kind
// of message shows beside a small model's compute.
#pragma once

#include "models/machine/machine.h"

namespace slipway::test {

inline Machine round_gpu() {
  Machine gpu;
  gpu.name = "round numbers";
  gpu.memory_bytes = 1e9;
  gpu.peak_flops.fill(1e13);               // FLOP/s in every dtype
  gpu.memory_bandwidth = 1e12;             // bytes/s
  gpu.gemm_half = 64;                      // a product of side 64 reaches half of the peak
  gpu.launch_overhead = 1e-6;              // seconds per kernel
  gpu.reduce_bandwidth = 2e11;             // bytes/s
  gpu.node_link = {"bus", 2e10, 2e-6, 1};  // bytes/s, seconds per message, share of bandwidth
  gpu.network_link = {"wire", 4e9, 5e-6, 1};
  return gpu;
}

}  // namespace slipway::test
