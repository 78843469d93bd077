#include "models/fit/student.h"

#include <iterator>
#include <stdexcept>

namespace slipway {

double student_975(std::size_t degrees) {
  if (degrees == 0) throw std::invalid_argument("Student's t needs a degree of freedom");
  // The expansion below is off by more than 2e-4 up to here (Abramowitz & Stegun 1964, table 26.10).
  constexpr double few[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706};
  if (degrees <= std::size(few)) return few[degrees - 1];
  // Abramowitz & Stegun 1964, 26.7.5: by the normal distribution's point and powers of 1/degrees.
  constexpr double x = 1.959963985, x2 = x * x;
  const double n = 1 / static_cast<double>(degrees);
  const double g1 = x * (x2 + 1) / 4, g2 = x * ((5 * x2 + 16) * x2 + 3) / 96,
               g3 = x * (((3 * x2 + 19) * x2 + 17) * x2 - 15) / 384,
               g4 = x * ((((79 * x2 + 776) * x2 + 1482) * x2 - 1920) * x2 - 945) / 92160;
  return x + n * (g1 + n * (g2 + n * (g3 + n * g4)));
}

}  // namespace slipway
