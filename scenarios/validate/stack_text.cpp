#include "scenarios/validate/stack_text.h"

#include <fmt/format.h>

#include <map>

#include "scenarios/tables/memory_refit.h"
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

std::string memory_text(const std::string& machine, const std::vector<const PublishedRow*>& rows,
                        const std::string& file) {
  const MemoryRefit refit(rows);
  const MemoryFit fit = refit.all();
  const StackMemory& memory = refit.memory();
  std::string text =
      heading(machine, rows.size(), file) + fmt::format("    width: {}\n    scale: {}\n", memory.width, memory.scale);
  for (std::size_t i = 0; i < memory.sources.size(); ++i) {
    const StackConstant& constant = memory.sources[i];
    if (constant.source.empty()) continue;  // a book value
    // Values that are not fitted keep their digits.
    const std::string_view name = memory_parameters()[i].name;
    text += constant.spread > 0 ? constant_text(name, fit.values[i], constant)
                                : fmt::format("    {}: {{value: {}, prior: {}, source: \"{}\"}}\n", name,
                                              constant.value, constant.prior, constant.source);
  }
  return text;
}

// Groups rows by trainer and machine.
template <typename Row>
using Sets = std::map<std::pair<std::string, std::string>, std::vector<Row>>;

}  // namespace

std::string fitted_constants_text(const std::vector<Validation>& validations) {
  std::map<std::string, std::string> times, memories;
  for (const Validation& validation : validations) {
    Sets<RefitRow> timed;
    Sets<const PublishedRow*> judged;
    for (const RowResult& result : validation.rows) {
      const auto key = std::pair(result.row->trainer, result.row->machine);
      if (result.exclusion == Exclusion::none && result.price.step_s > 0) timed[key].push_back({result.row, true});
      if (result.price.memory && has_memory_result(*result.row) && has_memory_constants(*result.row))
        judged[key].push_back(result.row);
    }
    const std::string& file = validation.table->file;
    for (const auto& [key, rows] : timed) times[key.first] += time_text(key.second, rows, file);
    for (const auto& [key, rows] : judged) memories[key.first] += memory_text(key.second, rows, file);
  }
  std::string text;
  for (const auto& [trainer, section] : times) {
    text += "# " + trainer + "\ntime:\n" + section;
    if (memories.contains(trainer)) text += "memory:\n" + memories[trainer];
  }
  return text;
}

}  // namespace slipway::scenarios
