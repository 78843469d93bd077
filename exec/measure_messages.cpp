#include <ATen/ATen.h>

#include <algorithm>

#include "exec/clock.h"
#include "exec/device.h"
#include "exec/measure.h"

namespace slipway {
namespace {

constexpr std::int64_t sizes[] = {1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26};

// All members must do the same number of operations, so it depends on the size alone.
int repeats_of(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((16 << 20) / bytes, 3, 40));
}

double median_of_repeats(const MeasureContext& c, std::int64_t bytes, const std::function<void()>& operation) {
  operation();
  finish_work(c.device);
  std::vector<Nanoseconds> times;
  for (int i = 0; i < repeats_of(bytes); ++i) {
    const Nanoseconds before = monotonic_ns();
    operation();
    finish_work(c.device);
    times.push_back(monotonic_ns() - before);
  }
  std::sort(times.begin(), times.end());
  return static_cast<double>(times[times.size() / 2]) * 1e-9;
}

std::string text_of(const char* what, std::int64_t bytes, int members) {
  return std::string(what) + " bytes=" + std::to_string(bytes) + " members=" + std::to_string(members);
}

void measure_transfer(MeasureContext& c, Transport& pair, std::int64_t bytes) {
  const std::int64_t elements = bytes / static_cast<std::int64_t>(at::elementSize(c.type));
  const at::Tensor out = at::ones({elements}, c.options());
  at::Tensor in = at::empty({elements}, c.options());
  const int self = c.rank % 2, other = 1 - self;
  const double round_trip = median_of_repeats(c, bytes, [&] {
    if (self == 0) pair.send(out, other);
    pair.receive(in, other);
    if (self == 1) pair.send(out, other);
  });
  c.add(text_of("transfer", bytes, 2), round_trip / 2);
}

void measure_collectives(MeasureContext& c, Transport& group, std::int64_t bytes) {
  const std::int64_t size = static_cast<std::int64_t>(at::elementSize(c.type)) * c.world;
  const std::int64_t part_elements = std::max<std::int64_t>(1, bytes / size);
  at::Tensor whole = at::zeros({part_elements * c.world}, c.options());
  at::Tensor part = at::zeros({part_elements}, c.options());
  const auto whole_bytes = static_cast<std::int64_t>(whole.nbytes());
  c.together();
  c.add(text_of("all-reduce", whole_bytes, c.world),
        median_of_repeats(c, bytes, [&] { group.all_reduce(whole); }));
  c.together();
  c.add(text_of("all-gather", whole_bytes, c.world),
        median_of_repeats(c, bytes, [&] { group.all_gather(whole, part); }));
  c.together();
  c.add(text_of("reduce-scatter", whole_bytes, c.world),
        median_of_repeats(c, bytes, [&] { group.reduce_scatter(part, whole); }));
}

}  // namespace

void measure_messages(MeasureContext& c, Transport* group, Transport* pair) {
  for (const std::int64_t bytes : sizes) {
    c.together();
    if (pair) measure_transfer(c, *pair, bytes);
    if (group) measure_collectives(c, *group, bytes);
  }
}

}  // namespace slipway
