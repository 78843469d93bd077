// I6, of sequence parallelism: a segment that makes the weight gradient of a projection whose input was
// gathered has that input, gathered again from the shard of the same micro-batch; a segment that makes none
// needs none.
#include "schedules/graph/findings.h"
#include "schedules/graph/segments.h"

namespace slipway {
namespace {

class GatherCheck {
 public:
  GatherCheck(const TaskGraph& graph, Findings& findings)
      : graph_(graph), blocks_(blocks_of(graph.model)), findings_(findings) {}

  void run() {
    if (!graph_.shape.sharding.sequence_parallel) return;
    for (TaskId task = 0; task < graph_.tasks.size() && !findings_.full(); ++task) {
      const Work& work = work_of(task);
      if (work.kind != WorkKind::segment || work.pass == Pass::forward || work.pass == Pass::recompute)
        continue;
      const int has = gathered_inputs(task),
                needs = work.pass != Pass::input_grad && comes_again(work) ? 1 : 0;
      if (has == needs) continue;
      findings_.add({task}, spoken(graph_, task) + " reads " + std::to_string(has) +
                                " inputs gathered again from its micro-batch's shards instead of " +
                                std::to_string(needs));
    }
  }

 private:
  const Work& work_of(TaskId task) const {
    return graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)];
  }

  bool comes_again(const Work& segment) const {
    const auto operators = operators_of(graph_, segment);
    const int block = operators[static_cast<std::size_t>(segment.first_op)].block;
    return input_comes_again(operators, segment.first_op, blocks_[static_cast<std::size_t>(block)], graph_.recompute);
  }

  bool is_same_action(TaskId a, TaskId b) const {
    const Task &of_a = graph_.tasks[a], &of_b = graph_.tasks[b];
    return of_a.micro_batch == of_b.micro_batch && of_a.slice == of_b.slice && of_a.step == of_b.step &&
           work_of(a).stage == work_of(b).stage;
  }

  int gathered_inputs(TaskId task) const {
    int count = 0;
    for (const BufferId in : graph_.inputs[task]) {
      const std::int32_t writer = graph_.buffers[in].writer;
      if (writer == none) continue;
      const auto gather = static_cast<TaskId>(writer);
      if (gathers_again(graph_, work_of(gather)) && is_same_action(gather, task) &&
          work_of(gather).first_op + 1 == work_of(task).first_op && reads_shards(gather))
        ++count;
    }
    return count;
  }

  bool reads_shards(TaskId gather) const {
    for (const BufferId in : graph_.inputs[gather]) {
      const std::int32_t writer = graph_.buffers[in].writer;
      if (writer == none) return false;
      const auto forward = static_cast<TaskId>(writer);
      if (work_of(forward).pass != Pass::forward || !is_same_action(forward, gather)) return false;
    }
    return !graph_.inputs[gather].empty();
  }

  const TaskGraph& graph_;
  const std::vector<Block> blocks_;
  Findings& findings_;
};

}  // namespace

void find_gather_defects(const TaskGraph& graph, Findings& findings) { GatherCheck(graph, findings).run(); }

}  // namespace slipway
