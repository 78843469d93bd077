// Comments of ms-swift's examples (modelscope/ms-swift), "8 * 65GiB. 80s/it", beside the arguments of the command. The
// GPU is not stated. Rows with seconds and a layout are those of the command `megatron`.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {

void read_ms_swift(const Cells& cells, PublishedRow& row) {
  row.status = cells.empty("s_per_it") ? RowStatus::other : RowStatus::ok;
  RunKeys keys;
  const std::string& comment = cells.text("comment");
  // Attention kernels 3 and products in FP8 need Hopper.
  const bool hopper = comment.find("fa3") != std::string::npos || !cells.empty("fp8");
  row.machine = hopper ? "h100-80gb" : "a100-80gb";
  const std::string model = set_model(keys, cells.text("model"));
  row.group = row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.unknown_recipe = true;  // no row names its GPU
  if (row.status == RowStatus::ok) row.step_s = cells.above_zero("s_per_it");
  if (lacks(row, cells, {"gpus", "mbs", "gbs"})) return;
  row.gpus = cells.count("gpus");

  keys.set("cluster.trainer", "megatron-bridge");
  keys.assume("the GPU is " + row.machine);
  set_cluster(keys, row.machine, row.gpus);
  set_layout(keys, {.tensor = degree(cells, "tp"),
                    .context = degree(cells, "cp"),
                    .pipeline = degree(cells, "pp"),
                    .chunks = degree(cells, "vpp"),
                    .full_shards = false,
                    .micro_batch = cells.integer("mbs"),
                    .global_batch = cells.integer("gbs"),
                    .sequence = cells.integer("max_length")});
  set_experts(keys, degree(cells, "ep"), cells.whole_or("etp", 0), "");
  const bool eight = !cells.empty("fp8") && comment.find("BF16") == std::string::npos;
  set_precision(keys, eight ? cells.text("fp8") : "bf16");
  keys.set("schedule.recompute", cells.empty("recompute") ? "none" : cells.text("recompute"), "recomputation");
  if (!cells.empty("offload") && cells.flag("offload"))
    keys.set("run.optimizer.offload_fraction", cells.empty("offload_fraction") ? "1" : cells.text("offload_fraction"));
  if (!cells.empty("packing") && cells.flag("packing"))
    keys.assume("samples packed into a sequence attend to each other");
  if (cells.text("tuner").starts_with("lora") && !comment.starts_with("full"))
    set_lora(keys, cells.integer("lora_rank"), "",
             "adapters on all Linears, ms-swift's default (--target_modules all-linear)");
  if (cells.text("source").find("/dpo") != std::string::npos || cells.text("source").find("rlhf") != std::string::npos)
    keys.refuse("a reference model beside the trained one (DPO)");
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
