// The common order of DualPipe and DualPipe-V (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.2.1; the phases
// are those of its code, github.com/deepseek-ai/DualPipe, and of PyTorch's ScheduleDualPipeV). Each rank has an early
// stage and a late one: the two legs of a V, or its stages in two pipelines of opposite directions.
//
//   Rank r of half = pipeline / 2 (DualPipe) or pipeline (DualPipe-V), counted from where the early leg begins;
//   `W` is the oldest waiting weight gradient, [F B] a pair (Action::with_next):
//   2(half−r−1) F early │ r+1 × (F early, F late) │ half−r−1 × (I late, W, F late)         fills the pipeline
//   m−2·half+r+1 × ([F early, B late], [F late, B early])                                  steady state
//   half−r−1 × (B late, [F late, B early]) │ r+1 × (B late, B early), the later half I     drains it
//   half−r−1 × (W, I early) │ the remaining W
//
// The first pair of the rank where both legs meet is none, because its two halves do not wait for each other that way.
// Guarded by tests/schedules/catalogue_test.cpp and tests/schedules/pytorch_schedules_test.cpp.
#pragma once

#include <vector>

#include "schedules/step/action.h"

namespace slipway::schedules {

// A leg of one rank: its stage, and the micro-batches that go through it, first + i·step for i < count.
struct DualPipeLeg {
  int stage = 0, first = 0, step = 1, count = 0;
};

// The list of rank r of `half` ranks.
std::vector<Action> dualpipe_order(int half, int r, const DualPipeLeg& early, const DualPipeLeg& late);

}  // namespace slipway::schedules
