#include "scenarios/laboratory/kernels/kernels_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/files/csv.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

// One constant of one kernel.
struct FittedConstant {
  const KernelConstant& constant;
  double value = 0, spread = 0;
};

bool is_fitted(const FittedConstant& each) { return each.spread > 0; }

std::vector<FittedConstant> constants_in(const FittedKernel& kernel) {
  std::vector<FittedConstant> constants;
  const auto all = constants_of(kernel.measured.key.kind);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FittedConstant each{all[i], kernel.fit.values[i], kernel.fit.spread[i]};
    if (is_fitted(each)) constants.push_back(each);
  }
  return constants;
}

// "0.72", "2.4 µs"
std::string value_text(const FittedConstant& each) {
  if (each.constant.unit == std::string_view("s")) return readable_seconds(each.value);
  return each.value >= 1000 ? readable_count(each.value) : fmt::format("{:.3g}", each.value);
}

// "share 0.72, area 9,100, memory 0.6, launch 2.4 µs"
std::string constants_text(const FittedKernel& kernel) {
  std::string text;
  for (const FittedConstant& each : constants_in(kernel))
    text += (text.empty() ? "" : ", ") + std::string(each.constant.name) + ' ' + value_text(each);
  return text;
}

Description<FittedConstant> constant_keys() {
  return Description<FittedConstant>()
      .key("name", "text", "of the constant", [](const FittedConstant& each) { return each.constant.name; })
      .key("unit", "text", "of the value", [](const FittedConstant& each) { return each.constant.unit; })
      .key("meaning", "text", "what it prices", [](const FittedConstant& each) { return each.constant.meaning; })
      .key("value", "its own", "as fitted", &FittedConstant::value)
      .key("spread", "-", "standard deviation of the value's logarithm after the fit", &FittedConstant::spread);
}

Description<FittedKernel> kernel_keys() {
  return Description<FittedKernel>()
      .key("gpu", "text", "machine profile", of(&FittedKernel::measured, &KernelRows::gpu))
      .column("GPU")
      .key("kernel", "text", "kind, number format, and width of a head or collective",
           [](const FittedKernel& each) { return name_of(each.measured.key); })
      .column("kernel")
      .key("shapes", "count", "measured shapes that count",
           [](const FittedKernel& each) { return each.measured.table.rows.size(); })
      .column("shapes", readable_count)
      .key("error", "0..1", "mean of |predicted / measured - 1| of shapes left out of the fit, a fifth at a time",
           [](const FittedKernel& each) { return each.fit.left_out.mean; })
      .column("left out: mean", readable_share)
      .key("median_error", "0..1", "its median", [](const FittedKernel& each) { return each.fit.left_out.median; })
      .column("median", readable_share)
      .key("error_in_sample", "0..1", "mean of the same with all shapes in the fit",
           [](const FittedKernel& each) { return each.fit.in_sample.mean; })
      .column("in sample", readable_share)
      .key("built_in_error", "0..1",
           "mean of |predicted / measured - 1| by the constants of the GPU's built-in profile",
           [](const FittedKernel& each) { return each.built_in ? std::optional(each.built_in->mean) : std::nullopt; })
      .column("built in", or_dash(readable_share))
      .if_any()
      .key("built_in_ratio", "-", "median of predicted / measured by these",
           [](const FittedKernel& each) { return each.built_in ? std::optional(each.built_in->ratio) : std::nullopt; })
      .column("built in / measured", or_dash([](double ratio) { return fmt::format("{:.2f}", ratio); }))
      .if_any()
      .list("constants", "one object per fitted constant", constants_in, constant_keys())
      .wide_column("constants", constants_text);
}

using Kernels = std::vector<FittedKernel>;

const Description<Kernels>& description() {
  static const Description<Kernels> description = Description<Kernels>().list(
      "kernels", "one object per kernel and GPU", [](const Kernels& all) { return all; }, kernel_keys());
  return description;
}

// Constants of `others` for what was not measured here, each under its own source.
std::string kernels_of_others(const Kernels& kernels, const Machine& others) {
  std::string text;
  for (const KernelKey& key : keys_of(others.kernels)) {
    const bool is_measured =
        std::any_of(kernels.begin(), kernels.end(), [&](const FittedKernel& each) { return each.measured.key == key; });
    if (is_measured) continue;
    const KernelValues all = values_of(others.kernels, key).value();
    const auto constants = constants_of(key.kind);
    std::string values;
    for (std::size_t i = 0; i < constants.size(); ++i) values += fmt::format("{}: {:.4g}, ", constants[i].name, all[i]);
    text += fmt::format("  {}: {{{}source: \"as {}\"}}\n", name_of(key), values, others.name);
  }
  return text;
}

}  // namespace

std::vector<AnswerKeys> kernels_answers() { return {{"kernels --json", description().keys()}}; }

std::string kernels_json(const Kernels& kernels) { return description().text(kernels); }

std::string kernels_text(const Kernels& kernels) { return aligned_table(kernel_keys().table(kernels)); }

std::string kernels_section(const Kernels& kernels, const std::string& writer, const Machine* others) {
  std::size_t shapes = 0;
  for (const FittedKernel& kernel : kernels) shapes += kernel.measured.table.rows.size();
  std::string text = fmt::format(
      "kernels:  # written by `{}`\n"
      "  source: \"fit to {} shapes timed on this GPU\"\n",
      writer, readable_count(static_cast<double>(shapes)));
  for (const FittedKernel& kernel : kernels) {
    std::string values, deviations;
    for (const FittedConstant& each : constants_in(kernel)) {
      values += fmt::format("{}: {:.4g}, ", each.constant.name, each.value);
      deviations += fmt::format("{}{:.2g}", deviations.empty() ? "" : ", ", each.spread);
    }
    text += fmt::format("  {}: {{{}deviation: [{}], left_out: {:.3f}}}\n", name_of(kernel.measured.key), values,
                        deviations, kernel.fit.left_out.mean);
  }
  if (others != nullptr) text += kernels_of_others(kernels, *others);
  return text;
}

std::string shapes_csv(const Kernels& kernels) {
  std::string text = csv_line({"gpu", "kernel", "shape", "measured_s", "predicted_s", "error"});
  for (const FittedKernel& kernel : kernels) {
    const std::vector<MeasuredKernel>& rows = kernel.measured.table.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double measured = rows[i].seconds, predicted = kernel.fit.predicted_s[i];
      text +=
          csv_line({kernel.measured.gpu, name_of(kernel.measured.key), rows[i].name, fmt::format("{:.4g}", measured),
                    fmt::format("{:.4g}", predicted), fmt::format("{:.4f}", predicted / measured - 1)});
    }
  }
  return text;
}

}  // namespace slipway::scenarios
