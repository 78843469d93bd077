// PrimeIntellect's prime-rl (benchmarks/baselines): FSDP with full recomputation, one sequence a micro-batch, for runs
// that ended and runs out of memory. `rl` rows train on samples that another process draws; the step is a training step.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {

void read_prime_rl(const Cells& cells, PublishedRow& row) {
  const bool ended = cells.flag("success"), ran_out = cells.text("error").find("OutOfMemory") != std::string::npos;
  row.status = ended ? RowStatus::ok : ran_out ? RowStatus::out_of_memory : RowStatus::other;
  RunKeys keys;
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model"));
  row.group = model + " on " + cells.text("device");
  row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.machine = machine_named("device", cells.text("device"), {"h100-80gb"});
  const std::int64_t micro_batches = cells.integer("micro_batches");
  // "micro step" is the step of all micro-batches: their tokens / tokens_per_s_mean, where the speed is steady.
  if (ended) row.step_s = cells.above_zero("micro_step_s_mean");

  keys.set("cluster.trainer", "torchtitan");
  keys.assume("prime-rl has the habits of torchtitan, whose FSDP it uses");
  set_cluster(keys, row.machine, row.gpus);
  const int context = degree(cells, "cp");
  set_layout(keys, {.context = context,
                    .full_shards = true,
                    .micro_batch = 1,
                    .global_batch = micro_batches * row.gpus / context,
                    .sequence = cells.integer("seq")});
  set_experts(keys, degree(cells, "ep"), 0, "");
  set_precision(keys, "bf16");
  set_recompute(keys, "full");
  if (cells.text("activation") == "Offload")
    keys.set("schedule.offload", "[layer_inputs]", "activations kept in the host's memory");
  if (!cells.empty("lora_rank"))
    set_lora(keys, cells.integer("lora_rank"), "", "adapters on all Linears; the table names none");
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
