#include "models/training/kfac.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "models/machine/cost.h"

namespace slipway::models {
namespace {

double squared(std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n); }
double cubed(std::int64_t n) { return squared(n) * static_cast<double>(n); }
double update_flops(const KfacLinear& l) {
  return 2 * static_cast<double>(l.in) * static_cast<double>(l.out) * static_cast<double>(l.in + l.out);
}

double peak_of(const Machine& machine, Dtype dtype) {
  const double peak = machine.peak_flops[static_cast<std::size_t>(dtype)];
  if (peak > 0) return peak;
  throw std::invalid_argument("machine " + machine.name + " has no peak_flops for " + name_of(dtype) +
                              ", in which K-FAC's factors are kept; add it to its profile");
}

double curvature_seconds(const Machine& machine, std::int64_t tokens, std::int64_t n, Dtype dtype) {
  const double flops = 2 * static_cast<double>(tokens) * squared(n);
  return machine.launch_overhead + flops / (peak_of(machine, dtype) * gemm_efficiency(machine, n, n, tokens));
}

// A triangular factorization is a chain of n panels: its efficiency grows with n far beyond a GEMM's.
double inversion_seconds(const Machine& machine, std::int64_t n, Dtype dtype) {
  const double efficiency = machine.gemm_efficiency / (1 + machine.factorization_half / static_cast<double>(n));
  return machine.launch_overhead + cubed(n) / (peak_of(machine, dtype) * efficiency);
}

double precondition_seconds(const Machine& machine, const KfacLinear& l, Dtype dtype) {
  return 2 * machine.launch_overhead +
         update_flops(l) / (peak_of(machine, dtype) * gemm_efficiency(machine, l.out, l.in, l.in));
}

std::vector<KfacSeconds> by_table(const std::vector<KfacLinear>& linears, const BlockTimes& times) {
  double squares = 0, cubes = 0, updates = 0;
  for (const KfacLinear& l : linears) {
    squares += squared(l.in) + squared(l.out);
    cubes += cubed(l.in) + cubed(l.out);
    updates += update_flops(l);
  }
  std::vector<KfacSeconds> seconds;
  for (const KfacLinear& l : linears)
    seconds.push_back({times.curvature_s * squared(l.in) / squares, times.curvature_s * squared(l.out) / squares,
                       times.inversion_s * cubed(l.in) / cubes, times.inversion_s * cubed(l.out) / cubes,
                       times.precondition_s * update_flops(l) / updates});
  return seconds;
}

}  // namespace

Dtype kfac_dtype(Dtype dtype) { return bytes_of(dtype) < 4 ? Dtype::float32 : dtype; }

std::vector<KfacLinear> kfac_linears(const Block& block) {
  if (block.kind != BlockKind::transformer) return {};
  const std::int64_t q = block.heads * block.head_dim, kv = block.kv_heads * block.head_dim;
  const char *qkv = "attention.qkv.weight", *mlp_up = "mlp.up.weight";
  std::vector<KfacLinear> linears{{"q", "attention input", block.hidden, q, qkv, 0},
                                  {"k", "attention input", block.hidden, kv, qkv, q},
                                  {"v", "attention input", block.hidden, kv, qkv, q + kv},
                                  {"out", "attention output", q, block.hidden, "attention.out.weight", 0}};
  const bool gated = is_gated(block.mlp);
  if (gated) linears.push_back({"gate", "mlp input", block.hidden, block.ffn, mlp_up, 0});
  linears.push_back({"up", "mlp input", block.hidden, block.ffn, mlp_up, gated ? block.ffn : 0});
  linears.push_back({"down", "mlp inner", block.ffn, block.hidden, "mlp.down.weight", 0});
  return linears;
}

std::vector<KfacSeconds> kfac_seconds(const Block& block, const WorkShape& shape, const Machine& machine) {
  const std::vector<KfacLinear> linears = kfac_linears(block);
  if (!machine.blocks.empty()) return by_table(linears, row_of(machine.blocks, shape.micro_batch));
  const std::int64_t tokens = shape.micro_batch * shape.sequence / shape.sharding.context;
  const Dtype dtype = kfac_dtype(shape.dtype);
  std::vector<KfacSeconds> seconds;
  for (const KfacLinear& l : linears)
    seconds.push_back({curvature_seconds(machine, tokens, l.in, dtype),
                       curvature_seconds(machine, tokens, l.out, dtype), inversion_seconds(machine, l.in, dtype),
                       inversion_seconds(machine, l.out, dtype), precondition_seconds(machine, l, dtype)});
  return seconds;
}

double kfac_factor_bytes(const KfacLinear& linear, Dtype weights) {
  return (squared(linear.in) + squared(linear.out)) * bytes_of(kfac_dtype(weights));
}

double kfac_factor_bytes(const Block& block, Dtype weights) {
  double bytes = 0;
  for (const KfacLinear& l : kfac_linears(block)) bytes += kfac_factor_bytes(l, weights);
  return bytes;
}

std::vector<int> kfac_owners(const std::vector<KfacLinear>& linears, int replicas) {
  const auto work = [&](std::size_t l) { return cubed(linears[l].in) + cubed(linears[l].out); };
  std::vector<std::size_t> longest(linears.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&](std::size_t x, std::size_t y) { return work(x) > work(y); });
  std::vector<double> load(replicas, 0);
  std::vector<int> owners(linears.size());
  for (const std::size_t l : longest) {
    const auto least = std::min_element(load.begin(), load.end());
    owners[l] = static_cast<int>(least - load.begin());
    *least += work(l);
  }
  return owners;
}

}  // namespace slipway::models
