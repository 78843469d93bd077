// A port for the store of a run that starts on this machine.
//
//   1024 ········ 10000 ─── chosen from ─── 32767 │ 32768 ── the kernel gives these to anybody ── 60999
//
// Seconds pass between the choice and rank 0's listening (LibTorch loads). The kernel may meanwhile give a port of its
// own range to a connection or to a Gloo listener. Worse, a rank that knocks there before rank 0 listens may get that
// port for its own end and connect to itself. So the port lies below that range.
// Guarded by tests/scenarios/launch_test.cpp.
#pragma once

#include "models/namespaces.h"

namespace slipway::scenarios {

// A free port of 127.0.0.1. Throws std::runtime_error when there is none.
int free_port();

}  // namespace slipway::scenarios
