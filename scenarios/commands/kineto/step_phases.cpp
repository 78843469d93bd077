#include "scenarios/commands/kineto/step_phases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "scenarios/commands/kineto/kernel_uses.h"
#include "scenarios/predict/step_times.h"

namespace slipway::scenarios {
namespace {

constexpr std::array phase_order{"forward", "backward", "optimizer", "other kernels"};
constexpr const char *all_ranks = "all ranks", *other_groups = "other groups";
constexpr std::array axis_order{"tensor", "context", "expert", "pipeline", "data", all_ranks, other_groups};

struct Activity {
  double start = 0, end = 0;
  int phase = 0;  // index in phase_order, then in axis_order
};
constexpr int phase_count = static_cast<int>(phase_order.size() + axis_order.size()), idle = phase_count;

int index_of_phase(std::string_view name) {
  return static_cast<int>(std::find(phase_order.begin(), phase_order.end(), name) - phase_order.begin());
}
int index_of_axis(std::string_view name) {
  const auto at = std::find(axis_order.begin(), axis_order.end(), name) - axis_order.begin();
  return static_cast<int>(phase_order.size()) + static_cast<int>(at);
}

using PhaseSeconds = std::array<double, phase_count + 1>;

// Seconds of each phase between two dates.
PhaseSeconds swept(const std::vector<Activity>& activities, double from, double to) {
  struct Change {
    double at;
    int phase, by;
  };
  std::vector<Change> changes;
  for (const Activity& each : activities) {
    const double start = std::max(each.start, from), end = std::min(each.end, to);
    if (!(end > start)) continue;
    changes.push_back({start, each.phase, 1});
    changes.push_back({end, each.phase, -1});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  std::array<int, phase_count> running{};
  PhaseSeconds seconds{};
  double at = from;
  const auto pass = [&](double until) {
    const auto first = std::find_if(running.begin(), running.end(), [](int count) { return count > 0; });
    seconds[static_cast<std::size_t>(first - running.begin())] += until - at;
    at = until;
  };
  for (const Change& change : changes) {
    pass(change.at);
    running[static_cast<std::size_t>(change.phase)] += change.by;
  }
  pass(to);
  return seconds;
}

std::string phase_name(int index) {
  if (index == idle) return "idle";
  const auto at = static_cast<std::size_t>(index);
  if (at < phase_order.size()) return phase_order[at];
  return std::string(axis_order[at - phase_order.size()]) + " messages, exposed";
}

StepPhases summed(const PhaseSeconds& seconds, int rank, int steps, double unit) {
  StepPhases result{rank, steps, 0, {}};
  for (int i = 0; i <= phase_count; ++i) {
    const double each = unit * seconds[static_cast<std::size_t>(i)] / steps;
    result.step_s += each;
    if (each > 0) result.phases.push_back({phase_name(i), each});
  }
  return result;
}

int phase_of_kind(const std::string& kind) {
  if (kind == "forward" || kind == "optimizer") return index_of_phase(kind);
  const bool is_backward = kind == "backward" || kind == "recompute" || kind == "input_grad" || kind == "weight_grad";
  return index_of_phase(is_backward ? "backward" : "other kernels");
}

std::string axis_of_lane(std::string_view lane) {
  if (lane.starts_with("pp") || lane == "embedding") return "pipeline";
  if (lane.starts_with("tp") || lane.starts_with("kv") || lane == "etp") return "tensor";
  if (lane.starts_with("cp")) return "context";
  if (lane.starts_with("dp") || lane == "edp") return "data";
  if (lane.starts_with("ep")) return "expert";
  return lane == "world" ? all_ranks : other_groups;
}

// "mesh_dp_shard", "TENSOR_MODEL_PARALLEL_GROUP": words of PyTorch's device meshes and of Megatron-LM.
std::optional<std::string> axis_in(const std::string& description) {
  std::set<std::string> words{};
  std::string word;
  for (const char c : description + " ") {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(word);
      word.clear();
    }
  }
  const std::array<std::pair<const char*, std::vector<const char*>>, 5> known{{
      {"data", {"data", "dp", "ddp", "fsdp", "shard", "replicate"}},
      {"tensor", {"tensor", "tp"}},
      {"expert", {"expert", "ep"}},
      {"context", {"context", "cp"}},
      {"pipeline", {"pipeline", "pp", "pipe"}},
  }};
  for (const auto& [axis, names] : known)
    if (std::any_of(names.begin(), names.end(), [&](const char* name) { return words.contains(name); })) return axis;
  return std::nullopt;
}

int phase_of_message(const KinetoTrace& trace, const KinetoKernel& kernel, const std::string& only_axis) {
  const std::string unnamed = only_axis.empty() ? other_groups : only_axis;
  if (kernel.message == nothing) return index_of_axis(unnamed);
  const KinetoMessage& message = trace.messages[kernel.message];
  if (const auto axis = axis_in(message.description)) return index_of_axis(*axis);
  if (message.collective.starts_with("send") || message.collective.starts_with("recv"))
    return index_of_axis("pipeline");
  return index_of_axis(only_axis.empty() && message.members == trace.world ? all_ranks : unnamed);
}

int phase_of_kernel(const KinetoTrace& trace, const KinetoKernel& kernel) {
  if (kernel.launched_by == nothing) return index_of_phase("other kernels");
  int phase = index_of_phase("forward");
  for (std::int32_t at = kernel.launched_by; at != nothing; at = trace.operators[at].parent) {
    const std::string& name = trace.name_of(trace.operators[at]);
    if (name.starts_with("Optimizer.")) return index_of_phase("optimizer");
    if (name.starts_with("autograd::engine::evaluate_function")) phase = index_of_phase("backward");
  }
  return phase;
}

constexpr std::string_view step_annotation = "ProfilerStep#";

// The starts of the steps' first kernels, and where the last one that counts ends.
std::vector<double> step_starts(const KinetoTrace& trace) {
  std::vector<std::pair<double, double>> steps;  // as the host sees them
  for (const KinetoOperator& op : trace.operators)
    if (trace.name_of(op).starts_with(step_annotation)) steps.emplace_back(op.start_us, op.end_us);
  std::sort(steps.begin(), steps.end());
  std::vector<double> starts;
  for (const auto& [from, to] : steps) {
    double first = std::numeric_limits<double>::infinity();
    for (const KinetoKernel& kernel : trace.kernels)
      if (kernel.launch_us >= from && kernel.launch_us < to) first = std::min(first, kernel.start_us);
    if (first < std::numeric_limits<double>::infinity()) starts.push_back(first);
  }
  if (starts.empty()) starts.push_back(trace.kernels.front().start_us);
  if (starts.size() == 1) {
    double end = 0;
    for (const KinetoKernel& kernel : trace.kernels) end = std::max(end, kernel.end_us());
    starts.push_back(end);
  }
  return starts;
}

bool is_compute(const TraceRecord& record) { return record.lane == "compute"; }

}  // namespace

StepPhases phases_of(const Trace& predicted, int rank) {
  const int step = step_times(predicted).last;
  std::vector<Activity> activities;
  std::map<int, double> starts;
  double end = 0;
  for (const TraceRecord& record : predicted.records) {
    if (record.rank != rank) continue;
    const int phase = is_compute(record) ? phase_of_kind(record.kind) : index_of_axis(axis_of_lane(record.lane));
    activities.push_back({record.start_s, record.end_s, phase});
    end = std::max(end, record.end_s);
    if (!is_compute(record)) continue;
    const auto found = starts.try_emplace(record.step, record.start_s).first;
    found->second = std::min(found->second, record.start_s);
  }
  if (!starts.contains(step))
    throw std::invalid_argument("the prediction has no tasks of rank " + std::to_string(rank));
  const auto next = starts.find(step + predicted.window);
  const double until = next == starts.end() ? end : next->second;
  return summed(swept(activities, starts.at(step), until), rank, predicted.window, 1);
}

StepPhases phases_of(const KinetoTrace& trace, const std::string& only_axis) {
  std::vector<Activity> activities;
  for (const KinetoKernel& kernel : trace.kernels) {
    const int phase =
        is_message(trace, kernel) ? phase_of_message(trace, kernel, only_axis) : phase_of_kernel(trace, kernel);
    activities.push_back({kernel.start_us, kernel.end_us(), phase});
  }
  const std::vector<double> starts = step_starts(trace);
  constexpr double second_per_us = 1e-6;
  return summed(swept(activities, starts.front(), starts.back()), trace.rank, static_cast<int>(starts.size()) - 1,
                second_per_us);
}

std::string only_axis_of(const Trace& predicted, int rank) {
  std::set<std::string> found;
  for (const TraceRecord& record : predicted.records)
    if (record.rank == rank && !is_compute(record)) found.insert(axis_of_lane(record.lane));
  found.erase(all_ranks);
  return found.size() == 1 ? *found.begin() : "";
}

}  // namespace slipway::scenarios
