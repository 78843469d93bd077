// The step in closed form, before any graph exists: a lower bound of its simulated time, split into terms, and a lower
// bound of its memory. Searches (100,000 layouts) and fits (a table of runs) use it.
//
//   rank 0 │ F F F F . . . B F B F B F B . . . B │red│opt│gather│ F      S = start of a rank's first task in the step
//   rank q │   . . F F F F B B ... m·(F+B) ... B
//            ├fill┤├────── m·P(q) ───────┤├drain┤├── tail(0) ──┤
//
//   step ≥ max over q of  Σ(i<q) [F(i) + B(i) − R(i) + 2 sends] + m·P(q) + tail(0)  (1)
//          max over q of  m·P(q) + tail(q)                                          (2)
//          max over q of  the traffic of the data group's lane, ZeRO 2 and 3        (3)
//          max over GPUs of  Σ m·compute(q) of its ranks, where ranks share GPUs    (4)
//          max over q of  the launches of the host of pipeline rank q               (5)
//
// step_time_s is the largest S(step 3) − S(step 2) of a rank. Take a path of tasks in which each needs the one before,
// from a rank's first task of step 2 to that of step 3. Its length is a lower bound if no task is priced above its time
// without contention. All prices below are such; contention, shared cores and slowdown by communication only make tasks
// longer. A late host does the same. What products lose beside messages of their data group counts as far as it is
// certain (lost_beside_messages).
//   F(s), B(s): segments of one action and the collectives between them are a chain: the next segment reads what the
//     collective writes, and the lane is in order. So they add up, also under full recompute. Only R(s), the
//     recomputation of the stage's last block, is apart: it may run while the gradient is on its way.
//     A layer's tokens go to experts while the shared experts compute (TokenMessages).
//   m·P(q): rank q's lane runs its m·(F+B) of all its chunks one after the other, and where transfers block it waits for
//     every message to another stage but its last.
//   (1): everything on rank q needs a forward of stages 0..q−1 first, all of which start after S(0). Its last action is
//     the backward of a stage ≥ q, which stages q−1..0 must follow. Then comes the tail of rank 0.
//   tail(q): after the last backward of stage q, the data group's lane runs the reductions of the blocks [0, i] of the
//     stage, none of them before the backward of block i:  Σ(j≤i) red(j) − Σ(j<i) B(j), the largest over i. Then come
//     the norm over all ranks if gradients are clipped, the optimizer of rank q's stages, and the gathers of the
//     next step's first segment.
//   (3): between S(q) and the next S(q) run all reductions of each micro-batch (ZeRO 2, 3) and all gathers but those of
//     the first two segments (ZeRO 3; a gather may start two segments ahead).
//   (4): ranks of one GPU compute at a share of its speed, so together they take the sum. Take the rank of stage 0 that
//     starts step 2 first: no forward of step 2 runs before it starts. Its step 3 waits for the gradients of all
//     replicas, so for all their backwards, on any stage. With tensor groups this holds only where gradients are
//     clipped: else a tensor rank does not wait for its group's last products.
//   (5): from one optimizer to the next, a host launches all kernels of its rank, messages' included, and does not run
//     ahead of the norm. The last launches are those of the norm, behind which the norm itself runs. If gradients are
//     clipped, all ranks wait for the norm and any q counts; else only the rank of stage 0, whose next step begins with
//     its own optimizer.
// (1) and the tails hold for whole backwards whose ranks end with a backward of their first stage. Stage s must be on
// rank s mod p, with one copy of the model, whole sequences and no pairs. The action lists are checked for this. Pairs,
// split backwards, stages in a V and copies of the model have separate bounds on clusters of one machine whose groups
// have equal links (busy_seconds). For slices, empty stages and unequal links the bound is only Σ compute of a rank.
// Memory is only the weights in all of these.
//
// passes_bound makes (1) sharper at the price of a walk through the schedule's actions: the longest path from rank 0's
// first forward to its last backward in the graph of actions and messages, as a list replay; and it counts more of what
// products lose beside reductions where ranks have several stages.
//
// Memory: weights, gradients and optimizer as the lowering counts them, and what the micro-batches in flight at the
// fullest moment of the schedule keep. Work space and messages are left out, so it is never more than the timeline's
// peak. A trainer's constants (memory_constants.h) may make parts smaller. Then all that is kept counts at the smallest
// factor of any part, so it is never more than the trainer's estimate (memory_estimate.h).
// Guarded by tests/schedules/estimate_test.cpp: both bounds against simulation over random layouts.
#pragma once

#include <memory>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "models/memory/memory_estimate.h"
#include "schedules/step/step.h"

namespace slipway::schedules {

// Seconds of the path that bounds the step; they add up to StepEstimate::bound_s.
struct StepTerms {
  double compute = 0;  // of the rank that sets the pace, all micro-batches
  double tensor = 0;   // its collectives within layers
  double context = 0;
  double pipeline = 0;   // fill and drain by the other stages, sends included
  double data = 0;       // reductions and gathers that nothing can hide
  double optimizer = 0;  // with the gradient norm, and what a step takes once
  double host = 0;       // launches, where they take longer than all of the above; these are 0 then
};

struct StepEstimate {
  StepTerms terms;
  double bound_s = 0;       // ≤ the simulated step_time_s
  double memory_bytes = 0;  // ≤ the peak, of the pipeline rank that is nearest to its capacity
  double memory_share = 0;  // share of that machine's memory; infinite where it has none
  int memory_rank = 0;      // that pipeline rank
};

class StepEstimator {
 public:
  // `base` gives everything but layout, schedule, micro-batch and recompute. Action lists of a CSV have the bounds of
  // schedules that are not plain, which ask the lists alone.
  StepEstimator(Step base, const PricedCluster& cluster, const MemoryConstants& trainer = {});
  StepEstimator(StepEstimator&& other) noexcept;
  ~StepEstimator();

  // Caches what layouts share. It is fast when successive choices differ in ZeRO, schedule and chunks first, then in
  // recompute and micro-batch. Throws std::invalid_argument for what cannot be lowered or priced.
  StepEstimate estimate(const Step& step);
  // ≥ estimate(choice).bound_s, and still ≤ the simulated step_time_s.
  double passes_bound(const Step& step);
  // Transformer layers per stage that make the slowest rank as fast as possible (balanced_split.h), in at most
  // `memory_share` of its memory by the bound. Where they come near it, further splits keep 90, 80 and 70 % of that. If
  // no split fits, returns the fastest of all. Empty where `balanced` is by FLOPs: all stages sit on the same machines,
  // and ranks have one stage or are not to be balanced.
  // `most` leaves out the last of them, and the search for them.
  std::vector<std::vector<int>> balanced_splits(const Step& step, double memory_share, std::size_t most);

  struct Parts;  // the caches: estimate_parts.h

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace slipway::schedules
