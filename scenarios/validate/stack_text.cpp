#include "scenarios/validate/stack_text.h"

#include <fmt/format.h>

#include <map>

#include "scenarios/validate/refit.h"

namespace slipway::scenarios {
namespace {

std::string constant_text(std::string_view name, double value, const StackConstant& constant) {
  std::string text = fmt::format("    {}: {{value: {:.4g}, prior: {:g}", name, value, constant.prior);
  if (constant.spread > 0) text += fmt::format(", spread: {}", constant.spread);
  return text + fmt::format(", source: \"{}\"}}\n", constant.source);
}

std::string heading(const std::string& machine, std::size_t rows, const std::string& file) {
  return fmt::format("  {}:  # values: fit to {} rows of {}; the source is the prior's\n", machine, rows, file);
}

std::string time_text(const std::string& machine, const std::vector<RefitRow>& rows, const std::string& file) {
  const Refit refit(rows);
  const PriorFit fit = refit.all();
  const StackTime& time = refit.time();
  std::string text = heading(machine, rows.size(), file) + fmt::format("    scale: {}\n", time.scale);
  for (std::size_t i = 0; i < time.constants.size(); ++i)
    text += constant_text(refit.model().parameters[i].name, fit.values[i], time.constants[i]);
  return text;
}

// Groups rows by trainer and machine.
template <typename Row>
using Sets = std::map<std::pair<std::string, std::string>, std::vector<Row>>;

}  // namespace

std::string fitted_constants_text(const std::vector<Validation>& validations) {
  std::map<std::string, std::string> times;
  for (const Validation& validation : validations) {
    Sets<RefitRow> timed;
    for (const RowResult& result : validation.rows) {
      const auto key = std::pair(result.row->trainer, result.row->machine);
      if (result.exclusion == Exclusion::none && result.price.step_s > 0) timed[key].push_back({result.row, true});
    }
    const std::string& file = validation.table->file;
    for (const auto& [key, rows] : timed) times[key.first] += time_text(key.second, rows, file);
  }
  std::string text;
  for (const auto& [trainer, section] : times) text += "# " + trainer + "\ntime:\n" + section;
  return text;
}

}  // namespace slipway::scenarios
