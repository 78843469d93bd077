// Megatron-LM's arguments (NVIDIA/Megatron-LM megatron/training/arguments.py and the fields of its configs; names with
// underscores in a YAML are the same). Defaults are those of Megatron-LM, not of Slipway.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "scenarios/import/import.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/quantity.h"

namespace slipway::scenarios {

namespace {

constexpr std::string_view logging = "it logs";
constexpr std::string_view data = "which tokens are read changes no step";
constexpr std::string_view saving = "checkpoints are apart from steps (slipway goodput)";
constexpr std::string_view numbers = "it changes numbers, not a step's time or memory";
constexpr std::string_view usual = "it is what is priced anyway";
constexpr std::string_view host = "it keeps the host from pauses, which are not priced";
constexpr std::string_view running = "it is about running, not about a step";
constexpr std::string_view priced_alltoall = "dispatch and combine are priced as all-to-alls of all ranks";

std::string exchange_of(const std::string& value) {
  return value == "p2p" ? "ring" : value == "all_gather" ? "all-gather" : value;
}
std::string kernels_of(const std::string& value) {
  return value == "unfused" ? "fused_softmax" : value == "local" ? "torch" : "flash2_rmsnorm";
}

const Row rows[] = {
    // The layout.
    key("tensor-model-parallel-size", "layout.tensor"),
    key("pipeline-model-parallel-size", "layout.pipeline"),
    key("context-parallel-size", "layout.context"),
    part("expert-model-parallel-size", "layout.expert"),
    part("expert-tensor-parallel-size", "layout.expert_tensor"),
    part("sequence-parallel", "layout.sequence_parallel"),
    key("cp-comm-type", "layout.context_exchange", exchange_of),
    part("num-layers-per-virtual-pipeline-stage", "layout.chunks"),
    part("num-virtual-stages-per-pipeline-rank", "layout.chunks"),
    part("decoder-first-pipeline-num-layers", "layout.split"),
    part("decoder-last-pipeline-num-layers", "layout.split"),
    part("pipeline-model-parallel-layout", "layout.split"),
    part("account-for-embedding-in-pipeline-split", "layout.split"),
    part("account-for-loss-in-pipeline-split", "layout.split"),
    or_near(key("microbatch-group-size-per-virtual-pipeline-stage", "schedule.group"),
            "a chunk is run through as many micro-batches as there are pipeline ranks"),
    part("use-distributed-optimizer", "layout.zero"),
    part("use-megatron-fsdp", "layout.zero"),
    part("data-parallel-sharding-strategy", "layout.zero"),
    unless(key("num-distributed-optimizer-instances", "layout.replicate"), {"1"}),
    unless(refused("outer-dp-sharding-strategy", "sharding over replicas of shards"), {"no_shard"}),
    part("overlap-grad-reduce", "the trainer"),
    part("overlap-param-gather", "the trainer"),
    or_near(key("tp-comm-overlap", "schedule.overlap_tensor"), "collectives of tensor groups are priced as exposed"),
    none("overlap-p2p-communication-warmup-flush", usual),
    none("no-align-grad-reduce", "reductions are overlapped block by block"),
    near("overlap-param-gather-with-optimizer-step",
         "the optimizer and the gather of weights are priced one after the other"),
    none("ddp-bucket-size", "reductions go block by block"),
    none("ddp-num-buckets", "reductions go block by block"),
    near("ddp-average-in-collective", "the division is not priced"),
    part("accumulate-allreduce-grads-in-fp32", "run.gradient_dtype"),
    part("grad-reduce-in-bf16", "run.gradient_dtype"),
    none("use-mcore-models", usual),
    none("distributed-backend", usual),
    none("distributed-timeout-minutes", running),
    none("use-tp-pp-dp-mapping", "ranks are numbered tensor first, then context, data, pipeline"),
    part("delay-wgrad-compute", "schedule.delay_wgrad"),

    // The model.
    key("num-layers", "model.layers"),
    key("hidden-size", "model.hidden"),
    part("ffn-hidden-size", "model.ffn"),
    key("num-attention-heads", "model.heads"),
    part("group-query-attention", "model.kv_heads"),
    part("num-query-groups", "model.kv_heads"),
    part("kv-channels", "model.head_dim"),
    key("seq-length", "model.sequence"),
    part("max-position-embeddings", "model.max_positions"),
    part("vocab-size", "model.vocab"),
    part("make-vocab-size-divisible-by", "model.vocab"),
    part("tokenizer-type", "model.vocab"),
    part("tokenizer-model", "model.vocab"),
    part("vocab-file", "model.vocab"),
    part("swiglu", "model.family"),
    part("squared-relu", "model.mlp"),
    part("normalization", "model.norm"),
    part("position-embedding-type", "model.positions"),
    part("use-rotary-position-embeddings", "model.positions"),
    part("disable-bias-linear", "model.bias"),
    part("add-qkv-bias", "model.qkv_bias"),
    part("qk-layernorm", "model.qk_norm"),
    part("untie-embeddings-and-output-weights", "model.tied"),
    part("norm-epsilon", "model.norm_epsilon"),
    part("rotary-base", "model.rope_theta"),
    unless(part("rotary-percent", "model.rope_head_dim"), {"1.0", "1"}),
    none("rotary-scaling-factor", numbers),
    none("rotary-seq-len-interpolation-factor", numbers),
    none("use-rope-scaling", "it changes the rotary angles, not a step's time or memory"),
    none("rope-scaling-factor", numbers),
    none("mscale", numbers),
    none("mscale-all-dim", numbers),
    none("apply-layernorm-1p", numbers),
    none("attention-softmax-in-fp32", "the scores are not written to memory"),
    none("apply-query-key-layer-scaling", numbers),
    none("init-method-std", numbers),
    unless(refused("attention-dropout", "dropout"), {"0.0", "0"}),
    unless(refused("hidden-dropout", "dropout"), {"0.0", "0"}),
    refused("attention-output-gate", "a gate on the output of attention"),
    refused("linear-attention-type", "linear attention (gated delta net)"),
    refused("experimental-attention-variant", "attention of another kind"),
    none("linear-attention-freq", "it belongs to --linear-attention-type"),
    none("linear-conv-kernel-dim", "it belongs to --linear-attention-type"),
    none("linear-key-head-dim", "it belongs to --linear-attention-type"),
    none("linear-value-head-dim", "it belongs to --linear-attention-type"),
    none("linear-num-key-heads", "it belongs to --linear-attention-type"),
    none("linear-num-value-heads", "it belongs to --linear-attention-type"),
    part("window-size", "model.window"),
    part("window-attn-skip-freq", "model.full_every"),
    unless(part("softmax-type", "model.sinks"), {"vanilla"}),
    refused("hybrid-layer-pattern", "layers of other kinds"),
    refused("hybrid-override-pattern", "layers of other kinds"),
    none("no-weight-decay-cond-type", numbers),

    // Latent attention.
    part("multi-latent-attention", "model.kv_latent"),
    part("q-lora-rank", "model.q_latent"),
    part("kv-lora-rank", "model.kv_latent"),
    part("qk-head-dim", "model.qk_head_dim"),
    part("qk-pos-emb-head-dim", "model.rope_head_dim"),
    part("v-head-dim", "model.v_head_dim"),
    near("mla-down-proj-fusion", "the projections are priced apart"),

    // Multi-token prediction.
    key("mtp-num-layers", "model.predicted_tokens"),
    none("mtp-loss-scaling-factor", numbers),

    // Experts.
    key("num-experts", "model.experts"),
    key("moe-router-topk", "model.experts_per_token"),
    part("moe-ffn-hidden-size", "model.ffn"),
    key("moe-shared-expert-intermediate-size", "model.shared_ffn"),
    part("moe-layer-freq", "model.dense_layers"),
    or_near(key("moe-shared-expert-overlap", "schedule.overlap_shared_experts"),
            "shared experts are priced before dispatch, not beside it"),
    near("moe-shared-expert-gate", "the gate of shared experts is not priced"),
    part("moe-token-dispatcher-type", "layout.dispatcher"),
    part("moe-flex-dispatcher-backend", "layout.dispatcher"),
    part("moe-enable-deepep", "layout.dispatcher"),
    near("moe-deepep-num-sms", priced_alltoall),
    near("moe-hybridep-num-sms", priced_alltoall),
    none("moe-grouped-gemm", usual),
    near("moe-use-legacy-grouped-gemm", "products of experts are priced as Transformer Engine's"),
    none("moe-permute-fusion", usual),
    none("moe-router-fusion", usual),
    none("moe-router-dtype", "the router's scores are a small part of a step"),
    part("moe-router-load-balancing-type", "run.balancing_loss"),
    part("moe-aux-loss-coeff", "run.balancing_loss"),
    none("moe-z-loss-coeff", numbers),
    part("moe-router-pre-softmax", "model.normalised_scores"),
    part("moe-router-score-function", "model.router_scores"),
    part("moe-router-enable-expert-bias", "run.router_bias_speed"),
    part("moe-router-bias-update-rate", "run.router_bias_speed"),
    part("moe-router-topk-scaling-factor", "model.score_scale"),
    or_near(key("moe-router-num-groups", "model.expert_groups"),
            "tokens are taken to reach all groups of experts alike"),
    or_near(key("moe-router-group-topk", "model.groups_per_token"),
            "tokens are taken to reach all groups of experts alike"),
    part("moe-router-force-load-balancing", "run.forced_routing"),
    part("moe-expert-capacity-factor", "run.expert_capacity"),
    part("moe-pad-expert-input-to-capacity", "run.expert_capacity"),
    none("moe-token-drop-policy", "which tokens are dropped changes numbers, not a step's time or memory"),
    near("moe-expert-rank-capacity-factor", "buffers of experts are as large as their tokens need"),
    near("moe-pad-experts-for-cuda-graph-inference", "experts' inputs are not padded"),
    near("moe-mlp-glu-interleave-size", "the order of gate and up weights is not priced"),
    near("moe-paged-stash", "experts' inputs are kept as they are, not in pages"),
    none("moe-paged-stash-page-size", "it belongs to --moe-paged-stash"),
    none("moe-paged-stash-buffer-size-factor-cuda", "it belongs to --moe-paged-stash"),
    near("moe-router-padding-for-fp8", "tokens of an expert are not padded"),
    near("moe-router-padding-for-quantization", "tokens of an expert are not padded"),
    part("overlap-moe-expert-parallel-comm", "schedule.name"),

    // The step.
    key("micro-batch-size", "schedule.micro_batch"),
    part("global-batch-size", "schedule.global_batch"),
    part("step-batch-size-schedule", "schedule.global_batch"),
    refused("rampup-batch-size", "a batch that grows by equal increments"),
    part("recompute-granularity", "schedule.recompute"),
    part("recompute-method", "schedule.recompute"),
    part("recompute-num-layers", "schedule.recompute"),
    part("recompute-modules", "schedule.recompute_modules"),
    part("recompute-activations", "schedule.recompute"),
    none("distribute-saved-activations", "sequence parallelism shards them"),
    key("attention-backend", "schedule.kernels", kernels_of),
    none("use-flash-attn", usual),
    none("transformer-impl", usual),
    none("cross-entropy-loss-fusion", usual),
    none("cross-entropy-fusion-impl", usual),
    near("no-rope-fusion", "the rotary turn is priced as one kernel"),
    near("no-bias-swiglu-fusion", "the activation is priced as one kernel"),
    near("no-bias-gelu-fusion", "the activation is priced as one kernel"),
    near("no-masked-softmax-fusion", "the softmax is priced as one kernel"),
    near("no-gradient-accumulation-fusion", "weight gradients are added to the sum by their product"),
    near("use-transformer-engine-op-fuser", "the MLP's operators are priced apart"),
    near("deterministic-mode", "kernels are priced as the usual ones, which are faster"),
    part("fine-grained-activation-offloading", "schedule.offload"),
    part("offload-modules", "schedule.offload"),
    near("delay-offload-until-cuda-graph", "copies to the host are not priced"),
    near("chunked-optimizer-state-offload", "optimizer states are taken to stay on the GPU"),
    none("optimizer-state-offload-chunk-size-mb", "it belongs to --chunked-optimizer-state-offload"),
    part("optimizer-cpu-offload", "run.optimizer.offload_fraction"),
    part("optimizer-offload-fraction", "run.optimizer.offload_fraction"),
    near("overlap-cpu-optimizer-d2h-h2d", "copies and the update on the host are priced one after the other"),
    none("use-torch-optimizer-for-cpu-offload", "the update is priced by the host's memory"),
    none("no-pin-cpu-grads", "copies are priced as those of pinned memory"),
    none("no-pin-cpu-params", "copies are priced as those of pinned memory"),
    part("cuda-graph-impl", "schedule.cuda_graphs"),
    part("cuda-graph-scope", "schedule.cuda_graphs"),
    part("cuda-graph-modules", "schedule.cuda_graphs"),
    part("enable-cuda-graph", "schedule.cuda_graphs"),
    part("external-cuda-graph", "schedule.cuda_graphs"),
    none("cuda-graph-warmup-steps", running),
    none("te-rng-tracker", running),
    none("manual-gc", host),
    none("manual-gc-interval", host),
    none("no-check-for-nan-in-loss-and-grad", "the check is not priced"),
    none("check-for-nan-in-loss-and-grad", "the check is not priced"),
    none("rerun-mode", "the check is not priced"),

    // Number types.
    part("bf16", "run.dtype"),
    part("fp16", "run.dtype"),
    part("fp8-recipe", "run.fp8"),
    part("fp8-format", "run.fp8"),
    part("fp4-format", "run.fp8"),
    part("fp4-recipe", "run.fp8"),
    part("fp8-param-gather", "run.fp8_param_gather"),
    part("fp4-param-gather", "run.fp8_param_gather"),
    near("reuse-grad-buf-for-mxfp8-param-ag", "the buffer of gathered weights is counted apart"),
    none("fp8-amax-history-len", numbers),
    none("fp8-amax-compute-algo", numbers),
    none("fp8-margin", numbers),
    part("use-precision-aware-optimizer", "run.optimizer.moment_dtype"),
    unless(refused("main-grads-dtype", "a sum of gradients in another type than fp32"), {"fp32"}),
    unless(refused("main-params-dtype", "master weights in another type than fp32"), {"fp32"}),
    part("exp-avg-dtype", "run.optimizer.moment_dtype"),
    part("exp-avg-sq-dtype", "run.optimizer.moment_dtype"),
    unless(near("megatron-fsdp-main-params-dtype", "master weights are in fp32"), {"fp32"}),
    unless(near("megatron-fsdp-main-grads-dtype", "the sum of gradients is in fp32"), {"fp32"}),
    unless(near("megatron-fsdp-grad-comm-dtype", "gradients are reduced in fp32"), {"fp32"}),

    // The optimizer.
    unless(refused("optimizer", "an optimizer other than Adam"), {"adam"}),
    key("adam-beta1", "run.optimizer.beta1"),
    key("adam-beta2", "run.optimizer.beta2"),
    key("adam-eps", "run.optimizer.epsilon"),
    key("weight-decay", "run.optimizer.weight_decay"),
    key("clip-grad", "run.clip_norm"),
    key("lr", "run.lr"),
    key("min-lr", "run.optimizer.min_lr"),
    part("lr-decay-style", "run.optimizer.lr_decay_style"),
    part("lr-decay-samples", "run.optimizer.lr_decay_samples"),
    part("lr-decay-iters", "run.optimizer.lr_decay_samples"),
    part("lr-warmup-samples", "run.optimizer.lr_warmup_samples"),
    part("lr-warmup-iters", "run.optimizer.lr_warmup_samples"),
    part("lr-warmup-fraction", "run.optimizer.lr_warmup_samples"),
    none("lr-warmup-init", numbers),
    none("lr-wsd-decay-style", numbers),
    none("decoupled-lr", numbers),
    none("decoupled-min-lr", numbers),
    none("override-opt_param-scheduler", numbers),
    none("weight-decay-incr-style", numbers),
    part("train-iters", "run.tokens"),
    part("train-samples", "run.tokens"),
    none("seed", numbers),

    // Data, checkpoints, logs.
    none("data-path", data),
    none("data-cache-path", data),
    none("split", data),
    none("mock-data", data),
    none("merge-file", data),
    none("num-workers", data),
    none("no-mmap-bin-files", data),
    none("train-data-path", data),
    none("valid-data-path", data),
    none("test-data-path", data),
    none("reset-position-ids", data),
    none("eod-mask-loss", data),
    none("dataloader-type", data),
    none("num-dataset-builder-threads", data),
    none("no-create-attention-mask-in-dataloader", usual),
    none("save", saving),
    none("load", saving),
    none("save-interval", saving),
    none("save-retain-interval", saving),
    none("no-save-optim", saving),
    none("no-save-rng", saving),
    none("no-load-optim", saving),
    none("no-load-rng", saving),
    none("finetune", saving),
    none("ckpt-format", saving),
    none("async-save", saving),
    none("use-persistent-ckpt-worker", saving),
    none("auto-detect-ckpt-format", saving),
    none("dist-ckpt-strictness", saving),
    none("no-ckpt-fully-parallel-save", saving),
    none("ckpt-fully-parallel-load", saving),
    none("use-dist-ckpt", saving),
    none("ckpt-assume-constant-structure", saving),
    none("exit-on-missing-checkpoint", saving),
    none("use-checkpoint-args", saving),
    none("exit-duration-in-mins", running),
    none("exit-interval", running),
    none("exit-signal-handler", running),
    none("eval-iters", "evaluation is apart from steps"),
    none("eval-interval", "evaluation is apart from steps"),
    none("enable-experimental", running),
    none("log-interval", logging),
    none("log-throughput", logging),
    none("log-timers-to-tensorboard", logging),
    none("log-memory-to-tensorboard", logging),
    none("log-num-zeros-in-grad", logging),
    none("log-params-norm", logging),
    none("log-validation-ppl-to-tensorboard", logging),
    none("log-progress", logging),
    none("logging-level", logging),
    none("timing-log-level", logging),
    none("timing-log-option", logging),
    none("tensorboard-dir", logging),
    none("tensorboard-queue-size", logging),
    none("log-world-size-to-tensorboard", logging),
    none("wandb-project", logging),
    none("wandb-entity", logging),
    none("wandb-exp-name", logging),
    none("wandb-save-dir", logging),
    none("profile", logging),
    none("profile-step-start", logging),
    none("profile-step-end", logging),
    none("profile-ranks", logging),
    none("use-pytorch-profiler", logging),
};

// A rank's layers.

void compose_split(Import& import) {
  import.exclude("pipeline-model-parallel-layout", "num-layers-per-virtual-pipeline-stage",
                 "keep the layout: it has the stages");
  import.exclude("pipeline-model-parallel-layout", "decoder-first-pipeline-num-layers",
                 "keep the layout: it has the stages");
  import.exclude("num-virtual-stages-per-pipeline-rank", "num-layers-per-virtual-pipeline-stage",
                 "keep one of the two");
  const std::int64_t pipeline = import.count("layout.pipeline", 1), layers = import.count("model.layers", 0);
  if (const std::string text = import.text("pipeline-model-parallel-layout"); !text.empty()) {
    const std::optional<PipelineStages> stages = pipeline_stages(text);
    if (!stages)
      return import.refuse(
          "pipeline-model-parallel-layout",
          "'" + text + "' cannot be read; allowed: stages of E, t, m and L between |, as Et*4|(tttt|)*14tmL",
          "correct it");
    const std::int64_t count = static_cast<std::int64_t>(stages->layers.size());
    if (count % pipeline != 0)
      return import.refuse(
          "pipeline-model-parallel-layout",
          fmt::format("it has {} stages, no multiple of --pipeline-model-parallel-size {}", count, pipeline),
          "change one of them");
    if (count / pipeline > 1)
      import.set("layout.chunks", std::to_string(count / pipeline), "pipeline-model-parallel-layout");
    return import.set("layout.split", stages->layers, "pipeline-model-parallel-layout");
  }
  if (const std::int64_t chunks = import.whole("num-virtual-stages-per-pipeline-rank", 1); chunks > 1)
    import.set("layout.chunks", std::to_string(chunks), "num-virtual-stages-per-pipeline-rank");
  if (const std::int64_t each = import.whole("num-layers-per-virtual-pipeline-stage", 0); each > 0 && pipeline > 1) {
    if (layers % (each * pipeline) != 0)
      return import.refuse(
          "num-layers-per-virtual-pipeline-stage",
          fmt::format("{} layers on each of {} pipeline ranks do not divide --num-layers {}", each, pipeline, layers),
          "change one of them");
    if (layers / (each * pipeline) > 1)
      import.set("layout.chunks", std::to_string(layers / (each * pipeline)), "num-layers-per-virtual-pipeline-stage");
  }
  const std::int64_t first = import.whole("decoder-first-pipeline-num-layers", -1),
                     last = import.whole("decoder-last-pipeline-num-layers", -1);
  if (pipeline > 1 && (first >= 0 || last >= 0)) {
    const std::int64_t inner = pipeline - (first >= 0) - (last >= 0),
                       rest = layers - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
    const char* which = first >= 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers";
    if (import.has("layout.chunks"))
      return import.refuse(which, "with virtual stages it is not modelled; allowed: --pipeline-model-parallel-layout",
                           "write the stages with it");
    if (inner > 0 ? rest < 0 || rest % inner != 0 : rest != 0)
      return import.refuse(
          which, fmt::format("{} layers are left for {} pipeline ranks, which they do not divide by", rest, inner),
          "change the layers of the first or last rank");
    std::vector<std::int64_t> list(static_cast<std::size_t>(pipeline), inner > 0 ? rest / inner : 0);
    if (first >= 0) list.front() = first;
    if (last >= 0) list.back() = last;
    import.set("layout.split", list, which);
  } else if (import.given("account-for-embedding-in-pipeline-split") ||
             import.given("account-for-loss-in-pipeline-split")) {
    const bool embedding = import.given("account-for-embedding-in-pipeline-split"),
               loss = import.given("account-for-loss-in-pipeline-split");
    const char* which = embedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split";
    const std::int64_t stages = pipeline * import.count("layout.chunks", 1), all = layers + embedding + loss;
    if (all % stages != 0)
      return import.refuse(which, fmt::format("{} layers and parts do not divide by {} stages", all, stages),
                           "change --num-layers or the pipeline");
    std::vector<std::int64_t> list(static_cast<std::size_t>(stages), all / stages);
    list.front() -= embedding;
    list.back() -= loss;
    import.set("layout.split", list, which);
  }
}

void compose_experts_ranks(Import& import) {
  const std::pair<const char*, const char*> degrees[] = {{"expert-model-parallel-size", "layout.expert"},
                                                         {"expert-tensor-parallel-size", "layout.expert_tensor"}};
  for (const auto& [argument, its_key] : degrees) {
    const std::string degree = import.text(argument);
    const bool matters = import.given("num-experts") || (degree != "1" && its_key == std::string_view("layout.expert"));
    if (!degree.empty() && matters) import.set(its_key, degree, argument);
    if (!degree.empty() && !matters)
      import.note(NoteKind::no_effect, import.find(argument)->text(), "there are no experts");
  }
}

void compose_layout(Import& import) {
  compose_experts_ranks(import);
  const std::int64_t tensor = import.count("layout.tensor", 1);
  if (import.given("sequence-parallel") && tensor > 1)
    import.set("layout.sequence_parallel", "true", "sequence-parallel");
  if (import.given("sequence-parallel") && tensor == 1)
    import.note(NoteKind::no_effect, "--sequence-parallel", "the tensor group has one rank");
  if (import.count("layout.context", 1) > 1) import.set("layout.context_exchange", "ring", "cp-comm-type");
  const std::string strategy = import.text("data-parallel-sharding-strategy", "no_shard");
  std::string zero = import.given("use-distributed-optimizer") ? "1" : "0";
  if (import.given("use-megatron-fsdp"))
    zero = strategy == "optim_grads_params" ? "3" : strategy == "optim_grads" ? "2" : strategy == "optim" ? "1" : zero;
  import.set("layout.zero", zero,
             import.given("use-megatron-fsdp") ? "data-parallel-sharding-strategy" : "use-distributed-optimizer");
  for (const char* overlap : {"overlap-grad-reduce", "overlap-param-gather"})
    if (import.given(overlap))
      import.note(NoteKind::no_effect, fmt::format("--{}", overlap), std::string(usual));
    else
      import.note(NoteKind::nearest, fmt::format("no --{}", overlap),
                  "communication of data groups is priced as overlapped");
  compose_split(import);
  if (import.given("overlap-moe-expert-parallel-comm"))
    import.set("schedule.name", "1f1b-merged", "overlap-moe-expert-parallel-comm");
  if (import.given("delay-wgrad-compute")) {
    if (import.given("overlap-moe-expert-parallel-comm"))
      import.set("schedule.delay_wgrad", "true", "delay-wgrad-compute");
    else
      import.note(NoteKind::no_effect, "--delay-wgrad-compute", "it needs --overlap-moe-expert-parallel-comm");
  }
  if (import.count("layout.chunks", 1) > 1)
    import.set("schedule.name", "interleaved-1f1b", "pipeline-model-parallel-layout");
  import.set("schedule.name", "1f1b", "pipeline-model-parallel-size");
  const std::string type = import.text("moe-token-dispatcher-type", import.given("num-experts") ? "allgather" : "");
  const std::string backend = import.text("moe-flex-dispatcher-backend", "deepep");
  if (!type.empty())
    import.set("layout.dispatcher", type == "flex" ? backend : type,
               import.given("moe-token-dispatcher-type") ? "moe-token-dispatcher-type" : "num-experts",
               priced_alltoall);
}

// The vocabulary.

struct Tokenizer {
  std::string_view part;  // of --tokenizer-model, --tokenizer-type or --vocab-file
  std::int64_t words;
};
// Lengths of published tokenizers, added words included.
const Tokenizer tokenizers[] = {{"DeepSeek-V3", 128815},    {"DeepSeek-V2", 100002},     {"Qwen3", 151669},
                                {"Qwen2", 151646},          {"nemotron_2_256k", 256000}, {"Llama-3", 128256},
                                {"Llama2Tokenizer", 32000}, {"bpe/vocab", 50257},        {"GPT2BPETokenizer", 50257},
                                {"gpt2-vocab", 50257},      {"Mixtral", 32000},          {"Llama-2", 32000}};

void compose_vocabulary(Import& import) {
  if (import.has("model.vocab")) return;
  const std::int64_t multiple = import.whole("make-vocab-size-divisible-by", 128) * import.count("layout.tensor", 1);
  std::int64_t words = import.whole("vocab-size", 0);
  const char* from = "vocab-size";
  for (const char* argument : {"tokenizer-model", "vocab-file", "tokenizer-type"}) {
    const Argument* found = words == 0 ? import.find(argument) : nullptr;
    if (found == nullptr || found->values.empty()) continue;
    for (const Tokenizer& each : tokenizers)
      if (words == 0 && found->values[0].find(each.part) != std::string::npos) words = each.words;
    from = argument;
  }
  if (words == 0)
    return import.refuse(
        "vocab-size",
        "the vocabulary follows from no argument: its tokenizer is unknown; allowed: --vocab-size, or a scenario key",
        "give it: --set model.vocab=N");
  if (multiple <= 0) return import.refuse("make-vocab-size-divisible-by", "it must be positive", "correct it");
  const std::int64_t padded = (words + multiple - 1) / multiple * multiple;
  if (std::string_view(from) != "vocab-size")
    import.note(NoteKind::assumed, "model.vocab",
                fmt::format("{}: the tokenizer's {} words, padded to a multiple of {}", padded, words, multiple));
  import.set("model.vocab", std::to_string(padded), from);
}

// The blocks.

// A model of family gpt has layer norms, GELU, biases and learned positions; llama has RMS norms, SwiGLU, no biases and
// rotary positions. Mixtures of both are keys of their own.
void compose_blocks(Import& import) {
  const bool swiglu = import.given("swiglu"), squared = import.given("squared-relu");
  const bool rms = import.text("normalization", "LayerNorm") == "RMSNorm";
  const bool rotary = import.given("use-rotary-position-embeddings") ||
                      import.text("position-embedding-type", "learned_absolute") == "rope";
  const bool bias = !import.given("disable-bias-linear");
  import.exclude("swiglu", "squared-relu", "keep one activation");
  const bool plain_heads = !import.given("group-query-attention") && !import.given("kv-channels");
  const bool latent = import.given("multi-latent-attention");
  const bool plain_scores = !import.given("window-size") && import.text("softmax-type", "vanilla") == "vanilla";
  const bool gpt = !swiglu && !squared && !rms && !rotary && bias && plain_heads && plain_scores && !latent &&
                   !import.given("num-experts");
  import.set("model.family", gpt ? "gpt" : "llama", "swiglu");
  if (!gpt && !swiglu) import.set("model.mlp", squared ? "squared-relu" : "gelu", squared ? "squared-relu" : "swiglu");
  if (!gpt && !rms) import.set("model.norm", "layer", "normalization");
  if (!gpt && !rotary) import.set("model.positions", "learned", "position-embedding-type");
  // Projections to and from latents have no biases there (megatron/core/transformer/multi_latent_attention.py).
  if (!gpt && bias && latent) {
    import.set("model.out_bias", "true", "disable-bias-linear");
    import.set("model.mlp_bias", "true", "disable-bias-linear");
  } else if (!gpt && bias) {
    import.set("model.bias", "true", "disable-bias-linear");
  }
  if (!rotary && import.given("max-position-embeddings"))
    import.set("model.max_positions", import.text("max-position-embeddings"), "max-position-embeddings");
  else if (import.given("max-position-embeddings"))
    import.note(NoteKind::no_effect, import.find("max-position-embeddings")->text(), "rotary positions have no table");
  import.set("model.tied", import.given("untie-embeddings-and-output-weights") ? "false" : "true",
             "untie-embeddings-and-output-weights");
  import.set("model.norm_epsilon", import.text("norm-epsilon", "1e-5"), "norm-epsilon");
  if (gpt) return;
  if (rotary) import.set("model.rope_theta", import.text("rotary-base", "10000"), "rotary-base");
  if (import.given("add-qkv-bias") && !bias) import.set("model.qkv_bias", "true", "add-qkv-bias");
}

// "128,0": so many tokens before a token, and none behind it, where attention is causal. Slipway's window counts the
// token itself too (megatron/core/transformer/utils.py, get_sliding_window_causal_mask).
void compose_window(Import& import) {
  constexpr const char *size = "window-size", *skips = "window-attn-skip-freq";
  if (!import.given(size)) {
    if (import.given(skips)) import.note(NoteKind::no_effect, import.find(skips)->text(), "it needs --window-size");
    return;
  }
  static const std::regex sides("[( \\[]*(-?[0-9]+)[ ,]+(-?[0-9]+)[) \\]]*");
  const std::string text = import.text(size);
  std::smatch found;
  const std::optional<std::int64_t> before =
      std::regex_match(text, found, sides) ? whole_number(found[1].str()) : std::nullopt;
  if (!before || *before < -1 || *before == 0)
    return import.refuse(size, "'" + text + "' is no window; allowed: tokens before and behind, as 128,0",
                         "correct it");
  if (*before == -1)
    return import.note(NoteKind::no_effect, import.find(size)->text(), "-1 is a window of all tokens before");
  if (found[2] != "0")
    return import.not_modelled(size, "a window with tokens behind, which is not modelled; allowed: as 128,0");
  const std::string frequency = import.text(skips);
  std::vector<bool> full(static_cast<std::size_t>(import.count("model.layers", 0)), false);
  if (!frequency.empty()) {
    const auto pattern = window_pattern(frequency, static_cast<std::int64_t>(full.size()));
    if (!pattern)
      return import.refuse(skips, "'" + frequency + "' cannot be read; allowed: a number, or a list as ([1]*5+[0])*4",
                           "correct it");
    if (pattern->size() != full.size())
      return import.refuse(skips, fmt::format("it has {} layers, --num-layers {}", pattern->size(), full.size()),
                           "change one of them");
    for (std::size_t i = 0; i < full.size(); ++i) full[i] = (*pattern)[i] == 0;
  }
  const std::optional<std::int64_t> every = period_of_last(full);
  if (!every)
    return import.not_modelled(skips,
                               "layers without a window that are not the last of every so many, which is not modelled");
  if (*every == 1) return import.note(NoteKind::no_effect, import.find(size)->text(), "no layer has a window");
  import.set("model.window", std::to_string(*before + 1), size);
  if (*every > 1) import.set("model.full_every", std::to_string(*every), skips);
}

void compose_softmax(Import& import) {
  constexpr const char* type = "softmax-type";
  const std::string kind = import.text(type, "vanilla");
  if (kind == "learnable") return import.set("model.sinks", "true", type);
  if (kind == "off-by-one")
    return import.not_modelled(type, "a constant one in attention's softmax, which is not modelled");
  if (kind != "vanilla")
    import.refuse(type, "'" + kind + "' is not known; allowed: vanilla, learnable, off-by-one", "correct it");
}

// The turned part of a head, rounded down (megatron/core/models/common/embeddings/rotary_pos_embedding.py).
void compose_rotary_share(Import& import, std::int64_t head_dim) {
  constexpr const char* percent = "rotary-percent";
  const double share = import.number(percent, 1);
  if (share == 1) return;
  if (share <= 0 || share > 1)
    return import.refuse(percent, "it is no share; allowed: above 0 and up to 1", "correct it");
  if (import.given("multi-latent-attention"))
    return import.not_modelled(percent, "a part of latent attention's turned numbers, which is not modelled");
  if (import.has("model.positions"))
    return import.note(NoteKind::no_effect, import.find(percent)->text(), "positions are not rotary");
  import.set("model.rope_head_dim", std::to_string(static_cast<std::int64_t>(static_cast<double>(head_dim) * share)),
             percent);
}

void compose_attention(Import& import) {
  const std::int64_t heads = import.count("model.heads", 0), hidden = import.count("model.hidden", 0);
  compose_window(import);
  compose_softmax(import);
  const std::int64_t head_dim = import.whole("kv-channels", hidden / std::max<std::int64_t>(1, heads));
  if (import.value("model.family") != "gpt")
    compose_rotary_share(import, head_dim);
  else if (import.given("rotary-percent"))
    import.note(NoteKind::no_effect, import.find("rotary-percent")->text(), "positions are not rotary");
  if (import.given("multi-latent-attention")) {
    import.exclude("multi-latent-attention", "group-query-attention", "latent attention has no groups of queries");
    import.set("model.kv_latent", import.text("kv-lora-rank", "512"), "multi-latent-attention");
    if (!import.has("model.kv_latent")) return;
    import.set("model.q_latent", import.text("q-lora-rank", "0"), "q-lora-rank");
    import.set("model.qk_head_dim", import.text("qk-head-dim", "128"), "qk-head-dim");
    import.set("model.rope_head_dim", import.text("qk-pos-emb-head-dim", "64"), "qk-pos-emb-head-dim");
    import.set("model.v_head_dim", import.text("v-head-dim", "128"), "v-head-dim");
    if (import.given("kv-channels"))
      import.note(NoteKind::no_effect, import.find("kv-channels")->text(), "latent attention has widths of its own");
    if (import.given("qk-layernorm")) import.note(NoteKind::no_effect, "--qk-layernorm", "latents have norms anyway");
    return;
  }
  for (const char* latent : {"q-lora-rank", "kv-lora-rank", "qk-head-dim", "qk-pos-emb-head-dim", "v-head-dim"})
    if (import.given(latent))
      import.note(NoteKind::no_effect, import.find(latent)->text(), "it belongs to --multi-latent-attention");
  if (import.value("model.family") == "gpt") return;
  if (import.given("group-query-attention"))
    import.set("model.kv_heads", import.text("num-query-groups", "1"), "num-query-groups");
  else if (import.given("num-query-groups"))
    import.note(NoteKind::no_effect, import.find("num-query-groups")->text(), "it needs --group-query-attention");
  if (const std::int64_t width = import.whole("kv-channels", 0); width > 0 && width * heads != hidden)
    import.set("model.head_dim", std::to_string(width), "kv-channels");
  if (import.given("qk-layernorm")) import.set("model.qk_norm", "true", "qk-layernorm");
}

// Which layers have experts: all, every n-th, or a list in Python. `width`: of the MLP in the others.
void compose_dense_layers(Import& import, const std::string& width) {
  const std::int64_t layers = import.count("model.layers", 0);
  const std::string text = import.text("moe-layer-freq", "1");
  const std::optional<std::vector<std::int64_t>> pattern = layer_pattern(text, layers);
  if (!pattern)
    return import.refuse("moe-layer-freq",
                         "'" + text + "' cannot be read; allowed: a number, or a list as ([0]*3+[1]*58)", "correct it");
  if (static_cast<std::int64_t>(pattern->size()) != layers)
    return import.refuse("moe-layer-freq", fmt::format("it has {} layers, --num-layers {}", pattern->size(), layers),
                         "change one of them");
  const auto first = std::find(pattern->begin(), pattern->end(), 1);
  const bool is_prefix = std::find(first, pattern->end(), 0) == pattern->end();
  const std::optional<std::int64_t> every = period_of_last({pattern->begin(), pattern->end()});
  if (!is_prefix && !every)
    return import.refuse(
        "moe-layer-freq",
        "layers without experts among those with them are not modelled, unless those with them are the "
        "last of every so many",
        "import without it: --without moe-layer-freq");
  const std::int64_t dense = first - pattern->begin();
  if (dense == 0) return;
  if (is_prefix)
    import.set("model.dense_layers", std::to_string(dense), "moe-layer-freq");
  else
    import.set("model.experts_every", std::to_string(*every), "moe-layer-freq");
  import.set("model.dense_ffn", width, "moe-layer-freq");
}

void compose_mlp(Import& import) {
  const std::int64_t hidden = import.count("model.hidden", 0);
  // Two thirds of 4h, in multiples of 64, where SwiGLU has three matrices.
  const std::int64_t usual_width = import.given("swiglu") ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden;
  const std::string width = import.text("ffn-hidden-size", std::to_string(usual_width));
  if (!import.given("num-experts")) {
    if (import.given("moe-ffn-hidden-size"))
      import.note(NoteKind::no_effect, import.find("moe-ffn-hidden-size")->text(), "there are no experts");
    return import.set("model.ffn", width, "ffn-hidden-size");
  }
  import.set("model.ffn", import.text("moe-ffn-hidden-size", width),
             import.given("moe-ffn-hidden-size") ? "moe-ffn-hidden-size" : "ffn-hidden-size");
  import.set("model.experts_per_token", "2", "moe-router-topk");
  compose_dense_layers(import, width);
}

// How the router weighs experts (megatron/core/transformer/moe/moe_utils.py, topk_routing_with_score_function).
void compose_scores(Import& import) {
  const std::string scores = import.text("moe-router-score-function", "softmax");
  if (scores != "softmax") import.set("model.router_scores", scores, "moe-router-score-function");
  // Without it, the softmax is over the chosen experts.
  if (import.given("moe-router-pre-softmax") && scores == "softmax")
    import.set("model.normalised_scores", "false", "moe-router-pre-softmax");
  if (const double scale = import.number("moe-router-topk-scaling-factor", 1); scale != 1)
    import.set("model.score_scale", number_text(scale), "moe-router-topk-scaling-factor");
  if (import.given("moe-router-enable-expert-bias"))
    import.set("run.router_bias_speed", import.text("moe-router-bias-update-rate", "1e-3"),
               "moe-router-bias-update-rate");
  else if (import.given("moe-router-bias-update-rate"))
    import.note(NoteKind::no_effect, import.find("moe-router-bias-update-rate")->text(),
                "it needs --moe-router-enable-expert-bias");
}

// What keeps the loads of experts even. Megatron-LM's loss is Slipway's (switch_load_balancing_loss_func of the same
// file), of one sequence, a micro-batch, or all of a step.
void compose_balance(Import& import) {
  constexpr const char *kind = "moe-router-load-balancing-type", *weight = "moe-aux-loss-coeff";
  const std::string type = import.text(kind, "aux_loss"), loss = import.text(weight, "0");
  const Argument* const types = import.find(kind);
  const auto note = [&](NoteKind how, const char* argument, const char* words) {
    if (import.given(argument)) import.note(how, import.find(argument)->text(), words);
  };
  if (types != nullptr && types->values.size() > 1)
    note(NoteKind::nearest, kind, "of several ways to balance experts the first is taken");
  if (type == "sinkhorn") note(NoteKind::nearest, kind, "experts are chosen by their scores");
  if (type == "none" || type == "sinkhorn") return note(NoteKind::no_effect, weight, "no loss balances experts");
  if (type != "aux_loss" && type != "seq_aux_loss" && type != "global_aux_loss")
    return import.refuse(
        kind, "'" + type + "' is not known; allowed: aux_loss, seq_aux_loss, global_aux_loss, sinkhorn, none",
        "correct it");
  if (import.number(weight, 0) == 0) return note(NoteKind::no_effect, kind, "--moe-aux-loss-coeff is 0");
  import.set("run.balancing_loss", loss, weight);
  if (type == "seq_aux_loss") import.set("run.balancing_sequences", "1", kind);
  if (type == "global_aux_loss")  // how many data ranks there are is known with the machines alone
    note(NoteKind::nearest, kind,
         "the loss is of each rank's micro-batch; run.balancing_sequences = schedule.micro_batch x layout.data is next "
         "to it");
}

// Balanced routing fills an expert up to a factor of 1. With a larger one, padded experts compute rows of zeros.
void compose_capacity(Import& import) {
  constexpr const char *factor = "moe-expert-capacity-factor", *pads = "moe-pad-expert-input-to-capacity";
  const double capacity = import.number(factor, -1);  // a negative one is none (megatron/core: transformer_config.py)
  if (capacity == 0) return import.refuse(factor, "an expert takes no tokens with 0; allowed: above 0", "correct it");
  if (capacity > 0)
    import.set("run.expert_capacity", number_text(capacity), factor);
  else if (import.given(factor))
    import.note(NoteKind::no_effect, import.find(factor)->text(), "a negative factor drops no token");
  if (!import.given(pads)) return;
  if (capacity < 0)
    import.refuse(pads, "it needs a capacity; allowed: with --moe-expert-capacity-factor",
                  "add it, or remove this one");
  else if (capacity > 1)
    import.not_modelled(pads, "experts' inputs that are padded beyond their tokens, which is not modelled");
  else
    import.note(NoteKind::no_effect, import.find(pads)->text(), "balanced routing fills experts to this capacity");
}

void compose_router(Import& import) {
  if (import.given("num-experts")) {
    compose_scores(import);
    compose_capacity(import);
    constexpr const char* forced = "moe-router-force-load-balancing";
    if (import.given(forced)) import.set("run.forced_routing", "true", forced);
    return compose_balance(import);
  }
  for (const Row& row : megatron_rows())
    if (row.argument.starts_with("moe-router-") && row.effect == Effect::part && import.given(row.argument))
      import.note(NoteKind::no_effect, import.find(row.argument)->text(), "there are no experts");
  for (const char* argument : {"moe-aux-loss-coeff", "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity"})
    if (import.given(argument)) import.note(NoteKind::no_effect, import.find(argument)->text(), "there are no experts");
}

// The batch.

// "0:384 200B:768": from so many tokens on, so many sequences.
void compose_batches(Import& import) {
  const std::string schedule = import.text("step-batch-size-schedule");
  import.exclude("step-batch-size-schedule", "global-batch-size", "keep one of them");
  if (schedule.empty())
    return import.set("schedule.global_batch",
                      import.text("global-batch-size", std::to_string(import.count("schedule.micro_batch", 1) *
                                                                      import.count("layout.data", 1))),
                      "global-batch-size");
  static const std::regex stage("([0-9.]+)([KMBT]?):([0-9]+)");
  for (std::sregex_iterator at(schedule.begin(), schedule.end(), stage), end; at != end; ++at) {
    const std::string unit = (*at)[2];
    const double scale = unit == "K" ? 1e3 : unit == "M" ? 1e6 : unit == "B" ? 1e9 : unit == "T" ? 1e12 : 1;
    const double from = quantity(std::string((*at)[1]), Unit::pure).value_or(0) * scale;
    if (from == 0) import.set("schedule.global_batch", (*at)[3], "step-batch-size-schedule");
  }
  if (!import.has("schedule.global_batch"))
    return import.refuse("step-batch-size-schedule", "'" + schedule + "' cannot be read; allowed: as '0:384 200B:768'",
                         "correct it");
  import.note(NoteKind::nearest, import.find("step-batch-size-schedule")->text(),
              fmt::format("`simulate` prices the first batch, {}; later ones by --set schedule.global_batch=N",
                          import.value("schedule.global_batch")));
}

void compose_recomputation(Import& import) {
  const std::string granularity =
      import.given("recompute-activations") ? "selective" : import.text("recompute-granularity", "none");
  if (granularity == "full") {
    if (import.given("recompute-modules"))
      import.refuse("recompute-modules", "it contradicts --recompute-granularity full; allowed: with selective",
                    "remove one of the two");
    if (import.text("recompute-method", "uniform") != "uniform" &&
        import.whole("recompute-num-layers", 1) < import.count("model.layers", 0))
      import.refuse("recompute-method", "recomputing some of the layers is not modelled; allowed: uniform",
                    "import without it: --without recompute-method");
    if (import.text("recompute-method", "uniform") == "uniform" && import.whole("recompute-num-layers", 1) > 1)
      import.note(NoteKind::nearest, import.find("recompute-num-layers")->text(), "each layer's input is kept");
    return import.set("schedule.recompute", "full", "recompute-granularity");
  }
  if (import.given("recompute-method"))
    import.refuse("recompute-method", "it contradicts --recompute-granularity " + granularity + "; allowed: with full",
                  "remove one of the two");
  if (granularity != "selective") return;
  if (!import.given("recompute-modules")) return import.set("schedule.recompute", "selective", "recompute-granularity");
  const std::string modules = import.text("recompute-modules");
  import.set("schedule.recompute_modules", modules, "recompute-modules");
}

// --cuda-graph-modules is today's name of --cuda-graph-scope; with neither, layers are captured whole, as with `full`.
void compose_graphs(Import& import) {
  const std::string implementation = import.text("cuda-graph-impl");
  for (const char* graphs :
       {"cuda-graph-modules", "cuda-graph-scope", "enable-cuda-graph", "external-cuda-graph", "cuda-graph-impl"}) {
    if (!import.given(graphs) || implementation == "none") continue;
    std::string scope =
        import.text(import.given("cuda-graph-modules") ? "cuda-graph-modules" : "cuda-graph-scope", "full");
    const bool whole = implementation == "full_iteration" || scope == "full_iteration";
    if (whole)
      scope = "full";
    else if (scope == "full")
      scope = import.count("model.experts", 0) > 0 ? "attn moe" : "attn mlp";
    return import.set("schedule.cuda_graphs", scope, graphs, "kernels are launched one by one");
  }
}

void compose_levers(Import& import) {
  compose_recomputation(import);
  if (import.given("fine-grained-activation-offloading"))
    import.set("schedule.offload", import.text("offload-modules"), "fine-grained-activation-offloading");
  else if (import.given("offload-modules"))
    import.note(NoteKind::no_effect, import.find("offload-modules")->text(),
                "it needs --fine-grained-activation-offloading");
  compose_graphs(import);
  // Megatron-LM's default share is 1 (megatron/training/arguments.py).
  if (import.given("optimizer-cpu-offload"))
    import.set("run.optimizer.offload_fraction", import.text("optimizer-offload-fraction", "1"),
               "optimizer-cpu-offload");
  else if (import.given("optimizer-offload-fraction"))
    import.note(NoteKind::no_effect, import.find("optimizer-offload-fraction")->text(),
                "it needs --optimizer-cpu-offload");
}

// With --bf16 gradients are summed and reduced in fp32, unless --grad-reduce-in-bf16 is given; with --fp16 in fp16,
// unless --accumulate-allreduce-grads-in-fp32 is (megatron/training/arguments.py, validate_args).
void compose_gradient_dtype(Import& import) {
  constexpr const char *narrow = "grad-reduce-in-bf16", *wide = "accumulate-allreduce-grads-in-fp32";
  const bool is_bf16 = import.value("run.dtype") == "bfloat16", is_fp16 = import.value("run.dtype") == "float16";
  if (import.given(narrow) && !is_bf16)
    import.note(NoteKind::no_effect, import.find(narrow)->text(), "it needs --bf16");
  if (import.given(wide) && is_bf16 && import.given(narrow))
    import.note(NoteKind::no_effect, import.find(wide)->text(), "--grad-reduce-in-bf16 overrides it");
  const bool in_bf16 = is_bf16 && import.given(narrow), in_fp16 = is_fp16 && !import.given(wide);
  import.set("run.gradient_dtype", in_bf16 ? "bfloat16" : in_fp16 ? "float16" : "float32", in_bf16 ? narrow : wide);
}

void compose_dtypes(Import& import) {
  import.exclude("bf16", "fp16", "keep one type");
  import.set("run.dtype",
             import.given("bf16")   ? "bfloat16"
             : import.given("fp16") ? "float16"
                                    : "float32",
             import.given("fp16") ? "fp16" : "bf16");
  compose_gradient_dtype(import);
  for (const char* format : {"fp8-format", "fp4-format"}) {
    if (!import.given(format)) continue;
    const std::string width = std::string(format).substr(0, 4);
    const std::string recipe = import.text(width + "recipe", width == "fp4-" ? "nvfp4" : "delayed");
    import.set("run.fp8", recipe, format);
    const std::string gather = width + "param-gather";
    import.set("run.fp8_param_gather", import.given(gather) ? "true" : "false", gather);
  }
  if (!import.given("fp8-format") && import.given("fp8-recipe"))
    import.note(NoteKind::no_effect, import.find("fp8-recipe")->text(), "it needs --fp8-format");
  if (import.given("use-precision-aware-optimizer") && import.text("exp-avg-dtype", "fp32") != "fp32")
    import.set("run.optimizer.moment_dtype",
               import.text("exp-avg-dtype") == "bf16" ? "bfloat16" : import.text("exp-avg-dtype"), "exp-avg-dtype",
               "both moments of the optimizer are counted in fp32");
}

// The length and the learning rate.

// Samples of so many steps; the largest number where they are more.
std::int64_t samples_of(std::int64_t steps, std::int64_t batch) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  return steps > most / batch ? most : steps * batch;
}

void compose_training(Import& import) {
  const std::int64_t batch = std::max<std::int64_t>(1, import.count("schedule.global_batch", 1));
  const std::int64_t sequence = import.count("model.sequence", 0);
  import.exclude("train-iters", "train-samples", "keep one of them");
  import.exclude("lr-decay-iters", "lr-decay-samples", "keep one of them");
  import.exclude("lr-warmup-iters", "lr-warmup-samples", "keep one of them");
  const std::int64_t samples = import.given("train-samples") ? import.whole("train-samples", 0)
                                                             : samples_of(import.whole("train-iters", 0), batch);
  if (samples > 0)
    import.set("run.tokens", number_text(static_cast<double>(samples) * static_cast<double>(sequence)),
               import.given("train-samples") ? "train-samples" : "train-iters");
  import.set("run.optimizer.beta2", "0.999", "adam-beta2");
  import.set("run.optimizer.weight_decay", "0.01", "weight-decay");
  import.set("run.clip_norm", "1", "clip-grad");
  const std::string style = import.text("lr-decay-style", "linear");
  if (style == "constant" || style == "linear" || style == "cosine")
    import.set("run.optimizer.lr_decay_style", style, "lr-decay-style");
  else
    import.note(NoteKind::no_effect, import.find("lr-decay-style")->text(), std::string(numbers));
  std::int64_t decay = import.given("lr-decay-samples") ? import.whole("lr-decay-samples", 0)
                                                        : samples_of(import.whole("lr-decay-iters", 0), batch);
  if (decay > 0 && style != "constant")
    import.set("run.optimizer.lr_decay_samples", std::to_string(decay),
               import.given("lr-decay-samples") ? "lr-decay-samples" : "lr-decay-iters");
  if (decay == 0) decay = samples;
  const std::int64_t warmup = import.given("lr-warmup-fraction")
                                  ? std::llround(import.number("lr-warmup-fraction", 0) * static_cast<double>(decay))
                              : import.given("lr-warmup-samples")
                                  ? import.whole("lr-warmup-samples", 0)
                                  : samples_of(import.whole("lr-warmup-iters", 0), batch);
  if (warmup > 0) import.set("run.optimizer.lr_warmup_samples", std::to_string(warmup), "lr-warmup-samples");
}

// Environment of the launch. What changes kernels or queues is noted.
void compose_environment(Import& import) {
  const std::pair<std::string_view, std::string_view> known[] = {
      {"CUDA_DEVICE_MAX_CONNECTIONS", "how kernels share the GPU's queues is not priced"},
      {"NCCL_NVLS_ENABLE", "collectives are priced without NVLS"},
      {"NCCL_ALGO", "the algorithm is chosen by cluster.collectives"}};
  for (const Argument& each : import.arguments().environment) {
    std::string words = "an environment variable that no price reads";
    for (const auto& [name, why] : known)
      if (each.name == name) words = why;
    import.note(NoteKind::no_effect, each.name + "=" + (each.values.empty() ? "" : each.values[0]), words);
  }
}

}  // namespace

std::span<const Row> megatron_rows() { return rows; }

void compose_megatron(Import& import) {
  const std::pair<const char*, const char*> needed[] = {{"num-layers", "model.layers"},
                                                        {"hidden-size", "model.hidden"},
                                                        {"num-attention-heads", "model.heads"},
                                                        {"seq-length", "model.sequence"}};
  for (const auto& [argument, its_key] : needed)
    if (!import.has(its_key) && !import.given(argument))
      import.refuse(argument, "it is missing; allowed: a whole number",
                    fmt::format("add --{} N, or give --set {}=N", argument, its_key));
  if (!import.defects().empty()) return;
  import.set("schedule.micro_batch", "1", "micro-batch-size");
  compose_layout(import);
  compose_blocks(import);
  compose_attention(import);
  compose_mlp(import);
  compose_router(import);
  compose_vocabulary(import);
  compose_batches(import);
  compose_levers(import);
  compose_dtypes(import);
  compose_training(import);
  compose_environment(import);
}

}  // namespace slipway::scenarios
