// A trace of PyTorch's profiler (Kineto's Chrome JSON) of one rank: its kernels, and which operator launched each.
//
//   thread   ├ autograd::engine::evaluate_function ──────────────────┤      an operator lies inside another
//            │   ├ aten::mm [4096, 1024] x [1024, 1024] ──────┤      │
//            │   │      ├ cudaLaunchKernel, correlation 17 ┤          │
//   stream                  correlation 17 ├ sm90_xmma_gemm_bf16... ──┤
//
// Kernels, launches, operators and annotations are kept; functions of Python and flow arrows are dropped while reading.
// Equal names and shapes are stored once, so that a trace of 500 MB takes about as much memory.
// Guarded by tests/scenarios/kineto_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slipway::scenarios {

constexpr std::int32_t nothing = -1;  // an index: there is none

// One argument of an operator as record_shapes=True records it.
struct KinetoArgument {
  std::vector<std::int64_t> dims;  // of a tensor; empty: none, or a scalar
  double list_elements = 0;        // of all tensors of a list
  std::string type;                // "c10::BFloat16", "Scalar", "TensorList"
  std::string value;               // of a scalar, as text: "True"
};

struct KinetoOperator {
  std::int32_t name = 0;  // index in names
  std::int32_t thread = 0;
  double start_us = 0, end_us = 0;
  std::int32_t arguments = nothing;  // index in KinetoTrace::arguments
  std::int32_t message = nothing;    // index in KinetoTrace::messages
  std::int32_t parent = nothing;     // the operator around it on its thread
};

// The payload of a collective or a message.
struct KinetoMessage {
  std::string collective;                    // PyTorch's name: "allreduce", "_allgather_base"
  std::string dtype;                         // "BFloat16"
  std::string group, description;            // "0", "default_pg"
  double in_elements = 0, out_elements = 0;  // of this rank's tensors
  int members = 0;
  std::vector<int> ranks;  // of the group; empty: not recorded, or too many
};

struct KinetoKernel {
  std::int32_t name = 0;
  std::int32_t device = 0, stream = 0;
  double start_us = 0, duration_us = 0;
  double bytes = 0;                    // of a copy
  bool is_copy = false;                // between memories, or setting one
  double launch_us = nothing;          // when the host launched it; nothing: unknown
  std::int32_t launched_by = nothing;  // innermost operator; nothing: unknown (a recorded CUDA graph, a cut trace)
  std::int32_t message = nothing;
  double end_us() const { return start_us + duration_us; }
};

struct KinetoLaunch {
  std::int32_t thread = 0;
  double start_us = 0;
};

struct KinetoTrace {
  std::string path;
  std::string device;       // "NVIDIA H100 80GB HBM3"; empty: not recorded
  double device_bytes = 0;  // of its memory
  int devices = 0;          // that the process saw
  int rank = 0, world = 1;
  bool has_rank = false, has_shapes = false;
  std::vector<std::string> names;
  std::vector<std::vector<KinetoArgument>> arguments;
  std::vector<KinetoMessage> messages;
  std::vector<KinetoOperator> operators;  // annotations included; in order of thread and start
  std::vector<KinetoKernel> kernels;      // in order of start
  std::vector<KinetoLaunch> launches;     // of kernels; in order of thread and start
  const std::string& name_of(const KinetoOperator& op) const { return names[static_cast<std::size_t>(op.name)]; }
  const std::string& name_of(const KinetoKernel& kernel) const { return names[static_cast<std::size_t>(kernel.name)]; }
};

}  // namespace slipway::scenarios
