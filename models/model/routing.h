// How unevenly a router sends tokens to experts, and what the rank with the most of them gets.
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

#include <cstdint>
#include <vector>

namespace slipway::models {

struct Block;

struct Routing {
  double skew = 0;  // the Zipf exponent; 0: balanced
  std::uint64_t seed = 0;
  bool operator==(const Routing&) const = default;
};

// Share of a layer's tokens that go through each expert, in the order of the experts. `index` of the block in the model.
std::vector<double> expert_shares(const Block& block, const Routing& routing, int index);
// The load of the rank with the most rows, where `ranks` divide the experts in order. At least 1; 1 for balanced routing.
double largest_load(const Block& block, const Routing& routing, int index, int ranks);

}  // namespace slipway::models
