// Which works are evaluation in the bubbles: the forward of a held-out micro-batch in one stage, and its residual on the way
// to the next (schedules/graph/evaluation_fillers.h makes them, exec/evaluation.h does them).
#pragma once

#include <algorithm>

#include "schedules/program.h"

namespace slipway {

inline bool is_evaluation(const Work& work) { return work.kind == WorkKind::filler && work.filler == "evaluation"; }
inline bool sends_evaluated(const Work& work) { return work.kind == WorkKind::filler && work.collective == Collective::send; }

inline bool evaluates(const TaskGraph& graph) {
  return std::any_of(graph.works.begin(), graph.works.end(), is_evaluation);
}

}  // namespace slipway
