// Micro-benchmarks: the machine's seconds for the operators of a step while all of its ranks work at once, as in a real
// run. FILE.<rank> has one line per measurement, with the median seconds of one operation:
//
//   measure gemm pass=forward m=512 n=512 k=512 dtype=float32 seconds=0.0012
//   measure attention pass=backward batch_heads=8 s=256 d=64 ...      causal; q, k and v of one length
//   measure elementwise op=add bytes=12582912 ...                     bytes read and written
//   measure launch ...                                                an operation on one element
//   measure optimizer elements=1048576 ...                            fused AdamW
//   measure task_overhead lanes=2 ...                                 one task of the lane runtime
//   measure transfer bytes=1024 members=2 ...                         half a round trip, in neighbouring pairs
//   measure all-reduce | all-gather | reduce-scatter bytes=.. members=..   bytes of the whole tensor
//   measure all-to-all bytes=.. members=..            bytes that a member sends, its own part included; in groups of 2, 4,
//                                                     8, ... neighbours that divide the ranks, all groups at once
//   measure host-to-device | device-to-host bytes=1048576 ...         GPUs only: one copy that is waited for, host
//                                                                     memory pinned
// On a GPU shapes are larger. An operator's seconds are its share of many that are started one behind the other, as in
// a step; the norm is one kernel (op=rms_norm_fused).
// Guarded by tests/exec/execute_measure_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/process/arguments.h"
#include "exec/process/clock.h"
#include "exec/rank/session.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

// Collects lines; `together` lets all ranks start a measurement at the same time.
struct MeasureContext {
  at::ScalarType type;
  at::Device device;
  std::string dtype_text;  // " dtype=float32"
  int rank = 0, world = 1;
  std::function<void()> together;
  std::string lines = {};
  int count = 0;                       // of lines
  Nanoseconds begin = 0, printed = 0;  // rank 0 prints its progress every two seconds
  void add(const std::string& what, double seconds);
  at::TensorOptions options() const { return at::TensorOptions().dtype(type).device(device); }
  // Median seconds of one call, over repeated calls for about `budget_s` after one warm-up call.
  double median_seconds(const std::function<void()>& operation, double budget_s = 0.05) const;
  // The same for calls that are waited for one by one. `bytes` sets their number, so all members of a group do as many.
  double median_of_each(std::int64_t bytes, const std::function<void()>& operation) const;
};

void measure(Seat& seat, const Arguments& arguments);
void measure_operators(MeasureContext& context);
// Copies between the device and the host's memory, `pinned` or not (a processor has none).
void measure_copies(MeasureContext& context, bool pinned);
void measure_task_overhead(MeasureContext& context, DeviceQueue* device);
// A group of neighbours that this rank belongs to.
struct MeasuredGroup {
  int members = 1;
  Transport* transport = nullptr;
};
// `group` connects all ranks, `pair` this rank and its neighbour (rank ^ 1); null when it has none. All-to-alls are
// measured in each of `ladder`.
void measure_messages(MeasureContext& context, Transport* group, Transport* pair,
                      const std::vector<MeasuredGroup>& ladder);

}  // namespace slipway::exec
