// K-FAC's formulas against the dense Fisher block of a Linear, which they approximate: mean over tokens of
// vec(dW)·vec(dW)ᵀ with a token's own gradient dW = g·aᵀ, damped, inverted as a whole.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exec/rank/kfac_math.h"
#include "exec/rank/memory_meter.h"

namespace slipway::test {
namespace {

at::Tensor numbers(std::vector<std::int64_t> shape, std::int64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed));
  return at::randn(shape, generator, at::TensorOptions().dtype(at::kDouble));
}

double distance(const at::Tensor& x, const at::Tensor& y) {
  return (x - y).norm().item<double>() / y.norm().item<double>();
}

// [out·in, out·in] of tokens a [T, in] and g [T, out], whose gradients are those of the mean loss.
at::Tensor dense_fisher(const at::Tensor& a, const at::Tensor& g) {
  const auto tokens = a.size(0);
  at::Tensor sum;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const at::Tensor one = (static_cast<double>(tokens) * at::outer(g[t], a[t])).flatten();
    const at::Tensor square = at::outer(one, one);
    sum = sum.defined() ? sum + square : square;
  }
  return sum / static_cast<double>(tokens);
}

struct Factors {
  at::Tensor a, b;
};
at::Tensor sum_of_squares(const at::Tensor& x, double scale, at::ScalarType dtype) {
  at::Tensor sum = at::zeros({x.size(-1), x.size(-1)}, dtype);
  add_squares(sum, x, scale);
  return sum;
}
Factors factors_of(const at::Tensor& a, const at::Tensor& g) {
  const auto tokens = static_cast<double>(a.size(0));
  return {sum_of_squares(a, 1, at::kDouble) / tokens, sum_of_squares(g, tokens, at::kDouble) / tokens};
}

struct Inverse {
  at::Tensor inverse, failed;
};
Inverse damped_inverse(const at::Tensor& factor, const at::Tensor& damping) {
  at::Tensor inverse = factor.clone();
  const at::Tensor failed = invert_damped(inverse, damping);
  return {inverse, failed};
}

at::Tensor direction_of(const Factors& f, const at::Tensor& gradient, double damping) {
  const at::Tensor ratio = damping_ratio(f.a, f.b);
  const double root = std::sqrt(damping);
  at::Tensor direction = gradient.clone();
  precondition_gradient(direction, damped_inverse(f.a, ratio * root).inverse,
                        damped_inverse(f.b, root / ratio).inverse);
  return direction;
}

// Every input is paired with every output gradient, so that they are independent, as K-FAC assumes.
TEST(KfacMath, FactorsOfIndependentInputsAndGradientsAreTheDenseFisherBlock) {
  const at::Tensor inputs = numbers({5, 3}, 1), gradients = numbers({4, 2}, 2);
  const at::Tensor a = inputs.repeat_interleave(4, 0), g = gradients.repeat({5, 1});
  const Factors f = factors_of(a, g);
  EXPECT_LE(distance(at::kron(f.b, f.a), dense_fisher(a, g)), 1e-14);  // rows of W are those of B
}

TEST(KfacMath, WithoutDampingTheDirectionIsTheDenseNaturalGradient) {
  const at::Tensor a = numbers({5, 3}, 1).repeat_interleave(4, 0), g = numbers({4, 2}, 2).repeat({5, 1});
  const at::Tensor gradient = numbers({2, 3}, 3);
  const at::Tensor natural = at::linalg_inv(dense_fisher(a, g)).mv(gradient.flatten()).view({2, 3});
  EXPECT_LE(distance(direction_of(factors_of(a, g), gradient, 0), natural), 1e-11);
}

TEST(KfacMath, DampingIsSplitSoThatBothFactorsGetTheSameShareOfTheirMeanEigenvalue) {
  const at::Tensor a = numbers({9, 3}, 4), g = 0.01 * numbers({9, 2}, 5), gradient = numbers({2, 3}, 6);
  const Factors f = factors_of(a, g);
  const double damping = 1e-3, mean_a = at::linalg_eigvalsh(f.a).mean().item<double>(),
               mean_b = at::linalg_eigvalsh(f.b).mean().item<double>();
  const double of_a = std::sqrt(damping * mean_a / mean_b), of_b = std::sqrt(damping * mean_b / mean_a);
  EXPECT_NEAR(of_a / mean_a, of_b / mean_b, 1e-12 * of_a / mean_a);
  EXPECT_NEAR(of_a * of_b, damping, 1e-15);
  const auto identity = [](std::int64_t n) { return at::eye(n, at::kDouble); };
  const at::Tensor damped = at::kron(f.b + of_b * identity(2), f.a + of_a * identity(3));
  const at::Tensor expected = at::linalg_inv(damped).mv(gradient.flatten()).view({2, 3});
  EXPECT_LE(distance(direction_of(f, gradient, damping), expected), 1e-12);
}

TEST(KfacMath, AFactorWithoutATraceIsDampedByTheRootOfTheDamping) {
  const Factors f{at::zeros({3, 3}, at::kDouble), at::eye(2, at::kDouble)};
  EXPECT_EQ(damping_ratio(f.a, f.b).item<double>(), 1);
  const Inverse inverse = damped_inverse(f.a, at::scalar_tensor(0.1, at::kDouble));
  EXPECT_LE(distance(inverse.inverse, 10 * at::eye(3, at::kDouble)), 1e-14);
}

TEST(KfacMath, AFactorThatIsNotPositiveIsTold) {
  const at::Tensor nothing = at::scalar_tensor(0.0, at::kDouble);
  EXPECT_EQ(damped_inverse(at::eye(3, at::kDouble), nothing).failed.item<int>(), 0);
  EXPECT_NE(damped_inverse(-at::eye(3, at::kDouble), nothing).failed.item<int>(), 0);
  EXPECT_NE(damped_inverse(at::full({3, 3}, std::nan(""), at::kDouble), nothing).failed.item<int>(), 0);
}

TEST(KfacMath, SumsGoOnFromWhatIsThere) {
  const at::Tensor first = numbers({4, 3}, 8), second = numbers({5, 3}, 9), all = at::cat({first, second});
  at::Tensor sum = sum_of_squares(first, 2, at::kDouble);
  add_squares(sum, second, 2);
  EXPECT_LE(distance(sum, 4 * all.t().mm(all)), 1e-14);
}

TEST(KfacMath, TheInverseIsMadeInTheFactorsOwnMemory) {
  const at::Tensor x = numbers({80, 40}, 10);
  at::Tensor factor = x.t().mm(x);
  const at::Tensor expected = at::linalg_inv(factor);
  const void* const memory = factor.const_data_ptr();
  MemoryMeter meter(c10::DeviceType::CPU);
  const std::int64_t before = meter.bytes();
  meter.measure(0, 0, [&] { invert_damped(factor, at::scalar_tensor(0.0, at::kDouble)); });
  EXPECT_EQ(factor.const_data_ptr(), memory);
  EXPECT_LE(distance(factor, expected), 1e-11);
  EXPECT_LE(distance(factor, factor.t()), 1e-15);
  EXPECT_LE(meter.stamps().front().peak_bytes - before, 1024) << "scalars; the factor is 12,800 bytes";
}

TEST(KfacMath, GradientsOfAnotherDtypeArePreconditionedInThatOfTheInverses) {
  at::Tensor gradient = at::eye(2, at::kFloat);
  const at::Tensor a = at::full({2, 2}, 1 + 1e-12, at::kDouble), b = 1e12 * at::eye(2, at::kDouble);
  precondition_gradient(gradient, a, b);
  EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  EXPECT_NEAR(gradient[0][1].item<double>(), 1e12, 1e5);
}

TEST(KfacMath, FactorsOfBfloat16AreSummedInFloat32) {
  const at::Tensor x = numbers({64, 8}, 7).to(at::kBFloat16), sum = sum_of_squares(x, 1, at::kFloat);
  EXPECT_EQ(sum.scalar_type(), at::kFloat);
  const at::Tensor exact = x.to(at::kDouble).t().mm(x.to(at::kDouble));
  EXPECT_LE(distance(sum.to(at::kDouble), exact), 1e-6);
}

}  // namespace
}  // namespace slipway::test
