// Checks a bundle read from disk. Its contents are untrusted: a checksum detects damage, not forgery. So the reader
// lowers the step of the bundle and compares. Only the order of the tasks and the bubble work come from the file, and
// both are checked.
//
//   numbers_defect    each number of the step by itself: counts that are counts, sums and products that can be counted
//   run_defect        the same of the run: steps, checkpoints, heartbeat
//   rule book         the step as a whole (schedules/rules)
//   lowering_defect   tasks, messages, members, bytes: those of lower(step), and behind them nothing but bubble work
//   order_defect      every task once, behind what it needs
//
// All but the last are asked before anything is derived from the numbers. Private to schedules/bundle.
// Guarded by tests/schedules/bundle_test.cpp.
#pragma once

#include <string>

#include "schedules/bundle/bundle.h"

namespace slipway::schedules {

// Each returns what is wrong, empty where nothing is.
std::string numbers_defect(const Step& step);
std::string run_defect(const Run& run);
// Requires a step without numbers_defect.
std::string step_defect(const TaskGraph& graph);
// Requires a step without defect.
std::string lowering_defect(const TaskGraph& graph);
// Requires ids inside their tables.
std::string order_defect(const TaskGraph& graph);

}  // namespace slipway::schedules
