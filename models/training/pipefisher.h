// The closed-form performance model of PipeFisher (Osawa et al. 2022, section 3): a pipeline of equal stages without
// communication, and K-FAC work in its bubbles.
//
//   rank 0 │ F F F F ░ ░ ░ ░ ░ B B B B │ P      T_pipe   = C_f·T_f + C_b·T_b
//   rank 3 │ ░ F F F F B B B B ░ ░ ░ ░ │ P      T_bubble = T_pipe − N·(T_f + T_b)      ░ curvature, inversion
//
//   GPipe, 1F1B: C_f = C_b = N + D − 1.   Chimera: C_f = D, C_b = 2D − 2 for N = D; N + D/2 − 1 both for N > D
//   ratio = (N·T_curv + T_inv) / T_bubble: steps between two refreshes, if bubbles could be filled completely
//   With recompute a backward takes T_f + T_b, and useful work is N·(2·T_f + T_b).
//
// D stages, N micro-batches, P preconditioning. No contention, no gap that is too short. It is an upper bound of what
// filling (schedules/fill/fill.h) reaches, and equals the simulation without communication.
// Guarded by tests/models/kfac_cost_test.cpp: the published check values, and the simulated step.
#pragma once

#include "models/machine/block_times.h"

namespace slipway::models {

enum class PipelineShape : std::uint8_t { one_way, bidirectional };  // GPipe and 1F1B; Chimera

struct PipeFisherInput {
  PipelineShape shape = PipelineShape::one_way;
  int stages = 1, micro_batches = 1;  // D, N
  bool recompute = false;
  BlockTimes stage;  // of one stage: stage_times
};
// A stage of `blocks` equal blocks: everything adds up except the working memory of one backward.
BlockTimes stage_times(const BlockTimes& block, int blocks);

struct PipeFisherModel {
  double forward_passes = 0, backward_passes = 0;  // C_f, C_b
  double pipeline_s = 0, bubble_s = 0;
  double ratio = 0;               // (N·T_curv + T_inv) / T_bubble
  double utilization = 0;         // of the pipeline's time, before filling
  int refresh_steps = 0;          // whole steps: ratio, rounded up
  double filled_utilization = 0;  // the ceiling: all K-FAC work within refresh_steps
  double step_s = 0;              // PipeFisher: T_pipe + T_prec
  double unfilled_step_s = 0;     // K-FAC after the pipeline: T_pipe + T_prec + N·T_curv
  double refresh_step_s = 0;      // the same in a step that also inverts
  double first_order_per_s = 0;   // sequences/s of the pipeline alone
  double sequences_per_s = 0;     // of PipeFisher
  double memory_bytes = 0;
};
// Throws std::invalid_argument for an impossible shape (no stage, no micro-batch, an odd bidirectional one).
PipeFisherModel pipefisher(const PipeFisherInput& input);

}  // namespace slipway::models
