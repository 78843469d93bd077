#include "models/fit/student.h"

#include <boost/math/distributions/students_t.hpp>
#include <stdexcept>

namespace slipway::models {

double student_975(std::size_t degrees) {
  if (degrees == 0) throw std::invalid_argument("Student's t needs a degree of freedom");
  return boost::math::quantile(boost::math::students_t(static_cast<double>(degrees)), 0.975);
}

}  // namespace slipway::models
