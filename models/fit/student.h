// The 97.5 % point of Student's t: how many standard errors a 95 % interval reaches to either side when the
// error itself comes of few values.
//
//   degrees of freedom    2      5      10     20     endless
//   standard errors       4.30   2.57   2.23   2.09   1.96
//
// Guarded by tests/student_test.cpp against the table of Abramowitz & Stegun 1964, 26.10.
#pragma once

#include <cstddef>

namespace slipway {

// `degrees` ≥ 1; within 2e-4.
double student_975(std::size_t degrees);

}  // namespace slipway
