// The direction in which a pass runs its operators. Guarded by tests/schedules/breakdown_test.cpp.
#pragma once

#include "models/machine/cost.h"
#include "schedules/step/action.h"

namespace slipway::schedules {

constexpr Direction direction_of(Pass pass) {
  switch (pass) {
    case Pass::backward:
      return Direction::backward;
    case Pass::input_grad:
      return Direction::input_grad;
    case Pass::weight_grad:
      return Direction::weight_grad;
    default:
      return Direction::forward;
  }
}

}  // namespace slipway::schedules
