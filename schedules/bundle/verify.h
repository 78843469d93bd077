// Checks a bundle read from disk. Its contents are untrusted: a checksum detects damage, not forgery. What the lowering
// makes of a legal step is sound by itself. So this is what else the text can break:
//
//   numbers_defect        each number of the step by itself: counts that are counts, sums and products that can be counted
//   run_defect            the same of the run: steps, checkpoints, heartbeat
//   step_defect           the rule book (schedules/rules), the actions of an imported schedule, an order of as many tasks
//   bubble_work_defect    ids inside their tables, sizes that are sizes
//   order_defect          every task once, behind what it needs
//   compute_order_defect  the steps' own tasks on each rank as the schedule has them
//
// The first three are asked before anything is derived from the numbers. Private to schedules/bundle.
// Guarded by tests/schedules/bundle_test.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "schedules/bundle/bundle.h"
#include "schedules/bundle/step_program.h"

namespace slipway::schedules {

// Each returns what is wrong, empty where nothing is.
std::string numbers_defect(const Step& step);
std::string run_defect(const Run& run);
// Begins with numbers_defect. Throws std::invalid_argument for operators that do not exist.
std::string step_defect(const StepProgram& program);
std::string bubble_work_defect(const PlacedBubbleWork& placed, const TaskGraph& window);
std::string order_defect(const TaskGraph& graph);
// `lowered`: the compute order of the window's `own` first tasks.
std::string compute_order_defect(const TaskGraph& graph, const Rows& lowered, std::size_t own);

}  // namespace slipway::schedules
