#include "scenarios/plan/launch_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/import/torchtitan_models.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/profiles.h"
#include "scenarios/language/settings.h"
#include "scenarios/language/usage_error.h"
#include "scenarios/plan/answer.h"
#include "scenarios/step/prepared_step.h"
#include "schedules/catalogue/interleaved_order.h"

namespace slipway::scenarios {

namespace {

std::int64_t planned_steps(const Scenario& s) {
  return static_cast<std::int64_t>(std::ceil(s.tokens / tokens_per_step(s)));
}

// Without an end of its own, the decay ends with the training, also for a constant rate.
void refuse_megatron_warmup(const LearningRateSchedule& schedule, std::int64_t train_samples, LaunchArguments& launch) {
  const bool own_end = schedule.decay_samples > 0;
  const std::int64_t end = own_end ? schedule.decay_samples : train_samples;
  if (end == 0 || schedule.warmup_samples < end) return;
  launch.refused_anyway.push_back(
      fmt::format("the warm-up of {} samples is not shorter than {} {}; lower run.optimizer.lr_warmup_samples",
                  schedule.warmup_samples, own_end ? "--lr-decay-samples" : "--train-samples", end));
}

}  // namespace

// Lengths in samples require the training's length in samples.
void megatron_learning_rate(const Scenario& s, LaunchArguments& launch) {
  const LearningRateSchedule& schedule = s.step.optimizer.lr_schedule;
  const bool in_samples = !schedule.is_constant();
  const std::string length = in_samples ? "--train-samples" : "--train-iters";
  const std::int64_t planned = s.tokens > 0 ? planned_steps(s) * (in_samples ? s.step.global_batch : 1) : 0;
  auto& list = launch.arguments;
  if (planned > 0)
    list.push_back(fmt::format("{} {}", length, planned));
  else
    launch.to_add.push_back(length + " (run.tokens says how many)");
  list.push_back(std::string("--lr-decay-style ") + name_of(schedule.decay));
  if (!in_samples) {
    launch.to_add.emplace_back(
        "your own schedule of the learning rate, if any: run.optimizer.lr_decay_style is constant, without "
        "warm-up");
    return;
  }
  list.push_back("--min-lr " + number_text(schedule.least));
  if (schedule.decay_samples > 0) list.push_back(fmt::format("--lr-decay-samples {}", schedule.decay_samples));
  if (schedule.warmup_samples == 0) return;
  list.push_back(fmt::format("--lr-warmup-samples {}", schedule.warmup_samples));
  launch.missing.emplace_back(
      "a warm-up that counts the step itself: Megatron-LM's is a step behind, its first step has rate 0");
  refuse_megatron_warmup(schedule, planned, launch);
}

std::int64_t torchtitan_steps(const Scenario& s) { return s.tokens > 0 ? planned_steps(s) : s.run.steps; }

namespace {

// AdamW is the only group of parameters of the registry's configs.
const std::string torchtitan_optimizer = "--optimizer.param_groups.0.optimizer_kwargs.";

// In the trainer's steps, rounded up.
void torchtitan_warmup(const Scenario& s, LaunchArguments& launch) {
  const std::int64_t samples = s.step.optimizer.lr_schedule.warmup_samples, batch = s.step.global_batch;
  const std::int64_t steps = samples / batch + (samples % batch > 0), all = torchtitan_steps(s);
  launch.arguments.push_back(fmt::format("--lr_scheduler.warmup_steps {}", steps));
  if (samples % batch > 0)
    launch.missing.push_back(
        fmt::format("a warm-up of {} samples (run.optimizer.lr_warmup_samples): rounded up to steps of {}, {} samples",
                    samples, batch, steps * batch));
  if (steps > all)
    launch.missing.push_back(
        fmt::format("a warm-up of {} steps (run.optimizer.lr_warmup_samples): torchtitan cuts it to the training, "
                    "--training.steps {} ({})",
                    steps, all, s.tokens > 0 ? "of run.tokens" : "run.steps; set run.tokens to the training's length"));
}

}  // namespace

// A decay ends with the training. With a ratio of 1, torchtitan cuts its beginning to the end of the warm-up.
void torchtitan_learning_rate(const Scenario& s, LaunchArguments& launch) {
  const Optimizer& own = s.step.optimizer;
  const LearningRateSchedule& schedule = own.lr_schedule;
  auto& list = launch.arguments;
  list.push_back(torchtitan_optimizer + "lr " + number_text(own.lr));
  torchtitan_warmup(s, launch);
  if (schedule.decay == DecayStyle::constant) {
    list.emplace_back("--lr_scheduler.decay_ratio 0");
    return;
  }
  list.emplace_back("--lr_scheduler.decay_ratio 1");
  list.push_back(std::string("--lr_scheduler.decay_type ") + name_of(schedule.decay));
  list.push_back("--lr_scheduler.min_lr_factor " + number_text(own.lr > 0 ? schedule.least / own.lr : 0));
  if (schedule.decay_samples > 0)
    launch.missing.emplace_back(
        "the end of the decay (run.optimizer.lr_decay_samples): torchtitan's is that of the training");
}

// A scenario as the command line of another trainer. Options of Megatron-LM (megatron/training/arguments.py) and
// torchtitan (torchtitan/config/configs.py and the registries of its models), of the versions that are printed.

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

constexpr const char* megatron_version =
    "Megatron-LM of 2026 (NVIDIA/Megatron-LM@d98e8a64); Megatron-Core 0.14 and later";
constexpr const char* torchtitan_version = "torchtitan 0.3.0 of PyPI";

std::vector<int> layers_per_stage(const Scenario& s) {
  std::vector<int> layers;
  const std::vector<Block> blocks = blocks_of(s.step.model);
  for (const BlockRange& range : split_blocks(s.step.model, s.step.layout)) {
    int count = 0;
    for (int i = range.first; i < range.last; ++i)
      count += blocks[static_cast<std::size_t>(i)].kind == BlockKind::transformer ? 1 : 0;
    layers.push_back(count);
  }
  return layers;
}

bool is_uneven(const Scenario& s) {
  return s.step.layout.split != SplitKind::even || layer_count(s.step.model) % stage_count(s.step.layout) != 0;
}

const char* placement_words =
    "the order of nodes (layout.placement): list the hosts in this order where ranks are started";

// Megatron-Core's name for what run.balancing_sequences balances together; none where it has no such loss.
std::optional<std::string> balancing_type(const Step& step) {
  if (step.routing.balancing_loss == 0) return "none";
  const std::int64_t together = balanced_sequences(step.routing, step.micro_batch);
  if (together == step.micro_batch) return "aux_loss";
  if (together == 1) return "seq_aux_loss";
  if (together == step.micro_batch * step.layout.data) return "global_aux_loss";
  return std::nullopt;
}

// As in both engines: probabilities of the chosen experts only; the balance and the capacity that the scenario asks for.
void megatron_experts(const Step& step, const Block& block, LaunchArguments& launch) {
  auto& list = launch.arguments;
  list.push_back("--num-experts " + text(block.experts));
  list.push_back("--moe-ffn-hidden-size " + text(block.ffn));
  list.push_back("--moe-router-topk " + text(block.experts_per_token));
  const Routing& routing = step.routing;
  const std::optional<std::string> type = balancing_type(step);
  list.emplace_back("--moe-router-load-balancing-type " + type.value_or("aux_loss"));
  if (!type)
    launch.to_add.emplace_back(
        "run.balancing_sequences: Megatron-LM balances one sequence, one micro-batch or those of all data ranks "
        "together");
  if (routing.balancing_loss > 0) list.push_back("--moe-aux-loss-coeff " + number_text(routing.balancing_loss));
  if (step.optimizer.router_bias_speed > 0) {
    list.emplace_back("--moe-router-enable-expert-bias");
    list.push_back("--moe-router-bias-update-rate " + number_text(step.optimizer.router_bias_speed));
  }
  if (routing.capacity > 0) {
    list.push_back("--moe-expert-capacity-factor " + number_text(routing.capacity));
    list.emplace_back("--moe-token-drop-policy position");
  }
  if (routing.forced) list.emplace_back("--moe-router-force-load-balancing");
  list.emplace_back("--moe-grouped-gemm");
  if (routing.forced || routing.balancing_loss > 0 || step.optimizer.router_bias_speed > 0) return;
  launch.to_add.emplace_back(
      "--moe-router-load-balancing-type and --moe-aux-loss-coeff, if the experts shall be balanced: the prediction "
      "takes them to be");
}

// Llama 3.1 and 3.2 stretch long wavelengths (rope_type llama3 in their config.json).
bool scales_rotary_angles(std::string_view model) {
  return model.starts_with("llama-3.1") || model.starts_with("llama-3.2");
}

// Megatron-LM rounds the product of the width and this share down. A quotient may be a little too small for that.
std::string rotary_share(const Block& block) {
  const auto width = static_cast<double>(block.head_dim), turned = static_cast<double>(block.rope_head_dim);
  const double share = turned / width;
  return number_text(std::floor(share * width) == turned ? share : (turned + 0.5) / width);
}

// "[1]*3+[0]*2": runs of equal numbers.
std::string python_list(const std::vector<bool>& ones) {
  std::string list;
  for (auto at = ones.begin(); at != ones.end();) {
    const auto end = std::find(at, ones.end(), !*at);
    list += (list.empty() ? "" : "+") + std::string(*at ? "[1]*" : "[0]*") + text(end - at);
    at = end;
  }
  return list;
}

// Megatron-LM's window is of the tokens before a token, Slipway's counts the token too.
void megatron_windows(const Model& model, LaunchArguments& launch) {
  std::int64_t window = 0;
  std::vector<bool> windowed, full;
  bool has_sinks = false;
  for (const BlockRun& run : model.runs) {
    const Block& block = run.block;
    if (block.kind != BlockKind::transformer) continue;
    has_sinks = has_sinks || block.sinks;
    window = std::max(window, block.window);
    windowed.insert(windowed.end(), static_cast<std::size_t>(run.count), block.window > 0);
    full.insert(full.end(), static_cast<std::size_t>(run.count), block.window == 0);
  }
  if (has_sinks) launch.arguments.emplace_back("--softmax-type learnable");
  if (window == 0) return;
  launch.arguments.push_back("--window-size " + text(window - 1) + ",0");
  const std::optional<std::int64_t> every = period_of_last(full);
  if (every != 0)
    launch.arguments.push_back("--window-attn-skip-freq " + (every ? text(*every) : "'" + python_list(windowed) + "'"));
}

void megatron_attention(const Block& block, LaunchArguments& launch) {
  auto& list = launch.arguments;
  if (is_latent(block)) {
    list.emplace_back("--multi-latent-attention");
    if (block.q_latent > 0) list.push_back("--q-lora-rank " + text(block.q_latent));
    list.push_back("--kv-lora-rank " + text(block.kv_latent));
    list.push_back("--qk-head-dim " + text(block.head_dim - block.rope_head_dim));
    list.push_back("--qk-pos-emb-head-dim " + text(block.rope_head_dim));
    list.push_back("--v-head-dim " + text(value_dim(block)));
    list.emplace_back("--qk-layernorm");  // of the latents
    return;
  }
  if (block.kv_heads != block.heads) {
    list.emplace_back("--group-query-attention");
    list.push_back("--num-query-groups " + text(block.kv_heads));
  }
  if (block.head_dim * block.heads != block.hidden) list.push_back("--kv-channels " + text(block.head_dim));
  if (block.rope_head_dim > 0) list.push_back("--rotary-percent " + rotary_share(block));
  if (block.qkv_bias) list.emplace_back("--add-qkv-bias");
  if (block.qk_norm) list.emplace_back("--qk-layernorm");
}

// With more tensor ranks than key-value heads, Slipway's ranks have copies of heads.
void megatron_copies(const Scenario& s, LaunchArguments& launch) {
  if (kv_copies(s.step.model, s.step.layout.tensor).empty()) return;
  launch.refused.emplace_back(
      "copies of key-value heads: Megatron-LM cuts their rows too, and gathers the projection over the tensor group");
}
void torchtitan_copies(const Scenario& s, LaunchArguments& launch) {
  if (kv_copies(s.step.model, s.step.layout.tensor).empty()) return;
  launch.refused.emplace_back(
      "copies of key-value heads: torchtitan gives each tensor rank whole ones of its own; set layout.tensor lower");
}

// Layers of other kinds than Megatron-LM's arguments name.
void refuse_layers(const Model& model, LaunchArguments& launch) {
  const auto any = [&](auto of) {
    return std::any_of(model.runs.begin(), model.runs.end(), [&](const BlockRun& run) { return of(run.block); });
  };
  const std::pair<const char*, bool> unknown[] = {
      {"model.window_chunks: attention within chunks", any([](const Block& b) { return b.window_chunks; })},
      {"model.window_rope_theta: layers with other rotary angles", any([&](const Block& b) {
         return b.kind == BlockKind::transformer && b.rope_theta != model.runs[1].block.rope_theta;
       })},
      {"model.norms: norms of a sub-layer's result", any([](const Block& b) { return b.norms != NormPlace::input; })},
      {"model.parallel: an MLP beside attention", any([](const Block& b) { return b.parallel != Parallel::none; })},
      {"model.mlp: GEGLU or ReLU", any([](const Block& b) {
         return b.kind == BlockKind::transformer && (b.mlp == Mlp::geglu || b.mlp == Mlp::relu);
       })},
      {"model.positions: alibi, or none in some layers", any([](const Block& b) {
         return b.kind == BlockKind::transformer && (b.positions == Positions::alibi || b.positions == Positions::none);
       })},
      {"model.out_bias or mlp_bias: biases of a part of a layer",
       any([](const Block& b) { return b.out_bias || b.mlp_bias; })},
      {"model.embedding_norm: a norm behind the embedding", any([](const Block& b) { return b.embedding_norm; })},
      {"model.qk_norm_over: norms of all heads at once, or without weights",
       any([](const Block& b) { return b.qk_norm && b.qk_norm_over != QkNorm::head; })}};
  for (const auto& [words, has] : unknown)
    if (has) launch.refused.push_back(std::string(words) + ": no argument of Megatron-LM is known for it");
}

// "[0]*3+[1]*58": which layers have experts.
std::string layers_with_experts(const Model& model) {
  std::vector<bool> with;
  for (const BlockRun& run : model.runs)
    if (run.block.kind == BlockKind::transformer)
      with.insert(with.end(), static_cast<std::size_t>(run.count), run.block.experts > 0);
  return python_list(with);
}

void megatron_model(const Scenario& s, LaunchArguments& launch) {
  const Model& model = *s.step.model;
  const Block& block = model.runs[1].block;
  const Block& last = model.runs[model.runs.size() - 2].block;
  const Block& head = model.runs.back().block;
  auto& list = launch.arguments;
  launch.program = model.family == Family::bert ? "pretrain_bert.py" : "pretrain_gpt.py";
  list = {"--num-layers " + text(layer_count(model)), "--hidden-size " + text(block.hidden),
          "--ffn-hidden-size " + text(block.ffn),     "--num-attention-heads " + text(block.heads),
          "--seq-length " + text(model.sequence),     "--max-position-embeddings " + text(model.sequence),
          "--vocab-size " + text(head.vocab)};
  // Megatron-LM pads it to a multiple of 128 x tensor; the planned one is padded already.
  if (head.vocab % (128 * s.step.layout.tensor) != 0) list.emplace_back("--make-vocab-size-divisible-by 1");
  megatron_attention(block, launch);
  megatron_windows(model, launch);
  if (block.mlp == Mlp::swiglu) list.emplace_back("--swiglu");
  if (block.mlp == Mlp::squared_relu) list.emplace_back("--squared-relu");
  if (block.norm == Norm::rms) list.emplace_back("--normalization RMSNorm");
  if (!block.bias) list.emplace_back("--disable-bias-linear");
  if (last.experts > 0) {
    megatron_experts(s.step, last, launch);
    if (block.experts == 0) list.push_back("--moe-layer-freq '(" + layers_with_experts(model) + ")'");
    if (last.scores == RouterScores::sigmoid) list.emplace_back("--moe-router-score-function sigmoid");
    if (last.score_scale != 1) list.push_back("--moe-router-topk-scaling-factor " + number_text(last.score_scale));
    if (last.expert_groups > 1) {
      list.push_back("--moe-router-num-groups " + text(last.expert_groups));
      list.push_back("--moe-router-group-topk " + text(last.groups_per_token));
    }
    if (last.shared_ffn > 0) list.push_back("--moe-shared-expert-intermediate-size " + text(last.shared_ffn));
  }
  if (head.predicted_tokens > 0) list.push_back("--mtp-num-layers " + text(head.predicted_tokens));
  refuse_layers(model, launch);
  megatron_copies(s, launch);
  list.push_back("--norm-epsilon " + number_text(block.norm_epsilon));
  if (block.positions == Positions::rotary) {
    list.emplace_back("--position-embedding-type rope");
    list.push_back("--rotary-base " + text(static_cast<std::int64_t>(block.rope_theta)));
  }
  if (scales_rotary_angles(model.name)) {
    list.emplace_back("--use-rope-scaling");
    if (model.name.starts_with("llama-3.2")) list.emplace_back("--rope-scaling-factor 32");
  }
  if (!head.tied) list.emplace_back("--untie-embeddings-and-output-weights");
}

void megatron_data_parallel(const Scenario& s, LaunchArguments& launch) {
  auto& list = launch.arguments;
  if (s.step.layout.data * s.step.layout.context == 1) return;
  list.emplace_back("--overlap-grad-reduce");
  if (s.step.layout.zero == 0) return;
  list.emplace_back("--use-distributed-optimizer");
  list.emplace_back("--overlap-param-gather");
  if (s.step.layout.replicate > 1)
    list.push_back("--num-distributed-optimizer-instances " + text(s.step.layout.replicate));
  if (s.step.layout.zero == 1) return;
  list.emplace_back("--use-megatron-fsdp");
  list.emplace_back(s.step.layout.zero == 2 ? "--data-parallel-sharding-strategy optim_grads"
                                            : "--data-parallel-sharding-strategy optim_grads_params");
  list.emplace_back("--no-gradient-accumulation-fusion");
  list.emplace_back("--ckpt-format fsdp_dtensor");
  if (s.step.layout.pipeline > 1)
    launch.refused.emplace_back("ZeRO 2 and 3 beside a pipeline: Megatron-FSDP may refuse it");
}

// Every setting of the scenario is passed, never left to the trainer's defaults. Slipway's defaults are passed visibly.
void megatron_training(const Scenario& s, LaunchArguments& launch) {
  const Optimizer& own = s.step.optimizer;
  auto& list = launch.arguments;
  list.insert(list.end(),
              {"--optimizer adam", "--adam-beta1 " + number_text(own.beta1), "--adam-beta2 " + number_text(own.beta2),
               "--adam-eps " + number_text(own.epsilon), "--weight-decay " + number_text(own.weight_decay),
               "--lr " + number_text(own.lr), "--clip-grad " + number_text(s.step.clip_norm), "--attention-dropout 0",
               "--hidden-dropout 0"});
  megatron_learning_rate(s, launch);
  launch.to_add.emplace_back("--tokenizer-type and --tokenizer-model");
  launch.to_add.emplace_back("--data-path and --split, or --mock-data");
  launch.to_add.emplace_back("--save, --load and --save-interval, and --seed");
  if (own.lr == Optimizer{}.lr)
    launch.to_add.push_back("your own --lr: " + number_text(own.lr) + " is slipway's default of run.optimizer.lr");
  if (s.step.clip_norm == 0)
    launch.to_add.emplace_back(
        "your own --clip-grad, if any: run.clip_norm is 0, which is off (Megatron-LM's default is 1)");
}

// Megatron-LM's groups have one size, and a shorter last one of no fewer micro-batches than there are pipeline ranks.
void megatron_groups(const Scenario& s, LaunchArguments& launch) {
  if (s.step.layout.pipeline == 1 || s.step.actions != nullptr || !schedule_of(s.step).has_groups) return;
  const std::vector<int> groups = groups_of(schedule_shape(s.step));
  const int size = groups.front(), pipeline = s.step.layout.pipeline;
  if (s.step.layout.chunks == 1 || size == pipeline) return;
  launch.arguments.push_back("--microbatch-group-size-per-virtual-pipeline-stage " + text(size));
  const auto unlike = [&](int each) { return each != size; };
  if (groups.back() < pipeline || std::any_of(groups.begin(), groups.end() - 1, unlike))
    launch.refused.push_back("groups of micro-batches of several sizes; set schedule.group to a number from " +
                             text(pipeline) + " on that Megatron-LM takes");
}

// Ranks of experts, and stages. A layout string names each stage; equal ones need a number alone.
void megatron_degrees(const Scenario& s, LaunchArguments& launch) {
  const Layout& l = s.step.layout;
  auto& list = launch.arguments;
  if (has_experts(s.step.model)) {
    list.push_back("--expert-model-parallel-size " + text(l.expert));
    list.push_back("--expert-tensor-parallel-size " + text(l.expert_tensor == 0 ? l.tensor : l.expert_tensor));
    const Dispatcher dispatcher = l.dispatcher;
    const bool is_flex = dispatcher == Dispatcher::deepep || dispatcher == Dispatcher::hybridep;
    list.emplace_back(std::string("--moe-token-dispatcher-type ") + (is_flex ? "flex" : name_of(dispatcher)));
    if (is_flex) list.emplace_back(std::string("--moe-flex-dispatcher-backend ") + name_of(dispatcher));
  }
  list.push_back("--pipeline-model-parallel-size " + text(l.pipeline));
  if (l.pipeline > 1 && is_uneven(s))
    list.push_back("--pipeline-model-parallel-layout '" +
                   pipeline_layout(layers_per_stage(s), s.step.model->runs.back().block.predicted_tokens) + "'");
  else if (l.chunks > 1)
    list.push_back("--num-virtual-stages-per-pipeline-rank " + text(l.chunks));
}

// Kernels of a tensor or context group must reach the GPU in the order of their launch before Blackwell, where one queue
// keeps it. Megatron-FSDP wants several.
void megatron_environment(const Scenario& s, LaunchArguments& launch) {
  const Generation generation = s.cluster.groups.front().machine.generation;
  const bool ordered = s.step.layout.tensor > 1 || s.step.layout.context > 1;
  if (ordered && generation != Generation::blackwell && s.step.layout.zero < 2)
    launch.environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS=1");
}

// " attn moe_router"
template <const auto& names, typename Set>
std::string words_in(const Set& set) {
  std::string words;
  for (const auto& each : names)
    if (set.has(each.value)) words += std::string(" ") + each.name;
  return words;
}

void megatron_levers(const Scenario& s, LaunchArguments& launch) {
  const Levers& levers = s.step.levers;
  auto& list = launch.arguments;
  if (!levers.recomputed.empty())
    list.push_back("--recompute-granularity selective --recompute-modules" +
                   words_in<recomputed_module_names>(levers.recomputed));
  if (levers.graphs.has(GraphScope::full))
    list.emplace_back("--cuda-graph-impl full_iteration");
  else if (!levers.graphs.empty())
    list.push_back("--cuda-graph-impl transformer_engine --cuda-graph-modules" +
                   words_in<graph_scope_names>(levers.graphs));
  if (levers.offloaded_layers > 0)
    launch.missing.emplace_back(
        "schedule.offload_layers: cpu_offloading_num_layers is a setting of Megatron-Bridge's model");
  if (levers.offloaded.has(OffloadedInput::layer_inputs))
    launch.refused.emplace_back("schedule.offload layer_inputs: Megatron-LM offloads inputs of modules");
  else if (!levers.offloaded.empty())
    list.push_back("--fine-grained-activation-offloading --offload-modules" +
                   words_in<offloaded_input_names>(levers.offloaded));
  if (const Dtype moments = s.step.optimizer.moment_dtype; moments != Dtype::float32) {
    const std::string word = moments == Dtype::bfloat16 ? "bf16" : "fp16";
    list.push_back("--use-precision-aware-optimizer --exp-avg-dtype " + word + " --exp-avg-sq-dtype " + word);
  }
  if (const double on_host = s.step.optimizer.offload_fraction; on_host > 0) {
    list.push_back("--optimizer-cpu-offload --optimizer-offload-fraction " + number_text(on_host));
    // Its states on hosts are those of this optimizer (megatron/training/arguments.py).
    if (s.step.optimizer.moment_dtype == Dtype::float32) list.emplace_back("--use-precision-aware-optimizer");
    if (s.step.narrow != NarrowRecipe::none && s.step.narrow != NarrowRecipe::delayed)
      launch.refused.emplace_back(
          "run.optimizer.offload_fraction with run.fp8: Megatron-LM's optimizer on hosts knows the recipe delayed "
          "alone");
  }
  if (levers.lora.rank > 0) launch.refused.emplace_back("run.lora: Megatron-LM has no adapters, Megatron-Bridge does");
}

// What the model's config.json changes in numbers alone has arguments of its own, if any.
void megatron_config_fields(const Model& model, LaunchArguments& launch) {
  for (const std::string& field : model.only_predicted)
    if (!(scales_rotary_angles(model.name) && field.starts_with("rope_")))
      launch.missing.push_back("'" + field +
                               "' of the model's config: it changes numbers, and no argument is given for it");
}

void megatron_narrow_messages(const Scenario& s, LaunchArguments& launch) {
  const NarrowHabits habits = narrow_habits(s.step);
  if (habits.gathers_weights) {
    launch.arguments.emplace_back(s.step.narrow == NarrowRecipe::nvfp4 ? "--fp4-param-gather" : "--fp8-param-gather");
    if (s.step.narrow == NarrowRecipe::mxfp8) launch.arguments.emplace_back("--reuse-grad-buf-for-mxfp8-param-ag");
  }
  if (habits.dispatches)
    launch.refused.emplace_back("run.fp8_dispatch: Megatron-LM's dispatchers send tokens in bfloat16");
}

LaunchArguments megatron(const Scenario& s) {
  LaunchArguments launch;
  launch.version = megatron_version;
  megatron_model(s, launch);
  megatron_config_fields(s.step.model, launch);
  const Layout& l = s.step.layout;
  auto& list = launch.arguments;
  list.push_back("--tensor-model-parallel-size " + text(l.tensor));
  if (l.sequence_parallel) list.emplace_back("--sequence-parallel");
  if (has_experts(s.step.model) && l.tensor > 1 && !l.sequence_parallel)
    launch.refused.emplace_back("experts and tensor parallel without sequence parallel: Megatron-LM wants both");
  megatron_degrees(s, launch);
  megatron_groups(s, launch);
  megatron_environment(s, launch);
  if (s.step.schedule == "1f1b-merged") list.emplace_back("--overlap-moe-expert-parallel-comm");
  if (s.step.delay_weight_grads) list.emplace_back("--delay-wgrad-compute");
  if (s.step.overlap_tensor) list.emplace_back("--tp-comm-overlap");
  list.push_back("--context-parallel-size " + text(l.context));
  if (l.context > 1)
    list.emplace_back(l.context_exchange == ContextExchange::ring ? "--cp-comm-type p2p" : "--cp-comm-type all_gather");
  list.push_back("--micro-batch-size " + text(s.step.micro_batch));
  list.push_back("--global-batch-size " + text(s.step.global_batch));
  megatron_data_parallel(s, launch);
  megatron_levers(s, launch);
  if (s.step.recompute == Recompute::selective) list.emplace_back("--recompute-granularity selective");
  if (s.step.recompute == Recompute::full)
    list.emplace_back("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  if (s.step.dtype == Dtype::bfloat16) list.emplace_back("--bf16");
  if (s.step.dtype == Dtype::float16) list.emplace_back("--fp16");
  if (s.step.gradient_dtype == Dtype::float32)
    list.emplace_back("--accumulate-allreduce-grads-in-fp32");
  else if (s.step.gradient_dtype == Dtype::bfloat16)
    list.emplace_back("--grad-reduce-in-bf16");
  if (s.step.narrow == NarrowRecipe::nvfp4)
    list.emplace_back("--fp4-format e2m1 --fp4-recipe nvfp4");
  else if (s.step.narrow != NarrowRecipe::none)
    list.push_back(std::string("--fp8-format hybrid --fp8-recipe ") + name_of(s.step.narrow));
  if (s.step.narrow != NarrowRecipe::none) megatron_narrow_messages(s, launch);
  if (s.step.dtype == Dtype::float64)
    launch.missing.emplace_back("float64: Megatron-LM trains in float32, without --bf16 and --fp16");
  megatron_training(s, launch);
  if (l.pipeline > 1 && s.step.schedule != "1f1b" && s.step.schedule != "interleaved-1f1b" &&
      (s.step.schedule != "1f1b-merged" || l.chunks == 1))
    launch.refused.push_back("the schedule " + s.step.schedule + ": Megatron-LM runs 1F1B, interleaved with chunks");
  if (!l.placement.empty()) launch.missing.emplace_back(placement_words);
  if (s.step.kernels != Kernels::flash2_rmsnorm)
    launch.missing.emplace_back("schedule.kernels: the kernels are those that Transformer Engine chooses");
  return launch;
}

// Are the blocks those of the built-in model of that name? A scenario may have laid other shapes or features over them.
bool is_built_in(const Model& model) {
  Defects defects;
  const std::string text = fmt::format("{{model: {{name: {}, sequence: {}}}}}", model.name, model.sequence);
  std::optional<Value> document = parse_document(text, "the built-in model", defects);
  if (!document) return false;
  Settings settings(std::move(*document), scenario_keys(), defects);
  const std::optional<Model> built_in = load_model(settings, "");
  return built_in && built_in->runs == model.runs;
}

// A config of the registry gives the model; overrides cannot.
void torchtitan_model(const Scenario& s, LaunchArguments& launch) {
  const Model& model = s.step.model;
  const TorchtitanModel* entry = is_built_in(model) ? torchtitan_entry_of(model.name) : nullptr;
  if (entry == nullptr) {
    launch.to_add.push_back("--module and --config: no config of torchtitan's registry is known to have the model " +
                            model.name + "; write one");
    if (has_experts(model))
      launch.refused.emplace_back("experts: it is unknown which of torchtitan's models has the same experts");
    return;
  }
  launch.arguments.push_back("--module " + std::string(entry->name));
  launch.arguments.push_back("--config " + std::string(entry->config));
}

// Its class of PyTorch; empty: it has none, and the order of passes is given as a CSV.
std::string pipeline_class(const std::string& schedule) {
  const std::pair<const char*, const char*> classes[] = {{"1f1b", "1F1B"},
                                                         {"gpipe", "GPipe"},
                                                         {"interleaved-1f1b", "Interleaved1F1B"},
                                                         {"zb-v", "ZBVZeroBubble"},
                                                         {"dualpipe-v", "DualPipeV"}};
  for (const auto& [ours, theirs] : classes)
    if (schedule == ours) return theirs;
  return "";
}

// "tok_embeddings,layers.0,layers.1 layers.2,layers.3,norm,lm_head"
std::string module_names(const std::vector<int>& layers) {
  std::string names;
  int layer = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    std::string part = stage == 0 ? ",tok_embeddings" : "";
    for (int i = 0; i < layers[stage]; ++i) part += ",layers." + std::to_string(layer++);
    if (stage + 1 == layers.size()) part += ",norm,lm_head";
    names += (stage == 0 ? "" : " ") + (part.empty() ? part : part.substr(1));
  }
  return names;
}

void torchtitan_pipeline(const Scenario& s, LaunchArguments& launch) {
  auto& list = launch.arguments;
  const std::vector<int> layers = layers_per_stage(s);
  const bool from_csv = s.step.actions != nullptr;
  const std::string name = from_csv ? "" : pipeline_class(s.step.schedule);
  list.push_back("--parallelism.pipeline_parallel_schedule " + (name.empty() ? "PipelineScheduleMulti" : name));
  if (name.empty()) {
    list.emplace_back("--parallelism.pipeline_parallel_schedule_csv schedule.csv");
    launch.to_add.emplace_back("the file schedule.csv: `slipway show SCENARIO --csv` prints it");
  }
  if (s.step.schedule == "chimera" || s.step.slices > 1)
    launch.refused.push_back("the schedule " + s.step.schedule +
                             ": it has two copies of the model, or slices of sequences");
  if (std::find(layers.begin() + 1, layers.end() - 1, 0) != layers.end() - 1)
    launch.refused.emplace_back("a stage without layers: its list of modules would be empty");
  list.push_back("--parallelism.module_fqns_per_model_part " + module_names(layers));
  list.push_back("--parallelism.pipeline_parallel_microbatch_size " + text(s.step.micro_batch));
}

void torchtitan_data(const Scenario& s, LaunchArguments& launch) {
  const Layout& l = s.step.layout;
  auto& list = launch.arguments;
  const bool shards = l.zero >= 2 && l.data > 1;
  list.push_back("--parallelism.data_parallel_shard_degree " + text(shards ? l.data / l.replicate : 1));
  list.push_back("--parallelism.data_parallel_replicate_degree " + text(shards ? l.replicate : l.data));
  if (shards)
    list.emplace_back(std::string("--parallelism.fsdp_reshard_after_forward ") + (l.zero == 3 ? "always" : "never"));
  if (l.zero == 1)
    launch.refused.emplace_back("ZeRO 1: given as replicas; torchtitan shards weights as well or nothing");
  if (!has_experts(s.step.model)) return;
  list.push_back("--parallelism.expert_parallel_degree " + text(l.expert));
  if (l.expert > 1 && (l.expert_tensor == 0 ? l.tensor : l.expert_tensor) != 1)
    launch.refused.emplace_back(
        "experts cut over a tensor group: torchtitan keeps each expert whole; set layout.expert_tensor to 1");
  if (s.step.routing.balancing_loss > 0 || s.step.routing.capacity > 0 || s.step.optimizer.router_bias_speed > 0)
    launch.refused.emplace_back(
        "run.balancing_loss, run.expert_capacity and run.router_bias_speed: torchtitan's config of the model sets how "
        "experts are balanced");
}

void torchtitan_optimizer_arguments(const Scenario& s, LaunchArguments& launch) {
  auto& list = launch.arguments;
  const Optimizer& own = s.step.optimizer;
  list.push_back(torchtitan_optimizer + "betas " + number_text(own.beta1) + " " + number_text(own.beta2));
  list.push_back(torchtitan_optimizer + "eps " + number_text(own.epsilon));
  list.push_back(torchtitan_optimizer + "weight_decay " + number_text(own.weight_decay));
  if (s.step.clip_norm > 0) list.push_back("--training.max_norm " + number_text(s.step.clip_norm));
  if (s.step.clip_norm == 0) launch.missing.emplace_back("no clipping: training.max_norm has a default");
}

// A converter is an entry of the model's configuration, which no argument adds (torchtitan/components/quantization).
// Those of 0.3.0 have scales per row, per 32 numbers (MX) and NVFP4's.
void torchtitan_narrow(const Step& step, LaunchArguments& launch) {
  if (step.gradient_dtype != Dtype::float32 && step.dtype != Dtype::float64)
    launch.refused.emplace_back("run.gradient_dtype: torchtitan reduces gradients in float32");
  const NarrowRecipe recipe = step.narrow;
  if (recipe == NarrowRecipe::none) return;
  if (recipe != NarrowRecipe::mxfp8 && recipe != NarrowRecipe::nvfp4)
    return launch.refused.push_back(std::string("run.fp8 ") + name_of(recipe) +
                                    ": torchtitan's converters have scales per row, mxfp8 or nvfp4");
  launch.missing.push_back(std::string("run.fp8 ") + name_of(recipe) +
                           ": torchtitan converts Linears by an entry of its own configuration, " +
                           (recipe == NarrowRecipe::mxfp8 ? "MXFP8LinearConverter" : "NVFP4LinearConverter"));
}

LaunchArguments torchtitan(const Scenario& s) {
  const Layout& l = s.step.layout;
  LaunchArguments launch;
  launch.version = torchtitan_version;
  launch.program = "torchtitan/train.py";
  auto& list = launch.arguments;
  torchtitan_model(s, launch);
  list.push_back("--parallelism.tensor_parallel_degree " + text(l.tensor));
  list.push_back("--parallelism.pipeline_parallel_degree " + text(l.pipeline));
  list.push_back("--parallelism.context_parallel_degree " + text(l.context));
  if (l.tensor > 1)
    list.emplace_back(l.sequence_parallel ? "--parallelism.enable_sequence_parallel"
                                          : "--parallelism.no_enable_sequence_parallel");
  torchtitan_copies(s, launch);
  torchtitan_data(s, launch);
  if (l.pipeline > 1) torchtitan_pipeline(s, launch);
  // Of a pipeline its whole share of the batch, which it cuts into micro-batches.
  list.push_back("--training.local_batch_size " +
                 text(l.pipeline > 1 ? s.step.global_batch / l.data : s.step.micro_batch));
  list.push_back("--training.global_batch_size " + text(s.step.global_batch));
  list.push_back("--training.seq_len " + text(s.step.model->sequence));
  list.push_back("--training.steps " + text(torchtitan_steps(s)));
  torchtitan_learning_rate(s, launch);
  torchtitan_optimizer_arguments(s, launch);
  list.push_back(std::string("--training.mixed_precision_param ") + name_of(s.step.dtype));
  torchtitan_narrow(s.step, launch);
  if (!s.step.levers.recomputed.empty())
    launch.refused.emplace_back(
        "schedule.recompute_modules: torchtitan recomputes whole layers, or operators by a policy");
  if (s.step.levers.lora.rank > 0)
    launch.missing.emplace_back("run.lora: torchtitan has adapters as an entry of its own configuration");
  if (s.step.optimizer.moment_dtype != Dtype::float32)
    launch.refused.emplace_back("run.optimizer.moment_dtype: torchtitan keeps moments in the dtype of the weights");
  if (s.step.optimizer.offload_fraction > 0)
    launch.refused.emplace_back("run.optimizer.offload_fraction: torchtitan keeps optimizer states on the GPU");
  if (s.step.delay_weight_grads)
    launch.refused.emplace_back("schedule.delay_wgrad: PyTorch's pairs have whole backwards");
  if (!s.step.levers.graphs.empty())
    launch.missing.emplace_back("schedule.cuda_graphs: torchtitan has them by a pass of its compiler");
  list.emplace_back("--training.disable_cuda_graphs");  // priced without them
  launch.to_add.emplace_back("--dataloader.dataset and --hf_assets_path");
  if (s.step.recompute == Recompute::selective)
    launch.missing.emplace_back("recomputation of attention scores only: given as none; fused attention keeps none");
  if (l.context > 1)
    launch.missing.emplace_back("the way keys and values travel: set by torchtitan's context parallel");
  // A sub-command of the parser, so it is last.
  list.emplace_back(s.step.recompute == Recompute::full ? "activation-checkpoint:full" : "activation-checkpoint:none");
  return launch;
}

}  // namespace

std::optional<Trainer> trainer_named(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (const auto trainer = value_in(trainer_names, *name)) return trainer;
  std::vector<std::string> names;
  for (const auto& [trainer, its_name] : trainer_names) names.emplace_back(its_name);
  throw UsageError("--emit " + *name + " is unknown" + suggestion(*name, names, "--emit ") +
                   "; allowed: " + all_names(trainer_names));
}

void refuse_what_trainer_lacks(const Scenario& scenario, Trainer trainer) {
  if (trainer != Trainer::torchtitan || scenario.step.dtype == Dtype::float32 || scenario.step.dtype == Dtype::bfloat16)
    return;
  throw UsageError(std::string("--emit torchtitan: run.dtype is ") + name_of(scenario.step.dtype) +
                   ", in which it does not train" +
                   (scenario.step.dtype == Dtype::float16 ? " (it scales no loss)" : "") +
                   "; allowed: bfloat16, float32; set run.dtype to one of them, or leave --emit out");
}

LaunchArguments launch_arguments(const Scenario& scenario, Trainer trainer) {
  return trainer == Trainer::megatron ? megatron(scenario) : torchtitan(scenario);
}

}  // namespace slipway::scenarios
