// Megatron-LM's recipes for mixtures of experts (examples/moe_recipes of its branch dev): arguments by their names, and
// TFLOP/s per GPU. Seconds follow by Megatron's own FLOP formula. Of two figures of a recipe the one of the pull
// request counts, which says how it was measured.
#include <fmt/format.h>

#include <algorithm>

#include "models/model/megatron_flops.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/scenario.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

bool is_set(const Cells& cells, std::string_view column) { return !cells.empty(column) && cells.flag(column); }

// "attn+moe_router" as "attn moe_router".
std::string words_of(std::string list) {
  std::replace(list.begin(), list.end(), '+', ' ');
  return list;
}

void set_overlaps(RunKeys& keys, const Cells& cells) {
  if (is_set(cells, "overlap_moe_expert_parallel_comm")) set_merged(keys);
  if (is_set(cells, "delay_wgrad_compute")) keys.set("schedule.delay_wgrad", "true");
}

void set_states(RunKeys& keys, const Cells& cells) {
  if (is_set(cells, "chunked_optimizer_state_offload"))
    keys.refuse("optimizer states that go to the host's memory and back in chunks");
  if (is_set(cells, "fine_grained_activation_offloading"))
    keys.set("schedule.offload", "[" + words_of(cells.text("offload_modules")) + "]",
             "activations kept in the host's memory");
  // --main-grads-dtype is fp32 by default, and these recipes set nothing else.
  keys.set("run.gradient_dtype", "float32");
  if (cells.text("exp_avg_dtype") == "bf16") keys.set("run.optimizer.moment_dtype", "bfloat16");
}

}  // namespace

void read_moe_recipes(const Cells& cells, PublishedRow& row) {
  row.status = cells.empty("tflops_per_gpu") ? RowStatus::other : RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("tflops_per_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("gpu", cells.text("gpu"), {"h100-80gb"});
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model"));
  row.group = model + " on " + row.machine;
  row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.version_of = cells.text("recipe");
  row.version = cells.text("source").find("pull request") != std::string::npos ? "pull request" : "README";
  if (row.status != RowStatus::ok) row.version_of.clear();  // no figure, so no version of one

  keys.set("cluster.trainer", "megatron-bridge");
  keys.assume("Megatron-Core has the habits that Megatron-Bridge's recipes set");
  set_cluster(keys, row.machine, row.gpus);
  RunLayout layout{.tensor = cells.count("tensor_model_parallel_size"),
                   .context = cells.count("context_parallel_size"),
                   .pipeline = cells.count("pipeline_model_parallel_size"),
                   .full_shards = false,
                   .micro_batch = cells.integer("micro_batch_size"),
                   .global_batch = cells.integer("global_batch_size"),
                   .sequence = cells.integer("seq_length")};
  const std::string& stages = cells.text("pipeline_model_parallel_layout");
  if (const auto listed = pipeline_stages(stages))
    layout.chunks = static_cast<int>(listed->layers.size()) / layout.pipeline;
  set_layout(keys, layout);
  if (!stages.empty())
    keys.set("layout.split", "\"" + stages + "\"");
  else
    set_pipeline(keys, model, layout.pipeline, layout.chunks);
  const std::string& backend = cells.text("moe_flex_dispatcher_backend");
  set_experts(keys, cells.count("expert_model_parallel_size"), cells.count("expert_tensor_parallel_size"),
              backend.empty() ? cells.text("moe_token_dispatcher_type") : backend);
  set_overlaps(keys, cells);
  set_precision(keys, cells.empty("fp8_recipe") ? "bf16" : cells.text("fp8_recipe"));
  if (is_set(cells, "fp8_param_gather")) keys.set("run.fp8_param_gather", "true");
  set_recompute(keys, words_of(cells.text("recompute_modules")));
  // --external-cuda-graph of one recipe was the name of cuda_graph_impl transformer_engine.
  const std::string& scope = cells.text("cuda_graph_scope");
  set_graphs(keys,
             cells.empty("cuda_graph_impl") && !scope.empty() ? "transformer_engine" : cells.text("cuda_graph_impl"),
             scope == "full_iteration" ? scope : "[" + words_of(scope) + "]");
  if (cells.text("features").find("paged stash") != std::string::npos)
    keys.assume("activations in pages (moe_paged_stash) cost no time");
  set_states(keys, cells);
  set_scenario(row, keys);
  if (row.status == RowStatus::ok && row.scenario) {
    constexpr double tera = 1e12;
    row.step_s = tokens_per_step(row) * megatron_flops_per_token(megatron_count(*row.step.model)) /
                 (row.gpus * cells.above_zero("tflops_per_gpu") * tera);
    assume(row, "seconds follow from TFLOP/s by Megatron's FLOP formula");
  }
}

}  // namespace slipway::scenarios
