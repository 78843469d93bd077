// The next batch by one of four rules of Lau et al. 2024 (the norm test and its baselines).
//
//   constant   ────────────────   always the first
//   linear     ╱‾‾‾‾‾‾‾‾‾‾‾‾‾‾   first + (largest − first)·samples/warm-up, then the largest
//   stages     ▁▁▄▄████████████   from sample x on a batch of its own
//   norm test  ▁▁▂▂▂▄▄▄▄▄██████   as the gradient's noise requires, tested every so many steps
//
// A batch that a trainer can run is a rung of a ladder. The wanted batch is rounded up to the next rung, or down to the
// last one. No rule shrinks a batch. Samples are sequences.
// Guarded by tests/models/batch_rules_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/model/names.h"
#include "models/training/norm_test.h"

namespace slipway::models {

enum class BatchRule : std::uint8_t { constant, linear, stages, norm_test };
inline constexpr std::array batch_rule_names{Named{BatchRule::constant, "constant"}, Named{BatchRule::linear, "linear"},
                                             Named{BatchRule::stages, "stages"},
                                             Named{BatchRule::norm_test, "norm-test"}};

// True if the rule's steps measure the norms of the workers' gradients.
inline bool measures_norms(BatchRule rule) { return rule == BatchRule::norm_test; }

struct BatchStage {
  double from = 0;  // samples seen
  std::int64_t batch = 0;
};

struct BatchSchedule {
  BatchRule rule = BatchRule::constant;
  std::vector<std::int64_t> rungs;      // ascending, not empty: the first batch to the largest
  double warmup = 0;                    // linear: samples until the largest, > 0
  std::vector<BatchStage> stages = {};  // stages: ascending
  double eta = 0;                       // norm test, > 0
  std::int64_t test_every = 1;          // norm test: steps
  std::int64_t workers = 2;             // norm test: data parallel, ≥ 2
};

// The first rung that is not below `wanted`; the last rung if all are below.
std::int64_t rung_of(const std::vector<std::int64_t>& rungs, double wanted);

// State of a training before a step.
struct BatchState {
  std::int64_t batch = 0;  // of the step before; the first rung at the beginning
  std::int64_t steps = 0;  // done
  double samples = 0;      // seen
  double noise_scale = 0;  // of the gradient, in samples
};
// Throws std::invalid_argument for a schedule without rungs, or without what its rule needs. The norm test gets the
// norms expected for the state's noise scale,
std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state);
// or the norms measured in the step before.
std::int64_t next_batch(const BatchSchedule& schedule, const BatchState& state, const GradientNorms& measured);

}  // namespace slipway::models
