#include "scenarios/laboratory/validate/memory_text.h"

#include <fmt/format.h>

#include "scenarios/laboratory/tables/memory_refit.h"
#include "scenarios/language/load_memory.h"

namespace slipway::scenarios {

std::string memory_constants_text(const std::vector<PublishedTable>& tables) {
  std::vector<const PublishedRow*> rows;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows)
      if (has_memory_result(row)) rows.push_back(&row);
  const MemoryRefit refit(rows, published_rows());
  const std::string heading = fmt::format(
      "Memory constants of all trainers. Values, deviations and covariance are fitted to {} published runs;\n"
      "# sources are those of priors. Written by `slipway validate --memory-constants`.",
      refit.runs());
  return memory_to_yaml(refit.all(), heading);
}

}  // namespace slipway::scenarios
