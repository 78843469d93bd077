#include "schedules/check/passes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <vector>

#include "schedules/check/updates.h"
#include "schedules/graph/parallel.h"
#include "schedules/graph/task_graph.h"
#include "schedules/lower/segments.h"

namespace slipway::schedules {

// One segment task, sortable by its action.
struct SegmentTask {
  std::array<std::int32_t, 4> action;  // rank, stage, micro-batch, slice
  std::int32_t first_op, last_op;
  Pass pass;
  TaskId task;
  auto fields() const { return std::tuple(action, pass, first_op, last_op, task); }
};

// All ranks, by rank first; each sort is of one rank's tasks.
std::vector<SegmentTask> sorted_segments(const TaskGraph& graph);

namespace {

bool comes_first(const SegmentTask& a, const SegmentTask& b) { return a.fields() < b.fields(); }

// Sorts one rank's tasks after another's. Neighbours mostly have theirs in the same disorder, so the permutation that
// sorted the one before is tried first.
class AlikeSort {
 public:
  void operator()(std::span<SegmentTask> list) {
    if (from_.size() == list.size() && arranged(list)) return;
    from_.resize(list.size());
    std::iota(from_.begin(), from_.end(), std::uint32_t{0});
    std::sort(from_.begin(), from_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return comes_first(list[a], list[b]); });
    arranged(list);
  }

 private:
  // Puts `list` in the order of from_ if that sorts it.
  bool arranged(std::span<SegmentTask> list) {
    sorted_.clear();
    for (const std::uint32_t at : from_) sorted_.push_back(list[at]);
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), comes_first)) return false;
    std::copy(sorted_.begin(), sorted_.end(), list.begin());
    return true;
  }

  std::vector<std::uint32_t> from_;  // the old position of each place's task
  std::vector<SegmentTask> sorted_;
};

}  // namespace

std::vector<SegmentTask> sorted_segments(const TaskGraph& graph) {
  const auto is_segment = [&](const Task& task) {
    return task.kind == TaskKind::compute && graph.work(task).kind == WorkKind::segment;
  };
  const int last_rank = rank_count(graph.step.layout) - 1;  // an invalid rank stays in order beyond the ends
  const auto row_of = [&](const Task& task) { return static_cast<std::size_t>(std::clamp(task.rank, 0, last_rank)); };
  std::vector<std::size_t> begin(static_cast<std::size_t>(last_rank) + 2);
  for (const Task& task : graph.tasks)
    if (is_segment(task)) ++begin[row_of(task) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<SegmentTask> segments(begin.back());
  std::vector<std::size_t> next = begin;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (!is_segment(task)) continue;
    const Work& work = graph.work(task);
    segments[next[row_of(task)]++] = {
        {task.rank, work.stage, task.micro_batch, task.slice}, work.first_op, work.last_op, work.pass, id};
  }
  parts_in_parallel(begin.size() - 1, segments.size(), [&](std::size_t first, std::size_t last) {
    AlikeSort sort;
    for (std::size_t rank = first; rank < last; ++rank)
      sort(std::span(segments).subspan(begin[rank], begin[rank + 1] - begin[rank]));
  });
  return segments;
}

// I6, first half: every (rank, stage, micro-batch, slice) has F and then B, or I and then W, exactly once.
//
// An action may be cut into segments, so operators are counted. The forward segments of an action must cover every
// compute operator of its stage once. Each has exactly one B (or I) of the same range after it, and each I that leaves
// weight gradients exactly one W after it. A recomputation stands between F and B.

namespace {

// Number of compute operators (and of those with a weight gradient) before each operator of a stage.
struct OperatorCounts {
  std::vector<int> compute{0}, weights{0};
};

std::vector<OperatorCounts> operator_counts(const TaskGraph& graph) {
  std::vector<OperatorCounts> counts;
  for (int stage = 0; stage < static_cast<int>(graph.stages.size()); ++stage) {  // equal for all slices
    OperatorCounts& count = counts.emplace_back();
    for (const Operator& op : graph.operators(stage)) {
      count.compute.push_back(count.compute.back() + (op.kind == OpKind::communicate ? 0 : 1));
      count.weights.push_back(count.weights.back() + (op.weight_grad_flops > 0 ? 1 : 0));
    }
  }
  return counts;
}

using Range = std::span<const SegmentTask>;

class ActionCheck {
 public:
  ActionCheck(const TaskGraph& graph, const std::vector<std::uint32_t>& position, Findings& findings)
      : graph_(graph), position_(position), counts_(operator_counts(graph)), findings_(findings) {}

  // `segments`: everything this rank does for one (stage, micro-batch, slice), by pass, then by operator.
  void run(int rank, const Action& action, Range segments) {
    action_ = action;
    rank_ = rank;
    const Range forwards = of(segments, Pass::forward), backwards = of(segments, Pass::backward);
    const Range input_grads = of(segments, Pass::input_grad), weight_grads = of(segments, Pass::weight_grad);
    covers_once(forwards);
    std::vector<SegmentTask> gradients(backwards.begin(), backwards.end());
    gradients.insert(gradients.end(), input_grads.begin(), input_grads.end());
    std::sort(gradients.begin(), gradients.end(), [](const SegmentTask& a, const SegmentTask& b) {
      return std::tuple(a.first_op, a.fields()) < std::tuple(b.first_op, b.fields());
    });
    matches(forwards, gradients, "backward", false);
    matches(input_grads, weight_grads, "weight gradient", true);
    const Range recomputes = of(segments, Pass::recompute);
    for (std::size_t i = 0; i < recomputes.size(); ++i) {
      if (i > 0 && recomputes[i].first_op < recomputes[i - 1].last_op) {
        findings_.add({recomputes[i - 1].task, recomputes[i].task}, place() + " recomputes operators twice");
      }
      between(forwards, recomputes[i], gradients);
    }
  }

 private:
  static Range of(Range segments, Pass pass) {
    const auto first = std::find_if(segments.begin(), segments.end(), [&](const auto& s) { return s.pass == pass; });
    const auto last = std::find_if(first, segments.end(), [&](const auto& s) { return s.pass != pass; });
    return {first, last};
  }
  std::string place() const {
    return "stage " + std::to_string(action_.stage) + ", micro-batch " + std::to_string(action_.micro_batch) +
           (action_.slice > 0 ? ", slice " + std::to_string(action_.slice) : "") + " on rank " + std::to_string(rank_);
  }
  const OperatorCounts& counts() const { return counts_[action_.stage]; }
  static int between_ops(const std::vector<int>& prefix, int first, int last) { return prefix[last] - prefix[first]; }

  void covers_once(Range forwards) {
    int at = 0;
    for (std::size_t i = 0; i < forwards.size(); ++i) {
      if (forwards[i].first_op < at) {
        findings_.add({forwards[i - 1].task, forwards[i].task}, place() + " runs forward operators twice");
        return;
      }
      if (between_ops(counts().compute, at, forwards[i].first_op) > 0) break;
      at = forwards[i].last_op;
    }
    const int end = static_cast<int>(counts().compute.size()) - 1;
    if (between_ops(counts().compute, at, end) == 0) return;
    std::vector<TaskId> neighbours;
    if (!forwards.empty()) neighbours.push_back(forwards.back().task);
    findings_.add(std::move(neighbours),
                  place() + " has no forward of operator " + std::to_string(at) + " of " + std::to_string(end));
  }

  // Each segment of `firsts` has exactly one partner of its range in `seconds`, later in the order. With `if_weights` a
  // segment without weight gradients needs none.
  void matches(Range firsts, std::span<const SegmentTask> seconds, const std::string& what, bool if_weights) {
    std::size_t j = 0;
    for (const SegmentTask& first : firsts) {
      while (j < seconds.size() && seconds[j].first_op < first.first_op) unpartnered(seconds[j++], what);
      std::size_t partners = 0;
      for (; j < seconds.size() && seconds[j].first_op == first.first_op; ++j, ++partners) {
        if (seconds[j].last_op != first.last_op) unpartnered(seconds[j], what);
        if (partners > 0) {
          findings_.add({seconds[j - 1].task, seconds[j].task},
                        place() + " has more than one " + what + ": " + label_of(graph_, seconds[j].task));
        }
        in_order(first.task, seconds[j].task);
      }
      const bool needed = !if_weights || between_ops(counts().weights, first.first_op, first.last_op) > 0;
      if (partners == 0 && needed) {
        findings_.add({first.task}, place() + " has no " + what + " of " + label_of(graph_, first.task));
      }
    }
    for (; j < seconds.size(); ++j) unpartnered(seconds[j], what);
  }

  void unpartnered(const SegmentTask& segment, const std::string& what) {
    findings_.add({segment.task}, place() + " has the " + what + " " + label_of(graph_, segment.task) +
                                      " of something that it never ran");
  }

  void in_order(TaskId first, TaskId second) {
    if (position_[first] < position_[second]) return;
    findings_.add({second, first},
                  place() + " runs " + label_of(graph_, second) + " before " + label_of(graph_, first));
  }

  void between(Range forwards, const SegmentTask& recompute, std::span<const SegmentTask> gradients) {
    const auto same = [&](const SegmentTask& s) { return s.first_op == recompute.first_op; };
    const auto forward = std::find_if(forwards.begin(), forwards.end(), same);
    const auto gradient = std::find_if(gradients.begin(), gradients.end(), same);
    if (forward == forwards.end() || gradient == gradients.end()) {
      unpartnered(recompute, "recomputation");
    } else {
      in_order(forward->task, recompute.task);
      in_order(recompute.task, gradient->task);
    }
  }

  const TaskGraph& graph_;
  const std::vector<std::uint32_t>& position_;
  std::vector<OperatorCounts> counts_;
  Findings& findings_;
  Action action_;
  int rank_ = 0;
};

int slice_count(const TaskGraph& graph) {
  std::int32_t last = 0;
  for (const Task& task : graph.tasks) last = std::max(last, task.slice);
  return last + 1;
}

// Ascending, for each pipeline rank.
std::vector<std::vector<int>> stages_by_rank(const TaskGraph& graph) {
  std::vector<std::vector<int>> stages(graph.step.layout.pipeline);
  for (int stage = 0; stage < graph.placement.stages(); ++stage) stages[graph.placement.rank[stage]].push_back(stage);
  return stages;
}

// The copy of the model whose first stage a micro-batch enters. Segments in another copy are misplaced.
std::vector<int> copies_of_micro_batches(const TaskGraph& graph) {
  std::vector<int> copies(graph.micro_batches, 0);
  for (const Task& task : graph.tasks) {
    const Work& work = graph.work(task);
    const bool enters = work.kind == WorkKind::segment && work.pass == Pass::forward && task.micro_batch >= 0 &&
                        task.micro_batch < graph.micro_batches && graph.placement.is_first(work.stage);
    if (enters) copies[task.micro_batch] = graph.placement.copy_of(work.stage);
  }
  return copies;
}

void check_actions_of_ranks(const TaskGraph& graph, const std::vector<std::uint32_t>& position, Findings& findings) {
  const std::vector<SegmentTask> segments = sorted_segments(graph);
  const int slices = slice_count(graph);
  const std::vector<std::vector<int>> stages = stages_by_rank(graph);
  const std::vector<int> copy_of = copies_of_micro_batches(graph);
  ActionCheck check(graph, position, findings);
  std::size_t at = 0;
  const auto misplaced = [&] {
    findings.add({segments[at].task}, spoken(graph, segments[at].task) +
                                          " does not belong there: no such stage on that "
                                          "rank, or no such micro-batch");
    ++at;
  };
  for (int rank = 0; rank < rank_count(graph.step.layout); ++rank) {
    if (!is_lowered(graph, rank)) continue;
    for (const int stage : stages[coordinates_of(graph.step.layout, rank).pipeline]) {
      for (int m = 0; m < graph.micro_batches; ++m) {
        if (graph.placement.copy_of(stage) != copy_of[m]) continue;
        for (int slice = 0; slice < slices && !findings.full(); ++slice) {
          const std::array<std::int32_t, 4> key{rank, stage, m, slice};
          while (at < segments.size() && segments[at].action < key) misplaced();
          const std::size_t first = at;
          while (at < segments.size() && segments[at].action == key) ++at;
          check.run(rank, {Pass::forward, stage, m, slice}, std::span(segments).subspan(first, at - first));
        }
      }
    }
  }
  while (at < segments.size() && !findings.full()) misplaced();
}

}  // namespace

std::vector<Violation> check_passes(const TaskGraph& graph) {
  Findings findings(6), of_updates(6);
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) {
    findings.add({}, "there is no global order, so nobody knows what runs first");
    return findings.take();
  }
  each_in_parallel(2, graph.tasks.size(), [&](std::size_t half) {
    half == 0 ? check_actions_of_ranks(graph, position, findings) : find_update_defects(graph, position, of_updates);
  });
  for (Violation& more : of_updates.take()) findings.add(std::move(more.culprits), std::move(more.message));
  find_gather_defects(graph, findings);
  return findings.take();
}

// I6, of sequence parallelism: a segment that makes the weight gradient of a projection with gathered input has that
// input, gathered again from the shard of the same micro-batch. A segment that makes none needs none.

namespace {

class GatherCheck {
 public:
  GatherCheck(const TaskGraph& graph, Findings& findings)
      : graph_(graph), blocks_(blocks_of(graph.step.model)), findings_(findings) {}

  void run() {
    if (!graph_.shape().sharding.sequence_parallel) return;
    for (TaskId task = 0; task < graph_.tasks.size() && !findings_.full(); ++task) {
      const Work& work = graph_.work(task);
      if (work.kind != WorkKind::segment || work.pass == Pass::forward || work.pass == Pass::recompute) continue;
      const int has = gathered_inputs(task), needs = work.pass != Pass::input_grad && comes_again(work) ? 1 : 0;
      if (has == needs) continue;
      findings_.add({task}, spoken(graph_, task) + " reads " + std::to_string(has) +
                                " inputs gathered again from its micro-batch's shards instead of " +
                                std::to_string(needs));
    }
  }

 private:
  bool comes_again(const Work& segment) const {
    const auto operators = graph_.operators(segment);
    const int block = operators[segment.first_op].block;
    return input_comes_again(operators, segment.first_op, blocks_[block], graph_.step.recompute);
  }

  bool is_same_action(TaskId a, TaskId b) const {
    const Task &of_a = graph_.tasks[a], &of_b = graph_.tasks[b];
    return of_a.micro_batch == of_b.micro_batch && of_a.slice == of_b.slice && of_a.step == of_b.step &&
           graph_.work(a).stage == graph_.work(b).stage;
  }

  int gathered_inputs(TaskId task) const {
    int count = 0;
    for (const BufferId in : graph_.inputs[task]) {
      const auto gather = graph_.writer(in);
      if (gather && gathers_again(graph_, graph_.work(*gather)) && is_same_action(*gather, task) &&
          graph_.work(*gather).first_op + 1 == graph_.work(task).first_op && reads_shards(*gather))
        ++count;
    }
    return count;
  }

  bool reads_shards(TaskId gather) const {
    for (const BufferId in : graph_.inputs[gather]) {
      const auto forward = graph_.writer(in);
      if (!forward || graph_.work(*forward).pass != Pass::forward || !is_same_action(*forward, gather)) return false;
    }
    return !graph_.inputs[gather].empty();
  }

  const TaskGraph& graph_;
  const std::vector<Block> blocks_;
  Findings& findings_;
};

}  // namespace

void find_gather_defects(const TaskGraph& graph, Findings& findings) { GatherCheck(graph, findings).run(); }

}  // namespace slipway::schedules
