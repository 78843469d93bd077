// Forms of kernels against hand-computed times, and their fit against constants that made the times.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "models/fit/kernel_fit.h"

namespace slipway::test {
namespace {

constexpr Rates round_rates{1e15, 1e12};  // 1 PFLOP/s, 1 TB/s

TEST(Kernels, AProductIsBoundByFlopsOrByBytes) {
  const GemmConstants constants{.share = 0.5, .area = 0, .memory = 0.8, .launch = 3e-6, .cast = 0};
  // 2·4096³ FLOPs at half a petaflop, and hardly any bytes.
  EXPECT_NEAR(seconds_of(constants, round_rates, {4096, 4096, 4096, 0}), 3e-6 + 2 * std::pow(4096.0, 3) / 0.5e15,
              1e-12);
  // Hardly any FLOPs, and 8 GB at 0.8 TB/s.
  EXPECT_NEAR(seconds_of(constants, round_rates, {1, 1, 1, 8e9}), 3e-6 + 0.01, 1e-9);
  // Both alike: the fourth root of two times as long.
  const double flops_s = 2 * 1e9 / 0.5e15;
  EXPECT_NEAR(seconds_of(constants, round_rates, {1e3, 1e3, 1e3, flops_s * 0.8e12}) - 3e-6, flops_s * std::pow(2, 0.25),
              1e-12);
}

TEST(Kernels, AResultOfTheAreaTakesTwiceAsLongAsItsFlops) {
  const GemmConstants constants{.share = 1, .area = 512.0 * 512, .memory = 1, .launch = 0, .cast = 0};
  EXPECT_NEAR(seconds_of(constants, round_rates, {512, 512, 1e6, 0}), 2 * 2 * 512 * 512 * 1e6 / 1e15, 1e-12);
}

TEST(Kernels, ACastMovesBytesOfItsInputBesideTheProduct) {
  GemmConstants constants{.share = 1, .area = 0, .memory = 1, .launch = 0, .cast = 0};
  const GemmShape shape{1000, 3000, 2000, 0};
  const double plain = seconds_of(constants, round_rates, shape);
  constants.cast = 6;
  EXPECT_NEAR(seconds_of(constants, round_rates, shape) - plain, 6 * 1000 * 2000 / 1e12, 1e-12);
}

// A ring all-gather of 8 GPUs: 7/8 of the bytes over each port, the own eighth copied.
TEST(Kernels, ACollectiveSendsItsRingsBytesAndCopiesItsOwnPart) {
  const CollectiveConstants constants{.share = 0.5, .own = 2, .launch = 1e-6, .hop = 1e-7, .ramp = 1e-9};
  const double bytes = 8e8, ring = 7e8, port = 1e11;
  EXPECT_NEAR(seconds_of(constants, port, {8, bytes, ring}),
              1e-6 + 7e-7 + ring / 0.5e11 + 2 * 1e8 / port + 1e-9 * std::sqrt(ring), 1e-12);
}

TEST(Kernels, NarrowFormatsCarryTheirScales) {
  EXPECT_EQ(weight_bytes(Format::bfloat16), 2);
  EXPECT_EQ(weight_bytes(Format::nvfp4), 0.5625) << "half a byte, and one byte of scale per 16";
  EXPECT_EQ(input_bytes(Format::mxfp4_weight), 2);
  EXPECT_EQ(computes_as(Format::mxfp4_fp8), Format::fp8);
}

KernelTable products_made_by(const GemmConstants& truth) {
  KernelTable table;
  table.casts = truth.cast > 0;
  table.rates = round_rates;
  for (double m = 512; m <= 16384; m *= 2)
    for (double n = 512; n <= 16384; n *= 2)
      for (double k = 512; k <= 16384; k *= 2) {
        const GemmShape shape{m, n, k, 2 * (m * k + n * k + m * n)};
        table.rows.push_back({shape, std::to_string(table.rows.size()), seconds_of(truth, table.rates, shape)});
      }
  return table;
}

TEST(KernelFit, GivesTheConstantsBackThatMadeTheTimes) {
  const GemmConstants truth{.share = 0.7, .area = 5e6, .memory = 0.5, .launch = 5e-6, .cast = 9};
  const KernelFit fit = fit_kernel(products_made_by(truth));
  const auto found = named<GemmConstants>(fit.values);
  EXPECT_NEAR(found.share, truth.share, 0.002 * truth.share);
  EXPECT_NEAR(found.area, truth.area, 0.02 * truth.area);
  EXPECT_NEAR(found.memory, truth.memory, 0.02 * truth.memory);
  EXPECT_NEAR(found.launch, truth.launch, 0.02 * truth.launch);
  EXPECT_NEAR(found.cast, truth.cast, 0.02 * truth.cast);
  EXPECT_LT(fit.left_out.mean, 0.002);
  EXPECT_EQ(fit.predicted_s.size(), 216U);
}

TEST(KernelFit, FindsNoShareAboveWhatPhysicsAllows) {
  const GemmConstants too_fast{.share = 1.6, .area = 1e4, .memory = 0.5, .launch = 5e-6, .cast = 0};
  const KernelFit fit = fit_kernel(products_made_by(too_fast));
  EXPECT_LE(named<GemmConstants>(fit.values).share, 0.95);
  EXPECT_GT(fit.left_out.mean, 0.03) << "the error shows that the form does not hold";
}

TEST(KernelFit, HasNoConstantForACastThatIsNotMade) {
  const KernelFit fit =
      fit_kernel(products_made_by({.share = 0.7, .area = 1e4, .memory = 0.5, .launch = 5e-6, .cast = 0}));
  EXPECT_EQ(named<GemmConstants>(fit.values).cast, 0);
  EXPECT_EQ(fit.spread.back(), 0);
}

TEST(KernelFit, LeavesEqualShapesOutTogether) {
  KernelTable table = products_made_by({.share = 0.7, .area = 1e4, .memory = 0.5, .launch = 5e-6, .cast = 0});
  for (MeasuredKernel& row : table.rows) row.name = "one shape";
  const KernelFit fit = fit_kernel(table);
  const GemmConstants book{0.75, 1e5, 0.6, 3e-6, 0};  // nothing was left to fit to
  EXPECT_NEAR(fit.predicted_s.back(), seconds_of(book, table.rates, std::get<GemmShape>(table.rows.back().shape)),
              1e-9 * fit.predicted_s.back());
}

TEST(KernelFit, RefusesTooFewShapes) {
  KernelTable table = products_made_by({});
  table.rows.resize(least_shapes - 1);
  EXPECT_THROW(fit_kernel(table), std::invalid_argument);
}

// One shape says one thing. The kernel of a GPU of this kind is known, and moves so far that the shape has its time.
TEST(KernelFit, OneShapeMovesAKernelThatIsKnown) {
  KernelTable table = products_made_by({.share = 0.5, .area = 1e4, .memory = 0.5, .launch = 5e-6, .cast = 0});
  table.rows.resize(1);
  table.around = KernelValues{0.7, 1e4, 0.5, 5e-6, 0};
  const KernelFit fit = fit_kernel(table);
  EXPECT_NEAR(seconds_of(table, fit.values, table.rows.front()) / table.rows.front().seconds, 1, 0.02);
  EXPECT_NEAR(fit.predicted_s.front(), seconds_of(table, *table.around, table.rows.front()),
              1e-6 * fit.predicted_s.front())
      << "left out, it is predicted by what was known";
  table.rows.clear();
  EXPECT_THROW(fit_kernel(table), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
