// Seconds of one kernel of a GPU, and of one collective among GPUs that NVLink (or another link) joins: forms with at
// most five constants, fitted to measured kernels (models/fit/kernel_fit.h).
//
//   P  peak of the number format, FLOP/s     M  memory bandwidth, bytes/s     B  of one port and direction, bytes/s
//   (as the data sheet says)                 ‖x, y‖ = (x⁴ + y⁴)^¼: the larger, a little more where both are near
//
//   GEMM        launch + cast·mk/M + ‖2mnk/(P·share) · (1 + area/(mn)), bytes/(M·memory)‖
//   grouped     launch + traffic·bytes of rows/M
//               + ‖6hf·Σ(rows of an expert + waste)/(P·share), bytes of weights/(M·memory)‖
//   attention   launch + FLOPs/(P·share) · (1 + half/s) · (1 + area/(b·a·s)) + bytes/(M·memory)
//   collective  launch + hop·(n − 1) + v·S/(B·share) + own·S/(nB) + ramp·√(vS)
//
// A result of `area` numbers keeps half of the processors busy. Narrow formats cast their input first: read it, scale
// it, write it. A causal sequence of `half` tokens has as much work in half-masked tiles and row sums as in products.
// v: bytes over a port per byte of a ring, (n − 1)/n, twice that for an all-reduce. Each member also copies its own
// part. √: data goes round the ring in chunks of the best size, which costs √(chunks' latency · time of the bytes).
// Guarded by tests/models/kernels_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model/format.h"
#include "models/model/names.h"
#include "models/model/operators.h"

namespace slipway::models {

struct GemmConstants {
  double share = 1, area = 0, memory = 1, launch = 0, cast = 0;
};
struct GroupedGemmConstants {
  double share = 1, waste = 0, memory = 1, launch = 0, traffic = 1;
};
struct AttentionConstants {
  double share = 1, half = 0, area = 0, memory = 1, launch = 0;
};
struct CollectiveConstants {
  double share = 1, own = 0, launch = 0, hop = 0, ramp = 0;
};

// The data sheet's rates for a kernel's format.
struct Rates {
  double flops = 0;   // P
  double memory = 0;  // M
};

// One product m×k by k×n.
struct GemmShape {
  double m = 0, n = 0, k = 0;
  double bytes = 0;  // operands and result
};
double seconds_of(const GemmConstants& constants, const Rates& rates, const GemmShape& shape);

// The three products of a gated MLP, of all experts that one GPU has. `rows`: of each expert, > 0 in all.
struct GroupedGemmShape {
  double hidden = 0, ffn = 0;  // per tensor rank
  double tokens = 0;           // that enter and leave, each with its rows
  double rows = 0;             // of all experts of this GPU
  double active = 0;           // experts with at least one row; a part of one where that is uncertain
  double weight_bytes = 0;     // of all active experts
};
double seconds_of(const GroupedGemmConstants& constants, const Rates& rates, const GroupedGemmShape& shape);

// A causal forward pass. `flops`: of the visible half.
struct AttentionShape {
  double sequences = 0, heads = 0, tokens = 0;  // b, a, s
  double flops = 0, bytes = 0;
};
double seconds_of(const AttentionConstants& constants, const Rates& rates, const AttentionShape& shape);

// `bytes`: S, the whole gathered or reduced tensor. `ring_bytes`: v·S, over each port (ring.h: ring_traffic).
struct CollectiveShape {
  double members = 0, bytes = 0, ring_bytes = 0;
};
double seconds_of(const CollectiveConstants& constants, double bandwidth, const CollectiveShape& shape);

// The properties of each constant that a fit needs.
struct KernelConstant {
  const char* name;
  const char* unit;
  const char* meaning;
  double prior, spread;  // book value, and how sure one is of it: standard deviation of the logarithm
  double most;           // never above this: what physics allows
};
enum class KernelKind : std::uint8_t { gemm, grouped_gemm, attention, latent_attention, collective };
inline constexpr std::array kernel_names{
    Named{KernelKind::gemm, "gemm"}, Named{KernelKind::grouped_gemm, "grouped-gemm"},
    Named{KernelKind::attention, "attention"}, Named{KernelKind::latent_attention, "latent-attention"},
    Named{KernelKind::collective, "collective"}};
constexpr const char* name_of(KernelKind kind) { return name_in(kernel_names, kind); }

// The kernel that a set of constants belongs to: "gemm bfloat16", "attention bfloat16 128", "collective all-reduce".
struct KernelKey {
  KernelKind kind = KernelKind::gemm;
  Format format = Format::bfloat16;          // not of a collective
  int head_dim = 0;                          // attention: numbers of a head
  Collective collective = Collective::none;  // of a collective
  auto operator<=>(const KernelKey&) const = default;
};
std::string name_of(const KernelKey& key);

// In the order of the members of its struct.
std::span<const KernelConstant> constants_of(KernelKind kind);

// The constants of a kind, in that order.
constexpr std::size_t kernel_constants = 5;
using KernelValues = std::array<double, kernel_constants>;
// Constants by name: a struct of doubles, from its members' values in their order.
template <typename Constants>
Constants named(std::span<const double> values) {
  std::array<double, sizeof(Constants) / sizeof(double)> copy{};
  std::copy_n(values.begin(), copy.size(), copy.begin());
  return std::bit_cast<Constants>(copy);
}

// The constants of one GPU: what a profile's `kernels` says (scenarios/language/load_kernels.h).
struct AttentionOfWidth {
  int head_dim = 0;
  AttentionConstants constants;
};
struct MachineKernels {
  bool measured = false;  // on this GPU; else those of a GPU that is alike, or book values
  std::array<std::optional<GemmConstants>, formats> gemm;
  std::array<std::optional<GroupedGemmConstants>, formats> grouped_gemm;
  std::array<std::vector<AttentionOfWidth>, formats> attention;
  std::array<std::optional<AttentionConstants>, formats> latent_attention;
  std::array<std::optional<CollectiveConstants>, collective_names.size()> collective;
  bool empty() const {
    return std::none_of(gemm.begin(), gemm.end(), [](const auto& constants) { return constants.has_value(); });
  }
};
// The constants of one kernel, in the order of constants_of(); nothing where there are none. Attention: of the nearest
// width.
std::optional<KernelValues> values_of(const MachineKernels& kernels, const KernelKey& key);
// In the order of KernelKey.
std::vector<KernelKey> keys_of(const MachineKernels& kernels);
// Sets them, in place of those that are there.
void set_values(MachineKernels& kernels, const KernelKey& key, const KernelValues& values);
// The constants of the nearest head width; nullptr where the format has none.
const AttentionConstants* attention_of(const MachineKernels& kernels, Format format, std::int64_t head_dim);

}  // namespace slipway::models
