// What a rank writes of its run, as plain text that `slipway execute` merges: its trace records, one a line
// (models/trace/trace.h), on rank 0's clock from its start of step 0. The losses: exec/rank/losses.h.
// Guarded by tests/exec/execute_run_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "exec/lanes/lanes.h"
#include "exec/process/clock.h"
#include "exec/rank/memory_meter.h"
#include "models/trace/trace.h"

namespace slipway::exec {

// `memory`: in any order; a task without a stamp has no figures.
std::vector<TraceRecord> records_of(int rank, const std::vector<LaneStamp>& stamps,
                                    const std::vector<MemoryStamp>& memory, const std::vector<ClockSample>& clock,
                                    Nanoseconds origin);

// To records_path. Throws std::runtime_error naming the file.
void write_records(const std::string& directory, int rank, const std::vector<TraceRecord>& records);

}  // namespace slipway::exec
