#include "schedules/memory/memory_timeline.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "schedules/graph/parallel.h"
#include "schedules/lower/segments.h"

namespace slipway::schedules {

BufferLives::BufferLives(const TaskGraph& graph, const Timeline& timeline, int step)
    : graph_(graph),
      timeline_(timeline),
      base_(static_cast<std::size_t>(step) * graph.tasks.size()),
      last_reader_(graph.buffers.size()),
      is_layer_input_(graph.buffers.size()) {
  for (std::size_t b = 0; b < graph.buffers.size(); ++b)
    last_reader_[b] = graph.writer(static_cast<BufferId>(b)).value_or(0);
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    const bool recomputes = pass_of(task) == Pass::recompute;
    for (const BufferId b : graph.inputs[task]) {
      if (end(task) > end(last_reader_[b])) last_reader_[b] = task;
      const auto writer = graph.writer(b);
      if (recomputes && writer && pass_of(*writer) != Pass::recompute) is_layer_input_[b] = true;
    }
  }
}

bool BufferLives::is_handed_over(const Buffer& buffer, TaskId reader) const {
  if (buffer.kind != BufferKind::value || graph_.writer(buffer) == reader) return false;
  const auto out = graph_.outputs[reader];
  return std::any_of(out.begin(), out.end(), [&](BufferId b) { return graph_.buffers[b].kind == BufferKind::saved; });
}

double BufferLives::freed(BufferId b) const {
  const TaskId reader = last_reader_[b];
  return std::max(is_handed_over(graph_.buffers[b], reader) ? start(reader) : end(reader), taken(b));
}

Rows BufferLives::by_rank() const {
  const auto is_counted = [](const Buffer& buffer) { return buffer.bytes > 0 && buffer.writer != none; };
  Rows rows;
  rows.begin.assign(graph_.static_bytes.size() + 1, 0);
  for (const Buffer& buffer : graph_.buffers)
    if (is_counted(buffer)) ++rows.begin[static_cast<std::size_t>(buffer.rank) + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.values.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (BufferId b = 0; b < graph_.buffers.size(); ++b)
    if (is_counted(graph_.buffers[b])) rows.values[next[graph_.buffers[b].rank]++] = b;
  return rows;
}

namespace {

constexpr std::size_t compared_together = 64;  // ranks: dates of neighbours are adjacent in memory
constexpr std::size_t listed_together = 8;     // ranks whose lists of changes fit a cache; dates fill a line of it

struct Change {
  double time = 0;
  double bytes = 0;  // < 0: freed
  TaskId task = 0;
  BufferId buffer = 0;
};

class Accounting {
 public:
  Accounting(const TaskGraph& graph, const Timeline& timeline, const PeriodicTimeline* periodic)
      : graph_(graph),
        timeline_(timeline),
        periodic_(periodic),
        lives_(graph, timeline),
        kept_(graph.works.size()),
        held_as_(graph.buffers.size(), MemoryPart::messages) {
    list_holders();
    list_kept();
  }

  std::vector<RankMemory> run() const {
    std::vector<RankMemory> result(graph_.static_bytes.size());
    const Rows buffers = lives_.by_rank();
    const std::size_t blocks = (result.size() + compared_together - 1) / compared_together;
    parts_in_parallel(blocks, graph_.buffers.size(), [&](std::size_t first, std::size_t last) {
      Lists lists;
      for (std::size_t at = first; at < last; ++at) {
        const std::size_t begin = at * compared_together;
        account(buffers, begin, std::min(begin + compared_together, result.size()), lists, result);
      }
    });
    return result;
  }

 private:
  void list_holders() {
    for (BufferId b = 0; b < graph_.buffers.size(); ++b)
      if (lives_.is_layer_input(b)) held_as_[b] = MemoryPart::layer_inputs;
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) note_shards(task);
  }

  // Keeps what is gathered again until its weight gradient.
  void note_shards(TaskId task) {
    const Work& work = graph_.work(task);
    if (!gathers_again(graph_, work)) return;
    const Operator& gather = graph_.operators(work)[work.first_op];
    for (const BufferId b : graph_.inputs[task]) held_as_[b] = part_of_gathered(gather, block_of(gather));
  }

  using Pair = std::array<Change, 2>;  // what a buffer takes and gives back
  using Lists = std::array<std::vector<Change>, listed_together>;

  // The peaks of ranks [begin, end), computed once for ranks that are all alike. Replicas and tensor peers mostly do
  // the same at the same time.
  void account(const Rows& buffers, std::size_t begin, std::size_t end, Lists& lists,
               std::vector<RankMemory>& result) const {
    const std::vector<char> as_before = compare(buffers, begin, end);
    std::vector<std::size_t> ranks;
    for (std::size_t rank = begin; rank < end; ++rank) {
      if (!as_before[rank - begin]) ranks.push_back(rank);
      if (ranks.size() < listed_together && rank + 1 < end) continue;
      list_changes(buffers, ranks, lists);
      for (std::size_t i = 0; i < ranks.size(); ++i) result[ranks[i]] = peak_of(ranks[i], lists[i]);
      ranks.clear();
    }
    for (std::size_t rank = begin; rank < end; ++rank)
      if (as_before[rank - begin]) result[rank] = result[rank - 1];
  }

  // For ranks [begin, end): true if all buffers change like those of the rank before; then the peak is the same.
  std::vector<char> compare(const Rows& buffers, std::size_t begin, std::size_t end) const {
    std::vector<char> as_before(end - begin + 1, false);  // one more: the last rank has no successor
    std::size_t most = 0;
    for (std::size_t rank = begin + 1; rank < end; ++rank) {
      as_before[rank - begin] = buffers[rank].size() == buffers[rank - 1].size() &&
                                is_same(graph_.static_bytes[rank], graph_.static_bytes[rank - 1]);
      if (as_before[rank - begin]) most = std::max(most, buffers[rank].size());
    }
    for (std::size_t i = 0; i < most; ++i) {
      Pair before{};
      for (std::size_t rank = begin; rank < end; ++rank) {
        char& alike = as_before[rank - begin];
        if ((!alike && !as_before[rank - begin + 1]) || i >= buffers[rank].size()) continue;
        const Pair pair = changes_of(buffers[rank][i]);
        if (alike) alike = is_same(pair[0], before[0]) && is_same(pair[1], before[1]);
        before = pair;
      }
    }
    return as_before;
  }

  // The changes of some ranks' buffers, in the order of the buffers.
  void list_changes(const Rows& buffers, const std::vector<std::size_t>& ranks, Lists& lists) const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      lists[i].clear();
      most = std::max(most, buffers[ranks[i]].size());
    }
    for (std::size_t b = 0; b < most; ++b) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (b >= buffers[ranks[i]].size()) continue;
        const Pair pair = changes_of(buffers[ranks[i]][b]);
        lists[i].insert(lists[i].end(), pair.begin(), pair.end());
      }
    }
  }

  Pair changes_of(BufferId b) const {
    const double bytes = graph_.buffers[b].bytes;
    return {Change{lives_.taken(b), bytes, graph_.writer(b).value(), b},
            Change{lives_.freed(b), -bytes, lives_.last_reader(b), b}};
  }

  bool is_same(const Change& a, const Change& b) const {
    const Task &of_a = graph_.tasks[a.task], &of_b = graph_.tasks[b.task];
    return a.time == b.time && a.bytes == b.bytes && of_a.work == of_b.work && of_a.micro_batch == of_b.micro_batch &&
           of_a.slice == of_b.slice && of_a.step == of_b.step &&
           graph_.buffers[a.buffer].kind == graph_.buffers[b.buffer].kind && held_as_[a.buffer] == held_as_[b.buffer];
  }
  static bool is_same(const StaticBytes& a, const StaticBytes& b) {
    return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer;
  }

  const Block& block_of(const Operator& op) const { return blocks_[op.block]; }

  // The bytes that each segment keeps, by part.
  void list_kept() {
    for (std::size_t w = 0; w < graph_.works.size(); ++w) {
      const Work& work = graph_.works[w];
      if (work.kind != WorkKind::segment) continue;
      const auto operators = graph_.operators(work);
      if (work.pass == Pass::input_grad) {
        list_left_for_weights(work, operators, kept_[w]);
        continue;
      }
      for (int i = work.first_op; i < work.last_op; ++i) {
        const Operator& op = operators[i];
        add_kept(op, block_of(op), graph_.shape(), kept_[w]);
      }
      const int gather_op = gather_before(operators, work.first_op);
      if (gather_op < 0) continue;
      const Operator& gather = operators[gather_op];
      const Block& block = block_of(gather);
      kept_[w][part_of_gathered(gather, block)] +=
          bytes_beside_shard(gather, block, graph_.shape().sharding, is_recomputed(graph_.step.recompute, block));
    }
  }

  void list_left_for_weights(const Work& work, std::span<const Operator> operators, MemoryParts& parts) const {
    for (int i = work.first_op; i < work.last_op; ++i) {
      const auto own = operators.subspan(i, 1);
      const Block& block = block_of(own.front());
      add_kept_for_weights(own, input_comes_again(operators, i, block, graph_.step.recompute), block, parts);
    }
  }

  MemoryParts parts_of(BufferId b) const {
    const Buffer& buffer = graph_.buffers[b];
    if (buffer.kind == BufferKind::saved) return kept_[graph_.tasks[graph_.writer(buffer).value()].work];
    MemoryParts parts;
    parts[buffer.kind == BufferKind::parameter ? MemoryPart::gathered_weights
          : buffer.kind == BufferKind::bucket  ? MemoryPart::gradient_buckets
          : buffer.kind == BufferKind::kept    ? MemoryPart::kept_for_bubble_work
                                               : held_as_[b]] = buffer.bytes;
    return parts;
  }

  std::string label_in_truth(TaskId id) const {
    Task task = graph_.tasks[id];
    const bool later = periodic_ != nullptr && timeline_.start[id] > periodic_->steps[0].until_s;
    if (later && task.micro_batch != none) task.micro_batch += periodic_->left_out * periodic_->micro_batches;
    return label_of(graph_, task);
  }

  RankMemory peak_of(std::size_t rank, std::vector<Change>& changes) const {
    // Memory that is freed at a date is available at that date. Buffers are made stage by stage, each micro-batch after
    // micro-batch. Such long runs suit a merge sort.
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    RankMemory memory;
    memory.fixed = graph_.static_bytes[rank];
    double live = 0;
    std::size_t count = 0;  // changes up to and with the peak
    for (std::size_t i = 0; i < changes.size(); ++i) {
      live += changes[i].bytes;
      if (live <= memory.activations_peak) continue;
      memory.activations_peak = live;
      count = i + 1;
    }
    if (count > 0) memory.peak_task = label_in_truth(changes[count - 1].task);
    for (std::size_t i = 0; i < count; ++i)
      memory.parts += (changes[i].bytes < 0 ? -1 : 1) * parts_of(changes[i].buffer);
    memory.parts[MemoryPart::weights] = memory.fixed.weights;
    memory.parts[MemoryPart::gradients] = memory.fixed.gradients;
    memory.parts[MemoryPart::optimizer] = memory.fixed.optimizer;
    memory.peak = memory.fixed.weights + memory.fixed.gradients + memory.fixed.optimizer + memory.activations_peak;
    return memory;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const PeriodicTimeline* periodic_;
  const BufferLives lives_;
  std::vector<MemoryParts> kept_;  // per work
  const std::vector<Block> blocks_ = blocks_of(graph_.step.model);
  std::vector<MemoryPart> held_as_;  // per buffer: a message, or the input of a recomputed block or of a gather
};

}  // namespace

std::vector<RankMemory> memory_timeline(const TaskGraph& graph, const Timeline& timeline,
                                        const PeriodicTimeline* periodic) {
  return Accounting(graph, timeline, periodic).run();
}

MemoryCurve::MemoryCurve(const TaskGraph& graph, const BufferLives& lives, std::span<const BufferId> buffers,
                         double fixed)
    : fixed_(fixed) {
  struct Change {
    double time, bytes;
  };
  std::vector<Change> changes;
  for (const BufferId buffer : buffers) {
    changes.push_back({lives.taken(buffer), graph.buffers[buffer].bytes});
    changes.push_back({lives.freed(buffer), -graph.buffers[buffer].bytes});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  double live = fixed;
  for (const Change& change : changes) {
    if (points_.empty() || points_.back().time != change.time) points_.push_back({change.time, live, live});
    live += change.bytes;
    points_.back().taken = live;
    if (change.bytes < 0) points_.back().given_back = live;
  }
}

MemoryCurve::Use MemoryCurve::during(double start, double end) const {
  const auto behind = [&](double time) {
    return std::upper_bound(points_.begin(), points_.end(), time,
                            [](double t, const Point& point) { return t < point.time; });
  };
  const auto first = behind(start);
  Use use;
  use.most = use.at_end = first == points_.begin() ? fixed_ : std::prev(first)->taken;
  for (auto point = first; point != points_.end() && point->time <= end; ++point) {
    use.at_end = point->time == end ? point->given_back : point->taken;
    use.most = std::max(use.most, use.at_end);
  }
  return use;
}

}  // namespace slipway::schedules
