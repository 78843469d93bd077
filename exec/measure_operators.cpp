#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "exec/measure.h"

namespace slipway {
namespace {

std::string gemm_text(const char* pass, std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::string("gemm pass=") + pass + " m=" + std::to_string(m) + " n=" + std::to_string(n) +
         " k=" + std::to_string(k);
}

// The three products of a Linear on m tokens, n outputs, k inputs, each with its own GEMM shape.
void measure_linear(MeasureContext& c, std::int64_t m, std::int64_t n, std::int64_t k, bool backward) {
  const at::Tensor input = at::rand({m, k}, c.type), weight = at::rand({n, k}, c.type);
  c.together();
  c.add(gemm_text("forward", m, n, k), median_seconds([&] { at::linear(input, weight); }));
  if (!backward) return;
  const at::Tensor gradient = at::rand({m, n}, c.type);
  c.together();
  c.add(gemm_text("input_grad", m, k, n), median_seconds([&] { at::mm(gradient, weight); }));
  c.together();
  c.add(gemm_text("weight_grad", n, k, m), median_seconds([&] { at::mm(gradient.t(), input); }));
}

void measure_gemms(MeasureContext& c) {
  constexpr double most_flops = 3e9;  // a few operations per budget even where a core gives 50 GFLOP/s
  constexpr std::pair<std::int64_t, std::int64_t> weights[] = {{64, 64},    {256, 64},    {256, 256},
                                                               {512, 256},  {512, 512},   {1024, 512},
                                                               {512, 1024}, {1024, 1024}, {2048, 512}};
  for (const std::int64_t m : {32, 128, 256, 512, 1024, 2048}) {
    for (const auto& [n, k] : weights) {
      if (2.0 * static_cast<double>(m * n * k) > most_flops) continue;
      measure_linear(c, m, n, k, m >= 128 && (n == 512 || n == 1024));
    }
  }
}

void measure_attention(MeasureContext& c, std::int64_t batch_heads, std::int64_t s, std::int64_t d) {
  const auto draw = [&] { return at::rand({1, batch_heads, s, d}, c.type).requires_grad_(true); };
  const at::Tensor q = draw(), k = draw(), v = draw();
  const auto attend = [&] {
    return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
  };
  const auto text = [&](const char* pass) {
    return std::string("attention pass=") + pass + " batch_heads=" + std::to_string(batch_heads) +
           " s=" + std::to_string(s) + " d=" + std::to_string(d);
  };
  c.together();
  c.add(text("forward"), median_seconds([&] { attend(); }));
  const at::Tensor out = attend(), gradient = at::ones_like(out);
  c.together();
  c.add(text("backward"), median_seconds([&] {
          torch::autograd::grad({out}, {q, k, v}, {gradient}, /*retain_graph=*/true);
        }));
}

void measure_elementwise(MeasureContext& c, std::int64_t rows, std::int64_t columns) {
  const at::Tensor a = at::rand({rows, columns}, c.type), b = at::rand({rows, columns}, c.type);
  const at::Tensor weight = at::rand({columns}, c.type);
  const double tensor_bytes = static_cast<double>(a.nbytes());
  const auto one = [&](const char* op, double tensors, const std::function<void()>& operation) {
    c.together();
    c.add(std::string("elementwise op=") + op +
              " bytes=" + std::to_string(static_cast<long long>(tensors * tensor_bytes)),
          median_seconds(operation, 0.03));
  };
  one("add", 3, [&] { at::add(a, b); });
  one("silu_mul", 5, [&] { at::silu(a).mul_(b); });
  one("rms_norm", 2, [&] { at::rms_norm(a, {columns}, weight, 1e-5); });
}

void measure_optimizer(MeasureContext& c, std::int64_t elements) {
  const at::Tensor weight = at::rand({elements}, c.type), gradient = at::rand({elements}, c.type);
  const at::Tensor mean = at::zeros_like(weight), square = at::zeros_like(weight);
  const at::Tensor steps = at::ones({}, at::kFloat);
  c.together();
  c.add("optimizer elements=" + std::to_string(elements), median_seconds([&] {
          at::_fused_adamw_({weight}, {gradient}, {mean}, {square}, {}, {steps}, 1e-3, 0.9, 0.95, 0.1, 1e-8,
                            false, false);
        }));
}

}  // namespace

void measure_operators(MeasureContext& c) {
  measure_gemms(c);
  constexpr std::int64_t attention_shapes[][3] = {{8, 64, 32},   {8, 128, 32}, {8, 128, 64}, {8, 256, 64},
                                                  {16, 256, 32}, {8, 512, 64}, {4, 1024, 64}};
  for (const auto& [batch_heads, s, d] : attention_shapes) measure_attention(c, batch_heads, s, d);
  for (const std::int64_t rows : {64, 512, 2048, 8192}) measure_elementwise(c, rows, 512);
  const at::Tensor one = at::ones({1}, c.type);
  c.together();
  c.add("launch", median_seconds([&] {
                    for (int i = 0; i < 100; ++i) at::add(one, one);
                  }) / 100);
  for (const std::int64_t elements : {1 << 12, 1 << 16, 1 << 20, 1 << 22}) measure_optimizer(c, elements);
}

}  // namespace slipway
