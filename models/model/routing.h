// Unbalanced routing: the tokens of each expert, and the load of the rank with most of them.
//
//   popularity   the i-th most popular expert of a layer: i^−skew (Zipf); which expert that is differs from layer to
//                layer, drawn by the seed
//   share        of a layer's tokens that go through an expert: proportional to its popularity, at most all of them,
//                and k together, because a token goes through k different ones
//   load         rows of the rank with the most, divided by those of balanced routing
//
// Ranks of an expert group wait for each other at every dispatch and combination, so the one with the most rows decides.
// Guarded by tests/models/routing_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace slipway::models {

struct Block;

struct Routing {
  double skew = 0;  // the Zipf exponent; 0: balanced. Only priced.
  std::uint64_t seed = 0;
  // α of the loss that balances experts, E·Σ f·P over them (Fedus et al. 2022, equation 4): f the share of the choices of
  // sequences that are balanced together, P the mean of their scores. 0: none.
  double balancing_loss = 0;
  // Those sequences follow each other in a batch. 0: as many as a micro-batch has. More than that: those of several data
  // ranks, all of them (the global micro-batch of Qiu et al. 2025) or some; fewer: parts of a micro-batch.
  std::int64_t balancing_sequences = 0;
  // An expert takes at most this share of k·tokens / E rows of the tokens that one rank routes together; further ones
  // are dropped, the last tokens first (Fedus et al. 2022, section 2.2). 0: takes all.
  double capacity = 0;
  // Tokens take turns among the experts, whatever the router says, as in most published measurements (Megatron-Core's
  // --moe-router-force-load-balancing): the token at position t of its sequence goes through t·k, ..., t·k + k − 1, each
  // modulo E. The router still weighs them.
  bool forced = false;
  bool operator==(const Routing&) const = default;
};

// The number of sequences over which the loss balances. A micro-batch has `micro_batch` sequences; the number is that
// of the micro-batches of several data ranks, or of a part of one micro-batch.
inline std::int64_t balanced_sequences(const Routing& routing, std::int64_t micro_batch) {
  return routing.balancing_sequences > 0 ? routing.balancing_sequences : micro_batch;
}
inline int balanced_replicas(const Routing& routing, std::int64_t micro_batch) {
  if (routing.balancing_loss == 0) return 1;
  return static_cast<int>(std::max<std::int64_t>(1, balanced_sequences(routing, micro_batch) / micro_batch));
}
inline std::int64_t balanced_parts(const Routing& routing, std::int64_t micro_batch) {
  return std::max<std::int64_t>(1, micro_batch / balanced_sequences(routing, micro_batch));
}

// Share of a layer's tokens that go through each expert, in the order of the experts. `index` of the block in the model.
std::vector<double> expert_shares(const Block& block, const Routing& routing, int index);
// The load of the rank with the most rows, where `ranks` divide the experts in order. At least 1; 1 for balanced routing.
double largest_load(const Block& block, const Routing& routing, int index, int ranks);
// The same where experts drop what they have no room for: no expert's load is above the capacity, so no rank's is.
inline double with_capacity(double load, const Routing& routing) {
  return routing.capacity > 0 && load > routing.capacity ? routing.capacity : load;
}

}  // namespace slipway::models
