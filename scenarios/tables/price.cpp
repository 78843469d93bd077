#include "scenarios/tables/price.h"

#include <stdexcept>

#include "scenarios/language/profiles.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/tables/price_memory.h"
#include "scenarios/tables/priced_run.h"

namespace slipway::scenarios {

const Machine& machine_of(const PublishedRow& row) { return built_in_machine(row.machine); }

double peak_flops_of(const PublishedRow& row) {
  return built_in_machine(row.machine).peak_flops[static_cast<std::size_t>(row.step.dtype)];
}

RowPrice price(const PublishedRow& row) {
  RowPrice result;
  result.cannot = result.cannot_memory = row.unpriceable;
  if (!row.unpriceable.empty()) return result;
  try {
    const Scenario scenario = scenario_of(row);
    result.step_s = replayed_step_s(scenario);
    result.mfu = mfu_of(row, result.step_s, peak_flops_of(row));
  } catch (const std::invalid_argument& error) {
    result.cannot = error.what();
  }
  try {
    const MemoryRun run = memory_run_of(row);
    result.memory = price_memory(run, memory_constants_of(row));
    if (row.printed) {
      const PrintedMemory printed = printed_memory(run.stages.back(), *row.printed);
      result.memory->static_bytes = printed.allocated, result.memory->first_bytes = printed.peak;
    }
  } catch (const std::invalid_argument& error) {
    result.cannot_memory = error.what();
  }
  return result;
}

}  // namespace slipway::scenarios
