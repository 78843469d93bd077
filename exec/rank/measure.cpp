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

namespace {

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

namespace {

std::string gemm_text(const char* pass, std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::string("gemm pass=") + pass + " m=" + std::to_string(m) + " n=" + std::to_string(n) +
         " k=" + std::to_string(k);
}

// The three products of a Linear on m tokens, n outputs, k inputs, each with its own GEMM shape.
void measure_linear(MeasureContext& c, std::int64_t m, std::int64_t n, std::int64_t k, bool backward) {
  const at::Tensor input = at::rand({m, k}, c.options()), weight = at::rand({n, k}, c.options());
  c.together();
  c.add(gemm_text("forward", m, n, k), c.median_seconds([&] { at::linear(input, weight); }));
  if (!backward) return;
  const at::Tensor gradient = at::rand({m, n}, c.options());
  c.together();
  c.add(gemm_text("input_grad", m, k, n), c.median_seconds([&] { at::mm(gradient, weight); }));
  c.together();
  // As in linear (exec/operators/linear.h): added to a sum, which is float32 for narrower weights.
  at::Tensor sum = at::zeros({n, k}, c.options().dtype(at::promote_types(input.scalar_type(), at::kFloat)));
  c.add(gemm_text("weight_grad", n, k, m), c.median_seconds([&] { add_product(sum, gradient.t(), input); }));
}

// The shapes in a step: those of a small model on a core, of a large one on a GPU.
struct Shapes {
  std::vector<std::int64_t> tokens;
  std::vector<std::pair<std::int64_t, std::int64_t>> weights;
  double most_flops = 0;                               // of one product
  std::int64_t fewest_backward = 0;                    // tokens
  std::vector<std::array<std::int64_t, 3>> attention;  // batch · heads, s, d
  std::vector<std::int64_t> rows, elements;
  std::int64_t columns = 0;
};

Shapes shapes_for(at::Device device) {
  if (device.is_cpu())  // a few operations per budget even where a core gives 50 GFLOP/s
    return {
        {32, 128, 256, 512, 1024, 2048},
        {{64, 64}, {256, 64}, {256, 256}, {512, 256}, {512, 512}, {1024, 512}, {512, 1024}, {1024, 1024}, {2048, 512}},
        3e9,
        128,
        {{8, 64, 32}, {8, 128, 32}, {8, 128, 64}, {8, 256, 64}, {16, 256, 32}, {8, 512, 64}, {4, 1024, 64}},
        {64, 512, 2048, 8192},
        {1 << 12, 1 << 16, 1 << 20, 1 << 22},
        512};
  return {{256, 1024, 4096, 8192, 16384},
          {{1024, 1024},
           {2048, 2048},
           {6144, 2048},
           {11264, 2048},
           {2048, 5632},
           {4096, 4096},
           {14336, 4096},
           {32000, 2048}},
          4e12,
          4096,
          {{16, 512, 64},   {64, 512, 64},   {16, 1024, 64},  {64, 1024, 64},  {16, 2048, 64},
           {64, 2048, 64},  {16, 4096, 64},  {64, 4096, 64},  {16, 8192, 64},  {32, 8192, 64},
           {16, 512, 128},  {64, 512, 128},  {16, 1024, 128}, {64, 1024, 128}, {16, 2048, 128},
           {64, 2048, 128}, {16, 4096, 128}, {64, 4096, 128}, {16, 8192, 128}, {32, 8192, 128}},
          {512, 4096, 16384, 65536},
          {1 << 16, 1 << 20, 1 << 24, 1 << 26},
          2048};
}

bool is_measured_backward(const Shapes& shapes, at::Device device, std::int64_t m, std::int64_t n) {
  return m >= shapes.fewest_backward && (!device.is_cpu() || n == 512 || n == 1024);
}

void measure_gemms(MeasureContext& c, const Shapes& shapes) {
  for (const std::int64_t m : shapes.tokens) {
    for (const auto& [n, k] : shapes.weights) {
      if (2.0 * static_cast<double>(m * n * k) > shapes.most_flops) continue;
      measure_linear(c, m, n, k, is_measured_backward(shapes, c.device, m, n));
    }
  }
}

void measure_attention(MeasureContext& c, std::int64_t batch_heads, std::int64_t s, std::int64_t d) {
  const auto draw = [&] { return at::rand({1, batch_heads, s, d}, c.options()).requires_grad_(true); };
  const at::Tensor q = draw(), k = draw(), v = draw();
  const auto attend = [&] { return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true); };
  const auto text = [&](const char* pass) {
    return std::string("attention pass=") + pass + " batch_heads=" + std::to_string(batch_heads) +
           " s=" + std::to_string(s) + " d=" + std::to_string(d);
  };
  c.together();
  c.add(text("forward"), c.median_seconds([&] { attend(); }));
  const at::Tensor out = attend(), gradient = at::ones_like(out);
  c.together();
  c.add(text("backward"), c.median_seconds([&] {
    torch::autograd::grad({out}, {q, k, v}, {gradient}, /*retain_graph=*/true);
  }));
}

void measure_elementwise(MeasureContext& c, std::int64_t rows, std::int64_t columns) {
  const at::Tensor a = at::rand({rows, columns}, c.options()), b = at::rand({rows, columns}, c.options());
  const at::Tensor weight = at::rand({columns}, c.options());
  const double tensor_bytes = static_cast<double>(a.nbytes());
  const auto one = [&](const char* op, double tensors, const std::function<void()>& operation) {
    c.together();
    c.add(std::string("elementwise op=") + op +
              " bytes=" + std::to_string(static_cast<long long>(tensors * tensor_bytes)),
          c.median_seconds(operation, 0.03));
  };
  one("add", 3, [&] { at::add(a, b); });
  one("silu_mul", 5, [&] { at::silu(a).mul_(b); });
  one(c.device.is_cpu() ? "rms_norm" : "rms_norm_fused", 2, [&] { at::rms_norm(a, {columns}, weight, 1e-5); });
}

void measure_optimizer(MeasureContext& c, std::int64_t elements) {
  // As in OptimizerShard (exec/rank/optimizer.h): weights of two bytes have float32 masters.
  const at::Tensor weight = at::rand({elements}, c.options());
  const at::Tensor master = weight.element_size() >= 4 ? weight : weight.to(at::kFloat);
  const at::Tensor gradient = at::rand_like(master);
  const at::Tensor mean = at::zeros_like(master), square = at::zeros_like(master);
  const at::Tensor steps = at::ones({}, c.options().dtype(at::kFloat));
  c.together();
  c.add("optimizer elements=" + std::to_string(elements), c.median_seconds([&] {
    at::_fused_adamw_({master}, {gradient}, {mean}, {square}, {}, {steps}, 1e-3, 0.9, 0.95, 0.1, 1e-8, false, false);
    if (!weight.is_same(master)) weight.copy_(master);
  }));
}

}  // namespace

void measure_operators(MeasureContext& c) {
  const Shapes shapes = shapes_for(c.device);
  measure_gemms(c, shapes);
  for (const auto& [batch_heads, s, d] : shapes.attention) measure_attention(c, batch_heads, s, d);
  for (const std::int64_t rows : shapes.rows) measure_elementwise(c, rows, shapes.columns);
  const at::Tensor one = at::ones({1}, c.options());
  c.together();
  c.add("launch", c.median_seconds([&] {
    for (int i = 0; i < 100; ++i) at::add(one, one);
  }) / 100);
  for (const std::int64_t elements : shapes.elements) measure_optimizer(c, elements);
}

}  // namespace slipway::exec
