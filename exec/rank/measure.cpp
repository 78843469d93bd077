#include "exec/rank/measure.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include "exec/lanes/overhead.h"
#include "exec/operators/parameters.h"
#include "exec/process/clock.h"
#include "exec/run/run_files.h"
#include "exec/run/whole_file.h"
#include "exec/transport/device.h"

namespace slipway::exec {

namespace {

std::unique_ptr<Transport> connect(Seat& seat, int id, const std::string& name, std::vector<int> ranks,
                                   at::Device device) {
  const RankEnvironment& at = seat.environment();
  return connect_transport(seat.host(), {id, name, std::move(ranks)}, at.rank, at.store_host, device);
}

// Number of calls that are timed together. On a GPU, whose end the host awaits once, it is as many as take 2 ms.
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

void MeasureContext::add(const std::string& what, double seconds) {
  char number[32];
  std::snprintf(number, sizeof number, "%.6g", seconds);
  lines += "measure " + what + dtype_text + " seconds=" + number + "\n";
  ++count;
  constexpr Nanoseconds quiet_ns = 2'000'000'000;
  const Nanoseconds now = monotonic_ns();
  if (begin == 0) begin = printed = now;
  if (rank != 0 || now - printed < quiet_ns) return;
  printed = now;
  std::printf("%d micro-benchmarks after %.0f s, now %s\n", count, static_cast<double>(now - begin) * 1e-9,
              what.substr(0, what.find(' ')).c_str());
  std::fflush(stdout);
}

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
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
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
    pair = connect(seat, 1 + at.rank / 2, "pair", {std::min(at.rank, neighbour), std::max(at.rank, neighbour)}, device);
  }
  std::vector<std::unique_ptr<Transport>> between;  // larger than a pair, smaller than all
  std::vector<MeasuredGroup> ladder;
  if (pair && at.world > 2 && at.world % 2 == 0) ladder.push_back({2, pair.get()});
  for (int members = 4, id = 1 + (at.world + 1) / 2; members < at.world && at.world % members == 0; members *= 2) {
    const int number = at.rank / members;
    const std::vector<int> ranks(all.begin() + number * members, all.begin() + (number + 1) * members);
    between.push_back(connect(seat, id + number, "neighbours", ranks, device));
    ladder.push_back({members, between.back().get()});
    id += at.world / members;
  }
  if (group) ladder.push_back({at.world, group.get()});
  MeasureContext context{
      torch_dtype(arguments.dtype), device, " dtype=" + name_of(arguments.dtype), at.rank, at.world, [&] {
        if (group) group->barrier();
      }};
  measure_operators(context);
  measure_task_overhead(context, queue.get());
  if (!device.is_cpu()) measure_copies(context, /*pinned=*/true);
  measure_messages(context, group.get(), pair.get(), ladder);
  write_whole_file(measured_path(arguments.out, at.rank), context.lines);
  store_barrier(seat.store(), "measured", at.world, while_alive_s);
  between.push_back(std::move(group));
  between.push_back(std::move(pair));
  for (const auto& transport : between)
    if (transport) transport->shutdown();
}

}  // namespace slipway::exec
