#include "scenarios/predict/timeline_columns.h"

#include "schedules/draw/timeline_trace.h"

namespace slipway::scenarios {

TimelineColumns timeline_columns(const TaskGraph& graph, const Timeline& timeline) {
  TimelineColumns columns;
  const int last = timeline.steps * graph.window - 1;
  const auto add = [&](const TraceRecord& record, TaskId id) {
    const auto& task = graph.tasks[id];
    columns.rank.push_back(record.rank);
    columns.lane.push_back(record.lane);
    columns.task.push_back(record.label);
    columns.kind.push_back(record.kind);
    columns.stage.push_back(graph.works[task.work].stage);
    columns.micro_batch.push_back(task.micro_batch);
    columns.start_s.push_back(record.start_s);
    columns.end_s.push_back(record.end_s);
    columns.wait_s.push_back(record.wait_s);
    columns.flops.push_back(record.flops);
    columns.bytes.push_back(record.bytes);
    columns.memory_bytes.push_back(record.memory_bytes);
    columns.memory_peak_bytes.push_back(record.memory_peak_bytes);
  };
  each_record(graph, timeline, add, {.first_step = last, .last_step = last, .representatives_only = true});
  return columns;
}

const Description<TimelineColumns>& timeline_keys() {
  static const Description<TimelineColumns> description =
      Description<TimelineColumns>()
          .key("rank", "count", "list: the rank", &TimelineColumns::rank)
          .key("lane", "text", "list: \"compute\", or the group that communicates", &TimelineColumns::lane)
          .key("task", "text", "list: the label, unique on a rank", &TimelineColumns::task)
          .key("kind", "text", "list: \"forward\", \"all-reduce\", ...", &TimelineColumns::kind)
          .key("stage", "count", "list: the virtual stage; -1: of no stage", &TimelineColumns::stage)
          .key("micro_batch", "count", "list: the micro-batch; -1: once a step", &TimelineColumns::micro_batch)
          .key("start_s", "s", "list: from the start of the first simulated step", &TimelineColumns::start_s)
          .key("end_s", "s", "list: from the start of the first simulated step", &TimelineColumns::end_s)
          .key("wait_s", "s", "list: part of it spent waiting for other members", &TimelineColumns::wait_s)
          .key("flops", "FLOP", "list: what the task computes", &TimelineColumns::flops)
          .key("bytes", "bytes", "list: what the task moves", &TimelineColumns::bytes)
          .key("memory_bytes", "bytes", "list: tensors of the rank at the task's end", &TimelineColumns::memory_bytes)
          .key("memory_peak_bytes", "bytes", "list: the most meanwhile", &TimelineColumns::memory_peak_bytes);
  return description;
}

}  // namespace slipway::scenarios
