#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "exec/rank/measure.h"
#include "exec/transport/device.h"

namespace slipway::exec {

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
