// The 97.5 % point of Student's t: the half-width of a 95 % interval in standard errors, when the error itself comes
// from few values.
//
//   degrees of freedom    2      5      10     20     endless
//   standard errors       4.30   2.57   2.23   2.09   1.96
//
// Guarded by tests/models/least_squares_test.cpp against the table of Abramowitz & Stegun 1964, 26.10.
#pragma once

#include <cstddef>

#include "models/namespaces.h"

namespace slipway::models {

// `degrees` ≥ 1.
double student_975(std::size_t degrees);

}  // namespace slipway::models
