// A port for the store of a run that starts on this machine.
//
//   1024 ········ 10000 ─── chosen from ─── 32767 │ 32768 ── the kernel gives these to anybody ── 60999
//
// Seconds pass between the choice and rank 0's listening there (LibTorch loads). A port that the kernel hands out
// by itself, to connections and to Gloo's listeners, may be gone by then; worse, a rank that knocks there before
// rank 0 listens may be given that port for its own end and be connected to itself. So it is one below that range.
// Guarded by tests/launch_test.cpp.
#pragma once

namespace slipway {

// Nobody listens there on 127.0.0.1. Throws std::runtime_error when there is none.
int free_port();

}  // namespace slipway
