// Schedules as files: the CSV that PyTorch's pipelining writes and reads (torch.distributed.pipelining,
// _dump_csv / _load_csv in its "compute only" format). One row per pipeline rank, one cell per action:
//
//   0F0,0F1,,0B0,0B1        <stage><pass><micro-batch>; passes F, B (full), I (input), W (weight)
//   1F0,1B0,1F1,1B1         an empty cell is an idle slot and means nothing
//
// Idle slots are dropped on reading: a schedule is an order, and times follow from it.
// check_actions (schedules/check/actions.h) checks whether the lists are complete.
// Guarded by tests/schedules/schedule_csv_test.cpp (round trip; each refused cell is named).
#pragma once

#include <iosfwd>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// `name` is the file's name in errors. Throws std::invalid_argument with file, row, cell, reason and remedy for a cell
// that is no compute action. Communication actions (SEND, RECV, UNSHARD, RESHARD, ...) are refused because the
// lowering makes its own.
ActionLists read_schedule_csv(std::istream& in, const std::string& name);

// Throws std::invalid_argument for an action that the format cannot express (a slice, a recomputation).
void write_schedule_csv(std::ostream& out, const ActionLists& lists);

}  // namespace slipway::schedules
