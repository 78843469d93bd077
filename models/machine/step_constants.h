// The constants of a training step that no kernel table and no data sheet has: what products, messages and the host take
// in training beside what they take alone. One set for all trainers and machines; a machine or a trainer may deviate.
//
//   constant of a run = book · exp(shared + of its machine + of its trainer + of both)
//
// `models/machine/fitted_constants.yaml` has the parts, fitted to published runs (models/fit/pooled_fit.h). Here stand the
// book values, each with its source, and how far runs may differ from them.
// Guarded by tests/models/step_constants_test.cpp.
#pragma once

#include <array>
#include <span>

#include "models/namespaces.h"

namespace slipway::models {

// In the order of step_constants().
struct StepConstants {
  // Products and attention.
  double gemm = 1, gemm_hopper = 1, attention = 1, attention_backward = 1, flash1 = 1, flash2_hopper = 1, scores = 1;
  // Memory traffic.
  double traffic = 1, eager_traffic = 1, logit_bytes = 0, accumulate_traffic = 1, update_bytes = 0;
  // Messages.
  double node_share = 1, node_start = 0, network_share = 1, network_start = 0, network_hop = 0, beside = 0;
  // Host, and the step as a whole.
  double host_kernel = 0, host_member = 0, fixed = 0, whole = 1;
};

struct StepConstant {
  const char* name;
  const char* unit;
  const char* meaning;
  double StepConstants::*value;
  double book;
  double spread;   // of the logarithm: how sure the book is of what all runs share
  double machine;  // of the logarithm: how far a machine (a cluster of it) deviates; 0: none does
  double trainer;  // the same of a trainer
  double site;     // the same of a trainer on a machine: of their cluster
  const char* source;
};

constexpr std::size_t step_constant_count = sizeof(StepConstants) / sizeof(double);
std::span<const StepConstant> step_constants();
StepConstants book_constants();

}  // namespace slipway::models
