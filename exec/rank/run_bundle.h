// Runs this rank's part of a bundle: RankModel does the tasks, the lanes decide when, transports carry the messages,
// and DIR gets the records (exec/rank/records.h). Guarded by tests/exec/execute_run_test.cpp and
// tests/scenarios/execute_command_test.cpp.
#pragma once

#include "exec/process/arguments.h"
#include "exec/rank/session.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

// Throws this rank's error; other ranks' failures end the process before it returns.
void run_bundle(Seat& seat, const Bundle& bundle, const Arguments& arguments);

}  // namespace slipway::exec
