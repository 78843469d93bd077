// Traces as Chrome trace-event JSON, for https://ui.perfetto.dev, chrome://tracing and `slipway compare`.
//
//   {"otherData": {engine, scenario, summary, ranks, steps, step_low_s, step_high_s, losses, peak_bytes}, "displayTimeUnit": "ms",
//    "traceEvents": [ {"ph":"M", process and thread names}, {"ph":"X", one task on one rank},
//                     {"ph":"C", the rank's memory from the start and from the end of a compute task on}, ... ]}
//
// pid = rank, tid = lane of the rank (1 is the first lane seen, usually compute), ts and dur in µs.
// args hold step (from 0), label, kind, group (communicator, −1: none), wait_s, flops, bytes, and memory where it is
// known. start_s and end_s are there because µs lose digits. Reading a file back gives the trace bit for bit.
// Traces of millions of tasks pass through little memory: the writer streams, and the reader keeps no document.
// Guarded by tests/scenarios/chrome_trace_test.cpp.
#pragma once

#include <iosfwd>
#include <map>
#include <string>

#include "models/trace/trace.h"

namespace slipway::scenarios {

// Writes a trace record by record. The header (all but `records`) comes first, finish() last.
class ChromeTraceWriter {
 public:
  ChromeTraceWriter(std::ostream& out, const Trace& header);
  void write(const TraceRecord& record);
  // Closes the document. Throws std::runtime_error when the stream has failed.
  void finish();

 private:
  int thread_of(const TraceRecord& record);  // names process and thread at their first task
  void write_memory(const TraceRecord& record);
  void write_counter(int rank, double at_s, double bytes);
  void begin_event();
  std::ostream& out_;
  std::map<int, std::map<std::string, int>> threads_;  // rank → lane → tid
  std::map<int, double> counted_;                      // rank → memory as last written
  bool first_ = true;
};

void write_chrome_trace(std::ostream& out, const Trace& trace);

// Reads the output of write_chrome_trace. Throws std::runtime_error with the file and the defect: no JSON, or no trace
// of Slipway.
Trace read_chrome_trace(std::istream& in, const std::string& name_for_errors);

}  // namespace slipway::scenarios
