#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "scenarios/chrome_trace.h"

namespace slipway {
namespace {

using Json = nlohmann::json;
using LaneNames = std::map<std::pair<int, int>, std::string>;  // (pid, tid) → lane

double number_or_nan(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

TraceRecord record_of(const Json& event, const LaneNames& lanes) {
  const Json& args = event.at("args");
  TraceRecord record;
  record.rank = event.at("pid").get<int>();
  const auto lane = lanes.find({record.rank, event.at("tid").get<int>()});
  if (lane == lanes.end()) throw std::runtime_error("a task comes before the name of its lane");
  record.lane = lane->second;
  record.step = args.at("step").get<int>();
  record.label = args.at("label").get<std::string>();
  record.kind = args.at("kind").get<std::string>();
  record.start_s = args.at("start_s").get<double>();
  record.end_s = args.at("end_s").get<double>();
  record.wait_s = args.at("wait_s").get<double>();
  record.flops = args.at("flops").get<double>();
  record.bytes = args.at("bytes").get<double>();
  record.group = args.at("group").get<int>();
  record.memory_bytes = args.value("memory_bytes", 0.0);
  record.memory_peak_bytes = args.value("memory_peak_bytes", 0.0);
  return record;
}

void take_event(const Json& event, Trace& trace, LaneNames& lanes) {
  const std::string phase = event.at("ph").get<std::string>();
  if (phase == "X") {
    trace.records.push_back(record_of(event, lanes));
  } else if (phase == "M" && event.at("name") == "thread_name") {
    lanes[{event.at("pid").get<int>(), event.at("tid").get<int>()}] =
        event.at("args").at("name").get<std::string>();
  }
}

void take_header(const Json& other, Trace& trace) {
  trace.engine = other.at("engine").get<std::string>();
  trace.scenario = other.at("scenario").get<std::string>();
  trace.summary = other.at("summary").get<std::string>();
  trace.ranks = other.at("ranks").get<int>();
  trace.steps = other.at("steps").get<int>();
  trace.window = other.value("window", 1);
  if (trace.window < 1) throw std::runtime_error("windows of " + std::to_string(trace.window) + " steps");
  trace.peak_bytes = other.value("peak_bytes", std::vector<double>());
  for (const Json& point : other.at("losses")) {
    trace.losses.push_back({point.at("step").get<int>(), point.at("samples").get<std::int64_t>(),
                            number_or_nan(point.at("loss"))});
    LossPoint& taken = trace.losses.back();
    const auto take = [&](const char* key, std::optional<double>& to) {
      if (point.contains(key)) to = number_or_nan(point.at(key));
    };
    take("learning_rate", taken.learning_rate);
    take("gradient_square", taken.gradient_square);
    take("gradient_variance", taken.gradient_variance);
    take("evaluation_loss", taken.evaluation_loss);
    if (point.contains("batch")) taken.batch = point.at("batch").get<std::int64_t>();
  }
}

void refuse_outside(const TraceRecord& record, const Trace& trace) {
  if (record.rank >= 0 && record.rank < trace.ranks && record.step >= 0 && record.step < trace.steps) return;
  throw std::runtime_error("task " + record.label + " is of rank " + std::to_string(record.rank) + ", step " +
                           std::to_string(record.step + 1) + ", but there are " + std::to_string(trace.ranks) +
                           " ranks and " + std::to_string(trace.steps) + " steps");
}

}  // namespace

Trace read_chrome_trace(std::istream& in, const std::string& name_for_errors) {
  Trace trace;
  LaneNames lanes;
  // Depth 0 is the document, 1 its values, 2 an event of traceEvents (or a value of otherData). Events are
  // taken and dropped as they complete; otherData stays and is read at the end.
  bool in_events = false;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key) in_events = value == "traceEvents";
    if (depth != 2 || event != Json::parse_event_t::object_end || !in_events) return true;
    take_event(value, trace, lanes);
    return false;
  };
  try {
    const Json document = Json::parse(in, callback);
    if (!document.contains("otherData") || !document.contains("traceEvents")) {
      throw std::runtime_error("otherData or traceEvents is missing");
    }
    take_header(document.at("otherData"), trace);
    for (const TraceRecord& record : trace.records) refuse_outside(record, trace);
  } catch (const std::exception& error) {
    throw std::runtime_error(name_for_errors + ": not a trace written by slipway (" + error.what() +
                             "); give a file that simulate --trace or execute wrote");
  }
  return trace;
}

}  // namespace slipway
