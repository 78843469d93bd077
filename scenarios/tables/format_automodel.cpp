// NVIDIA's performance summary of NeMo AutoModel (NVIDIA-NeMo/Automodel docs/performance-summary.mdx): PyTorch's FSDP2,
// experts by DeepEP, LoRA, on H100. GBS is the step's batch in sequences, MBS that of one pass, LBS that of one call,
// GA the calls of a step. What the table lacks is that of the benchmark's recipe (examples/llm_benchmark), in the stored
// version that was read; a row whose batch is another has an unknown recipe.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

struct Recipe {
  std::string_view phase, model;
  std::int64_t batch, local_batch;
  bool recomputes;         // activation_checkpointing
  bool sequence_parallel;  // where tensor > 1
  int expert;              // ep_size; 0: no experts
};

constexpr Recipe recipes[] = {
    {"pretrain", "qwen3-30b-a3b", 512, 4, true, false, 8},  // qwen/qwen3_moe_30b_te_deepep.yaml@51d4df5
    {"pretrain", "gpt-oss-20b", 256, 2, false, false, 8},   // gpt_oss/gptoss_20b_te_deepep.yaml@9af7a77
    {"pretrain", "gpt-oss-120b", 512, 1, true, false, 64},  // gpt_oss/gptoss_120b_te_deepep.yaml@05de44f
    {"pretrain", "deepseek-v3", 256, 4, true, false, 64},   // deepseek/deepseek_v3_te_deepep.yaml@21bb6c6
    {"pretrain", "llama-3.1-70b", 128, 1, true, false, 0},  // llama3_3/custom_llama3_1_70b_pretrain_..._8nodes.yaml
    {"lora", "llama-3.1-8b", 32, 2, false, false, 0},       // llama3_1/llama3_1_8b_peft_benchmark.yaml@e05319e
    {"lora", "qwen2.5-7b", 32, 2, false, false, 0},         // qwen/qwen2_5_7b_peft_benchmark.yaml@4f5f864
    {"lora", "llama-3.1-70b", 32, 2, true, true, 0},        // llama3_3/custom_llama3_3_70b_instruct_peft_benchmark.yaml
    {"lora", "qwen2.5-32b", 32, 2, true, false, 0},         // qwen/custom_qwen2_5_32b_peft_benchmark.yaml@6b7342a
};

const Recipe* recipe_of(std::string_view phase, std::string_view model) {
  for (const Recipe& recipe : recipes)
    if (recipe.phase == phase && recipe.model == model) return &recipe;
  return nullptr;
}

// "-" is a degree of 1 too.
int degree_of(const Cells& cells, std::string_view column) {
  return cells.text(column) == "-" ? 1 : degree(cells, column);
}

void set_recipe(PublishedRow& row, RunKeys& keys, const Cells& cells, const std::string& model, int tensor) {
  const Recipe* recipe = recipe_of(cells.text("phase"), model);
  row.unknown_recipe =
      recipe == nullptr || recipe->batch != cells.integer("GBS") || recipe->local_batch != cells.integer("LBS");
  if (recipe == nullptr) return;
  keys.assume("recomputation of the benchmark's recipe in examples/llm_benchmark");
  set_recompute(keys, recipe->recomputes ? "full" : "");
  keys.set("layout.sequence_parallel", tensor > 1 && recipe->sequence_parallel ? "true" : "false");
  if (recipe->expert == 0) return;
  if (cells.text("EP") == "-") keys.assume("experts on the ranks of the same recipe");
  const bool deep = cells.text("Kernel Optimizations").find("DeepEP") != std::string::npos;
  set_experts(keys, cells.text("EP") == "-" ? recipe->expert : cells.count("EP"), 0, deep ? "DeepEP" : "");
}

}  // namespace

void read_automodel(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("Model TFLOPs/sec/GPU", 0);
  RunKeys keys;
  row.machine = machine_named("system", cells.text("system"), {"h100-80gb"});
  row.gpus = cells.count("#GPUs");
  const std::string model = set_model(keys, cells.text("Model"));
  row.group = cells.text("phase") + " of " + model;
  row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.step_s = cells.above_zero("Time per Global Step (s)");

  keys.set("cluster.trainer", "automodel");
  set_cluster(keys, row.machine, row.gpus);
  RunLayout layout{.tensor = cells.count("TP"),
                   .context = cells.count("CP"),
                   .pipeline = cells.count("PP"),
                   .chunks = degree_of(cells, "VP"),
                   .full_shards = true,
                   .micro_batch = cells.integer("MBS"),
                   .global_batch = cells.integer("GBS"),
                   .sequence = cells.integer("Seq Length")};
  if (layout.pipeline == 1) layout.chunks = 1;
  set_layout(keys, layout);
  keys.set("layout.vocab_multiple", 0);
  // Layers of a pipeline keep their weights between the passes: reshard_after_forward in distributed/config.py.
  if (layout.pipeline > 1) keys.set("layout.zero", 2);
  if (row.gpus == 1) keys.set("layout.zero", 0);
  if (layout.pipeline > 1 && cells.integer("GA") > 1)
    keys.refuse(fmt::format("a pipeline that empties {} times a step", cells.integer("GA")));
  set_recipe(row, keys, cells, model, layout.tensor);
  set_precision(keys, "bf16");
  // The recipes load weights as bf16, and PyTorch's Adam keeps its moments in the weights' dtype.
  keys.set("run.optimizer.moment_dtype", "bfloat16");
  if (model == "deepseek-v3") keys.set("run.gradient_dtype", "bfloat16");  // mp_policy.reduce_dtype of its recipe
  if (cells.text("phase") == "lora")
    set_lora(keys, 16, "", "adapters of rank 16 on all Linears (dim 16, target_modules '*_proj' of the recipes)");
  row.superseded = cells.text("in_head") != "yes";
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
