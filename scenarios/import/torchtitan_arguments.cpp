// torchtitan's settings: the keys of its TOML files until February 2026 (torchtitan/config/job_config.py), and the
// overrides of its current interface, --module, --config and dotted names (torchtitan 0.3: torchtitan/config/configs.py).
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/import/import.h"
#include "scenarios/import/torchtitan_models.h"
#include "scenarios/language/quantity.h"

namespace slipway::scenarios {

namespace {

constexpr std::string_view logging = "it logs";
constexpr std::string_view data = "which tokens are read changes no step";
constexpr std::string_view saving = "checkpoints are apart from steps (slipway goodput)";
constexpr std::string_view numbers = "it changes numbers, not a step's time or memory";
constexpr std::string_view running = "it is about running, not about a step";
constexpr std::string_view converter = "it belongs to a converter of the model that is not asked for";
constexpr std::string_view apart = "evaluation is apart from steps";

const Row rows[] = {
    part("module", "model"),
    part("config", "model"),
    part("model.name", "model"),
    part("model.flavor", "model"),
    part("model.converters", "run.fp8"),
    none("model.print_after_conversion", logging),
    none("model.hf_assets_path", data),
    none("model.tokenizer_path", data),
    none("hf_assets_path", data),
    none("tokenizer.path", data),

    key("parallelism.tensor_parallel_degree", "layout.tensor"),
    key("parallelism.pipeline_parallel_degree", "layout.pipeline"),
    key("parallelism.context_parallel_degree", "layout.context"),
    part("parallelism.expert_parallel_degree", "layout.expert"),
    part("parallelism.expert_tensor_parallel_degree", "layout.expert_tensor"),
    part("parallelism.data_parallel_replicate_degree", "layout.data"),
    part("parallelism.data_parallel_shard_degree", "layout.data"),
    part("parallelism.fsdp_reshard_after_forward", "layout.zero"),
    part("parallelism.enable_sequence_parallel", "layout.sequence_parallel"),
    part("parallelism.no_enable_sequence_parallel", "layout.sequence_parallel"),
    part("parallelism.disable_loss_parallel", "the loss"),
    part("parallelism.pipeline_parallel_schedule", "schedule.name"),
    part("parallelism.pipeline_parallel_schedule_csv", "schedule.csv"),
    part("parallelism.pipeline_parallel_microbatch_size", "schedule.micro_batch"),
    part("parallelism.pipeline_parallel_layers_per_stage", "layout.chunks"),
    part("parallelism.pipeline_parallel_first_stage_less_layers", "layout.split"),
    part("parallelism.pipeline_parallel_last_stage_less_layers", "layout.split"),
    part("parallelism.module_fqns_per_model_part", "layout.split"),
    part("parallelism.context_parallel_rotate_method", "layout.context_exchange"),
    none("parallelism.context_parallel_load_balancer", "a causal mask is taken to be shared evenly"),
    none("parallelism.spmd_backend", running),
    unless(near("parallelism.enable_async_tensor_parallel", "collectives of tensor groups are priced as exposed"),
           {"false", "False"}),
    unless(near("parallelism.enable_fsdp_symm_mem", "weights are gathered as usual"), {"false", "False"}),
    unless(near("compile.enable_async_tensor_parallel", "collectives of tensor groups are priced as exposed"),
           {"false", "False"}),

    part("training.local_batch_size", "schedule.micro_batch"),
    part("training.global_batch_size", "schedule.global_batch"),
    key("training.seq_len", "model.sequence"),
    key("training.max_norm", "run.clip_norm"),
    part("training.steps", "run.tokens"),
    part("training.mixed_precision_param", "run.dtype"),
    part("training.dtype", "run.dtype"),
    unless(refused("training.mixed_precision_reduce", "a reduction in another type than fp32"), {"float32"}),
    unless(refused("training.enable_cpu_offload", "offloading to the host"), {"false", "False"}),
    none("training.disable_cuda_graphs", "kernels are launched one by one"),
    none("training.gc_freq", running),
    none("training.gc_debug", running),
    none("training.dataset", data),
    none("training.dataset_path", data),
    none("training.seed", numbers),
    none("training.deterministic", running),
    none("dataloader.dataset", data),
    none("dataloader.dataset_path", data),

    unless(refused("optimizer.name", "an optimizer other than AdamW"), {"AdamW", "Adam"}),
    key("optimizer.lr", "run.lr"),
    key("optimizer.beta1", "run.optimizer.beta1"),
    key("optimizer.beta2", "run.optimizer.beta2"),
    key("optimizer.eps", "run.optimizer.epsilon"),
    key("optimizer.weight_decay", "run.optimizer.weight_decay"),
    key("optimizer.param_groups.0.optimizer_kwargs.lr", "run.lr"),
    part("optimizer.param_groups.0.optimizer_kwargs.betas", "run.optimizer"),
    key("optimizer.param_groups.0.optimizer_kwargs.eps", "run.optimizer.epsilon"),
    key("optimizer.param_groups.0.optimizer_kwargs.weight_decay", "run.optimizer.weight_decay"),
    unless(near("optimizer.implementation", "the optimizer is priced as one fused kernel"), {"fused"}),
    part("lr_scheduler.warmup_steps", "run.optimizer.lr_warmup_samples"),
    part("lr_scheduler.decay_ratio", "run.optimizer.lr_decay_style"),
    part("lr_scheduler.decay_type", "run.optimizer.lr_decay_style"),
    part("lr_scheduler.min_lr_factor", "run.optimizer.min_lr"),
    none("lr_scheduler.total_steps", numbers),

    part("activation_checkpoint.mode", "schedule.recompute"),
    part("activation_checkpoint.selective_ac_option", "schedule.recompute"),
    none("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", "it belongs to the selective mode"),
    none("activation_checkpoint.preserve_rng_state", running),
    unless(near("compile.enable", "kernels are priced as eager PyTorch's (cluster.trainer torchtitan)"),
           {"false", "False"}),
    none("compile.components", "it belongs to compile.enable"),
    none("compile.backend", "it belongs to compile.enable"),
    part("quantize.linear.float8.enable_fsdp_float8_all_gather", "run.fp8_param_gather"),
    part("quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "run.fp8"),
    part("quantize.linear.float8.filter_fqns", "run.fp8"),
    part("quantize.linear.float8.recipe_name", "run.fp8"),
    part("quantize.linear.float8.emulate", "run.fp8"),
    part("quantize.grouped_mm.float8.fqns", "run.fp8"),
    part("quantize.linear.mx.filter_fqns", "run.fp8"),
    part("quantize.linear.mx.recipe_name", "run.fp8"),
    part("quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", "run.fp8"),
    part("quantize.grouped_mm.mx.fqns", "run.fp8"),
    part("quantize.grouped_mm.mx.recipe_name", "run.fp8"),

    none("job.dump_folder", logging),
    none("job.description", logging),
    none("job.print_config", logging),
    none("job.use_for_integration_test", running),
    none("job.config_file", running),
    none("dump_folder", logging),
    none("profiling.enable_profiling", logging),
    none("profiling.save_traces_folder", logging),
    none("profiling.profile_freq", logging),
    none("profiling.enable_memory_snapshot", logging),
    none("profiling.save_memory_snapshot_folder", logging),
    none("profiler.enable_profiling", logging),
    none("profiler.profile_freq", logging),
    none("metrics.log_freq", logging),
    none("metrics.disable_color_printing", logging),
    none("metrics.enable_tensorboard", logging),
    none("metrics.save_tb_folder", logging),
    none("metrics.enable_wandb", logging),
    none("checkpoint.enable", saving),
    none("checkpoint.enable_checkpoint", saving),
    none("checkpoint.folder", saving),
    none("checkpoint.interval", saving),
    none("checkpoint.last_save_model_only", saving),
    none("checkpoint.last_save_model_weights_only", saving),
    none("checkpoint.export_dtype", saving),
    none("checkpoint.async_mode", saving),
    none("checkpoint.initial_load_path", saving),
    none("checkpoint.keep_latest_k", saving),
    none("validation.enable", apart),
    none("validation.dataset", apart),
    none("validation.freq", apart),
    none("validation.steps", apart),
    none("validation.seq_len", apart),
    none("validation.local_batch_size", apart),
    none("validator.freq", apart),
    none("validator.steps", apart),
    none("comm.init_timeout_seconds", running),
    none("comm.train_timeout_seconds", running),
    none("comm.trace_buf_size", running),
    none("debug.seed", numbers),
    none("debug.deterministic", running),
    part("debug.moe_force_load_balance", "run.forced_routing"),
};

void compose_model(Import& import) {
  const std::string name = import.text("model.name"), flavor = import.text("model.flavor");
  if (import.has("model.name") || import.has("model.config") || import.has("model.family")) return;
  const TorchtitanModel* model = torchtitan_model(name, flavor);
  if (model == nullptr)
    return import.refuse(
        "model.flavor",
        fmt::format("the model {} {} is unknown to import; allowed: {}", name, flavor, torchtitan_model_names()),
        "give the model: --set model.name=NAME (slipway list models)");
  for (const auto& [key, value] : model->shape)
    import.set("model." + std::string(key), std::string(value), "model.flavor");
}

bool is_true(Import& import, std::string_view argument, bool otherwise) {
  const std::string text = import.text(argument, otherwise ? "true" : "false");
  return text != "false" && text != "False";
}

// Words of a list: "a,b", "a b" and "['a', 'b']".
std::vector<std::string> listed(Import& import, std::string_view argument) {
  std::vector<std::string> words(1);
  for (const char c : import.text(argument) + " ")
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  words.pop_back();
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The converter's recipe as one of run.fp8. float8 has a scale per tensor where no recipe is named, or one per row.
void compose_recipe(Import& import, const std::string& kind) {
  const std::string argument = "quantize.linear." + kind + ".recipe_name";
  const std::string recipe = import.text(argument, kind == "mx" ? "mxfp8_cublas" : "tensorwise");
  if (kind == "mx" ? recipe.starts_with("mxfp8") && recipe != "mxfp8_emulated" : recipe == "tensorwise")
    return import.set("run.fp8", kind == "mx" ? "mxfp8" : recipe, "model.converters");
  import.not_modelled(argument, "the recipe " + recipe + ", which is not modelled; allowed: " +
                                    (kind == "mx" ? "mxfp8_cublas, mxfp8_cublas_rceil" : "tensorwise"));
}

// Linears that are left in run.dtype. The head always is in Slipway; routers are, with experts.
void compose_filter(Import& import, const std::string& kind) {
  const std::string argument = "quantize.linear." + kind + ".filter_fqns";
  std::vector<std::string> names = listed(import, argument);
  if (names.empty() && kind == "mx") names = {"output"};  // its default
  if (!has(names, "output") && !has(names, "lm_head"))
    import.note(NoteKind::nearest, "--" + argument + " without output", "the head's product is priced in run.dtype");
  for (const std::string& name : names) {
    if (name == "output" || name == "lm_head" || name.find("router") != std::string::npos) continue;
    if (name == "auto_filter_small_kn")
      import.note(NoteKind::nearest, "--" + argument + " " + name, "small Linears are priced in run.fp8 too");
    else
      import.not_modelled(argument, "Linears of layers that stay in run.dtype (" + name + "), which is not modelled");
  }
}

// With tensorwise scales, torchtitan gathers inputs over tensor ranks in float8, as weights on request.
void compose_float8_messages(Import& import) {
  constexpr const char* gather = "quantize.linear.float8.enable_fsdp_float8_all_gather";
  import.set("run.fp8_param_gather", is_true(import, gather, false) ? "true" : "false", gather);
  import.set("run.fp8_sequence_gather", import.count("layout.tensor", 1) > 1 ? "true" : "false", "model.converters");
  for (const char* argument : {"precompute_float8_dynamic_scale_for_fsdp", "emulate"}) {
    const std::string name = std::string("quantize.linear.float8.") + argument;
    if (!import.given(name) || !is_true(import, name, false)) continue;
    if (std::string_view(argument) == "emulate")
      import.not_modelled(name, "products that are emulated, which is not modelled");
    else
      import.note(NoteKind::no_effect, import.find(name)->text(), "reductions of scales are a small part of a step");
  }
}

// model.converters: float8 or mx, of Linears and of the products of experts (torchtitan/components/quantization).
void compose_converters(Import& import) {
  const std::vector<std::string> converters = listed(import, "model.converters");
  std::string kind;
  bool linear = false, grouped = false;
  for (const std::string& converter : converters) {
    const bool mx = converter == "mx" || converter.ends_with(".mx");
    const bool of_experts = converter.starts_with("quantize.grouped_mm.");
    if (!mx && converter != "float8" && !converter.ends_with(".float8"))
      return import.not_modelled("model.converters", "the converter " + converter + ", which is not modelled");
    const std::string its_kind = mx ? "mx" : "float8";
    if (!kind.empty() && kind != its_kind)
      return import.refuse("model.converters", "float8 and mx contradict each other; allowed: one of them",
                           "remove one of the two");
    kind = its_kind;
    (of_experts ? grouped : linear) = true;
  }
  for (const Row& row : torchtitan_rows()) {
    const std::string_view name = row.argument;
    const std::string of = "." + kind + ".";
    const bool used = name.starts_with("quantize.linear.") ? linear : grouped;
    if (name.starts_with("quantize.") && import.given(name) && (!used || name.find(of) == std::string_view::npos))
      import.note(NoteKind::no_effect, import.find(name)->text(), std::string(converter));
  }
  if (kind.empty()) return;
  const bool experts = is_mixture(import.value("model.name"), import.count("model.experts", 0));
  if (!linear || (experts && !(grouped && has(listed(import, "quantize.grouped_mm." + kind + ".fqns"), "experts"))))
    return import.not_modelled("model.converters",
                               linear ? "experts in run.dtype beside Linears in " + kind + ", which is not modelled"
                                      : "Linears in run.dtype beside experts in " + kind + ", which is not modelled");
  compose_recipe(import, kind);
  compose_filter(import, kind);
  if (kind == "float8") compose_float8_messages(import);
}

// Weights are sharded over shard ranks; all ranks where it is -1.
void compose_data(Import& import) {
  const std::int64_t replicas = import.whole("parallelism.data_parallel_replicate_degree", 1);
  const std::string shard_text = import.text("parallelism.data_parallel_shard_degree", "-1");
  const bool rest = shard_text == "-1";
  const std::int64_t shards = rest ? -1 : whole_number(shard_text).value_or(0);
  if (!rest && shards < 1)
    return import.refuse("parallelism.data_parallel_shard_degree",
                         "'" + shard_text + "' is no degree; allowed: -1 or a positive number", "correct it");
  if (!rest) import.set("layout.data", std::to_string(replicas * shards), "parallelism.data_parallel_shard_degree");
  if (replicas > 1 && shards != 1) {
    import.set("layout.replicate", std::to_string(replicas), "parallelism.data_parallel_replicate_degree");
    if (!import.has("layout.replicate")) return;
  }
  const bool pipelined = import.count("layout.pipeline", 1) > 1;
  const std::string reshard = import.text("parallelism.fsdp_reshard_after_forward", "default");
  const bool keeps = reshard == "never" || (reshard == "default" && pipelined);
  import.set("layout.zero", shards == 1 ? "0" : keeps ? "2" : "3", "parallelism.fsdp_reshard_after_forward");
}

// A class of torch.distributed.pipelining as a schedule of ours.
struct PipelineClass {
  std::string_view theirs, ours;
  int chunks;  // of torchtitan's default
};
const PipelineClass classes[] = {
    {"1F1B", "1f1b", 1},           {"GPipe", "gpipe", 1},          {"Interleaved1F1B", "interleaved-1f1b", 2},
    {"ZBVZeroBubble", "zb-v", 2},  {"DualPipeV", "dualpipe-v", 2}, {"InterleavedZeroBubble", "zb-interleaved", 2},
    {"LoopedBFS", "looped-bfs", 2}};

// [tok_embeddings, layers.0, ...] of each part: its number of layers.
std::vector<std::int64_t> layers_of_parts(const Argument& parts) {
  std::vector<std::int64_t> layers;
  for (const std::string& part : parts.values) {
    std::int64_t count = 0;
    for (std::size_t at = 0; (at = part.find("layers.", at)) != std::string::npos; ++at) ++count;
    layers.push_back(count);
  }
  return layers;
}

void compose_pipeline(Import& import) {
  const std::int64_t pipeline = import.count("layout.pipeline", 1);
  if (pipeline == 1) return;
  const std::string name = import.text("parallelism.pipeline_parallel_schedule", "1F1B");
  const auto found =
      std::find_if(std::begin(classes), std::end(classes), [&](const PipelineClass& c) { return c.theirs == name; });
  const std::string csv = import.text("parallelism.pipeline_parallel_schedule_csv");
  if (!csv.empty()) import.set("schedule.csv", csv, "parallelism.pipeline_parallel_schedule_csv");
  if (found == std::end(classes) && csv.empty())
    return import.refuse(
        "parallelism.pipeline_parallel_schedule",
        "the class " + name + " is unknown; allowed: 1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble, DualPipeV",
        "choose one of them");
  if (csv.empty()) import.set("schedule.name", std::string(found->ours), "parallelism.pipeline_parallel_schedule");
  const std::int64_t layers = model_layers(import.value("model.name"), import.count("model.layers", 0));
  std::vector<std::int64_t> list;
  std::int64_t chunks = found == std::end(classes) ? 1 : found->chunks;
  if (const Argument* parts = import.find("parallelism.module_fqns_per_model_part")) {
    list = layers_of_parts(*parts);
  } else {
    const std::int64_t first = import.whole("parallelism.pipeline_parallel_first_stage_less_layers", 1),
                       last = import.whole("parallelism.pipeline_parallel_last_stage_less_layers", 1);
    const std::int64_t each = import.whole("parallelism.pipeline_parallel_layers_per_stage", 0),
                       all = layers + first + last;
    const std::int64_t stages = each > 0 ? (all + each - 1) / each : pipeline * chunks;
    // Early stages get one more of what counts as a layer.
    for (std::int64_t stage = 0; stage < stages; ++stage) list.push_back(all / stages + (stage < all % stages ? 1 : 0));
    list.front() -= first;
    list.back() -= last;
  }
  if (static_cast<std::int64_t>(list.size()) % pipeline != 0)
    return import.refuse("parallelism.pipeline_parallel_degree",
                         fmt::format("{} stages are no multiple of {} pipeline ranks", list.size(), pipeline),
                         "change one of them");
  chunks = static_cast<std::int64_t>(list.size()) / pipeline;
  if (chunks > 1) import.set("layout.chunks", std::to_string(chunks), "parallelism.pipeline_parallel_layers_per_stage");
  import.set("layout.split", list, "parallelism.pipeline_parallel_degree");
}

void compose_batch(Import& import) {
  const std::int64_t local = import.whole("training.local_batch_size", 8);
  const bool pipelined = import.count("layout.pipeline", 1) > 1;
  const std::int64_t micro = pipelined ? import.whole("parallelism.pipeline_parallel_microbatch_size", 1) : local;
  import.set("schedule.micro_batch", std::to_string(micro), "training.local_batch_size");
  const std::string global = import.text("training.global_batch_size", "-1");
  if (global != "-1") return import.set("schedule.global_batch", global, "training.global_batch_size");
  const std::int64_t others =
      import.count("layout.tensor", 1) * import.count("layout.context", 1) * import.count("layout.pipeline", 1);
  const std::int64_t gpus = import.count("cluster.nodes", 1) * import.count("cluster.gpus_per_node", 8);
  const std::int64_t replicas =
      import.count("layout.data", std::max<std::int64_t>(1, gpus / std::max<std::int64_t>(1, others)));
  import.set("schedule.global_batch", std::to_string(local * replicas), "training.local_batch_size");
}

void compose_recomputation(Import& import) {
  const std::string mode = import.text("activation_checkpoint.mode", "selective");
  if (mode == "none" || mode == "full") return import.set("schedule.recompute", mode, "activation_checkpoint.mode");
  if (mode == "memory_budget" || mode == "memory-budget")
    return import.refuse("activation_checkpoint.mode",
                         "a budget of memory is not modelled; allowed: none, full, selective", "choose one of them");
  const std::string option = import.text("activation_checkpoint.selective_ac_option", "op");
  import.note(
      NoteKind::nearest, "--activation_checkpoint.mode selective",
      option == "op"
          ? "all of a layer is recomputed, not every second product: the step is too long and the memory too small"
          : "all layers are recomputed, not every " + option + "th: the step is too long and the memory too small");
  import.set("schedule.recompute", "full", "activation_checkpoint.mode");
}

void compose_length(Import& import) {
  const std::int64_t batch = import.count("schedule.global_batch", 1), steps = import.whole("training.steps", 10000);
  const std::int64_t sequence = import.count("model.sequence", 2048);
  import.set("run.tokens",
             number_text(static_cast<double>(steps) * static_cast<double>(batch) * static_cast<double>(sequence)),
             "training.steps");
  const std::int64_t warmup = import.whole("lr_scheduler.warmup_steps", 200);
  if (warmup > 0)
    import.set("run.optimizer.lr_warmup_samples", std::to_string(std::min(warmup, steps) * batch),
               "lr_scheduler.warmup_steps");
  const double ratio = import.number("lr_scheduler.decay_ratio", 1);
  const std::string type = import.text("lr_scheduler.decay_type", "linear");
  if (type == "sqrt" && ratio > 0)
    return import.note(NoteKind::no_effect, "--lr_scheduler.decay_type sqrt", std::string(numbers));
  if (ratio > 0 && ratio < 1) import.note(NoteKind::no_effect, "--lr_scheduler.decay_ratio", std::string(numbers));
  import.set("run.optimizer.lr_decay_style", ratio == 0 ? "constant" : type, "lr_scheduler.decay_type");
  const double factor = import.number("lr_scheduler.min_lr_factor", 0),
               lr = quantity(import.value("run.lr"), Unit::pure).value_or(0);
  if (factor > 0 && ratio > 0)
    import.set("run.optimizer.min_lr", number_text(factor * lr), "lr_scheduler.min_lr_factor");
}

}  // namespace

std::span<const Row> torchtitan_rows() { return rows; }

void compose_torchtitan(Import& import) {
  compose_model(import);
  import.set("model.sequence", "2048", "training.seq_len");
  const std::int64_t tensor = import.count("layout.tensor", 1);
  const bool sequence = !import.given("parallelism.no_enable_sequence_parallel") &&
                        is_true(import, "parallelism.enable_sequence_parallel", true);
  if (tensor > 1)
    import.set("layout.sequence_parallel", sequence ? "true" : "false", "parallelism.enable_sequence_parallel");
  if (import.given("parallelism.expert_parallel_degree")) {
    const std::string degree = import.text("parallelism.expert_parallel_degree", "1");
    if (degree != "1") import.set("layout.expert", degree, "parallelism.expert_parallel_degree");
  }
  if (import.given("parallelism.expert_tensor_parallel_degree") &&
      is_mixture(import.value("model.name"), import.count("model.experts", 0)))
    import.set("layout.expert_tensor", import.text("parallelism.expert_tensor_parallel_degree", "1"),
               "parallelism.expert_tensor_parallel_degree");
  compose_data(import);
  if (is_true(import, "debug.moe_force_load_balance", false))
    import.set("run.forced_routing", "true", "debug.moe_force_load_balance");
  compose_pipeline(import);
  import.set("schedule.name", "1f1b", "parallelism.pipeline_parallel_schedule");
  compose_batch(import);
  compose_recomputation(import);
  import.set("run.dtype", import.text("training.mixed_precision_param", "bfloat16"), "training.mixed_precision_param");
  compose_converters(import);
  if (import.text("training.dtype", "float32") != "float32")
    import.refuse("training.dtype", "weights and optimizer states in bfloat16 are not modelled; allowed: float32",
                  "import without it: --without training.dtype");
  import.set("run.clip_norm", "1", "training.max_norm");
  import.set("run.lr", "8e-4", "optimizer.lr");
  if (const Argument* betas = import.find("optimizer.param_groups.0.optimizer_kwargs.betas");
      betas != nullptr && betas->values.size() == 2) {
    import.set("run.optimizer.beta1", betas->values[0], betas->name);
    import.set("run.optimizer.beta2", betas->values[1], betas->name);
  }
  if (import.given("module") && !import.given("training.disable_cuda_graphs"))
    import.note(NoteKind::nearest, "no --training.disable_cuda_graphs",
                "kernels are launched one by one, not as a CUDA graph");
  compose_length(import);
}

}  // namespace slipway::scenarios
