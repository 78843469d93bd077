// Measured kernels as tables for their fit (models/fit/kernel_fit.h), read from CSV. The columns name the kernel:
//
//   gpu, format, m, n, k, seconds                                       GEMM
//   gpu, format, sequences, tokens, heads, kv_heads, head_dim, seconds  causal attention, forward
//   gpu, format, sequences, tokens, heads, seconds                      latent attention of DeepSeek-V3, forward
//   gpu, format, tokens, hidden, ffn, experts_per_token, experts, tensor, expert_parallel, distribution, seconds
//                                                                       the gated MLPs of a GPU's experts
//   gpu, collective, members, bytes, seconds                            NCCL inside an NVLink domain
//
// gpu: a machine profile. distribution: balanced, or power_law_A (experts' shares of the tokens by a power law of
// exponent A; the GPU with most rows). Guarded by tests/scenarios/kernels_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/fit/kernel_fit.h"
#include "models/machine/machine.h"

namespace slipway::scenarios {

struct KernelRows {
  std::string gpu;
  KernelKey key;      // what it is a kernel of
  KernelTable table;  // rows that count: a collective's from 1 MiB on, because smaller ones are latency
  // The constants of this GPU's profile; empty where it has no such kernel.
  std::optional<KernelValues> built_in = std::nullopt;
};

// Sorted by GPU and kernel. Throws UsageError with file, line and column, or the reason why the file cannot be read.
std::vector<KernelRows> read_kernels(const std::string& file);

// Rows of each expert of the GPU that has most, where `tokens` · `experts_per_token` rows are dealt to `experts` with
// shares by a power law, cut off at one row and at 0.8 of the tokens. The experts' places are drawn with a fixed seed.
std::vector<double> rows_of_fullest_gpu(double tokens, int experts_per_token, int experts, int gpus, double exponent);

}  // namespace slipway::scenarios
