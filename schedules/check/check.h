// The invariants I1..I9 as functions from graph to violations. A violation names the invariant, the tasks and the
// reason; describe adds the rank × step grid with the culprit marked.
// Guarded by tests/schedules/check_test.cpp: each invariant has a test that breaks it.
#pragma once

#include <string>
#include <vector>

#include "schedules/memory/memory_timeline.h"

namespace slipway::schedules {

struct Violation {
  int invariant = 0;  // 1..9
  std::vector<TaskId> culprits;
  std::string message;  // the defect, with labels and ranks
};

std::vector<Violation> check_acyclic(const TaskGraph&);  // I1
std::vector<Violation> check_lane_order(const TaskGraph&,
                                        const std::vector<Lane>&);  // I2 lanes are projections of the global order
std::vector<Violation> check_collectives(
    const TaskGraph&, const std::vector<Lane>&);           // I3 members see one sequence of (kind, label, dtype)
std::vector<Violation> check_transfers(const TaskGraph&);  // I4 one sender, one receiver, equal bytes
std::vector<Violation> check_buffers(const TaskGraph&);    // I5 written before use, alive until the last reader
std::vector<Violation> check_passes(
    const TaskGraph&);  // I6 F then B (or I then W) once, with its inputs; updates after reductions
std::vector<Violation> check_memory(const std::vector<RankMemory>&, const std::vector<double>& capacity);  // I7 verdict
std::vector<Violation> check_rendezvous(const TaskGraph&, const std::vector<Lane>&);  // I8 blocking replay ends
std::vector<Violation> check_labels(const TaskGraph&);                                // I9 (step, rank, label) unique

// I1..I6, I8, I9 together; empty: the graph is sound.
std::vector<Violation> check_graph(const TaskGraph&);
// Message plus the grid around the culprits, culprit cells marked with *...*.
std::string describe(const TaskGraph&, const Violation&);

}  // namespace slipway::schedules
