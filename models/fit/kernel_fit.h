// Fits the constants of a kernel (models/machine/kernels.h) to measured times of many shapes.
//
// A fifth of the shapes at a time is left out and predicted by a fit to the others. Their error is the one to expect
// for an unmeasured shape. Robust, with log-normal priors (prior_fit.h). Deterministic.
// Guarded by tests/models/kernels_test.cpp: known constants are recovered; no share is above what physics allows.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/machine/kernels.h"

namespace slipway::models {

struct MeasuredKernel {
  std::variant<GemmShape, GroupedGemmShape, AttentionShape, CollectiveShape> shape;
  std::string name;  // of the shape: rows of one name are left out together
  double seconds = 0;
};

// Measurements of one kernel on one GPU.
struct KernelTable {
  KernelKind kind = KernelKind::gemm;
  bool casts = false;    // a GEMM whose input is cast to a narrow format first
  Rates rates;           // of its format; a collective has none
  double bandwidth = 0;  // of a port, for a collective
  std::vector<MeasuredKernel> rows;
  std::optional<KernelValues> around;  // what a GPU of this kind has, in place of the book's values
};

struct KernelError {
  double mean = 0, median = 0;  // of |predicted / measured − 1|
  double ratio = 1;             // median of predicted / measured
};

struct KernelFit {
  KernelValues values{};
  KernelValues spread{};  // standard deviation of ln(value) after the fit; 0: not fitted
  KernelError in_sample, left_out;
  std::vector<double> predicted_s;  // of each row, by the fit that did not see it
};

double seconds_of(const KernelTable& table, const KernelValues& values, const MeasuredKernel& row);
// The error of these constants on the table, which has at least one row. They may be fitted to other measurements or to
// none.
KernelError error_of(const KernelTable& table, const KernelValues& values);

// Fewer shapes cannot determine the constants of an unknown kernel. They move those of a known kernel (`around`) as far
// as they are informative.
constexpr std::size_t least_shapes = 10;
// Throws std::invalid_argument for fewer rows of an unknown kernel, no row, or a time that is not above 0.
KernelFit fit_kernel(const KernelTable& table);

}  // namespace slipway::models
