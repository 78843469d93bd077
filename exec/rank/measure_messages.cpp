#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/rank/measure.h"

namespace slipway::exec {

namespace {

// GPUs: enough sizes of a mebibyte and more for the constants of a collective (models/fit/kernel_fit.h).
std::vector<std::int64_t> message_sizes(at::Device device) {
  std::vector<std::int64_t> sizes{1 << 10, 1 << 13, 1 << 16, 1 << 18};
  constexpr std::int64_t least = 1 << 20;
  const std::int64_t most = device.is_cpu() ? 1 << 26 : 1 << 29, step = device.is_cpu() ? 4 : 2;
  for (std::int64_t size = least; size <= most; size *= step) sizes.push_back(size);
  return sizes;
}

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
  c.add(text_of("all-reduce", whole_bytes, c.world), c.median_of_each(bytes, [&] { group.all_reduce(whole); }));
  c.together();
  c.add(text_of("all-gather", whole_bytes, c.world), c.median_of_each(bytes, [&] { group.all_gather(whole, part); }));
  c.together();
  c.add(text_of("reduce-scatter", whole_bytes, c.world),
        c.median_of_each(bytes, [&] { group.reduce_scatter(part, whole); }));
}

// Equal parts to all members.
void measure_all_to_all(MeasureContext& c, const MeasuredGroup& group, std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(at::elementSize(c.type));
  const std::int64_t part = std::max<std::int64_t>(1, bytes / (element * group.members));
  const at::Tensor sent = at::zeros({group.members, part}, c.options());
  at::Tensor received = at::empty_like(sent);
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(group.members), 1);
  c.together();
  c.add(text_of("all-to-all", static_cast<std::int64_t>(sent.nbytes()), group.members),
        c.median_of_each(bytes, [&] { group.transport->all_to_all(received, sent, rows, rows); }));
}

void measure_copy(MeasureContext& c, const char* what, const at::Tensor& from, at::Tensor into) {
  const auto bytes = static_cast<std::int64_t>(from.nbytes());
  c.together();
  c.add(std::string(what) + " bytes=" + std::to_string(bytes),
        c.median_of_each(bytes, [&] { into.copy_(from, /*non_blocking=*/true); }));
}

}  // namespace

// All ranks measure at once, because they share the way to the host.
void measure_copies(MeasureContext& c, bool pinned) {
  for (const std::int64_t bytes : message_sizes(c.device)) {
    const std::int64_t elements = bytes / static_cast<std::int64_t>(at::elementSize(c.type));
    const at::Tensor on_device = at::ones({elements}, c.options());
    const at::Tensor on_host = at::ones({elements}, at::TensorOptions().dtype(c.type).pinned_memory(pinned));
    measure_copy(c, "host-to-device", on_host, on_device);
    measure_copy(c, "device-to-host", on_device, on_host);
  }
}

void measure_messages(MeasureContext& c, Transport* group, Transport* pair, const std::vector<MeasuredGroup>& ladder) {
  for (const std::int64_t bytes : message_sizes(c.device)) {
    c.together();
    if (pair) measure_transfer(c, *pair, bytes);
    if (group) measure_collectives(c, *group, bytes);
    for (const MeasuredGroup& each : ladder) measure_all_to_all(c, each, bytes);
  }
}

}  // namespace slipway::exec
