// Tensor-parallel overlap: an all-gather before a product, or a reduce-scatter behind one, cut into t pieces. Each piece is
// sent while the product works on another one.
//
//   one after the other    ag ag ag ag │ P P P P              t = 4, M = message, P = product
//   in pieces              ag ag ag ag                        max(M, P) + min(M, P)/t instead of M + P
//                             P  P  P  P
//
// Transformer Engine's userbuffers do this (tp_comm_overlap of Megatron-LM; Wang et al. 2023, "Overlap Communication with
// Dependent Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023). Products of pieces are assumed to
// be as fast as whole ones. Only products of transformer blocks have it, not the head. A gather for a weight gradient
// runs beside another product already (schedules/lower/passes.cpp).
// Guarded by tests/schedules/overlap_test.cpp.
#pragma once

#include "models/machine/cost.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// The operator and direction of the product that hides `message`; operator none: nothing does.
struct HidingProduct {
  const Operator* product = nullptr;
  Direction direction = Direction::forward;
};
HidingProduct product_beside(const TaskGraph& graph, const Work& message);

// The exposed seconds of a message of `message_s` beside a product of `product_s`, both cut into `pieces`.
double exposed_seconds(double message_s, double product_s, int pieces);

}  // namespace slipway::schedules
