// Schedules as files: the CSV that PyTorch's pipelining writes and reads (torch.distributed.pipelining, _dump_csv /
// _load_csv, both its "compute_only" and its "compute_comms" format). One row per pipeline rank, one cell per action:
//
//   0F0,0F1,,0B0,0B1               <stage><pass><micro-batch>; passes F, B (full), I (input), W (weight)
//   1F0,1B0,1F1,1B1                an empty cell is an idle slot and means nothing
//   (0F7;7B3)OVERLAP_F_B           a pair: Action::with_next
//   0SEND_F1, 1RECV_F1, 1SEND_B1, 0RECV_B1, 0UNSHARD, 0RESHARD, 0REDUCE_GRAD     communication
//
// Empty rows at the end are dropped, others are refused: a rank without actions is in no pipeline.
// Idle slots are dropped on reading: a schedule is an order, and times follow from it. So are communication cells, because
// the task graph makes its own; but they must fit the passes. A send follows what it sends, a receipt stands before its
// reader, and a reduction follows the last backward of its stage.
// check_actions (schedules/check/actions.h) checks whether the lists are complete.
// Guarded by tests/schedules/schedule_csv_test.cpp (round trip; PyTorch's own files; each refused cell is named).
#pragma once

#include <iosfwd>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// `name` is the file's name in errors. Throws std::invalid_argument with file, row, cell, reason and remedy for an empty
// row, one of communication alone, a cell that is no action, a pair that is none, and communication that does not fit
// the passes.
ActionLists read_schedule_csv(std::istream& in, const std::string& name);

// Throws std::invalid_argument for an action that the format cannot express (a slice, a recomputation).
void write_schedule_csv(std::ostream& out, const ActionLists& lists);

}  // namespace slipway::schedules
