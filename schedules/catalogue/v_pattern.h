// The common order of V-Min and V-Half (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 4): stages
// in a V, and a building block that is repeated for every micro-batch.
//
//   time          0 1 2 3 4 5 6 7 8 ...             one micro-batch, p = 4, V-Min: F down, F up, I down, I up, each a
//   rank 0        F             F I             I   step later on the next rank; the same again 6 times later for the
//   rank 1          F         F     I         I     next micro-batch
//   rank 2            F     F         I     I
//   rank 3              F F             I I
//
// A micro-batch has six passes on a rank (F, I and W of two stages), and the offsets are such that passes of different
// micro-batches never meet at equal passes. W takes the first free place behind its I. How long the block keeps an
// activation decides the memory: a rank holds lifespan / 6 stage activations.
// The order is what runs; waiting times that the pattern has at its begin close by themselves ("squeezing"). Behind its
// last forward a rank takes input gradients as soon as they are ready, and weight gradients between them ("reordering").
// Guarded by tests/schedules/catalogue_test.cpp.
#pragma once

#include <array>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// Times of F of the stage on the way down, F on the way up, I on the way up, I on the way down: of the first micro-batch
// on rank r of p.
using VPattern = std::array<int, 4> (*)(int p, int r);

std::optional<ShapeRefusal> refuse_v(const std::string& name, const ScheduleShape& shape);
ActionLists v_order(const ScheduleShape& shape, VPattern pattern);

}  // namespace slipway::schedules
