// NVIDIA's performance summary of Megatron-Bridge, all releases (docs/performance-summary*.md of
// NVIDIA-NeMo/Megatron-Bridge), with the recipe of each row as that release's code has it (columns r_...). Seconds
// follow from tokens per second and GPU.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

// "(none with this layout) nearest ...": a release whose code has other degrees.
bool has_recipe(const Cells& cells) { return !cells.empty("recipe") && !cells.text("recipe").starts_with("(none"); }

// Layers whose activations are in the host's memory.
void set_offloaded_layers(RunKeys& keys, const Cells& cells, bool llama_in_shards) {
  std::string layers = cells.text("r_cpu_offloading_num_layers");
  if (layers.empty() && !has_recipe(cells) && llama_in_shards) {
    layers = "40";  // scripts/performance/configs/llama/llama3_workload_base_configs.py
    keys.assume("activations of 40 layers are in the host's memory, as in the next release");
  }
  if (!layers.empty()) keys.set("schedule.offload_layers", layers, "activations kept in the host's memory");
}

bool shards_all(const Cells& cells) {
  const bool by_recipe = !cells.empty("r_use_megatron_fsdp") && cells.flag("r_use_megatron_fsdp");
  return by_recipe || (!cells.empty("fsdp") && cells.text("fsdp") != "0" && cells.text("fsdp") != "n/a");
}

}  // namespace

void read_megatron_bridge(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("model_tflops_per_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("gpu", cells.text("gpu"), {"h100-80gb"});
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model_family"));
  row.group = model + " on " + row.machine;
  row.choice = model;  // a family is left out as a whole
  row.table = fmt::format("{}, line {}", row.group, row.line);
  const std::int64_t sequence = cells.integer("seq"), batch = cells.integer("gbs");
  row.step_s = static_cast<double>(batch * sequence) / (row.gpus * cells.above_zero("tokens_per_s_per_gpu"));

  keys.set("cluster.trainer", "megatron-bridge");
  set_cluster(keys, row.machine, row.gpus);
  RunLayout layout{.tensor = cells.count("tp"),
                   .context = cells.count("cp"),
                   .pipeline = cells.count("pp"),
                   .chunks = degree(cells, "vp"),
                   .full_shards = shards_all(cells),
                   .micro_batch = cells.integer("mbs"),
                   .global_batch = batch,
                   .sequence = sequence};
  if (layout.pipeline == 1) layout.chunks = 1;
  set_layout(keys, layout);
  set_pipeline(keys, model, layout.pipeline, layout.chunks);
  const bool has_experts = cells.text("moe") == "yes";
  if (has_experts) {
    set_experts(keys, degree(cells, "ep"), cells.whole_or("r_expert_tensor_parallel_size", 0),
                cells.text("r_moe_flex_dispatcher_backend"));
    if (!cells.empty("r_moe_a2a_overlap") && cells.flag("r_moe_a2a_overlap")) set_merged(keys);
    if (cells.text("variant") == "tokendrop")
      keys.assume("no token is dropped, although the run drops those above an expert's capacity");
  }
  // User buffers of Transformer Engine: scripts/performance and src/megatron/bridge/perf_recipes/llama (userbuffers_*).
  if (!has_experts && layout.tensor > 1) keys.set("schedule.overlap_tensor", "true");
  if (model == "deepseek-v3" && cells.text("variant") == "w/o MTP")
    keys.set("model.predicted_tokens", 0, "a model without its multi-token prediction");

  const std::string& precision = cells.text("precision_norm");
  // MX on Blackwell, blocks of 128 on Hopper.
  set_precision(keys,
                precision == "FP8-MX/blockwise" ? (row.machine.starts_with("h") ? "blockwise" : "mxfp8") : precision);
  if (!cells.empty("r_recompute_num_layers"))
    keys.set("schedule.recompute_layers", cells.text("r_recompute_num_layers"), "full recomputation of some layers");
  else if (has_recipe(cells))
    set_recompute(keys, cells.text("r_recompute_modules"));
  else
    set_usual_recompute(keys, model, row.machine, precision);
  set_usual_moments(keys, model);
  set_graphs(keys, cells.text("r_cuda_graph_impl"), cells.text("r_cuda_graph_scope"));
  set_offloaded_layers(keys, cells, model == "llama-3.1-70b" && layout.full_shards);
  if (!cells.empty("r_offload_modules"))
    keys.set("schedule.offload", "[" + cells.text("r_offload_modules") + "]", "activations kept in the host's memory");
  // src/megatron/bridge/recipes/llama/llama3.py (peft.dim) and perf_recipes/llama (peft.target_modules).
  if (cells.text("phase") == "lora")
    set_lora(keys, 16, "qkv",
             "adapters of rank 16 on queries, keys and values, as Megatron-Bridge's perf_recipes/llama");

  row.superseded = cells.text("in_head") != "yes";
  row.unknown_recipe = cells.empty("recipe") || !cells.empty("recipe_differs") ||
                       (has_experts && cells.empty("r_moe_a2a_overlap"));  // hidden or not: a fifth of a step
  row.version = cells.text("release");
  row.version_of =
      fmt::format("{} {} {} {} {} s{} b{} m{} t{} c{} p{} v{} e{} f{}", cells.text("phase"), model, row.machine,
                  row.gpus, precision, sequence, batch, cells.text("mbs"), cells.text("tp"), cells.text("cp"),
                  layout.pipeline, layout.chunks, degree(cells, "ep"), shards_all(cells));
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
