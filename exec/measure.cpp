#include "exec/measure.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "exec/clock.h"
#include "exec/device.h"
#include "exec/overhead.h"
#include "exec/parameters.h"
#include "exec/run_files.h"

namespace slipway {
namespace {

std::unique_ptr<Transport> connect(Seat& seat, int id, const std::string& name,
                                   std::vector<int> ranks, at::Device device) {
  const RankEnvironment& at = seat.environment();
  return connect_transport(seat.host(), {id, name, std::move(ranks)}, at.rank, at.store_host, device);
}

void write_lines(const std::string& path, const std::string& lines) {
  std::ofstream file(path);
  file << lines;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

void MeasureContext::add(const std::string& what, double seconds) {
  char number[32];
  std::snprintf(number, sizeof number, "%.6g", seconds);
  lines += "measure " + what + dtype_text + " seconds=" + number + "\n";
  ++count;
  constexpr Nanoseconds quiet_ns = 2'000'000'000;
  const Nanoseconds now = monotonic_ns();
  if (begin == 0) begin = told = now;
  if (rank != 0 || now - told < quiet_ns) return;
  told = now;
  std::printf("%d micro-benchmarks after %.0f s, now %s\n", count, static_cast<double>(now - begin) * 1e-9,
              what.substr(0, what.find(' ')).c_str());
  std::fflush(stdout);
}

namespace {

// How many calls are timed together: on a GPU, whose end the host waits for once, as many as take 2 ms.
std::int64_t calls_together(const std::function<void()>& operation, at::Device device) {
  if (device.is_cpu()) return 1;
  constexpr Nanoseconds enough_ns = 2'000'000;
  constexpr std::int64_t most = 500;
  const Nanoseconds before = monotonic_ns();
  operation();
  finish_work(device);
  return std::clamp<std::int64_t>(enough_ns / std::max<Nanoseconds>(1, monotonic_ns() - before), 1, most);
}

}  // namespace

double MeasureContext::median_seconds(const std::function<void()>& operation, double budget_s) const {
  operation();
  finish_work(device);
  const std::int64_t calls = calls_together(operation, device);
  std::vector<Nanoseconds> times;
  const Nanoseconds until = monotonic_ns() + static_cast<Nanoseconds>(budget_s * 1e9);
  Nanoseconds before = monotonic_ns();
  do {
    for (std::int64_t i = 0; i < calls; ++i) operation();
    finish_work(device);
    const Nanoseconds now = monotonic_ns();
    times.push_back((now - before) / calls);
    before = now;
  } while (before < until || times.size() < 3);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return static_cast<double>(times[times.size() / 2]) * 1e-9;
}

double MeasureContext::median_of_each(std::int64_t bytes, const std::function<void()>& operation) const {
  const std::int64_t repeats = std::clamp<std::int64_t>((16 << 20) / bytes, 3, 40);
  operation();
  finish_work(device);
  std::vector<Nanoseconds> times;
  for (std::int64_t i = 0; i < repeats; ++i) {
    const Nanoseconds before = monotonic_ns();
    operation();
    finish_work(device);
    times.push_back(monotonic_ns() - before);
  }
  std::sort(times.begin(), times.end());
  return static_cast<double>(times[times.size() / 2]) * 1e-9;
}

void measure_task_overhead(MeasureContext& context, DeviceQueue* device) {
  for (const int lanes : {1, 2}) {
    context.together();
    const std::string what = "task_overhead lanes=" + std::to_string(lanes);
    context.add(what, task_overhead_seconds(lanes, 4000, device));
  }
}

void measure(Seat& seat, const Arguments& arguments) {
  const RankEnvironment& at = seat.environment();
  const at::Device device = device_of_rank(at.local_rank);
  const std::unique_ptr<DeviceQueue> queue = queue_of(device);
  if (device.is_cpu() && arguments.dtype == Dtype::bfloat16)
    throw std::runtime_error("bfloat16 is measured on GPUs; give --dtype float32 here");
  std::vector<int> all;
  for (int rank = 0; rank < at.world; ++rank) all.push_back(rank);
  const int neighbour = at.rank ^ 1;
  std::unique_ptr<Transport> group, pair;
  if (at.world > 1) group = connect(seat, 0, "world", all, device);
  if (neighbour < at.world) {
    pair = connect(seat, 1 + at.rank / 2, "pair",
                   {std::min(at.rank, neighbour), std::max(at.rank, neighbour)}, device);
  }
  MeasureContext context{torch_dtype(arguments.dtype), device,
                         " dtype=" + name_of(arguments.dtype), at.rank, at.world, [&] {
                           if (group) group->barrier();
                         }};
  measure_operators(context);
  measure_task_overhead(context, queue.get());
  if (!device.is_cpu()) measure_copies(context, /*pinned=*/true);
  measure_messages(context, group.get(), pair.get());
  write_lines(measured_path(arguments.out, at.rank), context.lines);
  store_barrier(seat.store(), "measured", at.world, while_alive_s);
  for (const auto& transport : {group.get(), pair.get()}) {
    if (transport) transport->shutdown();
  }
}

}  // namespace slipway
