#include "exec/rank/records.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

#include "exec/run/run_files.h"

namespace slipway::exec {
namespace {

std::ofstream open_for_writing(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
  return file;
}

void close_checked(std::ofstream& file, const std::string& path) {
  errno = 0;
  file.close();
  if (!file)
    throw std::runtime_error("cannot write " + path +
                             (errno != 0 ? std::string(": ") + std::strerror(errno) : " (disk full?)") + "; make room");
}

}  // namespace

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
  const std::string path = records_path(directory, rank);
  std::ofstream file = open_for_writing(path);
  for (const TraceRecord& record : records) file << to_text(record) << '\n';
  close_checked(file, path);
}

}  // namespace slipway::exec
