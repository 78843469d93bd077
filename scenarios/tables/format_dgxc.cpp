// NVIDIA's DGX Cloud benchmarking recipes (NVIDIA/dgxc-benchmarking): seconds of a step of NeMo (Megatron-Core), of
// PaxML, MaxText and Hugging Face's trainer. Only NeMo's rows have a layout.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {

namespace {

// NVIDIA/NeMo scripts/performance/recommended_model_configs: of these models only DeepSeek-V3 has modules computed again.
void set_recomputed(RunKeys& keys, const std::string& model, const std::string& machine) {
  if (model != "deepseek-v3") {
    set_recompute(keys, "");
    return keys.assume("nothing is computed again");
  }
  set_recompute(keys, machine.starts_with("gb") ? "core_attn" : "mla_up_proj");
  keys.assume("modules that NeMo's recipe of DeepSeek-V3 computes again");
}

}  // namespace

void read_dgxc(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("tflops_per_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("gpu", cells.text("gpu"), {"h100-80gb"});
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model") + "-" + cells.text("size"));
  row.group = model + " on " + row.machine;
  row.choice = model;  // a family is left out as a whole
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.contradiction = cells.text("check_tokens") != "ok";
  row.step_s = cells.number_or("step_s", 0);
  if (row.step_s == 0) row.status = RowStatus::other;
  if (lacks(row, cells, {"tp", "mbs"})) return;

  keys.set("cluster.trainer", "megatron-bridge");
  keys.assume("NeMo has the habits of Megatron-Bridge, its successor");
  set_cluster(keys, row.machine, row.gpus);
  RunLayout layout{.tensor = cells.count("tp"),
                   .context = degree(cells, "cp"),
                   .pipeline = cells.count("pp"),
                   .chunks = degree(cells, "vp"),
                   .full_shards = !cells.empty("fsdp"),
                   .micro_batch = cells.integer("mbs"),
                   .global_batch = cells.integer("gbs"),
                   .sequence = cells.integer("seq")};
  if (model == "nemotron-4-340b" && cells.text("vp") == "NA" && layout.pipeline > 1) {
    // Releases before and after it have the same degrees, times within a tenth, and say 12.
    layout.chunks = 12;
    keys.assume("virtual stages as in the releases that name them");
  }
  set_layout(keys, layout);
  if (!cells.empty("layers")) keys.set("model.layers", cells.integer("layers"));  // small clusters train fewer
  set_pipeline(keys, model, layout.pipeline, layout.chunks);
  if (degree(cells, "ep") > 1) set_experts(keys, degree(cells, "ep"), cells.whole_or("etp", 0), "");
  // User buffers of Transformer Engine in NeMo's recipes of dense models: nemo/collections/llm/recipes/tp_overlap_configs.
  else if (layout.tensor > 1)
    keys.set("schedule.overlap_tensor", "true");
  // NeMo's recipe of FP8 until 25.04 is "hybrid" with delayed scaling: bf16_with_fp8_mixed.
  set_precision(keys, cells.text("precision"));
  set_recomputed(keys, model, row.machine);
  // NVIDIA/NeMo nemo/collections/llm/recipes/llama3_8b.py and llama3_70b.py: peft.dim of finetune_recipe, 8 and 16;
  // target_modules of finetune_performance_optimizations, ['linear_qkv'].
  const int rank = model == "llama-3.1-8b" || model == "llama-3-8b" ? 8 : 16;
  if (cells.text("phase") == "lora")
    set_lora(
        keys, rank, "qkv",
        fmt::format("adapters of rank {} on queries, keys and values, as NeMo's recipe in performance mode", rank));
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
