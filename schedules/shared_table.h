// A tied head on the embedding's rank: one parameter there, as a trainer has it.
//
//   ranks of first and last stage    embedding's bucket     head's bucket               kept equal by
//   different, or ZeRO 2, 3          … | table              norm | its own copy | …     tied_grad_reduce
//   the same (pipeline 1, a V)       … | table ◄── used by ── norm | …                  being one
//
// Both add their gradients to the embedding's bucket, which is complete with the later of their last backwards; it is reduced,
// measured, updated, gathered and saved once. ZeRO 2 and 3 reduce and gather block by block, so there each keeps its copy.
// Guarded by tests/shared_table_test.cpp and tests/execute_shared_table_test.cpp.
#pragma once

#include "models/model.h"
#include "schedules/layout.h"
#include "schedules/placement.h"

namespace slipway {

// Does a rank that holds the head use the embedding's matrix for it? The same for every copy of the model.
bool shares_table(const Model& model, const Layout& layout, const Placement& placement);

}  // namespace slipway
