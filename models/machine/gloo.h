// The latencies that pass before the bytes of a message of Gloo.
//
//   sender     ──────────── bytes ──▶     A send waits for the receiver's notice that its buffer is ready (Gloo's
//   receiver   ◀── notice ──              transport/tcp/pair.cc). A receiver that waits already has sent it.
//
// In a round of a collective both members of a pair begin together, so the notice costs another latency. In a transfer
// along the pipeline the receiver mostly waits. Inside a node the notice costs a thread's wake-up like everything else, and
// is a part of the latency that a profile is fitted to. Guarded by tests/sim/algorithm_test.cpp.
#pragma once

#include "models/machine/machine.h"

namespace slipway::models {

// Latencies between nodes that a round of a collective takes.
constexpr double latencies_per_round = 2;

// Latency of a collective's round between nodes of this machine, for ranks on processors or on GPUs.
inline double round_latency(const Machine& machine) {
  return (machine.cores > 0 ? latencies_per_round : 1) * machine.network_link.latency;
}

}  // namespace slipway::models
