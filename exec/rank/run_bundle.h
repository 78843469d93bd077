// Runs this rank's part of a bundle: RankModel says what a task does, the lanes say when, transports carry
// the messages, and what happened is written to DIR (exec/rank/records.h). Guarded by tests/exec/execute_run_test.cpp
// and tests/scenarios/execute_command_test.cpp.
#pragma once

#include "exec/process/arguments.h"
#include "exec/rank/session.h"
#include "schedules/graph/bundle.h"

namespace slipway::exec {

// Throws what went wrong on this rank; other ranks' failures end the process before it returns.
void run_bundle(Seat& seat, const Bundle& bundle, const Arguments& arguments);

}  // namespace slipway::exec
