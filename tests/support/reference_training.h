// The reference model, trained by torch's own AdamW.
#pragma once

#include <torch/optim/adamw.h>

#include <memory>
#include <utility>
#include <vector>

#include "schedules/step/step.h"
#include "tests/support/reference_model.h"

namespace slipway::test {

// torch's optimizer with two groups: matrices decay, vectors do not.
inline torch::optim::AdamW reference_optimizer(Weights& weights, const Optimizer& o) {
  std::vector<at::Tensor> matrices, vectors;
  for (auto& [name, weight] : weights) (weight.dim() == 2 ? matrices : vectors).push_back(weight);
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.epsilon).weight_decay(decay));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(matrices, options(o.weight_decay));
  if (!vectors.empty()) groups.emplace_back(vectors, options(0.0));
  return torch::optim::AdamW(std::move(groups), torch::optim::AdamWOptions(o.lr));
}

}  // namespace slipway::test
