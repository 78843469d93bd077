#include "scenarios/chrome_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

namespace slipway {
namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// Shortest digits that read back as the same double; JSON has no NaN (a diverged loss), so null.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string memory_of(const TraceRecord& record) {
  if (record.memory_peak_bytes == 0) return "";
  return fmt::format(R"(,"memory_bytes":{},"memory_peak_bytes":{})", number(record.memory_bytes),
                     number(record.memory_peak_bytes));
}

}  // namespace

ChromeTraceWriter::ChromeTraceWriter(std::ostream& out, const Trace& header) : out_(out) {
  out_ << "{\"otherData\":{\"engine\":" << quoted(header.engine)
       << ",\"scenario\":" << quoted(header.scenario) << ",\"summary\":" << quoted(header.summary)
       << ",\"ranks\":" << header.ranks << ",\"steps\":" << header.steps;
  if (header.window > 1) out_ << ",\"window\":" << header.window;
  out_ << ",\"losses\":[";
  for (std::size_t i = 0; i < header.losses.size(); ++i) {
    const LossPoint& point = header.losses[i];
    out_ << (i == 0 ? "\n" : ",\n") << "{\"step\":" << point.step << ",\"samples\":" << point.samples
         << ",\"loss\":" << number(point.loss);
    if (point.learning_rate) out_ << ",\"learning_rate\":" << number(*point.learning_rate);
    if (point.batch) out_ << ",\"batch\":" << *point.batch;
    if (point.gradient_square) out_ << ",\"gradient_square\":" << number(*point.gradient_square);
    if (point.gradient_variance) out_ << ",\"gradient_variance\":" << number(*point.gradient_variance);
    if (point.evaluation_loss) out_ << ",\"evaluation_loss\":" << number(*point.evaluation_loss);
    out_ << '}';
  }
  out_ << ']';
  if (!header.peak_bytes.empty()) {
    out_ << ",\"peak_bytes\":[";
    for (std::size_t rank = 0; rank < header.peak_bytes.size(); ++rank)
      out_ << (rank == 0 ? "" : ",") << number(header.peak_bytes[rank]);
    out_ << ']';
  }
  out_ << "},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[";
}

void ChromeTraceWriter::begin_event() {
  out_ << (first_ ? "\n" : ",\n");
  first_ = false;
}

int ChromeTraceWriter::thread_of(const TraceRecord& record) {
  auto& lanes = threads_[record.rank];
  const auto found = lanes.find(record.lane);
  if (found != lanes.end()) return found->second;
  if (lanes.empty()) {
    begin_event();
    out_ << fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})",
                        record.rank);
  }
  const int tid = static_cast<int>(lanes.size()) + 1;
  lanes.emplace(record.lane, tid);
  begin_event();
  out_ << fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      record.rank, tid, quoted(record.lane));
  return tid;
}

void ChromeTraceWriter::write(const TraceRecord& record) {
  const int tid = thread_of(record);
  begin_event();
  out_ << fmt::format(
      R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"step":{},"label":{},"kind":{},)"
      R"("start_s":{},"end_s":{},"wait_s":{},"flops":{},"bytes":{},"group":{}{}}}}})",
      quoted(record.label), quoted(record.kind), record.rank, tid, number(record.start_s * 1e6),
      number((record.end_s - record.start_s) * 1e6), record.step, quoted(record.label), quoted(record.kind),
      number(record.start_s), number(record.end_s), number(record.wait_s), number(record.flops),
      number(record.bytes), record.group, memory_of(record));
  if (record.memory_peak_bytes > 0) write_memory(record);
}

// A counter of the rank's process, drawn as a curve: a compute task's most from its start on, since nobody knows when within
// it that is, and what is left at its end. What has not changed is not told again.
void ChromeTraceWriter::write_memory(const TraceRecord& record) {
  if (record.lane != "compute") return;
  write_counter(record.rank, record.start_s, record.memory_peak_bytes);
  write_counter(record.rank, record.end_s, record.memory_bytes);
}

void ChromeTraceWriter::write_counter(int rank, double at_s, double bytes) {
  const auto [known, is_new] = counted_.try_emplace(rank, bytes);
  if (!is_new && known->second == bytes) return;
  known->second = bytes;
  begin_event();
  out_ << fmt::format(R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"bytes":{}}}}})", rank, number(at_s * 1e6),
                      number(bytes));
}

void ChromeTraceWriter::finish() {
  out_ << "\n]}\n" << std::flush;
  if (!out_) throw std::runtime_error("cannot write the trace: the output stream failed (disk full?)");
}

void write_chrome_trace(std::ostream& out, const Trace& trace) {
  ChromeTraceWriter writer(out, trace);
  for (const TraceRecord& record : trace.records) writer.write(record);
  writer.finish();
}

}  // namespace slipway
