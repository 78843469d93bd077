#include "models/model/token_copies.h"

#include <algorithm>
#include <cmath>

namespace slipway::models {
namespace {

// Shares of a port that the kernels reach. DeepEP on eight H100 (450 GB/s of NVLink): combine of 4096 tokens of 7168
// bfloat16, 8 of 256 experts, in 0.978 ms, and of two to four nodes (50 GB/s a GPU) in 2.10 and 3.53 ms, 20 SMs
// (ai-dynamo/aiconfigurator@095f58a51, Apache-2.0). HybridEP: a layer's forward with two messages takes 0.29 ms less
// than with DeepEP (NVIDIA/Megatron-LM@d98e8a64, tests/functional_tests/test_cases/common/moe_perf/baseline.json).
constexpr RouteBytes deepep_shares{0.61, 0.9}, hybridep_shares{0.72, 0.9};

}  // namespace

TokenTraffic token_traffic(const Model& model, Dispatcher dispatcher) {
  TokenTraffic tokens{dispatcher, 0, 1};
  for (const BlockRun& run : model.runs) {
    const Block& block = run.block;
    if (block.experts_per_token <= tokens.per_token) continue;
    tokens.per_token = static_cast<int>(block.experts_per_token);
    const bool in_groups = block.expert_groups > 0 && block.groups_per_token > 0;
    tokens.reach =
        in_groups ? static_cast<double>(block.groups_per_token) / static_cast<double>(block.expert_groups) : 1;
  }
  return tokens;
}

double places_hit(const TokenTraffic& tokens, int places) {
  const double within = std::max(1.0, places * tokens.reach);
  return within * (1 - std::pow(1 - 1 / within, tokens.per_token));
}

RouteBytes route_bytes(const TokenTraffic& tokens, int nodes, int per_node) {
  const bool once = tokens.dispatcher == Dispatcher::deepep || tokens.dispatcher == Dispatcher::hybridep;
  if (!once || tokens.per_token == 0) return {};
  const double N = nodes, g = per_node, k = tokens.per_token;
  const RouteBytes shares = tokens.dispatcher == Dispatcher::deepep ? deepep_shares : hybridep_shares;
  // Each copy for a GPU goes over NVLink, but for the one at which it comes into the node.
  RouteBytes bytes;
  bytes.inside = places_hit(tokens, nodes * per_node) / (k / N) / shares.inside;
  bytes.between = places_hit(tokens, nodes) / k / shares.between;
  if (g < 2) bytes.inside = 1;
  return bytes;
}

}  // namespace slipway::models
