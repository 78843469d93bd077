// A smooth correction of ln(step) near measured runs of one trainer on one machine (a site): what the fit of physics
// leaves unexplained.
//
//   ln(measured / predicted) = f(place) + noise,     noise: Student's t of residual_freedom, scale s of the site
//   f: Gaussian process of mean 0,  cov f(x), f(y) = a² exp(−½ Σ_k (x_k − y_k)² / l_k²),  amplitude a of the site
//
//     correction      . · ˙ ˙ · .
//               · ˙   o    o   o   ˙ ·           o: residuals of measured runs
//   0 ─ ─ ─ · ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ · ─ ─    far from all: none, and the spread is a
//
// a, s and the lengths l have log-normal priors and maximise the marginal likelihood of the site's runs (Rasmussen and
// Williams 2006, chapter 5). So a site whose residuals are noise keeps a small amplitude, and what its errors do not
// depend on gets a large length. Each site has its own: no run of one moves the correction of another.
// Robust: a run far from its neighbours has a small weight (the expectation step for Student's t, Lange et al. 1989).
// Guarded by tests/models/residual_layer_test.cpp.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

// Degrees of freedom of the noise.
inline constexpr double residual_freedom = 3;

// A run that a fit has seen.
struct ResidualRow {
  std::string trainer, machine;
  std::vector<double> place;  // without dimension; runs of places within 1 of each other are neighbours
  double residual = 0;        // ln(measured / predicted)
};

struct ResidualCorrection {
  double shift = 0;   // add it to ln(predicted)
  double spread = 0;  // standard deviation of `shift`
  double noise = 0;   // scale of single runs beside it
};

class ResidualLayer {
 public:
  // Deterministic. Throws std::invalid_argument where places differ in size.
  explicit ResidualLayer(const std::vector<ResidualRow>& rows);

  // True if runs of this trainer on this machine were seen. The layer corrects no others.
  bool knows(const std::string& trainer, const std::string& machine) const;
  // Throws std::out_of_range for a site that it does not know.
  ResidualCorrection at(const std::string& trainer, const std::string& machine, const std::vector<double>& place) const;

 private:
  struct Site {
    std::vector<double> lengths;
    std::vector<std::vector<double>> places;  // over the lengths
    std::vector<double> pull;                 // (K + noise)⁻¹ residuals
    std::vector<double> factor;               // lower Cholesky factor of K + noise, column by column
    double amplitude = 0, noise = 0;
  };
  std::size_t width_ = 0;  // numbers of a place
  std::map<std::pair<std::string, std::string>, Site> sites_;
};

// 90 of 100 runs are as far from ln(predicted) + shift, or nearer. `spread`: of the constants (spread_of, pooled_fit.h).
double half_width(const ResidualCorrection& correction, double spread);

}  // namespace slipway::models
