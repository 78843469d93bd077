#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "scenarios/commands/kineto/gzip_file.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/files/files.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {
namespace {

constexpr const char* how_to_record =
    "record it with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
    "record_shapes=True) and export_chrome_trace";

// A value inside the document; numbers are sometimes written as text.
struct Scalar {
  double number = 0;
  std::string_view text;
  bool is_text = false;
};

constexpr double most = 9.2e18;   // of what becomes an integer; baseTimeNanoseconds is 1.8e18
constexpr double most_int = 2e9;  // of what becomes an int

// 0 for text that is no such number: "nan" begins the names of kernels, too.
double number_of(const Scalar& value) {
  if (!value.is_text) return value.number;
  double number = 0;
  std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  return std::abs(number) <= most ? number : 0;
}

int int_of(double number) { return static_cast<int>(std::clamp(number, -most_int, most_int)); }

// "7" of a number, "Spans" of text.
std::string text_of(const Scalar& value) {
  return value.is_text ? std::string(value.text) : std::to_string(static_cast<std::int64_t>(value.number));
}

// "[0, 1, 8]"; nothing where the list is cut ("[0, 1, ...]").
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    int rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error == std::errc()) ranks.push_back(rank);
    at = error == std::errc() ? next : at + 1;
  }
  return ranks;
}

struct EventFields {
  std::string phase, category, name, process, thread;
  double start_us = 0, duration_us = 0, correlation = nothing, bytes = 0;
  std::optional<double> stream, device;
  KinetoMessage message;
  std::vector<KinetoArgument> arguments;
};

// Depth 1 is the document, 2 a list or an object in it, 3 an event, 4 its args, 5 and more the lists in them.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(KinetoTrace& trace) : trace_(trace) {}

  bool null() override { return take({}); }
  bool boolean(bool value) override { return take({value ? 1.0 : 0.0, {}, false}); }
  bool number_integer(number_integer_t value) override { return take({static_cast<double>(value), {}, false}); }
  bool number_unsigned(number_unsigned_t value) override { return take({static_cast<double>(value), {}, false}); }
  bool number_float(number_float_t value, const string_t&) override { return take({value, {}, false}); }
  bool string(string_t& value) override { return take({0, value, true}); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& value) override {
    if (depth_ == 1) section_ = value;
    if (depth_ == 2 || depth_ == 3) key_ = value;
    if (depth_ == 4) argument_key_ = value;
    if (depth_ == 1 && value == "traceEvents") has_events = true;
    if (depth_ == 2 && section_ == "otherData" && value == "engine") is_slipways = true;
    return true;
  }
  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ >= 6 && is_of_shapes()) return is_odd("an object among the shapes of an operator's inputs");
    if (depth_ == 3 && section_ == "traceEvents") event_ = {};
    return true;
  }
  bool end_object() override {
    if (depth_ == 3 && section_ == "traceEvents") take_event();
    if (depth_ == 3 && section_ == "deviceProperties") ++trace_.devices;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 6 && is_of_shapes()) event_.arguments.resize(++argument_);
    if (depth_ == 5) argument_ = 0;
    if (depth_ == 7) tensor_elements_ = 1;
    return true;
  }
  bool end_array() override {
    if (depth_ == 7 && is_of_shapes()) event_.arguments.back().list_elements += tensor_elements_;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_position = position;
    return false;
  }

  // Sorts what was read and finds the operator of each kernel.
  void finish();

  bool has_events = false, is_slipways = false;
  std::string odd;  // what the reader stopped at, though it is JSON
  std::size_t error_position = 0;

 private:
  bool is_of_shapes() const { return section_ == "traceEvents" && key_ == "args" && argument_key_ == "Input Dims"; }

  // Always false, which ends the reading.
  bool is_odd(const std::string& what) {
    odd = what;
    return false;
  }

  bool take(const Scalar& value) {
    if (!value.is_text && !(std::abs(value.number) <= most)) return is_odd("a number above 9.2e18");
    const bool counts = (depth_ == 3 && key_ == "dur") || (depth_ >= 6 && is_of_shapes());
    if (counts && number_of(value) < 0) return is_odd("a duration or a shape below 0");
    if (section_ == "traceEvents") {
      if (depth_ == 3) take_field(value);
      if (depth_ == 4 && key_ == "args") take_argument(value);
      if (depth_ >= 5 && key_ == "args") take_item(value);
    } else if (section_ == "deviceProperties" && depth_ == 3) {
      if (key_ == "name" && trace_.device.empty()) trace_.device = text_of(value);
      if (key_ == "totalGlobalMem" && trace_.device_bytes == 0) trace_.device_bytes = number_of(value);
    } else if (section_ == "distributedInfo" && depth_ == 2) {
      if (key_ == "rank") trace_.rank = int_of(number_of(value)), trace_.has_rank = true;
      if (key_ == "world_size") trace_.world = int_of(number_of(value));
    }
    return true;
  }

  void take_field(const Scalar& value) {
    if (key_ == "ph") event_.phase = value.text;
    if (key_ == "cat") event_.category = value.text;
    if (key_ == "name") event_.name = value.text;
    if (key_ == "pid") event_.process = text_of(value);
    if (key_ == "tid") event_.thread = text_of(value);
    if (key_ == "ts") event_.start_us = number_of(value);
    if (key_ == "dur") event_.duration_us = number_of(value);
  }

  void take_argument(const Scalar& value) {
    KinetoMessage& message = event_.message;
    if (argument_key_ == "correlation") event_.correlation = number_of(value);
    if (argument_key_ == "stream") event_.stream = number_of(value);
    if (argument_key_ == "device") event_.device = number_of(value);
    if (argument_key_ == "bytes") event_.bytes = number_of(value);
    if (argument_key_ == "Collective name") message.collective = value.text;
    if (argument_key_ == "dtype") message.dtype = value.text;
    if (argument_key_ == "In msg nelems") message.in_elements = number_of(value);
    if (argument_key_ == "Out msg nelems") message.out_elements = number_of(value);
    if (argument_key_ == "Group size") message.members = int_of(number_of(value));
    if (argument_key_ == "Process Group Name") message.group = text_of(value);
    if (argument_key_ == "Process Group Description") message.description = value.text;
    if (argument_key_ == "Process Group Ranks") message.ranks = ranks_in(value.text);
  }

  void take_item(const Scalar& value) {
    if (is_of_shapes()) {
      if (depth_ == 5) event_.arguments.resize(++argument_);  // an argument without a shape
      if (depth_ == 6) event_.arguments.back().dims.push_back(static_cast<std::int64_t>(number_of(value)));
      if (depth_ == 7) tensor_elements_ *= number_of(value);
      return;
    }
    const bool types = argument_key_ == "Input type", values = argument_key_ == "Concrete Inputs";
    if (depth_ != 5 || !(types || values)) return;
    const std::size_t at = argument_++;
    // These lists may come before the shapes.
    if (event_.texts.size() <= at) event_.texts.resize(at + 1);
    (types ? event_.texts[at].first : event_.texts[at].second) = value.text;
  }

  void take_event();

  KinetoTrace& trace_;
  int depth_ = 0;
  std::string section_, key_, argument_key_;
  std::size_t argument_ = 0;
  double tensor_elements_ = 1;
  struct Event : EventFields {
    std::vector<std::pair<std::string, std::string>> texts;  // type and value of each argument
  } event_;
  std::unordered_map<std::string, std::int32_t> names_, threads_, arguments_;
  std::unordered_map<std::int64_t, std::pair<std::int32_t, double>> launched_;  // correlation → thread, time
  std::vector<std::int64_t> correlations_;                                      // of each kernel

  std::int32_t number_in(std::unordered_map<std::string, std::int32_t>& known, const std::string& text) {
    return known.try_emplace(text, static_cast<std::int32_t>(known.size())).first->second;
  }
  std::int32_t name_index(const std::string& name) {
    const std::int32_t index = number_in(names_, name);
    if (static_cast<std::size_t>(index) == trace_.names.size()) trace_.names.push_back(name);
    return index;
  }
  std::int32_t thread_index() { return number_in(threads_, event_.process + "/" + event_.thread); }
  std::int32_t arguments_index();
  std::int32_t message_index() {
    if (event_.message.collective.empty()) return nothing;
    trace_.messages.push_back(std::move(event_.message));
    return static_cast<std::int32_t>(trace_.messages.size()) - 1;
  }
  void take_kernel(bool is_copy);
  void find_parents();
  void find_launches();
};

std::int32_t Handler::arguments_index() {
  std::vector<KinetoArgument>& arguments = event_.arguments;
  if (arguments.empty()) return nothing;
  trace_.has_shapes = true;
  std::string key;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    KinetoArgument& each = arguments[i];
    if (i < event_.texts.size()) each.type = event_.texts[i].first, each.value = event_.texts[i].second;
    for (const std::int64_t size : each.dims) key += std::to_string(size) + ",";
    key += each.type + "=" + each.value + ":" + std::to_string(each.list_elements) + ";";
  }
  const std::int32_t index = number_in(arguments_, key);
  if (static_cast<std::size_t>(index) == trace_.arguments.size()) trace_.arguments.push_back(std::move(arguments));
  return index;
}

void Handler::take_kernel(bool is_copy) {
  KinetoKernel kernel;
  kernel.name = name_index(event_.name);
  kernel.device = int_of(event_.device.value_or(0));
  kernel.stream = int_of(event_.stream.value_or(0));
  kernel.start_us = event_.start_us, kernel.duration_us = event_.duration_us;
  kernel.bytes = event_.bytes, kernel.is_copy = is_copy;
  kernel.message = message_index();
  trace_.kernels.push_back(kernel);
  correlations_.push_back(static_cast<std::int64_t>(event_.correlation));
}

void Handler::take_event() {
  if (event_.phase != "X") return;
  const std::string& category = event_.category;
  if (category == "kernel") {
    take_kernel(false);
  } else if (category == "gpu_memcpy" || category == "gpu_memset") {
    take_kernel(true);
  } else if (category == "cuda_runtime" || category == "cuda_driver") {
    if (event_.correlation > 0)
      launched_[static_cast<std::int64_t>(event_.correlation)] = {thread_index(), event_.start_us};
  } else if (category == "cpu_op" || category == "user_annotation") {
    trace_.operators.push_back({name_index(event_.name), thread_index(), event_.start_us,
                                event_.start_us + event_.duration_us, arguments_index(), message_index(), nothing});
  }
}

// Operators of a thread are nested. When two start together, the longer one contains the other.
void Handler::find_parents() {
  auto& operators = trace_.operators;
  std::stable_sort(operators.begin(), operators.end(), [](const KinetoOperator& a, const KinetoOperator& b) {
    return std::tuple(a.thread, a.start_us, -a.end_us) < std::tuple(b.thread, b.start_us, -b.end_us);
  });
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    while (!open.empty() && (operators[open.back()].thread != operators[i].thread ||
                             operators[open.back()].end_us <= operators[i].start_us))
      open.pop_back();
    if (!open.empty()) operators[i].parent = open.back();
    open.push_back(static_cast<std::int32_t>(i));
  }
}

void Handler::find_launches() {
  const auto& operators = trace_.operators;
  for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
    const auto launch = launched_.find(correlations_[i]);
    if (launch == launched_.end()) continue;
    const auto [thread, at_us] = launch->second;
    KinetoKernel& kernel = trace_.kernels[i];
    kernel.launch_us = at_us;
    if (!kernel.is_copy) trace_.launches.push_back({thread, at_us});
    // The last operator of the thread that began before, or one around it that has not ended.
    auto after = std::upper_bound(
        operators.begin(), operators.end(), std::pair(thread, at_us),
        [](const auto& when, const KinetoOperator& op) { return when < std::pair(op.thread, op.start_us); });
    if (after == operators.begin()) continue;
    auto at = static_cast<std::int32_t>(after - operators.begin() - 1);
    while (at != nothing && (operators[at].thread != thread || operators[at].end_us < at_us)) at = operators[at].parent;
    kernel.launched_by = at;
    for (; at != nothing && kernel.message == nothing; at = operators[at].parent)
      kernel.message = operators[at].message;
  }
}

void Handler::finish() {
  find_parents();
  find_launches();
  const auto by_start = [](const auto& a, const auto& b) { return a.start_us < b.start_us; };
  std::stable_sort(trace_.kernels.begin(), trace_.kernels.end(), by_start);
  std::stable_sort(trace_.launches.begin(), trace_.launches.end(), [](const KinetoLaunch& a, const KinetoLaunch& b) {
    return std::pair(a.thread, a.start_us) < std::pair(b.thread, b.start_us);
  });
}

}  // namespace

bool may_be_kineto(const std::string& path) {
  std::error_code unreachable;
  if (!std::filesystem::is_regular_file(path, unreachable)) return false;  // a pipe can be read once
  std::ifstream file(path, std::ios::binary);
  std::string beginning(1 << 16, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (beginning.starts_with("\x1f\x8b")) return true;
  const std::size_t events = beginning.find("\"traceEvents\""), ours = beginning.find("\"otherData\"");
  return beginning.find("\"schemaVersion\"") < events || (events != std::string::npos && ours > events);
}

KinetoTrace read_kineto(const std::string& path, const std::function<void(double)>& progress) {
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read " + path + ": " + reason + "; give a trace of PyTorch's profiler");
  KinetoTrace trace;
  trace.path = path;
  GzipBuffer buffer(path, progress);
  std::istream in(&buffer);
  Handler handler(trace);
  const bool complete = nlohmann::json::sax_parse(in, &handler);
  if (!buffer.defect().empty()) throw UsageError(path + " " + buffer.defect() + "; copy it again, or record it again");
  if (handler.is_slipways)
    throw UsageError(
        path + " is a trace of Slipway, not of PyTorch's profiler; give it with --trace, or to compare (uncompressed)");
  if (!handler.odd.empty())
    throw UsageError(path + " has " + handler.odd + ", which PyTorch's profiler does not write; record it again");
  if (!complete && handler.has_events)
    throw UsageError(path + " is cut or damaged at byte " + std::to_string(handler.error_position) +
                     "; copy it again, or record it again");
  if (!complete || !handler.has_events)
    throw UsageError(path + " is no trace of PyTorch's profiler: it has no traceEvents; " + how_to_record);
  handler.finish();
  if (std::all_of(trace.kernels.begin(), trace.kernels.end(), [](const KinetoKernel& each) { return each.is_copy; }))
    throw UsageError(path + " has no kernel of a GPU; " + how_to_record);
  return trace;
}

}  // namespace slipway::scenarios
