// AWS's comparison of dispatchers of experts (awslabs/awsome-distributed-ai, 3.test_cases/megatron/megatron-bridge) on
// nodes with EFA: NCCL's all-to-all against DeepEP, with overlap and without. One run a cell, balanced routing forced.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {

void read_aws(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("tflops_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("gpu", cells.text("gpu"), {"h100-80gb"});
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model"));
  row.group = row.study = model + " on " + row.machine;
  row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.step_s = cells.above_zero("step_s");

  keys.set("cluster.trainer", "megatron-bridge");
  set_cluster(keys, row.machine, row.gpus);
  keys.assume("EFA is InfiniBand of the machine's profile");
  const bool merges = cells.text("overlap") == "on";
  RunLayout layout{.tensor = cells.count("tp"),
                   .context = degree(cells, "cp"),
                   .pipeline = cells.count("pp"),
                   .chunks = degree(cells, "vpp"),
                   .full_shards = false,
                   .micro_batch = cells.integer("mbs"),
                   .global_batch = cells.integer("gbs"),
                   .sequence = cells.empty("seq") ? 4096 : cells.integer("seq")};
  if (merges && cells.empty("vpp")) {
    layout.chunks = 2;  // overlap needs chunks; the other model's rows have two
    keys.assume("two chunks");
  }
  set_layout(keys, layout);
  set_pipeline(keys, model, layout.pipeline, layout.chunks);
  set_experts(keys, cells.count("ep"), cells.count("etp"), cells.text("dispatcher"));
  if (merges) set_merged(keys);
  const bool full = plain_word(cells.text("recompute")) == "full";
  set_recompute(keys, full ? "full" : "");
  set_scenario(row, keys);
  row.keys["transport"] = cells.text("dispatcher");
}

}  // namespace slipway::scenarios
