// Which batches a layout and schedule can run: whole micro-batches on every replica, in numbers that the
// schedule accepts.
//
//   micro_batch 1 x data 8, 1F1B                    every multiple of 8
//   the same, interleaved over 4 pipeline ranks     whole rounds: every multiple of 32
//
// Guarded by tests/growth_ladder_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "schedules/action.h"

namespace slipway {

constexpr std::int64_t most_micro_batches = 1'000'000;  // per pipeline and step

// How a step is cut up, whatever its batch.
struct StepCut {
  const Schedule* schedule = nullptr;
  const Model& model;
  const Layout& layout;
  std::int64_t micro_batch = 1;
  int slices = 1;
  // Sequences that one micro-batch of every pipeline takes.
  std::int64_t unit() const { return micro_batch * layout.data; }
};
// The scenario must outlive it; schedule.csv, which is of one batch, is not asked.
StepCut step_cut(const Scenario& scenario);

// Why the norm test has nothing to compare; empty: it has.
std::string why_no_norm_test(const StepCut& cut);
bool is_rung(const StepCut& cut, std::int64_t batch);
// From `first` to `largest`, ascending.
std::vector<std::int64_t> rungs_between(const StepCut& cut, std::int64_t first, std::int64_t largest);

// Can every batch that `training.growth` names be run, and its rule? True without training.growth. For
// searches of layouts; of a scenario check_growth says it with the key.
bool runs_every_batch(const GrowthChoice& growth, const StepCut& cut);

}  // namespace slipway
