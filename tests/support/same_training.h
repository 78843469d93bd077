// The results of one training run, on virtual ranks or processes: its losses and the gradients of its first step. A
// layout must give those of one process up to the rounding of float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/gradient_files.h"

namespace slipway::test {

struct Trained {
  std::vector<double> losses;
  std::map<std::string, WholeGradient> gradients;  // of the first step
  double gradient_norm = 0;
};

inline Trained trained(std::vector<double> losses, const std::string& folder, int ranks) {
  Trained run{std::move(losses), read_gradients(folder, ranks), 0};
  if (!run.gradients.contains(
          "head.weight"))  // one rank has embedding and tied head: one tensor (schedules/step/placement.h)
    run.gradients["head.weight"] = run.gradients.at("embedding.weight");
  double squares = 0;
  for (const auto& [name, gradient] : run.gradients)
    for (const double value : gradient.values) squares += value * value;
  run.gradient_norm = std::sqrt(squares);
  return run;
}

// Losses to `relative`, gradients to 1e-12 of the global gradient norm: each parameter's and all together.
inline void expect_same_training(const Trained& one, const Trained& many, double relative = 1e-9) {
  ASSERT_EQ(one.losses.size(), many.losses.size());
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(many.losses[step], one.losses[step], relative * one.losses[step]) << "step " << step;
  EXPECT_EQ(one.gradients.size(), many.gradients.size());
  double squares = 0;
  for (const auto& [name, gradient] : one.gradients) {
    const auto found = many.gradients.find(name);
    ASSERT_NE(found, many.gradients.end()) << name;
    const WholeGradient& other = found->second;
    ASSERT_EQ(other.values.size(), gradient.values.size()) << name;
    EXPECT_EQ(std::count(other.known.begin(), other.known.end(), false), 0) << name << " is not complete";
    EXPECT_LE(other.disagreement, 1e-12 * one.gradient_norm) << name << " differs between ranks";
    double own = 0;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) own += std::pow(other.values[i] - gradient.values[i], 2);
    EXPECT_LE(std::sqrt(own), 1e-12 * one.gradient_norm) << name;
    squares += own;
  }
  EXPECT_LE(std::sqrt(squares), 1e-12 * one.gradient_norm);
}

}  // namespace slipway::test
