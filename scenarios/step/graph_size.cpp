#include "scenarios/step/graph_size.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "scenarios/answers/readable.h"
#include "scenarios/language/usage_error.h"
#include "schedules/rules/rules.h"

namespace slipway::scenarios {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

Step with_micro_batches(Step step, std::int64_t count) {
  step.global_batch = count * step.micro_batch * step.layout.data;
  return step;
}

// The two smallest numbers of micro-batches that the schedule takes, both below half of the step's own.
std::optional<std::pair<std::int64_t, std::int64_t>> small_steps(const Step& step) {
  const std::int64_t own = micro_batches_of(step);
  std::int64_t first = 0;
  for (std::int64_t count = 1; 2 * count <= own; count *= 2) {
    if (!takes_batch(step, with_micro_batches(step, count).global_batch)) continue;
    if (first > 0) return std::pair(first, count);
    first = count;
  }
  return std::nullopt;
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
  constexpr double page = 4096;
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - page * number_in("/proc/self/statm"));
}

// What a control group (version 2) may still take; files that it has cached make room.
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

GraphSize estimated_size(const Step& step, const std::function<std::size_t(const Step&)>& prepare) {
  if (step.actions != nullptr) return {};
  const auto small = small_steps(step);
  if (!small) return {};
  const auto tasks = [&](std::int64_t count) { return static_cast<double>(prepare(with_micro_batches(step, count))); };
  const double first = tasks(small->first);
  const auto began = std::chrono::steady_clock::now();
  const double second = tasks(small->second);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  const double slope = (second - first) / static_cast<double>(small->second - small->first);
  const double all = first + slope * static_cast<double>(micro_batches_of(step) - small->first);
  return {all, passed.count() * all / second};
}

double available_memory() { return std::min({free_of_machine(), free_of_limit(), free_of_group()}); }

void refuse_beyond_memory(const Scenario& scenario, const GraphSize& size, double available) {
  const double bytes = size.tasks * bytes_per_task;
  if (bytes <= available) return;
  throw UsageError(fmt::format(
      "{}: the task graph would have about {} tasks, take about {} to prepare and need about {} of memory; {} are free "
      "here; lower schedule.global_batch or the number of ranks, or take a machine with more memory",
      scenario.path, readable_count(size.tasks), readable_seconds(size.seconds), readable_bytes(bytes),
      readable_bytes(available)));
}

}  // namespace slipway::scenarios
