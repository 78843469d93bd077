// Kernels of profiler traces as measurements for the fit (models/fit/measurement.h), the same lines as micro-benchmarks.
//
//   product 888 x 640 x 2880 of aten::addmm, 36 calls ──► measure gemm m=888 n=640 k=2880 dtype=bfloat16 seconds=...
//
//   product, attention   median over the calls of a shape that ran without a message beside them
//   element-wise         the same, from 1 MiB on; smaller ones are launches
//   message              the shortest of the members' kernels did not wait. Over calls: the median
//                        where all members' traces are given, else the shortest
//   launch               median distance between two launches of the host; the profiler's own work is in it
//   copy                 between the GPU and pinned memory, from 64 KiB on
//
// Guarded by tests/scenarios/kineto_test.cpp: traces made of known constants give these constants back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/fit/measurement.h"
#include "scenarios/commands/kineto/kernel_uses.h"

namespace slipway::scenarios {

struct OperatorTime {
  std::string name;
  std::int64_t calls = 0, kernels = 0;
  double seconds = 0;
};

// The calls of one message: size, group and time.
struct MessageTime {
  MessageCall call;
  std::string group, description;
  bool between_nodes = false;
  int traces = 0;  // of its members that were given
  std::int64_t calls = 0;
  double seconds = 0;
};

struct KinetoEvidence {
  std::vector<Measurement> measurements;
  std::vector<OperatorTime> operators;         // of all traces, longest first
  std::vector<MessageTime> messages;           // largest first
  std::map<std::string, std::int64_t> unused;  // "aten::bmm: a batch of products" → calls
  double launch_s = 0;                         // between two launches of a host thread; 0: unknown
  std::int64_t kernels = 0, streams = 0;
  double span_s = 0, kernel_s = 0;  // from the first start to the last end; sum over kernels
};

// `gpus_per_node`: messages of ranks of several nodes are between nodes. 0: as many as the traces' processes saw, or 8
// where each saw one.
KinetoEvidence kineto_evidence(const std::vector<KinetoTrace>& traces, int gpus_per_node = 0);

// Operators, messages and what was not used, as text.
std::string evidence_text(const std::vector<KinetoTrace>& traces, const KinetoEvidence& evidence);

}  // namespace slipway::scenarios
