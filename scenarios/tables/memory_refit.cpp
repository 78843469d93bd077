#include "scenarios/tables/memory_refit.h"

#include <set>
#include <stdexcept>

#include "scenarios/language/load_stack.h"
#include "scenarios/tables/price_memory.h"

namespace slipway::scenarios {
namespace {

const StackMemory* memory_of(const PublishedRow& row) {
  const Stack* stack = built_in_stack(row.trainer);
  return stack == nullptr ? nullptr : memory_on(*stack, row.machine);
}

}  // namespace

bool has_memory_result(const PublishedRow& row) {
  return row.unpriceable.empty() && (row.status == RowStatus::ok || row.status == RowStatus::out_of_memory);
}

bool has_memory_constants(const PublishedRow& row) { return memory_of(row) != nullptr; }

MemoryRefit::MemoryRefit(const std::vector<const PublishedRow*>& rows) : memory_(memory_of(*rows.at(0))) {
  if (memory_ == nullptr)
    throw std::invalid_argument("there are no memory constants of " + rows[0]->trainer + " on " + rows[0]->machine);
  for (const PublishedRow* row : rows) runs_.push_back(memory_run_of(*row));
}

std::vector<std::optional<MemoryPrice>> MemoryRefit::left_out(const std::vector<int>& parts) const {
  std::vector<std::optional<MemoryPrice>> prices(runs_.size());
  for (const int part : std::set<int>(parts.begin(), parts.end())) {
    std::vector<MemoryRun> others;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (parts[i] != part) others.push_back(runs_[i]);
    if (others.empty()) continue;
    const MemoryConstants constants = fit_memory(others, *memory_).constants;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (parts[i] == part) prices[i] = price_memory(runs_[i], constants);
  }
  return prices;
}

}  // namespace slipway::scenarios
