#include "scenarios/tables/price_memory.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/trainers/stack.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/tables/price.h"

namespace slipway::scenarios {
namespace {

MemoryInput memory_input_of(const PublishedRow& row) {
  MemoryInput input = memory_input(row.step.model, work_shape(row.step));
  input.pipeline = row.step.layout.pipeline;
  input.data = row.shard_group > 0 ? std::min(row.shard_group, row.step.layout.data)
                                   : row.step.layout.data;  // the rest hold the same
  input.chunks = row.step.layout.chunks;
  input.micro_batches = micro_batches_of(row.step);
  input.zero = row.step.layout.zero;
  input.gradient_dtype = row.step.gradient_dtype;
  input.recompute = row.step.recompute;
  return input;
}

// Where stages do not divide the layers, the first ones have a layer more.
std::vector<double> equal_layers(const MemoryInput& input) {
  if (input.pipeline > input.layers) throw std::invalid_argument("it has more pipeline stages than layers");
  const std::int64_t each = input.layers / input.pipeline, more = input.layers % input.pipeline;
  std::vector<double> layers;
  for (int stage = 0; stage < input.pipeline; ++stage)
    layers.push_back(static_cast<double>(each + (stage < more ? 1 : 0)));
  return layers;
}

// nanotron closes stage r when it has dealt out (r + 1)/p of all FLOPs, the head's counted in layers; some
// stages may stay empty.
std::vector<double> layers_by_cost(const MemoryInput& input) {
  const auto all = static_cast<double>(input.layers);
  const double h = static_cast<double>(input.hidden), f = static_cast<double>(input.ffn);
  const double head = static_cast<double>(input.vocab) * h / (4 * h * h + 3 * h * f);
  std::vector<double> layers;
  double before = 0;
  for (int stage = 1; stage <= input.pipeline; ++stage) {
    const double share = (all + head) * stage / input.pipeline;
    const double end = stage < input.pipeline ? std::min(all, std::ceil(share - 1e-9)) : all;
    layers.push_back(end - before);
    before = end;
  }
  return layers;
}

// This follows from the peaks that nanotron's runs reserved: where the run's own all-reduce test reached 440 GB/s
// (another environment; the median of the tests is 457 there, 423 elsewhere), layers keep gathered inputs
// on any number of stages; elsewhere only on more than two, since the repair of the pipeline.
Gathered usually_gathered_by_nanotron(const PublishedRow& row) {
  return row.fixed_pipeline ? Gathered::half_on_many_stages : Gathered::none;
}

// The test is a result of the run: a fit to other rows' peaks may know it, the row's own prediction may not.
Gathered gathered_by_nanotron(const PublishedRow& row) {
  constexpr double faster_environment = 440e9;
  if (!(row.all_reduce_bytes_per_s > 0)) return Gathered::unknown;
  if (row.all_reduce_bytes_per_s > faster_environment) return Gathered::all;
  return usually_gathered_by_nanotron(row);
}

}  // namespace

MemoryRun memory_run_of(const PublishedRow& row) {
  const MemoryInput input = memory_input_of(row);
  const bool nanotron = row.trainer == "nanotron";
  const std::vector<double> layers = nanotron ? layers_by_cost(input) : equal_layers(input);
  MemoryRun run;
  run.stages = closed_form_stages(input, layers, layers.size() - 1);
  run.capacity_bytes = machine_of(row).memory_bytes;
  run.fitted = row.status == RowStatus::ok;
  run.reserved_bytes = row.reserved_bytes;
  if (nanotron) run.gathered = gathered_by_nanotron(row), run.usual = usually_gathered_by_nanotron(row);
  return run;
}

MemoryConstants memory_constants_of(const PublishedRow& row) {
  const Stack* stack = built_in_stack(row.trainer);
  return stack == nullptr ? MemoryConstants{} : memory_constants(*stack, row.machine);
}

}  // namespace slipway::scenarios
