// I4 (a transfer has one sender, one receiver, equal bytes) and I5 (buffers are written before they are
// read, by one task, on a rank that takes part).
#include <cstdio>
#include <utility>

#include "schedules/graph/findings.h"
#include "schedules/graph/membership.h"

namespace slipway {
namespace {

std::string bytes_text(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f bytes", bytes);
  return text;
}

std::string end_defect(const TaskGraph& graph, std::span<const BufferId> buffers, std::int32_t rank,
                       double bytes, const char* verb) {
  if (buffers.size() != 1) {
    return std::string(verb) + " " + std::to_string(buffers.size()) + " buffers instead of one";
  }
  const Buffer& buffer = graph.buffers[buffers.front()];
  if (buffer.rank != rank) {
    return std::string(verb) + " a buffer of rank " + std::to_string(buffer.rank) + " instead of rank " +
           std::to_string(rank);
  }
  if (buffer.bytes != bytes) {
    return std::string(verb) + " " + bytes_text(buffer.bytes) + ", its message has " + bytes_text(bytes);
  }
  return {};
}

// Is `first` certainly over when `second` starts? A direct edge or a common compute lane nearly always
// answers; otherwise walk backwards as far as the global order allows.
class Precedence {
 public:
  Precedence(const TaskGraph& graph, const std::vector<std::uint32_t>& position)
      : graph_(graph), position_(position), seen_(graph.tasks.size(), none), next_(seen_) {}

  // Ask everything about one `second` before the next one.
  bool operator()(TaskId first, TaskId second) {
    if (std::exchange(second_, second) != second) {
      for (const TaskId before : graph_.predecessors[second]) next_[before] = second;
    }
    if (next_[first] == second) return true;
    if (position_[first] >= position_[second]) return false;
    const Task &a = graph_.tasks[first], &b = graph_.tasks[second];
    if (a.communicator == b.communicator && (a.communicator != none || a.rank == b.rank)) return true;
    return walk(first, second);
  }

 private:
  bool walk(TaskId first, TaskId second) {
    std::vector<TaskId> todo{second};
    const auto stamp = static_cast<std::int64_t>(stamps_++);
    while (!todo.empty()) {
      const TaskId at = todo.back();
      todo.pop_back();
      for (const TaskId before : graph_.predecessors[at]) {
        if (before == first) return true;
        if (position_[before] <= position_[first] || seen_[before] == stamp) continue;
        seen_[before] = stamp;
        todo.push_back(before);
      }
    }
    return false;
  }

  const TaskGraph& graph_;
  const std::vector<std::uint32_t>& position_;
  std::vector<std::int64_t> seen_;
  std::vector<std::int64_t> next_;  // the last `second` that a task precedes directly
  std::int64_t second_ = none;
  std::uint64_t stamps_ = 0;
};

const char* name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::value:
      return "value";
    case BufferKind::gradient:
      return "gradient";
    case BufferKind::saved:
      return "saved";
    case BufferKind::bucket:
      return "bucket";
    case BufferKind::parameter:
      return "parameter";
    case BufferKind::scalar:
      return "scalar";
    case BufferKind::kept:
      return "kept";
  }
  return "";
}

std::string spoken_buffer(const TaskGraph& graph, BufferId id) {
  const Buffer& buffer = graph.buffers[id];
  return std::string("the ") + name_of(buffer.kind) + " buffer " + std::to_string(id) + " of rank " +
         std::to_string(buffer.rank);
}

void check_writers(const TaskGraph& graph, const Membership& membership, Findings& findings) {
  std::vector<std::int64_t> writer(graph.buffers.size(), none);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    for (const BufferId buffer : graph.outputs[id]) {
      const Buffer& written = graph.buffers[buffer];
      if (!membership.has(id, written.rank)) {
        findings.add({id}, spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) +
                               ", where it does not run");
      }
      if (writer[buffer] != none) {
        const auto earlier = static_cast<TaskId>(writer[buffer]);
        findings.add({earlier, id}, spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) +
                                        " again, after " + spoken(graph, earlier));
      } else if (written.writer != static_cast<std::int64_t>(id)) {
        findings.add({id},
                     spoken(graph, id) + " writes " + spoken_buffer(graph, buffer) + " that is another's");
      }
      writer[buffer] = id;
    }
  }
  for (BufferId buffer = 0; buffer < graph.buffers.size() && !findings.full(); ++buffer) {
    const std::int32_t claimed = graph.buffers[buffer].writer;
    if (claimed == none || writer[buffer] != none) continue;
    findings.add({static_cast<TaskId>(claimed)}, spoken(graph, static_cast<TaskId>(claimed)) +
                                                     " should write " + spoken_buffer(graph, buffer) +
                                                     " and does not");
  }
}

}  // namespace

std::vector<Violation> check_transfers(const TaskGraph& graph) {
  Findings findings(4);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    if (graph.tasks[id].kind != TaskKind::transfer) continue;
    const auto members = members_of(graph, id);
    if (members.size() != 2 || members[0] == members[1]) {
      findings.add(
          {id}, spoken(graph, id) + " is a transfer: it needs one sender and one other rank that receives");
      continue;
    }
    const double bytes = graph.works[static_cast<std::size_t>(graph.tasks[id].work)].bytes;
    for (const std::string& defect :
         {end_defect(graph, graph.inputs[id], members[0], bytes, "sends"),
          end_defect(graph, graph.outputs[id], members[1], bytes, "receives")}) {
      if (!defect.empty()) findings.add({id}, spoken(graph, id) + " " + defect);
    }
  }
  return findings.take();
}

std::vector<Violation> check_buffers(const TaskGraph& graph) {
  Findings findings(5);
  const Membership membership(graph);
  check_writers(graph, membership, findings);
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) {
    findings.add({}, "there is no global order to tell when buffers are written");
    return findings.take();
  }
  Precedence precedes(graph, position);
  for (TaskId id = 0; id < graph.tasks.size() && !findings.full(); ++id) {
    for (const BufferId buffer : graph.inputs[id]) {
      const Buffer& read = graph.buffers[buffer];
      if (!membership.has(id, read.rank)) {
        findings.add(
            {id}, spoken(graph, id) + " reads " + spoken_buffer(graph, buffer) + ", where it does not run");
      } else if (read.writer != none && !precedes(static_cast<TaskId>(read.writer), id)) {
        const auto writer = static_cast<TaskId>(read.writer);
        findings.add({writer, id}, spoken(graph, id) + " reads " + spoken_buffer(graph, buffer) +
                                       " without waiting for " + spoken(graph, writer) +
                                       ", which writes it");
      }
    }
  }
  return findings.take();
}

}  // namespace slipway
