#include "exec/rank/kfac_math.h"

#include <ATen/ATen.h>

namespace slipway::exec {

namespace {

// (L·Lᵀ)⁻¹ in place of L. cholesky_inverse reads LAPACK's result on the host, which would wait for a device. A solve
// for the columns of 1 costs more and waits for nothing.
void invert_from_triangle(at::Tensor& triangle) {
  if (triangle.is_cpu()) {
    at::cholesky_inverse_out(triangle, triangle);
    return;
  }
  at::Tensor columns = at::eye(triangle.size(0), triangle.options()).t();  // stored in the library's order
  at::linalg_solve_triangular_out(columns, triangle, columns, /*upper=*/false);
  at::linalg_solve_triangular_out(columns, triangle.t(), columns, /*upper=*/true);
  triangle.copy_(columns);
}

}  // namespace

void add_squares(at::Tensor& sum, const at::Tensor& x, double scale) {
  const at::Tensor given = x.reshape({-1, x.size(-1)});
  at::Tensor rows = given.to(sum.scalar_type());
  if (scale != 1) rows = rows.is_same(given) ? rows * scale : rows.mul_(scale);
  sum.addmm_(rows.t(), rows);
}

at::Tensor damping_ratio(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor mean_a = a.trace() / a.size(0), mean_b = b.trace() / b.size(0);
  const at::Tensor comparable = at::logical_and(mean_a != 0, mean_b != 0);
  return at::where(comparable, (mean_a / mean_b).sqrt(), at::ones_like(mean_a));
}

at::Tensor invert_damped(at::Tensor& factor, const at::Tensor& damping) {
  factor.diagonal().add_(damping);
  at::Tensor columns = factor.t();  // LAPACK's order, in which it works in place; the factor is symmetric
  at::Tensor failed = at::empty({}, factor.options().dtype(at::kInt));
  at::linalg_cholesky_ex_out(columns, failed, columns);
  invert_from_triangle(columns);
  return failed;
}

void precondition_gradient(at::Tensor& gradient, const at::Tensor& inverse_a, const at::Tensor& inverse_b) {
  const at::Tensor half = at::mm(inverse_b, gradient.to(inverse_b.scalar_type()));
  if (gradient.scalar_type() == half.scalar_type())
    at::mm_out(gradient, half, inverse_a);
  else
    gradient.copy_(at::mm(half, inverse_a));
}

}  // namespace slipway::exec
