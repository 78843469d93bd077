#include "scenarios/predict/chrome_trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace slipway::scenarios {

namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// The shortest digits that read back as the same double. NaN (a diverged loss) becomes null, because JSON has no NaN.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string memory_of(const TraceRecord& record) {
  if (record.memory_peak_bytes == 0) return "";
  return fmt::format(R"(,"memory_bytes":{},"memory_peak_bytes":{})", number(record.memory_bytes),
                     number(record.memory_peak_bytes));
}

using Json = nlohmann::json;
using LaneNames = std::map<std::pair<int, int>, std::string>;  // (pid, tid) → lane

// The error for a value of the wrong type.
std::runtime_error misplaced(const std::string& at, const Json& value, const char* expected) {
  // Text of a list within lists may need more stack than there is.
  const bool is_short = value.is_primitive() || value.empty();
  std::string held = is_short ? value.dump(-1, ' ', false, Json::error_handler_t::replace) : std::string();
  if (!is_short || held.size() > 40) held = std::string(value.is_structured() ? "an " : "a long ") + value.type_name();
  return std::runtime_error(at + " is " + held + ", where " + expected + " belongs");
}

// One value of an object by its key. `at`: the object's place, "" or "args."; it must outlive this. Errors name the
// place.
class Field {
 public:
  Field(const Json& object, std::string_view at, const char* key) : at_(at), key_(key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found == object.end()) throw std::runtime_error(place() + " is missing");
    value_ = &*found;
  }
  double number() const { return checked(value_->is_number(), "a number").get<double>(); }
  // As JSON cannot hold NaN, it was written as null.
  double number_or_nan() const { return value_->is_null() ? std::numeric_limits<double>::quiet_NaN() : number(); }
  template <typename Whole>
  Whole whole() const {
    const auto number = checked(value_->is_number_integer(), "a whole number").get<std::int64_t>();
    checked(std::in_range<Whole>(number) && (number >= 0 || !value_->is_number_unsigned()), "a smaller number");
    return static_cast<Whole>(number);
  }
  std::string text() const { return checked(value_->is_string(), "text").get<std::string>(); }
  const Json& object() const { return checked(value_->is_object(), "an object"); }
  const Json& list() const { return checked(value_->is_array(), "a list"); }

 private:
  std::string place() const { return std::string(at_) + key_; }
  const Json& checked(bool is_right, const char* expected) const {
    if (!is_right) throw misplaced(place(), *value_, expected);
    return *value_;
  }
  std::string_view at_;
  const char* key_;
  const Json* value_ = nullptr;
};

double number_or(const Json& object, std::string_view at, const char* key, double otherwise) {
  return object.contains(key) ? Field(object, at, key).number() : otherwise;
}

TraceRecord record_of(const Json& event, const LaneNames& lanes) {
  const Json& args = Field(event, "", "args").object();
  const auto of_task = [&](const char* key) { return Field(args, "args.", key); };
  TraceRecord record;
  record.rank = Field(event, "", "pid").whole<int>();
  const auto lane = lanes.find({record.rank, Field(event, "", "tid").whole<int>()});
  if (lane == lanes.end()) throw std::runtime_error("a task comes before the name of its lane");
  record.lane = lane->second;
  record.step = of_task("step").whole<int>();
  record.label = of_task("label").text();
  record.kind = of_task("kind").text();
  record.start_s = of_task("start_s").number();
  record.end_s = of_task("end_s").number();
  record.wait_s = of_task("wait_s").number();
  record.flops = of_task("flops").number();
  record.bytes = of_task("bytes").number();
  record.group = of_task("group").whole<int>();
  record.memory_bytes = number_or(args, "args.", "memory_bytes", 0);
  record.memory_peak_bytes = number_or(args, "args.", "memory_peak_bytes", 0);
  return record;
}

void take_event(const Json& event, Trace& trace, LaneNames& lanes) {
  const std::string phase = Field(event, "", "ph").text();
  if (phase == "X") {
    trace.records.push_back(record_of(event, lanes));
  } else if (phase == "M" && Field(event, "", "name").text() == "thread_name") {
    lanes[{Field(event, "", "pid").whole<int>(), Field(event, "", "tid").whole<int>()}] =
        Field(Field(event, "", "args").object(), "args.", "name").text();
  }
}

LossPoint loss_of(const Json& point, const std::string& at) {
  LossPoint taken{Field(point, at, "step").whole<int>(), Field(point, at, "samples").whole<std::int64_t>(),
                  Field(point, at, "loss").number_or_nan()};
  const auto take = [&](const char* key, std::optional<double>& to) {
    if (point.contains(key)) to = Field(point, at, key).number_or_nan();
  };
  take("learning_rate", taken.learning_rate);
  take("gradient_square", taken.gradient_square);
  take("gradient_variance", taken.gradient_variance);
  take("evaluation_loss", taken.evaluation_loss);
  if (point.contains("batch")) taken.batch = Field(point, at, "batch").whole<std::int64_t>();
  return taken;
}

void take_peaks(const Json& peaks, Trace& trace) {
  for (const Json& peak : peaks) {
    if (!peak.is_number())
      throw misplaced("otherData.peak_bytes[" + std::to_string(trace.peak_bytes.size()) + "]", peak, "a number");
    trace.peak_bytes.push_back(peak.get<double>());
  }
}

void take_header(const Json& document, Trace& trace) {
  const Json& other = Field(document, "", "otherData").object();
  const auto of_run = [&](const char* key) { return Field(other, "otherData.", key); };
  trace.engine = of_run("engine").text();
  trace.scenario = of_run("scenario").text();
  trace.summary = of_run("summary").text();
  trace.ranks = of_run("ranks").whole<int>();
  trace.steps = of_run("steps").whole<int>();
  trace.window = other.contains("window") ? of_run("window").whole<int>() : 1;
  if (trace.window < 1) throw std::runtime_error("windows of " + std::to_string(trace.window) + " steps");
  if (other.contains("step_low_s")) trace.step_low_s = of_run("step_low_s").number();
  if (other.contains("step_high_s")) trace.step_high_s = of_run("step_high_s").number();
  if (other.contains("peak_bytes")) take_peaks(of_run("peak_bytes").list(), trace);
  for (const Json& point : of_run("losses").list())
    trace.losses.push_back(loss_of(point, "otherData.losses[" + std::to_string(trace.losses.size()) + "]."));
}

void refuse_outside(const TraceRecord& record, const Trace& trace) {
  if (record.rank >= 0 && record.rank < trace.ranks && record.step >= 0 && record.step < trace.steps) return;
  throw std::runtime_error("task " + record.label + " is of rank " + std::to_string(record.rank) + ", step " +
                           std::to_string(std::int64_t{record.step} + 1) + ", but there are " +
                           std::to_string(trace.ranks) + " ranks and " + std::to_string(trace.steps) + " steps");
}

// Strips the library's prefix of "[json.exception.parse_error.101] parse error at line 3, column 5: ...", which only
// programmers need.
std::string without_library(const std::string& reason) {
  const std::size_t end = reason.starts_with("[json.exception") ? reason.find("] ") : std::string::npos;
  return end == std::string::npos ? reason : reason.substr(end + 2);
}

}  // namespace

ChromeTraceWriter::ChromeTraceWriter(std::ostream& out, const Trace& header) : out_(out) {
  out_ << "{\"otherData\":{\"engine\":" << quoted(header.engine) << ",\"scenario\":" << quoted(header.scenario)
       << ",\"summary\":" << quoted(header.summary) << ",\"ranks\":" << header.ranks << ",\"steps\":" << header.steps;
  if (header.window > 1) out_ << ",\"window\":" << header.window;
  if (header.step_high_s > 0)
    out_ << ",\"step_low_s\":" << number(header.step_low_s) << ",\"step_high_s\":" << number(header.step_high_s);
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
    out_ << fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", record.rank);
  }
  const int tid = static_cast<int>(lanes.size()) + 1;
  lanes.emplace(record.lane, tid);
  begin_event();
  out_ << fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", record.rank, tid,
                      quoted(record.lane));
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
      number(record.start_s), number(record.end_s), number(record.wait_s), number(record.flops), number(record.bytes),
      record.group, memory_of(record));
  if (record.memory_peak_bytes > 0) write_memory(record);
}

// Writes a counter of the rank's process, which viewers draw as a curve: a compute task's peak from its start, and the
// rest at its end. The time of the peak within a task is unknown. Unchanged values are not repeated.
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
  out_ << fmt::format(R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"bytes":{}}}}})", rank,
                      number(at_s * 1e6), number(bytes));
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

Trace read_chrome_trace(std::istream& in, const std::string& name_for_errors) {
  Trace trace;
  LaneNames lanes;
  // Depth 0 is the document, 1 its values, 2 an event of traceEvents (or a value of otherData). Complete events are
  // taken and dropped. otherData stays and is read at the end.
  bool in_events = false;
  std::size_t events = 0;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) in_events = value == "traceEvents";
    if (depth != 2 || event != Json::parse_event_t::object_end || !in_events) return true;
    try {
      take_event(value, trace, lanes);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("traceEvents[" + std::to_string(events) + "]: " + error.what());
    }
    ++events;
    return false;
  };
  try {
    const Json document = Json::parse(in, callback);
    const Json& left = Field(document, "", "traceEvents").list();
    if (!left.empty()) throw misplaced("an item of traceEvents", left.front(), "an object");
    take_header(document, trace);
    for (const TraceRecord& record : trace.records) refuse_outside(record, trace);
  } catch (const std::exception& error) {
    throw std::runtime_error(name_for_errors + ": not a trace written by slipway (" + without_library(error.what()) +
                             "); give a file that simulate --trace or execute wrote");
  }
  return trace;
}

}  // namespace slipway::scenarios
