// Several ranks in one process and one thread, with copies as the transport. The graph runs in its global order, one
// task after the other, so nothing overlaps and nothing can deadlock. Only where rows travel to experts, each member has
// a thread for the exchange.
//
//   for task in order:  compute → its rank;  transfer → copy;  collective → sum or copy over its members
//
// Sums go in rank order, so runs are reproducible bit for bit. Tests compare any layout with one process so, without a
// network and without other processes.
// Guarded by tests/exec/execute_layouts_test.cpp.
#pragma once

#include <memory>
#include <vector>

#include "exec/rank/rank_model.h"

namespace slipway::test {

class VirtualRanks {
 public:
  // `bundle` must outlive this and have a global order. Throws what RankModel throws.
  VirtualRanks(const Bundle& bundle, at::Device device);
  void replay_segments(SegmentCapture& capture);
  // From `step` on the steps are those of `graph`, of the same bundle: RankModel::enter.
  void enter(const TaskGraph& graph, const Progress& before, int step);
  // Runs a step of the graph, which may be a window of several of the training.
  void run_step(int step);
  // Mean token loss of the training's step over all ranks. Once per step: it is forgotten then.
  double take_loss(int step);
  // Mean token loss of the held-out micro-batches of a step of the graph, over all ranks. Once per step.
  std::optional<double> take_evaluation(int step);
  // Norms of the step; throws unless all ranks have equal ones. Once per step.
  std::optional<GradientNorms> take_norms(int step);
  void dump_gradients_of_step(int step, const std::string& directory);

 private:
  void communicate(TaskId task, int step);

  const TaskGraph* graph_;  // of the present steps
  std::vector<std::unique_ptr<RankModel>> ranks_;
};

}  // namespace slipway::test
