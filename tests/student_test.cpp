// Against the printed table: Abramowitz & Stegun 1964, table 26.10, two-sided 0.95.
#include "models/fit/student.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace slipway {
namespace {

TEST(Student, IsThePrintedTable) {
  const std::pair<std::size_t, double> printed[] = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},  {6, 2.447},  {7, 2.365},
      {8, 2.306},  {10, 2.228}, {15, 2.131}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  for (const auto& [degrees, value] : printed) EXPECT_NEAR(student_975(degrees), value, 6e-4) << degrees;
  EXPECT_NEAR(student_975(1'000'000), 1.959964, 1e-5);
}

TEST(Student, OfOneValueNoErrorIsKnown) { EXPECT_THROW(student_975(0), std::invalid_argument); }

}  // namespace
}  // namespace slipway
