#include "scenarios/stack_text.h"

#include <fmt/format.h>

#include <map>

#include "scenarios/refit.h"

namespace slipway {
namespace {

std::string section(const Refit& refit, const std::string& machine, std::size_t rows, const std::string& file) {
  const PriorFit fit = refit.all();
  const StackTime& time = refit.time();
  std::string text = fmt::format("  {}:  # values: fit to {} rows of {}; the source is the prior's\n", machine, rows, file);
  text += fmt::format("    scale: {}\n", time.scale);
  for (std::size_t i = 0; i < time.constants.size(); ++i) {
    const TimeConstant& constant = time.constants[i];
    text += fmt::format("    {}: {{value: {:.4g}, prior: {:g}", refit.model().parameters[i].name, fit.values[i],
                        constant.prior);
    if (constant.spread > 0) text += fmt::format(", spread: {}", constant.spread);
    text += fmt::format(", source: \"{}\"}}\n", constant.source);
  }
  return text;
}

}  // namespace

std::string fitted_constants_text(const std::vector<Validation>& validations) {
  std::map<std::string, std::string> sections;
  for (const Validation& validation : validations) {
    std::map<std::pair<std::string, std::string>, std::vector<RefitRow>> sets;
    for (const RowResult& result : validation.rows)
      if (result.exclusion == Exclusion::none && result.price.step_s > 0)
        sets[{result.row->trainer, result.row->machine}].push_back({result.row, true});
    for (const auto& [key, rows] : sets)
      sections[key.first] += section(Refit(rows), key.second, rows.size(), validation.table->file);
  }
  std::string text;
  for (const auto& [trainer, section_text] : sections) text += "# " + trainer + "\ntime:\n" + section_text;
  return text;
}

}  // namespace slipway
