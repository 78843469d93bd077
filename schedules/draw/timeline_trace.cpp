#include "schedules/draw/timeline_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "schedules/graph/membership.h"
#include "schedules/lower/groups.h"
#include "schedules/memory/memory_timeline.h"

namespace slipway::schedules {
namespace {

// FLOPs of a work's tasks, computed for the first of them.
class Flops {
 public:
  explicit Flops(const TaskGraph& graph) : graph_(graph), of_work_(graph.works.size(), unknown) {}
  double of(TaskId id) {
    double& flops = of_work_[graph_.tasks[id].work];
    if (flops == unknown) flops = flops_of(graph_, id);
    return flops;
  }

 private:
  static constexpr double unknown = -1;
  const TaskGraph& graph_;
  std::vector<double> of_work_;
};

// Tasks of the previous step that each task waits for.
Rows carried_into(const TaskGraph& graph) {
  auto pairs = graph.carried;
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Rows rows;
  rows.begin.assign(graph.tasks.size() + 1, 0);
  for (const auto& [from, to] : pairs) {
    ++rows.begin[to + 1];
    rows.values.push_back(from);
  }
  for (std::size_t i = 1; i < rows.begin.size(); ++i) rows.begin[i] += rows.begin[i - 1];
  return rows;
}

// The date at which the inputs that come from a member itself are there, for all communications and members. `first`
// has a row per task; compute tasks have none.
class InputsReady {
 public:
  explicit InputsReady(const TaskGraph& graph) : graph_(graph), membership_(graph), carried_(carried_into(graph)) {
    std::size_t places = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      first_.push_back(places);
      if (graph.tasks[id].communicator != none) places += members_of(graph, id).size();
    }
    ready_.resize(places);
  }

  void enter_step(const Timeline& timeline, std::size_t step) {
    const std::size_t count = graph_.tasks.size(), base = step * count;
    std::fill(ready_.begin(), ready_.end(), 0);
    for (TaskId id = 0; id < count; ++id) {
      if (graph_.tasks[id].communicator == none) continue;
      for (const TaskId before : graph_.predecessors[id]) wait(id, before, timeline.end[base + before]);
      if (step == 0) continue;
      for (const TaskId before : carried_[id]) wait(id, before, timeline.end[base - count + before]);
    }
  }

  double at(TaskId communication, std::size_t member) const { return ready_[first_[communication] + member]; }
  std::size_t member_of(const Lane& lane) const {
    return lane.tasks.empty() ? 0 : static_cast<std::size_t>(membership_.place_of(lane.tasks.front(), lane.rank));
  }

 private:
  void wait(TaskId id, TaskId before, double end) {
    membership_.for_common(id, before, [&](std::size_t member) {
      double& ready = ready_[first_[id] + member];
      ready = std::max(ready, end);
    });
  }

  const TaskGraph& graph_;
  const Membership membership_;
  const Rows carried_;
  std::vector<std::size_t> first_;
  std::vector<double> ready_;
};

// The lanes of one rank that has tasks, and when it entered each task of the step at hand.
struct RankLanes {
  std::vector<Lane> lanes;
  std::vector<std::vector<double>> own;  // per lane and task
  std::vector<double> free;              // per lane: end of its last task
};

std::vector<RankLanes> lanes_by_rank(const TaskGraph& graph) {
  std::vector<RankLanes> ranks(lowered_count(graph.step.layout, graph.representatives));
  for (Lane& lane : lanes_of(graph)) {
    const int index = lowered_index(graph.step.layout, graph.representatives, lane.rank);
    ranks[index].lanes.push_back(std::move(lane));
  }
  for (RankLanes& rank : ranks) rank.own.resize(rank.lanes.size()), rank.free.resize(rank.lanes.size());
  return ranks;
}

void enter_tasks(const Timeline& timeline, std::size_t base, const InputsReady& inputs, RankLanes& rank) {
  for (std::size_t l = 0; l < rank.lanes.size(); ++l) {
    const Lane& lane = rank.lanes[l];
    const std::size_t member = inputs.member_of(lane);
    rank.own[l].clear();
    for (const TaskId task : lane.tasks) {
      const double start = timeline.start[base + task];
      double own = start;  // a compute task has one member: it starts when it is ready
      if (lane.communicator != none) own = std::min(start, std::max(rank.free[l], inputs.at(task, member)));
      rank.own[l].push_back(own);
      rank.free[l] = timeline.end[base + task];
    }
  }
}

}  // namespace

Trace trace_header(const TaskGraph& graph, const Timeline& timeline, std::string engine) {
  Trace trace;
  trace.engine = std::move(engine);
  trace.ranks = rank_count(graph.step.layout);
  trace.steps = timeline.steps * graph.window;
  trace.window = graph.window;
  return trace;
}

// The memory of ranks in one step. With representative ranks, a rank's curve is that of its representative, made once.
class MemoryOfRanks {
 public:
  MemoryOfRanks(const TaskGraph& graph, const Timeline& timeline, int step)
      : graph_(graph), lives_(graph, timeline, step), buffers_(lives_.by_rank()) {}

  const MemoryCurve& of(std::int32_t rank, bool again) {
    const auto found = curves_.find(rank);
    if (found != curves_.end()) return found->second;
    if (!again) curves_.clear();  // curves of finished ranks
    const StaticBytes& fixed = graph_.static_bytes[rank];
    return curves_.try_emplace(rank, graph_, lives_, buffers_[rank], fixed.weights + fixed.gradients + fixed.optimizer)
        .first->second;
  }

 private:
  const TaskGraph& graph_;
  const BufferLives lives_;
  const Rows buffers_;
  std::map<std::int32_t, MemoryCurve> curves_;
};

void each_record(const TaskGraph& graph, const Timeline& timeline,
                 const std::function<void(const TraceRecord&, TaskId)>& visit, const RecordScope& scope) {
  Flops flops(graph);
  InputsReady inputs(graph);
  std::vector<RankLanes> ranks = lanes_by_rank(graph);
  const int all = rank_count(graph.step.layout);
  const bool represented = static_cast<int>(ranks.size()) < all;
  std::optional<GroupNumbers> numbers;
  if (represented) numbers.emplace(graph);
  TraceRecord record;
  for (int step = 0; step < timeline.steps && step <= scope.last_step; ++step) {
    const std::size_t base = static_cast<std::size_t>(step) * graph.tasks.size();
    inputs.enter_step(timeline, static_cast<std::size_t>(step));
    for (RankLanes& rank : ranks) enter_tasks(timeline, base, inputs, rank);
    if (step < scope.first_step) continue;
    std::optional<MemoryOfRanks> memory;
    if (!graph.static_bytes.empty()) memory.emplace(graph, timeline, step);
    for (record.rank = 0; record.rank < all; ++record.rank) {
      if (scope.representatives_only && !is_lowered(graph, record.rank)) continue;
      const RankLanes& like = ranks[lowered_index(graph.step.layout, graph.representatives, record.rank)];
      for (std::size_t l = 0; l < like.lanes.size(); ++l) {
        const Lane& lane = like.lanes[l];
        record.lane = lane_name(graph, lane);
        record.group = lane.communicator;
        if (represented && lane.communicator != none) record.group = numbers->of(record.rank, record.lane);
        for (std::size_t i = 0; i < lane.tasks.size(); ++i) {
          const TaskId task = lane.tasks[i];
          record.step = step * graph.window + graph.tasks[task].step;
          record.label = label_of(graph, task);
          record.kind = kind_of(graph, task);
          record.start_s = like.own[l][i], record.end_s = timeline.end[base + task];
          record.wait_s = timeline.start[base + task] - record.start_s;
          record.flops = flops.of(task);
          record.bytes = graph.work(task).bytes;
          if (memory) {
            const MemoryCurve::Use use = memory->of(lane.rank, represented).during(record.start_s, record.end_s);
            record.memory_bytes = use.at_end, record.memory_peak_bytes = use.most;
          }
          visit(record, task);
        }
      }
    }
  }
}

Trace trace_of(const TaskGraph& graph, const Timeline& timeline, std::string engine) {
  Trace trace = trace_header(graph, timeline, std::move(engine));
  each_record(graph, timeline, [&](const TraceRecord& record, TaskId) { trace.records.push_back(record); });
  return trace;
}

}  // namespace slipway::schedules
