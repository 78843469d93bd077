// The trace records of a rank as plain text that `slipway execute` merges, one per line (models/trace/trace.h). Times
// are on rank 0's clock from its start of step 0. exec/rank/losses.h writes the losses.
// Guarded by tests/exec/execute_run_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "exec/lanes/lanes.h"
#include "exec/process/clock.h"
#include "exec/rank/memory_meter.h"
#include "models/trace/trace.h"

namespace slipway::exec {

// `memory`: in any order; a task without a stamp gets no memory bytes.
std::vector<TraceRecord> records_of(int rank, const std::vector<LaneStamp>& stamps,
                                    const std::vector<MemoryStamp>& memory, const std::vector<ClockSample>& clock,
                                    Nanoseconds origin);

// Writes to records_path. Throws std::runtime_error with the file.
void write_records(const std::string& directory, int rank, const std::vector<TraceRecord>& records);

}  // namespace slipway::exec
