#include "exec/kfac_math.h"

#include <ATen/ATen.h>

namespace slipway {

at::Tensor sum_of_squares(const at::Tensor& x, double scale, at::ScalarType dtype) {
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).to(dtype);
  const at::Tensor scaled = scale == 1 ? rows : rows * scale;
  return at::mm(scaled.t(), scaled);
}

at::Tensor damping_ratio(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor mean_a = a.trace() / a.size(0), mean_b = b.trace() / b.size(0);
  const at::Tensor comparable = at::logical_and(mean_a != 0, mean_b != 0);
  return at::where(comparable, (mean_a / mean_b).sqrt(), at::ones_like(mean_a));
}

Inverse damped_inverse(const at::Tensor& factor, const at::Tensor& damping) {
  at::Tensor damped = factor.clone();
  damped.diagonal().add_(damping);
  const auto [triangle, failed] = at::linalg_cholesky_ex(damped);
  if (factor.is_cpu()) return {at::cholesky_inverse(triangle), failed};
  // That one reads LAPACK's verdict on the host, which would wait for the device; solving costs more and
  // waits for nothing.
  return {at::cholesky_solve(at::eye(factor.size(0), factor.options()), triangle), failed};
}

at::Tensor natural_direction(const at::Tensor& gradient, const at::Tensor& inverse_a,
                             const at::Tensor& inverse_b) {
  return at::mm(at::mm(inverse_b, gradient.to(inverse_b.scalar_type())), inverse_a);
}

}  // namespace slipway
