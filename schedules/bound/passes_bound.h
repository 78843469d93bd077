// Lower bounds for schedules whose backward is cut in two, whose stages are not s mod p (zb-*, dualpipe-v), or which run
// a forward and a backward as a pair:
//
//   busy     a rank's lane runs its actions one after the other. The collectives of an action are a chain with its
//            segments; a weight gradient has none. A pair takes as long as either chain, as the compute of both, and as
//            both's collectives on any lane:
//
//              lane    │ F.attn │ B.mlp │ wait │ F.mlp │ B.attn │        ≥ out + back of F, and of B, on one lane
//              experts          │  F out │ B back │  ...
//
//            With delayed weight gradients a backward is such a pair too, of its input and its weight gradients.
//   passes   the longest path from rank 0's first task to the end of its list, after which rank 0 updates its stages
// They require one kind of machine and the same links in the groups of all ranks; else only the compute is bounded.
// Guarded by tests/schedules/estimate_test.cpp and tests/scenarios/search_test.cpp.
#pragma once

#include <algorithm>
#include <vector>

#include "schedules/bound/estimate_parts.h"

namespace slipway::schedules {

// True where a stage costs the same on every rank, so that schedules which are not plain have separate bounds, with
// collectives.
bool is_uniform(StepEstimator::Parts& parts, const Step& step);
// Then: seconds per pipeline rank in which its lane runs the actions of a step, or waits for their collectives.
std::vector<double> busy_seconds(StepEstimator::Parts& parts, const Step& step, int micro_batches);

// Actions that a rank runs together: a pair, and an input gradient with its delayed weight gradients (pairs.h).
class Together {
 public:
  // Seconds of an action's segments and the collectives between them. `delayed`: those of weight gradients are apart.
  static double chain(const StageCosts& costs, int stage, Pass pass, bool delayed);
  void add(const StageCosts& costs, int stage, Pass pass, bool delayed);
  // From their first segment to the end of their last one, at least.
  double seconds() const { return std::max({chain_, compute_, lanes_.largest()}); }

 private:
  double chain_ = 0, compute_ = 0;
  StageCosts::Lanes lanes_;
};

// True if passes_seconds holds.
bool has_passes_bound(StepEstimator::Parts& parts, const Step& step, int micro_batches);
// For a schedule that is plain or has_passes_bound: seconds of the path through all actions up to the end of rank 0's
// list.
double passes_seconds(StepEstimator::Parts& parts, const Step& step, int micro_batches, const ActionLists& lists,
                      double lead);

}  // namespace slipway::schedules
