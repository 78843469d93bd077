// Every split of layers on stages, and the load of each: the truth for layout.split balanced.
//
//   each_split(2, 3)  ──►  0 3, 1 2, 2 1, 3 0        slowest stage, then the least sum of squares
//
// Used by tests/schedules/balanced_split_test.cpp.
#pragma once

#include <algorithm>
#include <vector>

#include "models/namespaces.h"

namespace slipway::test {

// Calls visit for every list of `stages` numbers that add up to `layers`.
template <class Visit>
void each_split(int stages, int layers, std::vector<int>& split, const Visit& visit) {
  for (int n = stages == 1 ? layers : 0; n <= layers; ++n) {
    split.push_back(n);
    if (stages == 1)
      visit(split);
    else
      each_split(stages - 1, layers - n, split, visit);
    split.pop_back();
  }
}

// Loads of the stages; empty if one between the first and the last would hold nothing.
inline std::vector<double> loads(const std::vector<std::vector<double>>& seconds, const std::vector<int>& layers) {
  std::vector<double> list;
  std::size_t block = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    std::size_t count = static_cast<std::size_t>(layers[s]) + (s == 0 ? 1 : 0) + (s + 1 == layers.size() ? 1 : 0);
    if (count == 0) return {};
    double& load = list.emplace_back(0);
    for (; count > 0; --count) load += seconds[s][block++];
  }
  return list;
}

struct Evenness {
  double slowest = 0, squares = 0;
};
inline Evenness evenness(const std::vector<double>& loads) {
  Evenness sum;
  for (const double load : loads) sum.slowest = std::max(sum.slowest, load), sum.squares += load * load;
  return sum;
}

// Best of all splits: the slowest stage as fast as possible, then the least sum of squares.
inline Evenness best_of_all(const std::vector<std::vector<double>>& seconds) {
  Evenness best{1e300, 1e300};
  std::vector<int> split;
  const int stages = static_cast<int>(seconds.size()), layers = static_cast<int>(seconds.front().size()) - 2;
  each_split(stages, layers, split, [&](const std::vector<int>& one) {
    const std::vector<double> each = loads(seconds, one);
    if (each.empty()) return;
    const Evenness now = evenness(each);
    constexpr double same = 1 + 1e-12;
    const bool is_faster = now.slowest * same<best.slowest, is_slower = now.slowest> best.slowest * same;
    if (is_faster || (!is_slower && now.squares < best.squares)) best = now;
  });
  return best;
}

}  // namespace slipway::test
