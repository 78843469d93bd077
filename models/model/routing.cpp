#include "models/model/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "models/model/model.h"

namespace slipway::models {
namespace {

// Shares in the order of popularity: the first ones get all tokens while their part would be more than that.
std::vector<double> shares_by_popularity(std::size_t experts, double per_token, double skew) {
  std::vector<double> shares(experts), tail(experts + 1, 0);  // tail: of all from here on
  for (std::size_t i = 0; i < experts; ++i) shares[i] = std::pow(static_cast<double>(i + 1), -skew);
  for (std::size_t i = experts; i > 0; --i) tail[i - 1] = tail[i] + shares[i - 1];
  double left = per_token;
  std::size_t full = 0;
  for (; full < experts && left >= 1 && left * shares[full] >= tail[full]; ++full) {
    shares[full] = 1;
    left -= 1;
  }
  for (std::size_t i = full; i < experts; ++i) shares[i] *= left / tail[full];
  return shares;
}

}  // namespace

std::vector<double> expert_shares(const Block& block, const Routing& routing, int index) {
  const auto experts = static_cast<std::size_t>(block.experts);
  std::vector<double> shares =
      shares_by_popularity(experts, static_cast<double>(block.experts_per_token), routing.skew);
  // Not std::shuffle, which libraries implement differently.
  std::mt19937_64 random(routing.seed * 1'000'003 + static_cast<std::uint64_t>(index));
  for (std::size_t i = experts; i > 1; --i) std::swap(shares[i - 1], shares[random() % i]);
  return shares;
}

double largest_load(const Block& block, const Routing& routing, int index, int ranks) {
  if (block.experts == 0 || routing.skew == 0 || ranks < 2) return 1;
  const std::vector<double> shares = expert_shares(block, routing, index);
  const std::size_t of_rank = shares.size() / static_cast<std::size_t>(ranks);
  double most = 0;
  for (auto first = shares.begin(); first != shares.end(); first += static_cast<std::ptrdiff_t>(of_rank))
    most = std::max(most, std::accumulate(first, first + static_cast<std::ptrdiff_t>(of_rank), 0.0));
  return std::max(1.0, most * ranks / static_cast<double>(block.experts_per_token));
}

}  // namespace slipway::models
