// Keys of `training`: how the batch grows, and how the loss falls by batches of any size. A part of the scenario's table.
#include "scenarios/language/keys.h"

namespace slipway {
namespace {

// In the order of BatchRule.
std::vector<std::string_view> rules() { return {"constant", "linear", "stages", "norm-test"}; }

using enum KeyType;

// clang-format off
const Key table[] = {
    {.path = "training", .type = section,
     .meaning = "how the batch grows and the loss falls (`slipway growth`, `slipway execute`)", .derived = "none"},
    {.path = "training.target_loss", .type = number, .meaning = "nats, whose time is asked; ends training without run.tokens",
     .derived = "run.tokens end it", .max = 1e3, .above_min = true},
    {.path = "training.source", .type = text, .meaning = "who measured training.loss and training.noise, on what",
     .derived = "unknown, which is said"},
    {.path = "training.fitted", .type = section, .meaning = "what training.loss and training.noise were fitted to: what lies outside is said",
     .derived = "unknown"},
    {.path = "training.fitted.batches", .type = integers, .meaning = "least and most sequences per step", .derived = "unknown", .min = 1},
    {.path = "training.fitted.lowest_loss", .type = number, .meaning = "nats", .derived = "unknown", .max = 1e3, .above_min = true},
    {.path = "training.growth", .type = section, .meaning = "from schedule.global_batch on",
     .derived = "the batch stays"},
    {.path = "training.growth.rule", .type = choice,
     .meaning = "norm-test: as the gradient's noise asks (Lau et al. 2024); linear and stages: by the sequences seen",
     .derived = "needed by `growth` and `execute`", .choices = rules},
    {.path = "training.growth.largest", .type = integer, .meaning = "sequences per step that no rule exceeds",
     .derived = "needed by `growth` and `execute`", .min = 1, .max = 1e12},
    {.path = "training.growth.sizes", .type = integer,
     .meaning = "different batches, from the first to the largest evenly on a logarithmic scale; a rule's batch is rounded up to the next",
     .derived = "every batch that the schedule can run", .min = 2, .max = 1e6},
    {.path = "training.growth.eta", .type = number,
     .meaning = "norm test: the noise that a gradient may have, of its norm; smaller asks for larger batches",
     .derived = "needed by norm-test", .max = 1e3, .above_min = true},
    {.path = "training.growth.test_every", .type = integer, .meaning = "norm test: steps between two tests",
     .derived = "1", .min = 1, .max = 1e9},
    {.path = "training.growth.warmup", .type = integer,
     .meaning = "linear: sequences until the largest batch", .derived = "needed by linear", .min = 1, .max = 1e15},
    {.path = "training.growth.stages", .type = sections, .meaning = "stages: batches, each from some sequence on",
     .derived = "needed by stages"},
    {.path = "training.growth.stages.*.from", .type = integer, .meaning = "sequences seen", .required = true,
     .min = 1, .max = 1e15},
    {.path = "training.growth.stages.*.batch", .type = integer, .meaning = "sequences per step", .required = true,
     .min = 1, .max = 1e12},
    {.path = "training.loss", .type = section,
     .meaning = "floor + (start - floor) (1 + S/offset)^-exponent after S noiseless steps; `slipway growth --fit` measures it",
     .derived = "needed by `slipway growth`"},
    {.path = "training.loss.start", .type = number, .meaning = "nats, at the beginning",
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true},
    {.path = "training.loss.floor", .type = number, .meaning = "nats, which no training gets below",
     .derived = "needed by `slipway growth`", .max = 1e3},
    {.path = "training.loss.offset", .type = number, .meaning = "noiseless steps that lie behind the beginning",
     .derived = "needed by `slipway growth`", .max = 1e12, .above_min = true},
    {.path = "training.loss.exponent", .type = number, .meaning = "of the power law",
     .derived = "needed by `slipway growth`", .max = 100, .above_min = true},
    {.path = "training.noise", .type = section,
     .meaning = "gradient noise scale (McCandlish et al. 2018): the batch whose steps are half of a noiseless one",
     .derived = "needed by `slipway growth`"},
    {.path = "training.noise.scale", .type = number, .meaning = "at at_loss",
     .derived = "needed by `slipway growth`", .max = 1e15, .above_min = true, .unit = Unit::tokens},
    {.path = "training.noise.at_loss", .type = number, .meaning = "nats, where scale was measured",
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true},
    {.path = "training.noise.exponent", .type = number,
     .meaning = "scale grows as loss^-exponent; 0: it stays", .derived = "1/0.21 (Kaplan et al. 2020)", .max = 100},
    {.path = "training.noise.least", .type = number, .meaning = "the least that scale may be, for a range of answers",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens},
    {.path = "training.noise.most", .type = number, .meaning = "the most that scale may be",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens},
};
// clang-format on

}  // namespace

std::span<const Key> training_keys() { return table; }

}  // namespace slipway
