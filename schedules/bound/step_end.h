// What a rank does between its last backward of a step and the first forward of the next: reductions, norm, optimizer,
// gathers. And what products lose beside the messages of their data group (private to schedules/bound). The third line
// of estimate.h's picture.
// Guarded by tests/schedules/estimate_test.cpp.
#pragma once

#include <vector>

#include "schedules/bound/estimate_parts.h"

namespace slipway::schedules {

// Least seconds of what follows the last backward of stage q (< p) on pipeline rank q; for (1) and (2) of estimate.h.
// `last_data`: of `data`, what follows the whole backward of the stage.
struct StepEndSeconds {
  double data = 0, last_data = 0, optimizer = 0;
};
StepEndSeconds step_end(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int q);
// The same of a schedule that is not plain but is_uniform, with one copy of the model. `reduces`: the list of rank q ends
// with the weight gradient of stage 0.
StepEndSeconds split_end(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, const ScheduleUse& use,
                         int q, bool reduces);
// Seconds of a rank's own part of the gradient norm, over `elements` of its shards.
double own_norm_seconds(const StepEstimator::Parts& parts, const Machine& machine, double elements);
// (3): seconds of the data group's lane of pipeline rank q under ZeRO 2 and 3; else 0.
double data_lane_seconds(StepEstimator::Parts& parts, const Step& step, int q);

// Seconds of the optimizers of a pipeline rank: of its first stage, with what a step takes once, and of its others; and
// the parameters of its shard.
struct Update {
  double first = 0, later = 0, held = 0;
};
Update update_of(const Step& step, const StageCosts& costs, int q, const Machine& machine);
// Parameters that one rank updates.
double shard_of(const BlockElements& held, const Layout& layout);
// By how much the optimizer of another rank may start before that of rank 0: both wait for the same norm.
double ahead_of_first(const Machine& machine);

// The first forward of each stage waits for its blocks' gathered weights (ZeRO 1 and 2 beside the forward pass), which
// come one after the other from a rank's optimizer on:
//
//   rank q  optimizer │ later optimizers │ F block 0 │ F block 1 │ ...      S(q) at the end of the optimizers and of
//   gathers           │ g 0 │ g 1 │ g 2 │ ...                               the first gather
bool gathers_beside(const Step& step);
// Seconds from the start of rank q's optimizer to S(q), at least.
double seconds_to_first(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int q);
// The earliest end of the first forward of a stage, where the rank's optimizer starts at 0. `gathered`: when the weights
// before it are there; then, when its own are. Within a run of equal blocks it is linear, so the ends of runs are enough.
double gathered_forward(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int stage,
                        double& gathered);
// By how much longer the first forward of rank q takes than another, behind its gathers.
double gathered_late(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int q);

// Least seconds that the products of each stage lose beside messages of their data group (StepConstants::beside): in one
// forward and one backward, in its last backward of a step besides, and in a step. Only for plain schedules.
// `unused`: what more they would lose if the rest of the reductions, too, ran beside products of later actions.
struct Lost {
  double forward = 0, backward = 0, last_backward = 0, step = 0, unused = 0;
};
std::vector<Lost> lost_beside_messages(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs);

}  // namespace slipway::schedules
