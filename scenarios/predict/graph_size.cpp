#include "scenarios/predict/graph_size.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "scenarios/files/usage_error.h"
#include "scenarios/predict/readable.h"
#include "schedules/rules/rules.h"

namespace slipway::scenarios {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

Step with_micro_batches(Step step, std::int64_t count) {
  step.global_batch = count * step.micro_batch * step.layout.data;
  return step;
}

// Each with as many micro-batches as before.
Step with_replicas(Step step, std::int64_t count) {
  const std::int64_t micro_batches = micro_batches_of(step);
  step.layout.data = static_cast<int>(count);
  return with_micro_batches(std::move(step), micro_batches);
}

using Tasks = std::function<double(std::int64_t count)>;

// A count of the step that is large, and two smaller values from which the graph's size is extrapolated.
struct Line {
  std::int64_t own = 0, first = 0, second = 0;
  double extrapolated(const Tasks& tasks_of) const {
    const double begin = tasks_of(first);
    const double slope = (tasks_of(second) - begin) / static_cast<double>(second - first);
    return begin + slope * static_cast<double>(own - first);
  }
};

// The two smallest of begin, 2 begin, 4 begin, ... that are accepted and at most half of `own`.
std::optional<Line> line(std::int64_t begin, std::int64_t own, const std::function<bool(std::int64_t)>& accepts) {
  std::int64_t first = 0;
  for (std::int64_t count = begin; 2 * count <= own; count *= 2) {
    if (!accepts(count)) continue;
    if (first > 0) return Line{own, first, count};
    first = count;
  }
  return std::nullopt;
}

// A step with given actions has one possible number of micro-batches.
std::optional<Line> along_micro_batches(const Step& step) {
  if (step.actions != nullptr) return std::nullopt;
  return line(1, micro_batches_of(step),
              [&](auto count) { return takes_batch(step, with_micro_batches(step, count).global_batch); });
}

// A single replica has no collectives among replicas.
std::optional<Line> along_replicas(const Step& step) {
  return line(std::max(2, step.layout.expert), step.layout.data,
              [&](auto count) { return legal(with_replicas(step, count)); });
}

double number_in(const char* path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : unlimited;  // "max", or no such file
}

double free_of_machine() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    double kilobytes = 0;
    if (file >> kilobytes && key == "MemAvailable:") return 1024 * kilobytes;
    std::getline(file, unit);
  }
  return unlimited;
}

double free_of_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));  // 4 KiB on x86-64, 64 KiB on many Arm hosts
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - page * number_in("/proc/self/statm"));
}

// Bytes that a control group (version 2) may still take. Cached files count as free.
double free_of_group() {
  const double most = number_in("/sys/fs/cgroup/memory.max");
  if (most == unlimited) return unlimited;
  double cached = 0, bytes = 0;
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  for (std::string key; file >> key >> bytes;)
    if (key == "inactive_file") cached = bytes;
  const double current = number_in("/sys/fs/cgroup/memory.current");
  return std::max(0.0, most - (current == unlimited ? 0 : current) + cached);
}

}  // namespace

GraphSize estimated_size(const Step& step, bool all_ranks, const std::function<std::size_t(const Step&)>& prepare) {
  const std::optional<Line> micro_batches = along_micro_batches(step);
  const std::optional<Line> replicas = all_ranks ? along_replicas(step) : std::nullopt;
  if (!micro_batches && !replicas) return {};
  double tasks = 0, seconds = 0;  // of the largest step so far, which is the last one
  const auto prepared = [&](const Step& smaller) {
    const auto began = std::chrono::steady_clock::now();
    tasks = static_cast<double>(prepare(smaller));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return tasks;
  };
  const auto of_micro_batches = [&](const Step& at) {
    if (!micro_batches) return prepared(at);
    return micro_batches->extrapolated([&](auto count) { return prepared(with_micro_batches(at, count)); });
  };
  const double all =
      replicas ? replicas->extrapolated([&](auto count) { return of_micro_batches(with_replicas(step, count)); })
               : of_micro_batches(step);
  return {all, seconds * all / tasks};
}

double available_memory() { return std::min({free_of_machine(), free_of_limit(), free_of_group()}); }

void refuse_beyond_memory(const Scenario& scenario, const GraphSize& size, double available) {
  const double bytes = size.tasks * bytes_per_task;
  if (bytes <= available) return;
  const std::string has =
      size.seconds > 0 ? fmt::format("have about {} tasks, take about {} to prepare and need about {}",
                                     readable_count(size.tasks), readable_seconds(size.seconds), readable_bytes(bytes))
                       : fmt::format("have more than {} tasks and need more than {}", readable_count(size.tasks),
                                     readable_bytes(bytes));
  throw UsageError(fmt::format(
      "{}: the task graph would {} of memory; {} are free here; lower schedule.global_batch or the number of ranks, or "
      "take a machine with more memory",
      scenario.path, has, readable_bytes(available)));
}

}  // namespace slipway::scenarios
