#include "scenarios/laboratory/calibrate/profiler_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <ostream>

#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {
namespace {

// "nvidia", "a100", "pg509", "200" of "NVIDIA A100-PG509-200".
std::vector<std::string> words_of(const std::string& device) {
  std::vector<std::string> words{""};
  for (const char c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

std::string machine_names() {
  std::string names;
  for (const EmbeddedFile& file : embedded_machines()) names += (names.empty() ? "" : ", ") + std::string(file.name);
  return names;
}

}  // namespace

std::vector<KinetoTrace> profiler_traces(const std::vector<std::string>& paths, std::ostream& err) {
  std::vector<KinetoTrace> traces;
  for (const std::string& path : paths) {
    ProgressLine progress(err, "reading " + path);
    traces.push_back(read_kineto(path, [&](double share) { progress.report(share); }));
    if (traces.back().device != traces.front().device)
      throw UsageError(fmt::format("{} is of {}, but {} of {}; give traces of one kind of GPU", path,
                                   traces.back().device, traces.front().path, traces.front().device));
  }
  return traces;
}

Machine machine_of(const std::vector<KinetoTrace>& traces) {
  const KinetoTrace& trace = traces.front();
  const std::string remedy =
      "; give the scenario with its machine profile, or --machine with one of: " + machine_names();
  if (trace.device.empty()) throw UsageError(trace.path + " does not name its GPU" + remedy);
  const std::vector<std::string> words = words_of(trace.device);
  // Cards of the same chip have other clocks, memory and links than the modules that the built-in machines are.
  constexpr const char* cards[] = {"pcie", "nvl"};
  const bool is_card = std::any_of(std::begin(cards), std::end(cards), [&](const char* card) {
    return std::find(words.begin(), words.end(), card) != words.end();
  });
  const Machine* nearest = nullptr;
  const auto apart = [&](const Machine& machine) { return std::abs(machine.memory_bytes - trace.device_bytes); };
  for (const EmbeddedFile& file : embedded_machines()) {
    const std::string name(file.name);
    if (is_card || std::find(words.begin(), words.end(), name.substr(0, name.find('-'))) == words.end()) continue;
    const Machine& machine = built_in_machine(name);
    if (nearest == nullptr || apart(machine) < apart(*nearest)) nearest = &machine;
  }
  if (nearest == nullptr)
    throw UsageError(trace.path + " is of " + trace.device + ", which no built-in machine is" + remedy);
  return *nearest;
}

void refuse_without_measurements(const std::vector<KinetoTrace>& traces, const KinetoEvidence& evidence) {
  if (!evidence.measurements.empty()) return;
  const KinetoTrace& trace = traces.front();
  if (std::none_of(traces.begin(), traces.end(), [](const KinetoTrace& each) { return each.has_shapes; }))
    throw UsageError(trace.path +
                     " records no shapes of operators and no sizes of collectives, so nothing can be fitted; record it "
                     "with torch.profiler.profile(record_shapes=True)");
  throw UsageError(trace.path +
                   " has no product, attention or collective of known size whose kernels can be found; record whole "
                   "steps with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
                   "record_shapes=True)");
}

Dtype dtype_of(const KinetoEvidence& evidence) {
  std::map<std::string, double> seconds;
  for (const Measurement& each : evidence.measurements)
    if (each.what == "gemm") seconds[each.fields.at("dtype")] += each.seconds;
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seconds.end() ? Dtype::bfloat16 : *models::dtype_named(most->first);
}

}  // namespace slipway::scenarios
