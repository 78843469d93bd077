#include "scenarios/laboratory/tables/price.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/laboratory/tables/priced_run.h"
#include "scenarios/language/load_memory.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/predict/simulated_step.h"
#include "schedules/memory/counted_memory.h"

namespace slipway::scenarios {
namespace {

// Memory does not change with more micro-batches than a pipeline holds.
Step step_for_memory(const PublishedRow& row) {
  Step step = row.scenario->step;
  const Layout& layout = step.layout;
  const int most = layout.chunks > 1 ? 4 * layout.pipeline : layout.pipeline + 1;
  step.global_batch = std::min(micro_batches_of(step), most) * step.micro_batch * layout.data;
  return step;
}

// The inputs that stay gathered with a trainer whose fact gathered_inputs is by-stages. This follows from the peaks
// that nanotron's runs reserved: where the run's own all-reduce test reached 440 GB/s (another environment; the median
// of the tests is 457 there, 423 elsewhere), layers keep gathered inputs on any number of stages; elsewhere only on
// more than two, since the repair of the pipeline.
Gathered usually_gathered(const PublishedRow& row) {
  return row.excluded.contains(Exclusion::after_pp_fix) ? Gathered::none : Gathered::half_on_many_stages;
}

// The test is a result of the run: a fit to other rows' peaks may know it, the row's own prediction may not.
Gathered gathered_in(const PublishedRow& row) {
  constexpr double faster_environment = 440e9;
  if (!(row.all_reduce_bytes_per_s > 0)) return Gathered::unknown;
  if (row.all_reduce_bytes_per_s > faster_environment) return Gathered::all;
  return usually_gathered(row);
}

}  // namespace

const Machine& machine_of(const PublishedRow& row) { return row.scenario->cluster.groups[0].machine; }

double peak_flops_of(const PublishedRow& row) {
  return machine_of(row).peak_flops[static_cast<std::size_t>(row.scenario->step.dtype)];
}

MemoryRun memory_run_of(const PublishedRow& row) {
  if (!row.scenario) throw std::invalid_argument(row.unpriceable);
  MemoryRun run;
  run.trainer = row.trainer;
  run.machine = row.machine;
  // As the trainer is known, whatever dtype of gradients the run has (Scenario::memory has the run's).
  if (const Trainer* trainer = built_in_trainer(row.trainer)) run.facts = trainer->memory;
  run.stages = counted_memory(step_for_memory(row), {.executor = false});
  run.capacity_bytes = machine_of(row).memory_bytes;
  run.fitted = row.status == RowStatus::ok;
  run.reserved_bytes = row.printed ? 0 : row.reserved_bytes;
  if (run.facts.gathered == GatheredInputs::by_stages)
    run.gathered = gathered_in(row), run.usual = usually_gathered(row);
  return run;
}

RowPrice price(const PublishedRow& row) {
  RowPrice result;
  result.cannot = result.cannot_memory = row.unpriceable;
  if (!row.scenario) return result;
  try {
    result.step_s = replayed_step_s(scenario_of(row));
    result.mfu = mfu_of(row, result.step_s, peak_flops_of(row));
  } catch (const std::invalid_argument& error) {
    result.cannot = error.what();
  }
  try {
    const MemoryRun run = memory_run_of(row);
    result.memory = price_memory(run, constants_of(built_in_memory(), run.trainer, run.machine, run.facts));
    if (row.printed) {
      PrintedSettings settings = *row.printed;
      settings.generation = machine_of(row).generation;
      const PrintedMemory printed = printed_memory(run.stages.back(), settings);
      result.memory->static_bytes = printed.allocated, result.memory->first_bytes = printed.peak;
    }
  } catch (const std::invalid_argument& error) {
    result.cannot_memory = error.what();
  }
  return result;
}

}  // namespace slipway::scenarios
