// The keys of `run`: training and execution.
#include "models/dtype.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"

namespace slipway {
namespace {

using Names = std::vector<std::string_view>;

Names decay_styles() { return {"constant", "linear", "cosine"}; }
Names optimizers() { return {"adamw", "kfac"}; }
Names dtypes() { return {"float64", "float32", "bfloat16", "float16"}; }

// "bf16" and the like (models/dtype.h), and what other programs say.
std::string meant_dtype(std::string_view word) {
  if (const auto dtype = dtype_named(word); dtype && dtype != Dtype::tf32)
    return did_you_mean({name_of(*dtype)});
  if (word.starts_with("fp8") || word.starts_with("float8") || word.starts_with("e4m3") ||
      word.starts_with("e5m2"))
    return "fp8 is not modelled; use bfloat16, which is slower";
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
     .min = 1, .max = 1e9},
    {.path = "run.seed", .type = integer, .meaning = "of parameters and data order", .fallback = "0",
     .max = largest_int64},
    {.path = "run.data", .type = text,
     .meaning = "path of a text file, read as bytes, or of Megatron token files (PREFIX.bin beside PREFIX.idx), relative to the scenario",
     .names_file = true},
    {.path = "run.evaluation_data", .type = text,
     .meaning = "the same, held out: what schedule.fill evaluation passes through the pipeline when it is executed",
     .names_file = true},
    {.path = "run.checkpoint_steps", .type = integer,
     .meaning = "steps between two checkpoints in the run's folder, which execute --resume goes on from; 0 = none",
     .fallback = "0", .max = 1e9},
    {.path = "run.checkpoints_kept", .type = integer, .meaning = "newest checkpoints that are kept",
     .fallback = "2", .min = 1, .max = 1e6},
    {.path = "run.optimizer", .type = section, .meaning = "who updates the parameters",
     .shorthand = "name"},
    {.path = "run.optimizer.name", .type = choice, .meaning = "the optimizer; kfac: natural gradient for the matrices of Transformer blocks, AdamW for the rest",
     .fallback = "adamw",
     .choices = optimizers},
    {.path = "run.optimizer.refresh_steps", .type = integer,
     .meaning = "steps between two refreshes of K-FAC's inverses, where bubbles are not filled: they are made behind the last and used from the next on",
     .derived = "filled: as the bubbles allow; else 1", .min = 1, .max = 1e5},
    {.path = "run.optimizer.damping", .type = number,
     .meaning = "of K-FAC's factors, shared out between the two of a matrix (factored Tikhonov)", .fallback = "0.001",
     .max = unbounded, .above_min = true},
    {.path = "run.optimizer.lr", .type = number, .meaning = "the same as run.lr", .derived = "run.lr",
     .max = unbounded},
    {.path = "run.optimizer.lr_warmup_samples", .type = integer,
     .meaning = "sequences over which the learning rate rises to run.lr, those of the step counted; 0 = no warm-up",
     .fallback = "0", .max = largest_int64},
    {.path = "run.optimizer.lr_decay_style", .type = choice,
     .meaning = "of the learning rate after the warm-up: none, or down to min_lr along a line or half a cosine",
     .fallback = "constant", .choices = decay_styles},
    {.path = "run.optimizer.lr_decay_samples", .type = integer,
     .meaning = "sequences from the beginning of the training, warm-up included, after which the rate is min_lr",
     .derived = "the end of the training: run.steps (plan --emit: run.tokens)", .min = 1, .max = largest_int64},
    {.path = "run.optimizer.min_lr", .type = number, .meaning = "learning rate after the decay", .fallback = "0",
     .max = unbounded},
    {.path = "run.optimizer.beta1", .type = number, .meaning = "decay of the first moment",
     .fallback = "0.9", .max = 0.999999},
    {.path = "run.optimizer.beta2", .type = number, .meaning = "decay of the second moment",
     .fallback = "0.95", .max = 0.999999},
    {.path = "run.optimizer.epsilon", .type = number, .meaning = "added to the root of the second moment",
     .fallback = "1e-8", .max = 1},
    {.path = "run.optimizer.weight_decay", .type = number, .meaning = "decoupled, on matrices only",
     .fallback = "0.1",
     .max = unbounded},
    {.path = "run.lr", .type = number, .meaning = "learning rate", .derived = "0.001", .max = unbounded},
    {.path = "run.clip_norm", .type = number, .meaning = "global gradient norm; 0 = no clipping",
     .fallback = "0",
     .max = unbounded},
    {.path = "run.tokens", .type = number,
     .meaning = "planned length of training, for days and cost; 0 = unknown",
     .fallback = "0", .max = unbounded, .unit = Unit::tokens},
    {.path = "run.checkpoint_interval", .type = number,
     .meaning = "training between two checkpoints, in whole steps (`slipway goodput`)",
     .derived = "run.checkpoint_steps, else the best by Daly 2006", .max = 1e9, .above_min = true, .unit = Unit::seconds},
    {.path = "run.checkpoint_cost", .type = number, .meaning = "how long training stands still for a checkpoint",
     .derived = "needed by `slipway goodput`", .max = 1e9, .unit = Unit::seconds},
    {.path = "run.dtype", .type = choice, .meaning = "of weights, activations and messages",
     .derived = "bfloat16 where every machine has it and is a GPU, else float16 where they have that, else float32", .choices = dtypes, .hint = meant_dtype},
};
// clang-format on

}  // namespace

std::span<const Key> run_keys() { return run_table; }

}  // namespace slipway
