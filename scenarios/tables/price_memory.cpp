#include "scenarios/tables/price_memory.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/language/load_memory.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/tables/price.h"
#include "schedules/memory/counted_memory.h"

namespace slipway::scenarios {
namespace {

// Where stages do not divide the layers, the first ones have a layer more.
std::vector<int> equal_layers(int layers, int stages) {
  if (stages > layers) throw std::invalid_argument("it has more pipeline stages than layers");
  std::vector<int> each(stages, layers / stages);
  for (int stage = 0; stage < layers % stages; ++stage) ++each[stage];
  return each;
}

// A trainer that balances layers closes stage r when it has dealt out (r + 1)/p of all FLOPs, the head's counted in
// layers; some stages may stay empty.
std::vector<int> layers_by_cost(const Model& model, int layers, int stages) {
  const Block& layer = model.runs[1].block;
  const double h = static_cast<double>(layer.hidden), f = static_cast<double>(layer.ffn);
  const double head = static_cast<double>(model.runs[0].block.vocab) * h / (4 * h * h + 3 * h * f);
  std::vector<int> each;
  int before = 0;
  for (int stage = 1; stage <= stages; ++stage) {
    const double share = (layers + head) * stage / stages;
    const int end = stage < stages ? std::min(layers, static_cast<int>(std::ceil(share - 1e-9))) : layers;
    each.push_back(end - before);
    before = end;
  }
  return each;
}

// The row's step as its trainer runs it. Memory does not change with more micro-batches than a pipeline holds.
Step step_for_memory(const PublishedRow& row) {
  Step step = row.step;
  Layout& layout = step.layout;
  if (row.shard_group > 0) layout.data = std::min(row.shard_group, layout.data);  // the rest hold the same
  const int micro_batches = micro_batches_of(row.step);
  const int most = layout.chunks > 1 ? 4 * layout.pipeline : layout.pipeline + 1;
  step.global_batch = std::min(micro_batches, most) * step.micro_batch * layout.data;
  if (row.scenario) return step;
  step.narrow_habits.one_copy = multiplies_in_any_order(machine_of(row).generation);
  layout.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  step.schedule = layout.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  return step;
}

std::vector<int> layers_of(const PublishedRow& row) {
  if (row.scenario) return {};  // the split of its step
  const auto layers = static_cast<int>(blocks_of(row.step.model).size()) - 2;
  const int stages = row.step.layout.pipeline * row.step.layout.chunks;
  const Trainer* trainer = built_in_trainer(row.trainer);
  const bool balances = trainer != nullptr && trainer->facts.balances_layers;
  return balances ? layers_by_cost(*row.step.model, layers, stages) : equal_layers(layers, stages);
}

// Of a trainer whose fact gathered_inputs is by-stages. This follows from the peaks that nanotron's runs reserved: where
// the run's own all-reduce test reached 440 GB/s (another environment; the median of the tests is 457 there, 423
// elsewhere), layers keep gathered inputs on any number of stages; elsewhere only on more than two, since the repair of
// the pipeline.
Gathered usually_gathered(const PublishedRow& row) {
  return row.fixed_pipeline ? Gathered::half_on_many_stages : Gathered::none;
}

// The test is a result of the run: a fit to other rows' peaks may know it, the row's own prediction may not.
Gathered gathered_in(const PublishedRow& row) {
  constexpr double faster_environment = 440e9;
  if (!(row.all_reduce_bytes_per_s > 0)) return Gathered::unknown;
  if (row.all_reduce_bytes_per_s > faster_environment) return Gathered::all;
  return usually_gathered(row);
}

}  // namespace

MemoryRun memory_run_of(const PublishedRow& row) {
  MemoryRun run;
  run.trainer = row.trainer;
  run.machine = row.machine;
  if (const Trainer* trainer = built_in_trainer(row.trainer)) run.facts = trainer->memory;
  run.stages = counted_memory(step_for_memory(row), {.executor = false, .layers = layers_of(row)});
  run.capacity_bytes = machine_of(row).memory_bytes;
  run.fitted = row.status == RowStatus::ok;
  run.reserved_bytes = row.printed ? 0 : row.reserved_bytes;
  if (run.facts.gathered == GatheredInputs::by_stages)
    run.gathered = gathered_in(row), run.usual = usually_gathered(row);
  return run;
}

MemoryConstants memory_constants_of(const PublishedRow& row) {
  const Trainer* trainer = built_in_trainer(row.trainer);
  return constants_of(built_in_memory(), row.trainer, row.machine,
                      trainer == nullptr ? MemoryFacts{} : trainer->memory);
}

}  // namespace slipway::scenarios
