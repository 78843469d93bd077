// The one step of Levenberg and Marquardt (Marquardt 1963), which all fits with derivatives take:
//
//   (N + damping · diag N) · step = −gradient          more damping until a step helps, less after one did
//
// N = SᵀWS of the slopes, in a fit's own weights. What "helps" means is the fit's: it takes the step, or refuses it.
// Guarded by tests/models/memory_fit_test.cpp and tests/models/pooled_fit_test.cpp.
#pragma once

#include <Eigen/Dense>
#include <algorithm>

#include "models/namespaces.h"

namespace slipway::models {

struct Damping {
  double now = 1e-3;
  double grows = 4, shrinks = 8;  // factors after a step that did not help, and after one that did
  double least = 1e-12, most = 1e9;
  int tries = 1000;  // in one call
};

// True with the first step that `take` accepts; false when no damping gives one.
template <typename Take>
bool damped_step(const Eigen::MatrixXd& normal, const Eigen::VectorXd& gradient, Damping& damping, const Take& take) {
  for (int attempt = 0; attempt < damping.tries && damping.now < damping.most; ++attempt) {
    Eigen::MatrixXd damped = normal;
    damped.diagonal() += damping.now * normal.diagonal();
    const Eigen::VectorXd step = damped.ldlt().solve(-gradient);
    if (take(step)) {
      damping.now = std::max(damping.now / damping.shrinks, damping.least);
      return true;
    }
    damping.now *= damping.grows;
  }
  return false;
}

}  // namespace slipway::models
