// Which batch comes next: the four rules of Lau et al. 2024 (the norm test and its baselines).
//
//   constant   ────────────────   always the first
//   linear     ╱‾‾‾‾‾‾‾‾‾‾‾‾‾‾   first + (largest − first)·samples/warm-up, then the largest
//   stages     ▁▁▄▄████████████   from sample x on a batch of its own
//   norm test  ▁▁▂▂▂▄▄▄▄▄██████   as the gradient's noise asks (norm_test.h), tested every so many steps
//
// A batch that a trainer can run is a rung of a ladder: what is asked for is rounded up to the next rung,
// and to the last one where there is none. No rule shrinks a batch. Samples are sequences.
// Guarded by tests/batch_rules_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/norm_test.h"

namespace slipway {

enum class BatchRule : std::uint8_t { constant, linear, stages, norm_test };

// Do its steps measure the norms of the workers' gradients?
inline bool measures_norms(BatchRule rule) { return rule == BatchRule::norm_test; }

struct BatchStage {
  double from = 0;  // samples seen
  std::int64_t batch = 0;
};

struct BatchPlan {
  BatchRule rule = BatchRule::constant;
  std::vector<std::int64_t> rungs;  // ascending, not empty: the first batch to the largest
  double warmup = 0;                // linear: samples until the largest, > 0
  std::vector<BatchStage> stages = {};  // stages: ascending
  double eta = 0;                   // norm test, > 0
  std::int64_t test_every = 1;      // norm test: steps
  std::int64_t workers = 2;         // norm test: data parallel, ≥ 2
};

// The first rung that is not below `wanted`; the last where all are.
std::int64_t rung_of(const std::vector<std::int64_t>& rungs, double wanted);

// Where a training stands before a step.
struct BatchState {
  std::int64_t batch = 0;  // of the step before; the first rung at the beginning
  std::int64_t steps = 0;  // done
  double samples = 0;      // seen
  double noise_scale = 0;  // of the gradient, in samples
};
// Throws std::invalid_argument for a plan without rungs, or whose rule lacks what it needs. The norm test sees what is
// expected of the state's noise scale,
std::int64_t next_batch(const BatchPlan& plan, const BatchState& state);
// or what the step before has measured.
std::int64_t next_batch(const BatchPlan& plan, const BatchState& state, const GradientNorms& measured);

}  // namespace slipway
