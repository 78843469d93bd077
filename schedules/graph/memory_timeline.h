// Memory of every rank over a step, from the buffers that are alive in a timeline, and what it consists of
// where it is largest.
//
//   bytes │        ┌──┐ peak: 0F3          held from the start of the writer to the end of the last reader,
//         │     ┌──┘  └──┐                 or to its start when that reader keeps the value for its backward
//         │  ┌──┘        └──┐              (then it is part of `saved`)
//         └──┴── weights, gradients, optimizer: throughout ──► time
//
// The first step of the timeline is looked at. The parts sum to the peak.
// Guarded by tests/metrics_test.cpp (against Fujii 2024) and tests/memory_timeline_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/memory_parts.h"
#include "schedules/graph/steady.h"

namespace slipway {

struct RankMemory {
  StaticBytes fixed;
  double activations_peak = 0;  // largest sum of live buffers
  double peak = 0;              // fixed + activations_peak
  std::string peak_task;        // label of the task during which the peak occurs
  MemoryParts parts;            // of the peak
};
// The verdict of I7, for everybody who gives it (check_memory, reports): does this use fit `capacity` bytes?
inline bool fits(const RankMemory& use, double capacity) { return use.peak <= capacity; }

// `steady`: of a shortened step; the peak is the whole one's, only its task may be of a later micro-batch.
std::vector<RankMemory> memory_timeline(const TaskGraph& graph, const Timeline& timeline,
                                        const SteadyState* steady = nullptr);

}  // namespace slipway
