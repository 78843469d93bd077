#include "scenarios/plan/launch_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/language/nearest.h"
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
  list.push_back("--optimizer.lr " + number_text(own.lr));
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

// A scenario as the command line of another trainer. Options of Megatron-LM (Megatron-Core 0.12 and later:
// megatron/training/arguments.py) and torchtitan (torchtitan/config/job_config.py, 2025).

namespace {

template <typename Number>
std::string text(Number number) {
  return std::to_string(number);
}

bool is_uneven(const Scenario& s) {
  return s.step.layout.split != SplitKind::even || layer_count(s.step.model) % stage_count(s.step.layout) != 0;
}

const char* placement_words =
    "the order of nodes (layout.placement): list the hosts in this order where ranks are started";
const char* split_words = "a split of the layers that is not equal for all stages; check the trainer's own";

// As in both engines: probabilities of the chosen experts only, no dropped tokens, no balancing loss.
void megatron_experts(const Block& block, LaunchArguments& launch) {
  auto& list = launch.arguments;
  list.push_back("--num-experts " + text(block.experts));
  list.push_back("--moe-ffn-hidden-size " + text(block.ffn));
  list.push_back("--moe-router-topk " + text(block.experts_per_token));
  list.emplace_back("--moe-router-load-balancing-type none");
  list.emplace_back("--moe-grouped-gemm");
  launch.to_add.emplace_back(
      "--moe-router-load-balancing-type and --moe-aux-loss-coeff, if the experts shall be balanced: the prediction "
      "takes them to be");
}

void megatron_model(const Scenario& s, LaunchArguments& launch) {
  const Block& block = s.step.model->runs[1].block;
  const Block& head = s.step.model->runs.back().block;
  auto& list = launch.arguments;
  launch.program = s.step.model->family == Family::bert ? "pretrain_bert.py" : "pretrain_gpt.py";
  list = {"--num-layers " + text(layer_count(s.step.model)),
          "--hidden-size " + text(block.hidden),
          "--ffn-hidden-size " + text(block.ffn),
          "--num-attention-heads " + text(block.heads),
          "--seq-length " + text(s.step.model->sequence),
          "--max-position-embeddings " + text(s.step.model->sequence),
          "--vocab-size " + text(head.vocab)};
  if (block.kv_heads != block.heads) {
    list.emplace_back("--group-query-attention");
    list.push_back("--num-query-groups " + text(block.kv_heads));
  }
  if (block.head_dim * block.heads != block.hidden) list.push_back("--kv-channels " + text(block.head_dim));
  if (block.mlp == Mlp::swiglu) list.emplace_back("--swiglu");
  if (block.norm == Norm::rms) list.emplace_back("--normalization RMSNorm");
  if (!block.bias) list.emplace_back("--disable-bias-linear");
  if (block.qkv_bias) list.emplace_back("--add-qkv-bias");
  if (block.qk_norm) list.emplace_back("--qk-layernorm");
  if (block.experts > 0) megatron_experts(block, launch);
  list.push_back("--norm-epsilon " + number_text(block.norm_epsilon));
  if (block.positions == Positions::rotary) {
    list.emplace_back("--position-embedding-type rope");
    list.push_back("--rotary-base " + text(static_cast<std::int64_t>(block.rope_theta)));
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

LaunchArguments megatron(const Scenario& s) {
  LaunchArguments launch;
  megatron_model(s, launch);
  const Layout& l = s.step.layout;
  auto& list = launch.arguments;
  list.push_back("--tensor-model-parallel-size " + text(l.tensor));
  if (l.sequence_parallel) list.emplace_back("--sequence-parallel");
  if (has_experts(s.step.model) && l.tensor > 1 && !l.sequence_parallel)
    launch.refused.emplace_back("experts and tensor parallel without sequence parallel: Megatron-LM wants both");
  list.push_back("--pipeline-model-parallel-size " + text(l.pipeline));
  if (l.chunks > 1) list.push_back("--num-virtual-stages-per-pipeline-rank " + text(l.chunks));
  megatron_groups(s, launch);
  if (s.step.schedule == "1f1b-merged") list.emplace_back("--overlap-moe-expert-parallel-comm");
  if (s.step.overlap_tensor) list.emplace_back("--tp-comm-overlap");
  list.push_back("--context-parallel-size " + text(l.context));
  if (l.context > 1)
    list.emplace_back(l.context_exchange == ContextExchange::ring ? "--cp-comm-type p2p" : "--cp-comm-type all_gather");
  list.push_back("--micro-batch-size " + text(s.step.micro_batch));
  list.push_back("--global-batch-size " + text(s.step.global_batch));
  megatron_data_parallel(s, launch);
  if (s.step.recompute == Recompute::selective) list.emplace_back("--recompute-granularity selective");
  if (s.step.recompute == Recompute::full)
    list.emplace_back("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  if (s.step.dtype == Dtype::bfloat16) list.emplace_back("--bf16");
  if (s.step.dtype == Dtype::float16) list.emplace_back("--fp16");
  if (s.step.dtype == Dtype::float64)
    launch.missing.emplace_back("float64: Megatron-LM trains in float32, without --bf16 and --fp16");
  megatron_training(s, launch);
  if (l.pipeline > 1 && s.step.schedule != "1f1b" && s.step.schedule != "interleaved-1f1b" &&
      (s.step.schedule != "1f1b-merged" || l.chunks == 1))
    launch.refused.push_back("the schedule " + s.step.schedule + ": Megatron-LM runs 1F1B, interleaved with chunks");
  if (is_uneven(s)) launch.refused.emplace_back(split_words);
  if (!l.placement.empty()) launch.missing.emplace_back(placement_words);
  if (s.step.kernels != Kernels::flash2_rmsnorm)
    launch.missing.emplace_back("schedule.kernels: the kernels are those that Transformer Engine chooses");
  return launch;
}

// The trainer's own list of models decides about blocks. Its README of qwen3 names FSDP, tensor parallel and replicas.
void torchtitan_model(const Scenario& s, LaunchArguments& launch) {
  if (s.step.model->runs[1].block.experts > 0)
    launch.refused.emplace_back("experts: it is unknown which of torchtitan's models has the same experts");
  if (!s.step.model->runs[1].block.qk_norm) {
    launch.to_add.push_back("--model.name and --model.flavor: the model " + s.step.model->name);
    return;
  }
  launch.arguments.emplace_back("--model.name qwen3");
  launch.to_add.push_back("--model.flavor: the model " + s.step.model->name +
                          ", among those of qwen3, which have norms of query and key");
  if (s.step.layout.pipeline > 1 || s.step.layout.context > 1)
    launch.refused.emplace_back("pipeline or context parallel of qwen3: torchtitan may not have it for this model");
}

LaunchArguments torchtitan(const Scenario& s) {
  const Layout& l = s.step.layout;
  LaunchArguments launch;
  launch.program = "torchtitan/train.py";
  auto& list = launch.arguments;
  const bool shards = l.zero >= 2 && l.data > 1;
  list = {"--parallelism.tensor_parallel_degree " + text(l.tensor),
          "--parallelism.pipeline_parallel_degree " + text(l.pipeline),
          "--parallelism.context_parallel_degree " + text(l.context),
          "--parallelism.data_parallel_shard_degree " + text(shards ? l.data : 1),
          "--parallelism.data_parallel_replicate_degree " + text(shards ? 1 : l.data)};
  if (shards)
    list.emplace_back(std::string("--parallelism.fsdp_reshard_after_forward ") + (l.zero == 3 ? "always" : "never"));
  std::int64_t local_batch = s.step.micro_batch;
  if (l.pipeline > 1) {
    const bool gpipe = s.step.schedule == "gpipe", interleaved = s.step.schedule == "interleaved-1f1b";
    list.emplace_back(std::string("--parallelism.pipeline_parallel_schedule ") + (gpipe         ? "GPipe"
                                                                                  : interleaved ? "Interleaved1F1B"
                                                                                                : "1F1B"));
    list.push_back("--parallelism.pipeline_parallel_microbatch_size " + text(local_batch));
    local_batch = s.step.global_batch / l.data;  // per pipeline; the trainer cuts it into micro-batches
    if (!gpipe && !interleaved && s.step.schedule != "1f1b")
      launch.refused.push_back("the schedule " + s.step.schedule + ": given as 1F1B");
    if (l.chunks > 1)
      launch.missing.push_back(text(l.chunks) + " chunks a rank: set parallelism.pipeline_parallel_layers_per_stage");
  }
  list.push_back("--training.local_batch_size " + text(local_batch));
  list.push_back("--training.global_batch_size " + text(s.step.global_batch));
  list.push_back("--training.seq_len " + text(s.step.model->sequence));
  list.push_back("--training.steps " + text(torchtitan_steps(s)));
  list.push_back("--optimizer.name AdamW");
  torchtitan_learning_rate(s, launch);
  list.push_back("--optimizer.beta1 " + number_text(s.step.optimizer.beta1));
  list.push_back("--optimizer.beta2 " + number_text(s.step.optimizer.beta2));
  list.push_back("--optimizer.eps " + number_text(s.step.optimizer.epsilon));
  list.push_back("--optimizer.weight_decay " + number_text(s.step.optimizer.weight_decay));
  if (s.step.clip_norm > 0) list.push_back("--training.max_norm " + number_text(s.step.clip_norm));
  list.push_back(std::string("--training.mixed_precision_param ") + name_of(s.step.dtype));
  list.emplace_back(std::string("--activation_checkpoint.mode ") +
                    (s.step.recompute == Recompute::full ? "full" : "none"));
  torchtitan_model(s, launch);
  launch.to_add.emplace_back("--training.dataset and --model.tokenizer_path");
  if (l.zero == 1)
    launch.refused.emplace_back("ZeRO 1: given as replicas; torchtitan shards weights as well or nothing");
  if (l.tensor > 1 && !l.sequence_parallel)
    launch.refused.emplace_back("tensor parallel without sequence parallel: torchtitan always has both");
  if (s.step.recompute == Recompute::selective)
    launch.missing.emplace_back("recomputation of attention scores only: given as none; fused attention keeps none");
  if (s.step.clip_norm == 0) launch.missing.emplace_back("no clipping: training.max_norm has a default");
  if (l.pipeline > 1 && is_uneven(s)) launch.refused.emplace_back(split_words);
  if (l.context > 1)
    launch.missing.emplace_back("the way keys and values travel: set by torchtitan's context parallel");
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
