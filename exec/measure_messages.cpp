#include <ATen/ATen.h>

#include "exec/measure.h"

namespace slipway {
namespace {

constexpr std::int64_t sizes[] = {1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26};

std::string text_of(const char* what, std::int64_t bytes, int members) {
  return std::string(what) + " bytes=" + std::to_string(bytes) + " members=" + std::to_string(members);
}

void measure_transfer(MeasureContext& c, Transport& pair, std::int64_t bytes) {
  const std::int64_t elements = bytes / static_cast<std::int64_t>(at::elementSize(c.type));
  const at::Tensor out = at::ones({elements}, c.options());
  at::Tensor in = at::empty({elements}, c.options());
  const int self = c.rank % 2, other = 1 - self;
  const double round_trip = c.median_of_each(bytes, [&] {
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
        c.median_of_each(bytes, [&] { group.all_reduce(whole); }));
  c.together();
  c.add(text_of("all-gather", whole_bytes, c.world),
        c.median_of_each(bytes, [&] { group.all_gather(whole, part); }));
  c.together();
  c.add(text_of("reduce-scatter", whole_bytes, c.world),
        c.median_of_each(bytes, [&] { group.reduce_scatter(part, whole); }));
}

void measure_copy(MeasureContext& c, const char* what, const at::Tensor& from, at::Tensor into) {
  const auto bytes = static_cast<std::int64_t>(from.nbytes());
  c.together();
  c.add(std::string(what) + " bytes=" + std::to_string(bytes),
        c.median_of_each(bytes, [&] { into.copy_(from, /*non_blocking=*/true); }));
}

}  // namespace

// All ranks at once, as they share the way to the host.
void measure_copies(MeasureContext& c, bool pinned) {
  for (const std::int64_t bytes : sizes) {
    const std::int64_t elements = bytes / static_cast<std::int64_t>(at::elementSize(c.type));
    const at::Tensor on_device = at::ones({elements}, c.options());
    const at::Tensor on_host = at::ones({elements}, at::TensorOptions().dtype(c.type).pinned_memory(pinned));
    measure_copy(c, "host-to-device", on_host, on_device);
    measure_copy(c, "device-to-host", on_device, on_host);
  }
}

void measure_messages(MeasureContext& c, Transport* group, Transport* pair) {
  for (const std::int64_t bytes : sizes) {
    c.together();
    if (pair) measure_transfer(c, *pair, bytes);
    if (group) measure_collectives(c, *group, bytes);
  }
}

}  // namespace slipway
