#include "scenarios/calibrate/measured_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::scenarios {

MeasuredKernels measured_kernels(const std::vector<Measurement>& measurements, const Machine& start) {
  MeasuredKernels result;
  if (start.cores > 0) return result;
  for (auto& [key, table] : kernel_tables(measurements, start)) {
    if (table.rows.size() < least_shapes) {
      result.too_few +=
          fmt::format("{}{} ({})", result.too_few.empty() ? "" : ", ", models::name_of(key), table.rows.size());
      continue;
    }
    KernelFit fit = fit_kernel(table);
    result.fitted.push_back({{start.name, key, table}, std::move(fit)});
  }
  const bool has_products =
      start.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)].has_value() ||
      std::any_of(result.fitted.begin(), result.fitted.end(), [](const FittedKernel& each) {
        return each.measured.key.kind == KernelKind::gemm && each.measured.key.format == Format::bfloat16;
      });
  if (!has_products) result.fitted.clear();
  return result;
}

std::vector<Observation> beside_kernels(std::vector<Observation> observations) {
  std::erase_if(observations, [](const Observation& each) {
    return each.group == ObservationGroup::compute || (is_between_ranks(each.group) && each.kind != "transfer");
  });
  return observations;
}

}  // namespace slipway::scenarios
