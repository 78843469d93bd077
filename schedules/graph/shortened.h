// The same schedule with fewer micro-batches, for steps of thousands of them.
//
//   rank 0   F F F│F B F B F B F B ... F B F B│B B B        warm-up │ periods │ cool-down
//   rank 1   F F│F B F B F B F B ... F B F B F B│B B
//                    └┬┘ a period: `period` micro-batches forward and backward
//
// Found in the action lists themselves, so it holds for every schedule, imported ones too, or not at all (GPipe).
// What is left out are whole periods, the same number on every rank; later micro-batches move up. A rank's periods
// begin after the first micro-batch and end before the last, which are lowered differently.
// Guarded by tests/shortened_test.cpp: the result is what the schedule gives for fewer micro-batches.
#pragma once

#include <optional>

#include "schedules/action.h"

namespace slipway {

struct ShortenedActions {
  ActionLists actions;
  int micro_batches = 0;  // that are left
  int period = 0;         // micro-batches
  int left_out = 0;       // periods; a multiple of `shortening_step`
};

// Left-out periods are a multiple of this, so that they are whole periods of time also where a timeline repeats
// only every 2, 3 or 4 periods of the actions.
constexpr int shortening_step = 12;

// With more `patience` (1, 2, ...) more periods stay, in which dates may settle: about as many times what a pipeline
// takes to fill twice. Nothing when the lists do not repeat, or less than a third could be left out.
std::optional<ShortenedActions> shortened(const ActionLists& lists, int micro_batches, int patience);

}  // namespace slipway
