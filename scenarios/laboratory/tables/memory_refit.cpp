#include "scenarios/laboratory/tables/memory_refit.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "scenarios/laboratory/tables/price.h"
#include "scenarios/language/load_memory.h"

namespace slipway::scenarios {
namespace {

std::optional<MemoryRun> run_of(const PublishedRow& row) {
  try {
    return memory_run_of(row);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

bool has_memory_result(const PublishedRow& row) {
  return row.unpriceable.empty() && (row.status == RowStatus::ok || row.status == RowStatus::out_of_memory);
}

MemoryRefit::MemoryRefit(const std::vector<const PublishedRow*>& rows, const std::vector<PublishedRow>& others) {
  std::set<std::pair<std::string, std::string>> own;
  for (const PublishedRow* row : rows) {
    own.insert({row->trainer, row->group});
    runs_.push_back(run_of(*row));
  }
  for (const PublishedRow& row : others) {
    if (!has_memory_result(row) || own.contains({row.trainer, row.group})) continue;
    if (std::optional<MemoryRun> run = run_of(row)) others_.push_back(std::move(*run));
  }
}

std::vector<std::optional<MemoryPrice>> MemoryRefit::left_out(const std::vector<int>& parts) const {
  std::vector<std::optional<MemoryPrice>> prices(runs_.size());
  PooledMemory from = built_in_memory();
  for (const int part : std::set<int>(parts.begin(), parts.end())) {
    std::vector<const MemoryRun*> seen;
    for (const MemoryRun& run : others_) seen.push_back(&run);
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (parts[i] != part && runs_[i]) seen.push_back(&*runs_[i]);
    if (seen.empty()) continue;
    const PooledMemory fit = fit_memory(seen, from);
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (parts[i] == part && runs_[i])
        prices[i] = price_memory(*runs_[i], constants_of(fit, runs_[i]->trainer, runs_[i]->machine, runs_[i]->facts));
  }
  return prices;
}

std::size_t MemoryRefit::runs() const {
  return others_.size() +
         static_cast<std::size_t>(std::ranges::count_if(runs_, [](const auto& run) { return run.has_value(); }));
}

PooledMemory MemoryRefit::all() const {
  std::vector<const MemoryRun*> seen;
  for (const MemoryRun& run : others_) seen.push_back(&run);
  for (const std::optional<MemoryRun>& run : runs_)
    if (run) seen.push_back(&*run);
  return fit_memory(seen, built_in_memory());
}

}  // namespace slipway::scenarios
