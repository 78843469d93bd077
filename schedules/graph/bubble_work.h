// The K-FAC factor that a bubble work makes. The lowering writes it into the work's label, and the engines read it from
// there. This file holds both directions.
//
//   ".L5.q.A"   curvature of q's inputs in block 5               ".L5.q.invA"   inverse of that factor
//   ".L5.q.B"   curvature of q's output gradients in block 5     ".L5.q.invB"   inverse of that factor
//
// Guarded by tests/schedules/kfac_test.cpp.
#pragma once

#include <algorithm>
#include <string>

#include "models/training/kfac.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

enum class KfacStage : std::uint8_t { curvature, inversion };

struct KfacWork {
  KfacStage stage = KfacStage::curvature;
  std::size_t linear = 0;  // index in kfac_linears of the work's block
  bool of_input = true;    // true: factor A; false: factor B
};

// The label's tail behind the block's name.
std::string kfac_suffix(const KfacLinear& linear, KfacStage stage, bool of_input);
// Requires a work that is no collective. Throws std::runtime_error with the label of a work that is not K-FAC's.
KfacWork kfac_work_of(const TaskGraph& graph, const Work& work);
// True for the reduction of all factors of its members' inputs (`.ar_A`), false for that of output gradients.
bool reduces_input_factors(const Work& work);
// Work::bubble_work of curvature and inversion tasks.
const char* name_of(KfacStage stage);

inline constexpr const char* input_reduction_suffix = ".ar_A";
inline constexpr const char* gradient_reduction_suffix = ".ar_B";

// Evaluation in bubbles: a held-out micro-batch's forward in one stage, and its residual on the way to the next stage.
// schedules/fill/evaluation.h makes these works, exec/rank/evaluation.h runs them.

inline bool is_evaluation(const Work& work) {
  return work.kind == WorkKind::bubble_work && work.bubble_work == "evaluation";
}
inline bool sends_evaluated(const Work& work) {
  return work.kind == WorkKind::bubble_work && work.collective == Collective::send;
}

inline bool evaluates(const TaskGraph& graph) {
  return std::any_of(graph.works.begin(), graph.works.end(), is_evaluation);
}

}  // namespace slipway::schedules
