// The keys of `run`: training and execution.
#include "scenarios/language/keys.h"

#include <span>
#include <string>
#include <string_view>

#include "models/model/dtype.h"
#include "scenarios/language/binding.h"
#include "scenarios/language/keys_fields.h"
#include "scenarios/language/nearest.h"

namespace slipway::scenarios {

namespace {

Names optimizers() { return {"adamw", "kfac"}; }
Names dtypes() { return {"float64", "float32", "bfloat16", "float16"}; }
Names moment_dtypes() { return {"float32", "bfloat16", "float16"}; }

// "bf16" and the like (models/model/dtype.h), and what other programs say.
std::string meant_dtype(std::string_view word) {
  if (const auto dtype = dtype_named(word); dtype && dtype != Dtype::tf32) return did_you_mean({name_of(*dtype)});
  if (word.starts_with("fp8") || word.starts_with("float8") || word.starts_with("e4m3") || word.starts_with("e5m2"))
    return "products in FP8 are run.fp8; weights and activations stay in bfloat16";
  if (word == "half") return did_you_mean({"float16"});
  if (word == "float" || word == "single") return did_you_mean({"float32"});
  return word == "double" ? did_you_mean({"float64"}) : "";
}

using enum KeyType;

// One key, one or two lines.
// clang-format off
const Key run_table[] = {
    {.path = "run", .type = section, .meaning = "training and execution"},
    {.path = "run.steps", .type = integer, .meaning = "steps that execute runs", .fallback = "10",
     .min = 1, .max = 1e9,
     .bound = field<run, &Run::steps>},
    {.path = "run.seed", .type = integer, .meaning = "seed of parameters and data order", .fallback = "0",
     .max = largest_int64,
     .bound = field<run, &Run::seed>},
    {.path = "run.routing_skew", .type = number,
     .meaning = "how unevenly tokens go to experts on other ranks: popularity of the i-th expert i^-skew; 0: evenly; of predictions",
     .fallback = "0", .max = 10,
     .bound = field<step, routing, &Routing::skew>},
    {.path = "run.routing_seed", .type = integer,
     .meaning = "seed of which experts of each layer are the popular ones",
     .fallback = "0", .max = largest_int64,
     .bound = field<step, routing, &Routing::seed>},
    {.path = "run.forced_routing", .type = flag,
     .meaning = "tokens take turns among the experts, whatever the router says (--moe-router-force-load-balancing of Megatron-Core)",
     .fallback = "false",
     .bound = field<step, routing, &Routing::forced>},
    {.path = "run.balancing_loss", .type = number,
     .meaning = "weight of the loss that balances the load of experts (Switch Transformer, equation 4); 0: none",
     .fallback = "0", .max = unbounded,
     .bound = field<step, routing, &Routing::balancing_loss>},
    {.path = "run.balancing_sequences", .type = integer,
     .meaning = "sequences that the loss balances together, 1 to schedule.micro_batch x layout.data (the global micro-batch); 0: schedule.micro_batch",
     .fallback = "0", .max = 1e9,
     .bound = field<step, routing, &Routing::balancing_sequences>},
    {.path = "run.expert_capacity", .type = number,
     .meaning = "rows that an expert takes of the tokens a rank routes, by those of balanced routing; further ones are dropped; 0: all",
     .fallback = "0", .max = unbounded,
     .bound = field<step, routing, &Routing::capacity>},
    {.path = "run.router_bias_speed", .type = number,
     .meaning = "how far a step moves the router's bias of each expert against its load (DeepSeek-V3, section 2.1.2: 0.001); 0: no bias",
     .fallback = "0", .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::router_bias_speed>},
    {.path = "run.data", .type = text,
     .meaning = "path of a text file, read as bytes, or of Megatron token files (PREFIX.bin beside PREFIX.idx), relative to the scenario",
     .names_file = true},
    {.path = "run.evaluation_data", .type = text,
     .meaning = "the same for held-out data, which schedule.fill evaluation uses when it is executed",
     .names_file = true},
    {.path = "run.checkpoint_steps", .type = integer,
     .meaning = "steps between two checkpoints in the run's folder, which execute --resume goes on from; 0 = none",
     .fallback = "0", .max = 1e9,
     .bound = field<run, &Run::checkpoint_steps>},
    {.path = "run.checkpoints_kept", .type = integer, .meaning = "number of newest checkpoints to keep",
     .fallback = "2", .min = 1, .max = 1e6,
     .bound = field<run, &Run::checkpoints_kept>},
    {.path = "run.heartbeat_seconds", .type = number,
     .meaning = "how long a rank may be stopped (SIGSTOP) before the run ends; one of another host counts as lost after 6 s of silence",
     .fallback = "10", .max = 1e6, .above_min = true, .unit = Unit::seconds,
     .bound = field<run, &Run::heartbeat_s>},
    {.path = "run.optimizer", .type = section, .meaning = "the optimizer and its numbers",
     .shorthand = "name"},
    {.path = "run.optimizer.name", .type = choice, .meaning = "the optimizer; kfac: natural gradient for the matrices of Transformer blocks, AdamW for the rest",
     .fallback = "adamw",
     .choices = optimizers,
     .bound = field<step, optimizer, &Optimizer::name>},
    {.path = "run.optimizer.refresh_steps", .type = integer,
     .meaning = "steps between two refreshes of K-FAC's inverses without bubble work; a refresh runs behind the last of them and serves the next ones",
     .derived = "filled: as the bubbles allow; else 1", .min = 1, .max = 1e5,
     .bound = field<step, optimizer, &Optimizer::refresh_steps>},
    {.path = "run.optimizer.damping", .type = number,
     .meaning = "damping of K-FAC's factors, divided between the two of a matrix (factored Tikhonov)", .fallback = "0.001",
     .max = unbounded, .above_min = true,
     .bound = field<step, optimizer, &Optimizer::damping>},
    {.path = "run.optimizer.lr", .type = number, .meaning = "the same as run.lr", .derived = "run.lr",
     .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::lr>},
    {.path = "run.optimizer.lr_warmup_samples", .type = integer,
     .meaning = "sequences over which the learning rate rises to run.lr, including those of the step; 0 = no warm-up",
     .fallback = "0", .max = largest_int64,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::warmup_samples>},
    {.path = "run.optimizer.lr_decay_style", .type = choice,
     .meaning = "decay of the learning rate after the warm-up: none, or down to min_lr along a line or half a cosine",
     .fallback = "constant", .choices = words_of<decay_names>,
     .bound = choice_field<decay_names, step, optimizer, rate, &LearningRateSchedule::decay>},
    {.path = "run.optimizer.lr_decay_samples", .type = integer,
     .meaning = "sequences from the beginning of the training, warm-up included, after which the rate is min_lr",
     .derived = "the end of the training: run.steps (plan --emit: run.tokens)", .min = 1, .max = largest_int64,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::decay_samples>},
    {.path = "run.optimizer.min_lr", .type = number, .meaning = "learning rate after the decay", .fallback = "0",
     .max = unbounded,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::least>},
    {.path = "run.optimizer.beta1", .type = number, .meaning = "decay of the first moment",
     .fallback = "0.9", .max = 0.999999,
     .bound = field<step, optimizer, &Optimizer::beta1>},
    {.path = "run.optimizer.beta2", .type = number, .meaning = "decay of the second moment",
     .fallback = "0.95", .max = 0.999999,
     .bound = field<step, optimizer, &Optimizer::beta2>},
    {.path = "run.optimizer.epsilon", .type = number, .meaning = "added to the root of the second moment",
     .fallback = "1e-8", .max = 1,
     .bound = field<step, optimizer, &Optimizer::epsilon>},
    {.path = "run.optimizer.weight_decay", .type = number, .meaning = "decoupled, on matrices only",
     .fallback = "0.1",
     .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::weight_decay>},
    {.path = "run.optimizer.moment_dtype", .type = choice,
     .meaning = "dtype of adamw's moments beside weights of 2 bytes and their float32 copy, as --exp-avg-dtype of Megatron-Core's precision-aware optimizer; of predictions",
     .fallback = "float32", .choices = moment_dtypes,
     .bound = moment_dtype_field},
    {.path = "run.optimizer.offload_fraction", .type = number,
     .meaning = "share of adamw's states that are in the host's memory and updated by its cores, as --optimizer-offload-fraction of Megatron-Core; of predictions",
     .fallback = "0", .max = 1,
     .bound = field<step, optimizer, &Optimizer::offload_fraction>},
    {.path = "run.lora", .type = section, .meaning = "low-rank adapters beside frozen weights (Hu et al. 2021); of predictions",
     .shorthand = "rank"},
    {.path = "run.lora.rank", .type = integer, .meaning = "rank of the adapters; 0: all weights are trained",
     .fallback = "0", .min = 0, .max = 1e5,
     .bound = field<step, levers, lora, &Lora::rank>},
    {.path = "run.lora.modules", .type = words, .meaning = "Linears that have an adapter: of queries, keys and values, of attention's result, of the MLP or the experts",
     .derived = "all four", .choices = words_of<lora_module_names>,
     .bound = words_field<lora_module_names, step, levers, lora, &Lora::modules>},
    {.path = "run.lr", .type = number, .meaning = "learning rate", .derived = "0.001", .max = unbounded,
     .writes_derived = true, .bound = field<step, optimizer, &Optimizer::lr>},
    {.path = "run.clip_norm", .type = number, .meaning = "global gradient norm; 0 = no clipping",
     .fallback = "0",
     .max = unbounded,
     .bound = field<step, &Step::clip_norm>},
    {.path = "run.tokens", .type = number,
     .meaning = "planned length of training, for days and cost; 0 = unknown",
     .fallback = "0", .max = unbounded, .unit = Unit::tokens,
     .bound = field<&Scenario::tokens>},
    {.path = "run.checkpoint_interval", .type = number,
     .meaning = "training between two checkpoints, in whole steps (`slipway goodput`)",
     .derived = "run.checkpoint_steps, else the best by Daly 2006", .max = 1e9, .above_min = true, .unit = Unit::seconds,
     .bound = field<faults, &FaultModel::checkpoint_interval>},
    {.path = "run.checkpoint_cost", .type = number, .meaning = "time that a checkpoint stops training",
     .derived = "needed by `slipway goodput`", .max = 1e9, .unit = Unit::seconds,
     .bound = field<faults, &FaultModel::checkpoint_cost>},
    {.path = "run.dtype", .type = choice, .meaning = "dtype of weights, activations and messages",
     .derived = "bfloat16 if all machines are GPUs that have it, else float16 if they have that, else float32", .choices = dtypes, .hint = meant_dtype,
     .writes_derived = true, .bound = dtype_field},
    {.path = "run.gradient_dtype", .type = choice,
     .meaning = "dtype in which gradients are summed over micro-batches and replicas; as --grad-reduce-in-bf16 of Megatron-Core",
     .derived = "as cluster.trainer does it, else float32; float64 with run.dtype float64", .choices = dtypes, .hint = meant_dtype,
     .writes_derived = true, .bound = gradient_dtype_field},
    {.path = "run.fp8", .type = choice,
     .meaning = "narrow format of the products of layers, as the recipes of Transformer Engine: delayed and tensorwise (FP8, a scale per tensor), blockwise (per 128 numbers), mxfp8 (per 32), nvfp4 (4 bits, per 16)",
     .fallback = "none", .choices = words_of<narrow_recipe_names>,
     .bound = choice_field<narrow_recipe_names, step, &Step::narrow>},
    {.path = "run.fp8_param_gather", .type = flag,
     .meaning = "with run.fp8 and ZeRO, weights are gathered and kept in the narrow format, as --fp8-param-gather of Megatron-LM and enable_fsdp_float8_all_gather of torchtitan; those of mxfp8 are gathered in the dtype",
     .derived = "as cluster.trainer does it, else false", .writes_derived = true,
     .bound = field<step, narrow_habits, &NarrowHabits::gathers_weights>},
    {.path = "run.fp8_sequence_gather", .type = flag,
     .meaning = "with run.fp8, sequence parallelism gathers inputs and gradients of Linears in the narrow format, as Transformer Engine does",
     .derived = "as cluster.trainer does it, else false", .writes_derived = true,
     .bound = field<step, narrow_habits, &NarrowHabits::gathers_inputs>},
    {.path = "run.fp8_dispatch", .type = flag,
     .meaning = "with run.fp8, tokens travel to experts in 8 bits, and backward the gradients of experts' results (DeepSeek-V3, section 3.3.3); both ways back stay in the dtype",
     .fallback = "false",
     .bound = field<step, narrow_habits, &NarrowHabits::dispatches>},
};
// clang-format on

}  // namespace

std::span<const Key> run_keys() { return run_table; }

}  // namespace slipway::scenarios
