// Runs this rank's part of a bundle: RankModel says what a task does, the lanes say when, transports carry
// the messages, and what happened is written to DIR (exec/records.h). Guarded by tests/execute_run_test.cpp
// and tests/command_execute_test.cpp.
#pragma once

#include "exec/arguments.h"
#include "exec/session.h"
#include "schedules/bundle.h"

namespace slipway {

// Throws what went wrong on this rank; other ranks' failures end the process before it returns.
void run_bundle(Seat& seat, const Bundle& bundle, const Arguments& arguments);

}  // namespace slipway
