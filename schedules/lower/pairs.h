// A pair of a forward and a backward (Action::with_next) in the order of its rank's compute lane.
//
//   one after the other   F.attn   F.mlp   B.mlp   B.attn            the lane waits for each all-to-all
//                               a2a     a2a     a2a
//   as a pair             F.attn  B.mlp  F.mlp  B.attn               each runs while the other micro-batch computes
//                               a2a    a2a    a2a
//
// Only the order of the compute lane changes; what each segment needs stays. The segments of the longer list are spread
// evenly over those of the shorter one. Where two would be at the same place, the forward's comes first. Without
// messages inside the actions each is one segment, and a pair is a forward followed by its backward.
//
// With Step::delay_weight_grads every weight gradient of a segment, W, follows its input gradient, I, so that the message
// of I has W to hide behind too (--delay-wgrad-compute of Megatron-Core; order: NVIDIA/Megatron-LM
// megatron/core/models/common/model_chunk_schedule_plan.py):
//
//   F.attn  I.mlp  W.mlp  F.mlp  I.attn  W.attn
//        a2a   a2a          a2a
//
// DeepSeek-AI 2024 (DualPipe, section 3.2.1) and Megatron-Core's overlap_moe_expert_parallel_comm order layers so.
// Guarded by tests/schedules/pairs_test.cpp and, executed, tests/exec/execute_pairs_test.cpp.
#pragma once

#include "schedules/lower/lowering_state.h"

namespace slipway::schedules {

// Requires that the tasks of each list in `placed` are in the order of their actions, and that both actions of a pair
// have one index.
void interleave_pairs(LoweringState& state);

}  // namespace slipway::schedules
