#include "models/trace/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "models/model/operators.h"

namespace slipway::models {
namespace {

auto task_key(const TraceRecord& record) { return std::tie(record.step, record.group, record.lane, record.label); }

// `members` are the records of one task on all of its ranks.
void split_one(std::vector<TraceRecord>& records, std::span<const std::size_t> members) {
  double latest = -std::numeric_limits<double>::infinity();
  for (std::size_t i : members) latest = std::max(latest, records[i].start_s);
  for (std::size_t i : members) {
    TraceRecord& record = records[i];
    record.wait_s = std::clamp(latest - record.start_s, 0.0, std::max(0.0, record.end_s - record.start_s));
  }
}

// Calls `use` with the indices of each transfer's and collective's records.
template <typename Use>
void for_each_message(const Trace& trace, Use use) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < trace.records.size(); ++i)
    if (is_communication(trace.records[i].kind)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return task_key(trace.records[a]) < task_key(trace.records[b]);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && task_key(trace.records[order[end]]) == task_key(trace.records[order[begin]])) ++end;
    use(std::span<const std::size_t>(order).subspan(begin, end - begin));
    begin = end;
  }
}

constexpr std::array<const char*, 13> field_names{"step", "rank",  "lane",  "label", "kind",   "start",      "end",
                                                  "wait", "flops", "bytes", "group", "memory", "memory peak"};

void append_name(std::string& text, const std::string& name, const char* field) {
  if (name.empty() || name.find_first_of("\t\r\n") != std::string::npos)
    throw std::invalid_argument(std::string("a trace record's ") + field + " is \"" + name +
                                "\"; it must not be empty nor hold a tab or line end");
  text += name;
  text += '\t';
}

template <typename Number>
void append_number(std::string& text, Number value) {
  std::array<char, 32> digits{};
  std::to_chars_result result{};
  if constexpr (std::is_floating_point_v<Number>)
    result = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, 17);
  else
    result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), result.ptr);
}

// Returns the fields of a line one by one.
class FieldReader {
 public:
  explicit FieldReader(std::string_view line) : line_(line), rest_(line) {}

  std::string_view text() {
    if (ended_) fail("is missing");
    const std::size_t tab = rest_.find('\t');
    const std::string_view field = rest_.substr(0, tab);
    ended_ = tab == std::string_view::npos;
    rest_ = ended_ ? std::string_view() : rest_.substr(tab + 1);
    if (field.empty()) fail("is empty");
    ++index_;
    return field;
  }

  template <typename Number>
  Number number() {
    const std::string_view field = text();
    Number value{};
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size()) {
      --index_;
      fail("is no number: \"" + std::string(field) + "\"");
    }
    return value;
  }

  void end() const {
    if (!ended_) throw std::runtime_error("trace record has more than 13 fields: " + std::string(line_));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(std::string("trace record: field ") + field_names[index_] + " " + what +
                             " in line: " + std::string(line_));
  }

  std::string_view line_, rest_;
  std::size_t index_ = 0;
  bool ended_ = false;
};

}  // namespace

bool is_communication(std::string_view kind) {
  return kind == "transfer" || value_in(collective_names, kind).value_or(Collective::none) != Collective::none;
}

void split_waiting(Trace& trace) {
  for_each_message(trace, [&](std::span<const std::size_t> members) { split_one(trace.records, members); });
}

std::vector<double> work_times(const Trace& trace) {
  std::vector<double> seconds;
  for (const TraceRecord& record : trace.records) seconds.push_back(work_seconds(record));
  for_each_message(trace, [&](std::span<const std::size_t> members) {
    if (trace.records[members.front()].kind != "transfer") return;
    double longest = 0;
    for (const std::size_t i : members) longest = std::max(longest, seconds[i]);
    for (const std::size_t i : members) seconds[i] = longest;
  });
  return seconds;
}

std::string to_text(const TraceRecord& record) {
  std::string text;
  for (int value : {record.step, record.rank}) append_number(text, value), text += '\t';
  append_name(text, record.lane, "lane");
  append_name(text, record.label, "label");
  append_name(text, record.kind, "kind");
  for (double value : {record.start_s, record.end_s, record.wait_s, record.flops, record.bytes})
    append_number(text, value), text += '\t';
  append_number(text, record.group);
  for (double value : {record.memory_bytes, record.memory_peak_bytes}) text += '\t', append_number(text, value);
  return text;
}

TraceRecord record_from_text(std::string_view line) {
  FieldReader fields(line);
  TraceRecord record;
  record.step = fields.number<int>();
  record.rank = fields.number<int>();
  record.lane = fields.text();
  record.label = fields.text();
  record.kind = fields.text();
  record.start_s = fields.number<double>();
  record.end_s = fields.number<double>();
  record.wait_s = fields.number<double>();
  record.flops = fields.number<double>();
  record.bytes = fields.number<double>();
  record.group = fields.number<int>();
  record.memory_bytes = fields.number<double>();
  record.memory_peak_bytes = fields.number<double>();
  fields.end();
  return record;
}

}  // namespace slipway::models
