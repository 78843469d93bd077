#include "schedules/graph/memory_timeline.h"

#include <algorithm>
#include <numeric>

#include "schedules/graph/parallel.h"

namespace slipway {
namespace {

constexpr std::size_t block_size = 8;  // ranks whose dates of one event fill a cache line

struct Change {
  double time = 0;
  double bytes = 0;  // < 0: freed
  TaskId task = 0;
  BufferId buffer = 0;
};

class Accounting {
 public:
  Accounting(const TaskGraph& graph, const Timeline& timeline, const SteadyState* steady)
      : graph_(graph), timeline_(timeline), steady_(steady), kept_(graph.works.size()), is_layer_input_(graph.buffers.size()) {
    find_last_readers();
    list_kept();
  }

  std::vector<RankMemory> run() const {
    std::vector<RankMemory> result(graph_.static_bytes.size());
    const Rows buffers = buffers_by_rank();
    const std::size_t blocks = (result.size() + block_size - 1) / block_size;
    parts_in_parallel(blocks, graph_.buffers.size(), [&](std::size_t first, std::size_t last) {
      std::vector<Listed> block;
      for (std::size_t at = first; at < last; ++at) {
        const std::size_t begin = at * block_size, end = std::min(begin + block_size, result.size());
        list_changes(buffers, begin, end, block);
        for (std::size_t rank = begin; rank < end; ++rank)
          result[rank] = block[rank - begin].as_before ? result[rank - 1] : peak_of(rank, block[rank - begin].changes);
      }
    });
    return result;
  }

 private:
  const Work& work_of(TaskId task) const {
    return graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)];
  }

  void find_last_readers() {
    last_reader_.resize(graph_.buffers.size());
    for (std::size_t b = 0; b < graph_.buffers.size(); ++b)
      last_reader_[b] = static_cast<TaskId>(std::max(graph_.buffers[b].writer, 0));
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      const bool recomputes = work_of(task).pass == Pass::recompute;
      for (const BufferId b : graph_.inputs[task]) {
        if (timeline_.end[task] > timeline_.end[last_reader_[b]]) last_reader_[b] = task;
        if (recomputes && graph_.buffers[b].writer != none &&
            work_of(static_cast<TaskId>(graph_.buffers[b].writer)).pass != Pass::recompute)
          is_layer_input_[b] = true;
      }
    }
  }

  // A segment that saves for its backward keeps its inputs there: from its start they are counted as
  // `saved`.
  bool is_handed_over(const Buffer& buffer, TaskId reader) const {
    if (buffer.kind != BufferKind::value || static_cast<std::int32_t>(reader) == buffer.writer) return false;
    const auto out = graph_.outputs[reader];
    return std::any_of(out.begin(), out.end(),
                       [&](BufferId b) { return graph_.buffers[b].kind == BufferKind::saved; });
  }

  bool is_counted(const Buffer& buffer) const { return buffer.bytes > 0 && buffer.writer != none; }

  Rows buffers_by_rank() const {
    Rows rows;
    rows.begin.assign(graph_.static_bytes.size() + 1, 0);
    for (const Buffer& buffer : graph_.buffers)
      if (is_counted(buffer)) ++rows.begin[static_cast<std::size_t>(buffer.rank) + 1];
    std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
    rows.values.resize(rows.begin.back());
    std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
    for (BufferId b = 0; b < graph_.buffers.size(); ++b)
      if (is_counted(graph_.buffers[b])) rows.values[next[static_cast<std::size_t>(graph_.buffers[b].rank)]++] = b;
    return rows;
  }

  // What the buffers of a rank take and give back, in the order of the buffers.
  struct Listed {
    std::vector<Change> changes;
    bool as_before = false;  // all like those of the rank before, whose peak is this rank's then
  };

  // Of ranks [begin, end) together: neighbours' buffers, tasks and dates lie side by side in memory, and replicas and
  // tensor peers mostly do the same at the same time.
  void list_changes(const Rows& buffers, std::size_t begin, std::size_t end, std::vector<Listed>& block) const {
    block.resize(end - begin);
    std::size_t most = 0;
    for (std::size_t rank = begin; rank < end; ++rank) {
      const std::size_t count = buffers[rank].size();
      block[rank - begin].changes.resize(2 * count);
      block[rank - begin].as_before =
          rank > begin && count == buffers[rank - 1].size() && is_same(graph_.static_bytes[rank], graph_.static_bytes[rank - 1]);
      most = std::max(most, count);
    }
    for (std::size_t i = 0; i < most; ++i) {
      for (std::size_t rank = begin; rank < end; ++rank) {
        if (i >= buffers[rank].size()) continue;
        Listed& listed = block[rank - begin];
        Change* const pair = &listed.changes[2 * i];
        list_changes(buffers[rank][i], pair);
        if (!listed.as_before) continue;
        const Change* const before = &block[rank - begin - 1].changes[2 * i];
        listed.as_before = is_same(pair[0], before[0]) && is_same(pair[1], before[1]);
      }
    }
  }

  void list_changes(BufferId b, Change* pair) const {
    const Buffer& buffer = graph_.buffers[b];
    const auto writer = static_cast<TaskId>(buffer.writer);
    const TaskId reader = last_reader_[b];
    const double taken = timeline_.start[writer];
    const double freed = is_handed_over(buffer, reader) ? timeline_.start[reader] : timeline_.end[reader];
    pair[0] = {taken, buffer.bytes, writer, b};
    pair[1] = {std::max(freed, taken), -buffer.bytes, reader, b};
  }

  bool is_same(const Change& a, const Change& b) const {
    const Task &of_a = graph_.tasks[a.task], &of_b = graph_.tasks[b.task];
    return a.time == b.time && a.bytes == b.bytes && of_a.work == of_b.work && of_a.micro_batch == of_b.micro_batch &&
           of_a.slice == of_b.slice && of_a.step == of_b.step &&
           graph_.buffers[a.buffer].kind == graph_.buffers[b.buffer].kind &&
           is_layer_input_[a.buffer] == is_layer_input_[b.buffer];
  }
  static bool is_same(const StaticBytes& a, const StaticBytes& b) {
    return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer;
  }

  // Of each segment: what it keeps, by part.
  void list_kept() {
    const std::vector<Block> blocks = blocks_of(graph_.model);
    for (std::size_t w = 0; w < graph_.works.size(); ++w) {
      const Work& work = graph_.works[w];
      if (work.kind != WorkKind::segment) continue;
      const auto operators = operators_of(graph_, work);
      for (int i = work.first_op; i < work.last_op; ++i) {
        const Operator& op = operators[static_cast<std::size_t>(i)];
        add_kept(op, blocks[static_cast<std::size_t>(op.block)], graph_.shape, kept_[w]);
      }
    }
  }

  MemoryParts parts_of(BufferId b) const {
    const Buffer& buffer = graph_.buffers[b];
    if (buffer.kind == BufferKind::saved)
      return kept_[static_cast<std::size_t>(graph_.tasks[static_cast<TaskId>(buffer.writer)].work)];
    MemoryParts parts;
    parts[buffer.kind == BufferKind::parameter ? MemoryPart::gathered_weights
          : buffer.kind == BufferKind::bucket  ? MemoryPart::gradient_buckets
          : buffer.kind == BufferKind::kept    ? MemoryPart::kept_for_fillers
          : is_layer_input_[b]                 ? MemoryPart::layer_inputs
                                               : MemoryPart::messages] = buffer.bytes;
    return parts;
  }

  std::string label_in_truth(TaskId id) const {
    Task task = graph_.tasks[id];
    const bool later = steady_ != nullptr && timeline_.start[id] > steady_->steps[0].until_s;
    if (later && task.micro_batch != none) task.micro_batch += steady_->left_out * steady_->micro_batches;
    return label_of(graph_, task);
  }

  RankMemory peak_of(std::size_t rank, std::vector<Change>& changes) const {
    // What ends at a date is free for what starts at it. Buffers are made stage by stage, each micro-batch after
    // micro-batch: long runs, which merging likes.
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
    memory.peak =
        memory.fixed.weights + memory.fixed.gradients + memory.fixed.optimizer + memory.activations_peak;
    return memory;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const SteadyState* steady_;
  std::vector<MemoryParts> kept_;     // per work
  std::vector<bool> is_layer_input_;  // per buffer: what a recomputed block starts from
  std::vector<TaskId> last_reader_;   // per buffer
};

}  // namespace

std::vector<RankMemory> memory_timeline(const TaskGraph& graph, const Timeline& timeline,
                                        const SteadyState* steady) {
  return Accounting(graph, timeline, steady).run();
}

}  // namespace slipway
