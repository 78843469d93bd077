#include "models/fit/residual_layer.h"

#include <Eigen/Dense>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <stdexcept>

#include "models/trace/statistics.h"

namespace slipway::models {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Log-normal priors: median and standard deviation of the logarithm. Step times of published tables are a few percent
// off a fit to all of them (docs/accuracy.md, in sample), so as much may be amplitude, or noise. A length of 2: runs
// whose degrees differ by a factor of four still say something of each other.
struct Prior {
  double median, spread;
};
constexpr Prior amplitude_prior{0.06, 0.4}, noise_prior{0.03, 0.5}, length_prior{2, 1};

// Amplitude, noise and lengths are estimated from at most as many runs of a site: evidence costs their number cubed.
constexpr std::size_t runs_that_estimate = 100;

// Runs of one site.
struct Runs {
  MatrixXd places;    // one row a run
  VectorXd residual;  // ln(measured / predicted)
  VectorXd weight;    // of 1 / variance of the noise; at most 1
  Index count() const { return residual.size(); }
};

struct Scales {
  double amplitude = 0, noise = 0;
  VectorXd lengths;
};

// Weights before anything is fitted: by the distance from the median, in units of the median distance.
VectorXd first_weights(const VectorXd& residual) {
  constexpr double to_normal = 1.4826, least_scale = 0.01;
  const auto middle = [](const VectorXd& values) { return median({values.begin(), values.end()}); };
  const VectorXd off = (residual.array() - middle(residual)).abs();
  const double scale = std::max(to_normal * middle(off), least_scale);
  return ((residual_freedom + 1) / (residual_freedom + (off / scale).array().square())).min(1);
}

// exp(−½ squared distance) of places over their lengths.
MatrixXd nearness(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd square = -2 * a * b.transpose();
  square.colwise() += a.rowwise().squaredNorm();
  square.rowwise() += b.rowwise().squaredNorm().transpose();
  return (-0.5 * square.array().max(0)).exp();
}

MatrixXd over(const MatrixXd& places, const VectorXd& lengths) {
  return places.array().rowwise() / lengths.transpose().array();
}

VectorXd variances(const Runs& runs, double noise) { return noise * noise / runs.weight.array(); }

// Weights of the expectation step: by the residual that the correction leaves, and how sure that is.
void weigh(Runs& runs, const Scales& scales) {
  constexpr int steps = 4;
  const MatrixXd places = over(runs.places, scales.lengths);
  const MatrixXd kernel = scales.amplitude * scales.amplitude * nearness(places, places);
  for (int step = 0; step < steps; ++step) {
    const VectorXd variance = variances(runs, scales.noise);
    MatrixXd total = kernel;
    total.diagonal() += variance;
    const MatrixXd inverse = total.llt().solve(MatrixXd::Identity(runs.count(), runs.count()));
    const Eigen::ArrayXd left = variance.array() * (inverse * runs.residual).array();
    const Eigen::ArrayXd unsure = (variance.array() * (1 - variance.array() * inverse.diagonal().array())).max(0);
    const Eigen::ArrayXd square = (left.square() + unsure) / (scales.noise * scales.noise);
    runs.weight = ((residual_freedom + 1) / (residual_freedom + square)).min(1);
  }
}

// − ln marginal likelihood and its slopes by the logarithms.
struct Evidence {
  double value = 0, by_amplitude = 0, by_noise = 0;
  VectorXd by_length;
};

Evidence evidence_of(const Runs& runs, const Scales& scales) {
  const Index n = runs.count();
  const MatrixXd places = over(runs.places, scales.lengths);
  const MatrixXd kernel = scales.amplitude * scales.amplitude * nearness(places, places);
  const VectorXd variance = variances(runs, scales.noise);
  MatrixXd total = kernel;
  total.diagonal() += variance;
  const Eigen::LLT<MatrixXd> factor(total);
  const VectorXd pull = factor.solve(runs.residual);
  const MatrixXd slope = 0.5 * (factor.solve(MatrixXd::Identity(n, n)) - pull * pull.transpose());
  Evidence evidence;
  evidence.value = 0.5 * runs.residual.dot(pull) + MatrixXd(factor.matrixL()).diagonal().array().log().sum();
  const MatrixXd moved = slope.cwiseProduct(kernel);
  evidence.by_amplitude = 2 * moved.sum();
  evidence.by_noise = 2 * slope.diagonal().dot(variance);
  evidence.by_length.resize(places.cols());
  const VectorXd sums = moved.rowwise().sum();
  for (Index k = 0; k < places.cols(); ++k) {
    const VectorXd at = places.col(k);
    evidence.by_length[k] = 2 * (sums.dot(at.cwiseAbs2()) - at.dot(moved * at));
  }
  return evidence;
}

// The estimated values of a site, each as (ln value − ln median) / spread of its prior: amplitude, noise, lengths.
Scales scales_at(const VectorXd& x) {
  const auto value = [](const Prior& prior, double at) { return prior.median * std::exp(prior.spread * at); };
  return {value(amplitude_prior, x[0]), value(noise_prior, x[1]),
          length_prior.median * (length_prior.spread * x.tail(x.size() - 2).array()).exp()};
}

double loss(const Runs& runs, const VectorXd& x, VectorXd& gradient) {
  const Evidence evidence = evidence_of(runs, scales_at(x));
  gradient = x;
  gradient[0] += amplitude_prior.spread * evidence.by_amplitude;
  gradient[1] += noise_prior.spread * evidence.by_noise;
  gradient.tail(x.size() - 2) += length_prior.spread * evidence.by_length;
  return 0.5 * x.squaredNorm() + evidence.value;
}

// Broyden, Fletcher, Goldfarb and Shanno, with halved steps (Nocedal and Wright 2006, chapter 6).
void minimise(const Runs& runs, VectorXd& x) {
  constexpr int steps = 60, halvings = 12;
  constexpr double settled = 1e-3, farthest = 2, enough = 1e-4;
  VectorXd gradient, next;
  double value = loss(runs, x, gradient);
  MatrixXd inverse = MatrixXd::Identity(x.size(), x.size());
  for (int step = 0; step < steps; ++step) {
    VectorXd move = -inverse * gradient;
    if (move.dot(gradient) >= 0) inverse.setIdentity(), move = -gradient;
    move *= std::min(1.0, farthest / move.norm());
    VectorXd tried = x;
    double reached = value;
    bool better = false;
    for (int half = 0; half < halvings && !better; ++half, move /= 2) {
      tried = x + move;
      reached = loss(runs, tried, next);
      better = reached < value + enough * move.dot(gradient);
    }
    if (!better) return;
    const VectorXd went = tried - x, changed = next - gradient;
    const double before = value;
    x = tried, gradient = next, value = reached;
    if (before - value < settled) return;
    const double along = went.dot(changed);
    if (along <= 0) continue;
    if (step == 0) inverse *= along / changed.squaredNorm();
    const VectorXd turned = inverse * changed;
    inverse += (1 + changed.dot(turned) / along) / along * went * went.transpose() -
               (turned * went.transpose() + went * turned.transpose()) / along;
  }
}

Runs some_of(const Runs& all, std::size_t most) {
  std::vector<Index> which(static_cast<std::size_t>(all.count()));
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = static_cast<Index>(i);
  std::mt19937_64 random(20261125);
  // Fisher and Yates, written out, because std::shuffle differs between standard libraries.
  for (std::size_t i = which.size(); i > 1; --i) std::swap(which[i - 1], which[random() % i]);
  which.resize(std::min(which.size(), most));
  return {all.places(which, Eigen::all), all.residual(which), all.weight(which)};
}

Runs runs_of(const std::vector<const ResidualRow*>& rows, std::size_t width) {
  const auto count = static_cast<Index>(rows.size());
  Runs runs{MatrixXd(count, static_cast<Index>(width)), VectorXd(count), {}};
  for (Index i = 0; i < count; ++i) {
    const ResidualRow& row = *rows[static_cast<std::size_t>(i)];
    if (row.place.size() != width) throw std::invalid_argument("places of a residual layer differ in size");
    for (std::size_t k = 0; k < width; ++k) runs.places(i, static_cast<Index>(k)) = row.place[k];
    runs.residual[i] = row.residual;
  }
  runs.weight = first_weights(runs.residual);
  return runs;
}

Scales estimate(const Runs& all) {
  Runs some = some_of(all, runs_that_estimate);
  VectorXd x = VectorXd::Zero(2 + some.places.cols());
  minimise(some, x);
  weigh(some, scales_at(x));
  minimise(some, x);
  return scales_at(x);
}

std::vector<double> as_list(const auto& values) {
  return std::vector<double>(values.data(), values.data() + values.size());
}

}  // namespace

ResidualLayer::ResidualLayer(const std::vector<ResidualRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const ResidualRow*>> by_site;
  for (const ResidualRow& row : rows) by_site[{row.trainer, row.machine}].push_back(&row);
  if (!rows.empty()) width_ = rows.front().place.size();
  for (const auto& [key, own] : by_site) {
    Runs runs = runs_of(own, width_);
    const Scales scales = estimate(runs);
    weigh(runs, scales);
    const MatrixXd places = over(runs.places, scales.lengths);
    MatrixXd total = scales.amplitude * scales.amplitude * nearness(places, places);
    total.diagonal() += variances(runs, scales.noise);
    const Eigen::LLT<MatrixXd> factor(total);
    Site& site = sites_[key];
    site.amplitude = scales.amplitude, site.noise = scales.noise, site.lengths = as_list(scales.lengths);
    site.pull = as_list(VectorXd(factor.solve(runs.residual)));
    site.factor = as_list(MatrixXd(factor.matrixL()));
    for (Index k = 0; k < places.rows(); ++k) site.places.push_back(as_list(VectorXd(places.row(k))));
  }
}

bool ResidualLayer::knows(const std::string& trainer, const std::string& machine) const {
  return sites_.contains({trainer, machine});
}

ResidualCorrection ResidualLayer::at(const std::string& trainer, const std::string& machine,
                                     const std::vector<double>& place) const {
  const Site& site = sites_.at({trainer, machine});
  if (place.size() != width_) throw std::invalid_argument("places of a residual layer differ in size");
  const auto n = static_cast<Index>(site.pull.size());
  const double variance = site.amplitude * site.amplitude;
  VectorXd near(n);
  for (Index i = 0; i < n; ++i) {
    double square = 0;
    for (std::size_t k = 0; k < place.size(); ++k) {
      const double off = place[k] / site.lengths[k] - site.places[static_cast<std::size_t>(i)][k];
      square += off * off;
    }
    near[i] = variance * std::exp(-0.5 * square);
  }
  const Eigen::Map<const VectorXd> pull(site.pull.data(), n);
  const Eigen::Map<const MatrixXd> factor(site.factor.data(), n, n);
  const VectorXd known = factor.triangularView<Eigen::Lower>().solve(near);
  return {near.dot(pull), std::sqrt(std::max(variance - known.squaredNorm(), 0.0)), site.noise};
}

double half_width(const ResidualCorrection& correction, double spread) {
  const double quantile = boost::math::quantile(boost::math::students_t(residual_freedom), 0.95);
  return quantile *
         std::sqrt(spread * spread + correction.spread * correction.spread + correction.noise * correction.noise);
}

}  // namespace slipway::models
