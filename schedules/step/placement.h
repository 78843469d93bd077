// The pipeline rank of every virtual stage, and which stages are copies of one another.
//
//   interleaved-1f1b, p = 2, v = 2    stage 0 1 2 3    on rank 0 1 0 1    a ring
//   zb-v, dualpipe-v                  stage 0 1 2 3    on rank 0 1 1 0    a V: 1 → 2 stays on its rank
//   chimera, p = 2                    stage 0 1|2 3    on rank 0 1|1 0    two copies of parts 0 and 1
//
// The rows in which a schedule's actions stand define the placement. So a schedule with another placement, or an
// imported one, needs nothing else.
// Guarded by tests/schedules/layout_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model/model.h"
#include "schedules/step/action.h"
#include "schedules/step/indexed.h"
#include "schedules/step/layout.h"

namespace slipway::schedules {

struct Placement {
  int copies = 1;
  Indexed<std::int32_t> rank;  // pipeline rank of each virtual stage

  int stages() const { return static_cast<int>(rank.size()); }
  int parts() const { return stages() / copies; }  // stages of one copy
  int part_of(int stage) const { return stage % parts(); }
  int copy_of(int stage) const { return stage / parts(); }
  // First and last stage of its copy: they hold the embedding and the head.
  bool is_first(int stage) const { return part_of(stage) == 0; }
  bool is_last(int stage) const { return part_of(stage) + 1 == parts(); }
  // The pipeline ranks that hold a copy of `part`, ascending.
  std::vector<std::int32_t> holders(int part) const;
  // All stages in the order in which each rank updates its own, part by part: ranks that hold copies of the same parts
  // do the same.
  std::vector<int> by_part() const;
};

// Each stage is on the row that holds most of its actions: the first such row; without any, rank stage mod pipeline.
// Stages beyond the shape's and rows beyond its ranks are left out; check_actions (schedules/check/actions.h) reports
// them.
Placement placement_of(const ActionLists& lists, const ScheduleShape& shape);

// A tied head on the embedding's rank: the rank has one parameter for both, as a trainer has.
//
//   ranks of first and last stage    embedding's bucket     head's bucket               kept equal by
//   different, or ZeRO 2, 3          … | table              norm | its own copy | …     tied_grad_reduce
//   the same (pipeline 1, a V)       … | table ◄── used by ── norm | …                  being one
//
// Both add their gradients to the embedding's bucket, which is complete after the later of their last backwards. It is
// reduced, measured, updated, gathered and saved once. ZeRO 2, 3 work block by block, so there each keeps its copy.
// Guarded by tests/schedules/lowering_test.cpp and tests/exec/execute_shared_table_test.cpp.

// True if a rank that holds the head uses the embedding's matrix for it. The result holds for every copy of the model.
bool shares_table(const Model& model, const Layout& layout, const Placement& placement);

}  // namespace slipway::schedules
