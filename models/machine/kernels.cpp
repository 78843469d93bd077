#include "models/machine/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace slipway::models {
namespace {

// The larger of two limits that a kernel runs into, a little more where both are near.
double slower(double a, double b) {
  const double larger = std::max(a, b);
  if (!(larger > 0)) return 0;
  const double ratio = std::min(a, b) / larger, square = ratio * ratio;
  return larger * std::sqrt(std::sqrt(1 + square * square));
}

// Physics: no kernel sustains more than 95 % of what a data sheet promises.
constexpr double most_share = 0.95, unlimited = 1e300;

constexpr KernelConstant gemm[] = {
    {"share", "of peak", "large products", 0.75, 0.3, most_share},
    {"area", "numbers", "size of the result that keeps half of the processors busy", 1e5, 2, unlimited},
    {"memory", "of memory bandwidth", "reading operands and writing the result", 0.6, 0.5, most_share},
    {"launch", "s", "from one kernel to the next", 3e-6, 1, unlimited},
    {"cast", "bytes", "read and written for each number of an input that is cast", 8, 1, unlimited}};
constexpr KernelConstant grouped[] = {
    {"share", "of peak", "large products", 0.75, 0.3, most_share},
    {"waste", "rows", "computed for nothing in the last tile of each expert", 64, 2, unlimited},
    {"memory", "of memory bandwidth", "reading weights", 0.75, 0.5, most_share},
    {"launch", "s", "of its kernels", 35e-6, 1, unlimited},
    {"traffic", "factor", "bytes of rows that are moved and activated, over their count", 3.5, 1, unlimited}};
constexpr KernelConstant attention[] = {
    {"share", "of peak", "long sequences", 0.6, 0.5, most_share},
    {"half", "tokens", "sequence with as much other work as products", 1000, 2, unlimited},
    {"area", "queries", "number of queries that keeps half of the processors busy", 1e4, 2, unlimited},
    {"memory", "of memory bandwidth", "reading queries, keys and values, writing the result", 0.5, 0.5, most_share},
    {"launch", "s", "of its kernels", 20e-6, 1, unlimited}};
constexpr KernelConstant collective[] = {
    {"share", "of a port", "large messages among many", 0.85, 0.3, most_share},
    {"own", "factor", "copies of a member's own part, in times of its bytes over a port", 0.4, 1, unlimited},
    {"launch", "s", "of the kernel", 8e-6, 1, unlimited},
    {"hop", "s", "of each further member", 0.7e-6, 1.5, unlimited},
    {"ramp", "s/√byte", "filling the ring with chunks", 6e-9, 1, unlimited}};

template <typename Constants>
KernelValues values_in(const Constants& constants) {
  const auto values = std::bit_cast<std::array<double, sizeof(Constants) / sizeof(double)>>(constants);
  KernelValues all{};
  std::copy(values.begin(), values.end(), all.begin());
  return all;
}

template <typename Constants>
std::optional<KernelValues> values_in(const std::optional<Constants>& constants) {
  return constants ? std::optional(values_in(*constants)) : std::nullopt;
}

}  // namespace

double seconds_of(const GemmConstants& c, const Rates& rates, const GemmShape& s) {
  const double products = 2 * s.m * s.n * s.k / (rates.flops * c.share) * (1 + c.area / (s.m * s.n));
  return c.launch + c.cast * s.m * s.k / rates.memory + slower(products, s.bytes / (rates.memory * c.memory));
}

double seconds_of(const GroupedGemmConstants& c, const Rates& rates, const GroupedGemmShape& s) {
  constexpr double element = 2;  // rows travel in 16 bits
  const double products = 6 * s.hidden * s.ffn * (s.rows + c.waste * s.active) / (rates.flops * c.share);
  const double rows = element * (2 * s.rows * (s.hidden + s.ffn) + s.tokens * s.hidden);
  return c.launch + c.traffic * rows / rates.memory + slower(products, s.weight_bytes / (rates.memory * c.memory));
}

double seconds_of(const AttentionConstants& c, const Rates& rates, const AttentionShape& s) {
  const double products = s.flops / (rates.flops * c.share);
  return c.launch + products * (1 + c.half / s.tokens) * (1 + c.area / (s.sequences * s.heads * s.tokens)) +
         s.bytes / (rates.memory * c.memory);
}

double seconds_of(const CollectiveConstants& c, double bandwidth, const CollectiveShape& s) {
  return c.launch + c.hop * (s.members - 1) + s.ring_bytes / (bandwidth * c.share) +
         c.own * s.bytes / s.members / bandwidth + c.ramp * std::sqrt(s.ring_bytes);
}

std::string name_of(const KernelKey& key) {
  std::string name = name_of(key.kind);
  if (key.kind == KernelKind::collective) return name + ' ' + name_of(key.collective);
  name += std::string(" ") + name_of(key.format);
  return key.head_dim > 0 ? name + ' ' + std::to_string(key.head_dim) : name;
}

std::span<const KernelConstant> constants_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return gemm;
    case KernelKind::grouped_gemm:
      return grouped;
    case KernelKind::collective:
      return collective;
    default:
      return attention;
  }
}

std::optional<KernelValues> values_of(const MachineKernels& kernels, const KernelKey& key) {
  const auto format = static_cast<std::size_t>(key.format);
  switch (key.kind) {
    case KernelKind::gemm:
      return values_in(kernels.gemm[format]);
    case KernelKind::grouped_gemm:
      return values_in(kernels.grouped_gemm[format]);
    case KernelKind::latent_attention:
      return values_in(kernels.latent_attention[format]);
    case KernelKind::collective:
      return values_in(kernels.collective[static_cast<std::size_t>(key.collective)]);
    case KernelKind::attention:
      break;
  }
  const AttentionConstants* nearest = attention_of(kernels, key.format, key.head_dim);
  return nearest != nullptr ? std::optional(values_in(*nearest)) : std::nullopt;
}

std::vector<KernelKey> keys_of(const MachineKernels& kernels) {
  std::vector<KernelKey> keys;
  for (const auto& [format, name] : format_names) {
    const auto f = static_cast<std::size_t>(format);
    if (kernels.gemm[f]) keys.push_back({KernelKind::gemm, format});
    if (kernels.grouped_gemm[f]) keys.push_back({KernelKind::grouped_gemm, format});
    if (kernels.latent_attention[f]) keys.push_back({KernelKind::latent_attention, format});
    for (const AttentionOfWidth& each : kernels.attention[f])
      keys.push_back({KernelKind::attention, format, each.head_dim});
  }
  for (const auto& [collective, name] : collective_names)
    if (kernels.collective[static_cast<std::size_t>(collective)])
      keys.push_back({KernelKind::collective, Format::bfloat16, 0, collective});
  std::sort(keys.begin(), keys.end());
  return keys;
}

void set_values(MachineKernels& kernels, const KernelKey& key, const KernelValues& values) {
  const auto format = static_cast<std::size_t>(key.format);
  switch (key.kind) {
    case KernelKind::gemm:
      kernels.gemm[format] = named<GemmConstants>(values);
      break;
    case KernelKind::grouped_gemm:
      kernels.grouped_gemm[format] = named<GroupedGemmConstants>(values);
      break;
    case KernelKind::latent_attention:
      kernels.latent_attention[format] = named<AttentionConstants>(values);
      break;
    case KernelKind::collective:
      kernels.collective[static_cast<std::size_t>(key.collective)] = named<CollectiveConstants>(values);
      break;
    case KernelKind::attention: {
      auto& widths = kernels.attention[format];
      std::erase_if(widths, [&](const AttentionOfWidth& each) { return each.head_dim == key.head_dim; });
      widths.push_back({key.head_dim, named<AttentionConstants>(values)});
      break;
    }
  }
}

const AttentionConstants* attention_of(const MachineKernels& kernels, Format format, std::int64_t head_dim) {
  const auto& widths = kernels.attention[static_cast<std::size_t>(format)];
  const auto distance = [&](const AttentionOfWidth& each) { return std::abs(each.head_dim - head_dim); };
  const auto nearest = std::min_element(widths.begin(), widths.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return nearest == widths.end() ? nullptr : &nearest->constants;
}

}  // namespace slipway::models
