#include "exec/rank/records.h"

#include <map>

#include "exec/run/run_files.h"
#include "exec/run/whole_file.h"

namespace slipway::exec {

std::vector<TraceRecord> records_of(int rank, const std::vector<LaneStamp>& stamps,
                                    const std::vector<MemoryStamp>& memory, const std::vector<ClockSample>& clock,
                                    Nanoseconds origin) {
  std::map<std::pair<int, TaskId>, const MemoryStamp*> used;
  for (const MemoryStamp& stamp : memory) used[{stamp.step, stamp.task}] = &stamp;
  const auto seconds = [&](Nanoseconds stamp) { return static_cast<double>(on_rank0(stamp, clock) - origin) * 1e-9; };
  std::vector<TraceRecord> records;
  records.reserve(stamps.size());
  for (const LaneStamp& stamp : stamps) {
    const TaskGraph& graph = *stamp.graph;
    const Task& task = graph.tasks[stamp.task];
    TraceRecord record;
    record.step = stamp.step * stamp.graph->window + task.step;
    record.rank = rank;
    record.lane = stamp.lane;
    record.label = label_of(graph, stamp.task);
    record.kind = kind_of(graph, stamp.task);
    record.start_s = seconds(stamp.start_ns);
    record.end_s = seconds(stamp.end_ns);
    record.flops = flops_of(graph, stamp.task);
    record.bytes = graph.work(task).bytes;
    record.group = task.communicator;
    if (const auto found = used.find({stamp.step, stamp.task}); found != used.end()) {
      record.memory_bytes = static_cast<double>(found->second->bytes);
      record.memory_peak_bytes = static_cast<double>(found->second->peak_bytes);
    }
    records.push_back(std::move(record));
  }
  return records;
}

void write_records(const std::string& directory, int rank, const std::vector<TraceRecord>& records) {
  std::string text;
  for (const TraceRecord& record : records) text += to_text(record) + '\n';
  write_whole_file(records_path(directory, rank), text);
}

}  // namespace slipway::exec
