// K-FAC's work between two refreshes as bubble work: the rule of PipeFisher (Osawa et al. 2022).
//
//   per Linear and micro-batch   A (after its forward)   B (after its backward)        priority 0, 1
//   per rank, with replicas      all-reduce of all A, of all B, each after all of its kind
//   per Linear                   inverse of A, of B, after all A and all B of the rank and their reduction   2, 3
//
// An inverse waits for both kinds because the damping of each factor needs the traces of both (exec/rank/kfac.h).
// Replicas (data and context, and Chimera's two copies of a stage) each make the factors of their own micro-batches.
// They share the inversions out, a Linear's two together. The owner of both inverses preconditions the Linear in every
// step, with its latest ones (schedules/lower/step_end.cpp). A Linear's input is kept from the end of its backward
// until A is made, its output gradient until B is made. Under full recomputation inputs exist once they are recomputed.
// kfac_shares.h counts what the work itself holds. Guarded by tests/schedules/kfac_test.cpp: each dependency.
#pragma once

#include "models/machine/priced_cluster.h"
#include "schedules/fill/fill.h"

namespace slipway::schedules {

// Requires an ordered `step` that was lowered with kfac. Throws std::invalid_argument when a machine cannot price it,
// and for tensor parallel layers, whose factors would be spread over ranks. It also throws where the stages of a rank
// have their copies on different ranks.
BubbleWork kfac_bubble_work(const TaskGraph& step, const PricedCluster& cluster);

}  // namespace slipway::schedules
