// MLPerf Training's language models (mlcommons/training_results_v*): the median step of a submission's runs, and its
// layout where the submission has one configuration for that number of GPUs. MLCommons has verified none of it.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {

void read_mlperf(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  RunKeys keys;
  const std::string& benchmark = cells.text("benchmark");
  const bool tunes = benchmark == "llama2_70b_lora";
  const std::string model = cells.choice<std::string>(
      "benchmark", {{"llama2_70b_lora", "llama-2-70b"}, {"llama31_8b", "llama-3.1-8b"}, {"gpt3", "gpt-3-175b"}});
  row.gpus = cells.count("gpus");
  row.group = row.choice = set_model(keys, model) + " on " + cells.text("accelerator");
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.step_s = cells.number_or("step_s_median", 0);
  if (row.step_s == 0) row.status = RowStatus::other;
  if (lacks(row, cells, {"step_s_median", "tp", "mbs"})) return;
  row.machine = machine_named("accelerator", cells.text("accelerator"), {"h100-80gb", "a100-80gb"});

  keys.set("cluster.trainer", "megatron-bridge");
  keys.assume("the submission has the habits of Megatron-Bridge");
  set_cluster(keys, row.machine, row.gpus, cells.whole_or("accelerators_per_node", 8));
  const RunLayout layout{.tensor = cells.count("tp"),
                         .context = degree(cells, "cp"),
                         .pipeline = cells.count("pp"),
                         .chunks = degree(cells, "vp"),
                         .full_shards = false,
                         .micro_batch = cells.integer("mbs"),
                         .global_batch = cells.integer("gbs"),
                         .sequence = cells.integer("seq")};
  set_layout(keys, layout);
  if (layout.tensor > 1 && !tunes) keys.set("schedule.overlap_tensor", "true");
  const bool four = cells.text("fp4") == "yes";
  if (!four && cells.empty("fp8")) keys.assume("products in FP8");  // NVIDIA's config_common.sh has FP8=True
  // And from round 5.1 on FP8_RECIPE=tensorwise.
  keys.set("run.fp8",
           four                              ? "nvfp4"
           : cells.text("version") >= "v5.1" ? "tensorwise"
                                             : "delayed",
           "products in 8 or 4 bits");
  set_recompute(keys, "");
  keys.assume("nothing is computed again");
  if (cells.text("cuda_graph") == "1") set_graphs(keys, "full_iteration", "");
  // mlcommons/training@00baefa llama2_70b_lora/run_llama_70B_scrolls_r16.sh: lora_r 16, qkv_proj and o_proj.
  if (tunes) set_lora(keys, 16, "qkv, out", "adapters of rank 16 on attention's projections, as the benchmark's rules");
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
