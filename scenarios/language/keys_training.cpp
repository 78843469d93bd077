// Keys of `training`: how the batch grows, and how the loss falls by batches of any size. A part of the scenario's
// table.
#include "scenarios/language/keys.h"

#include <span>

#include "scenarios/language/binding.h"
#include "scenarios/language/keys_fields.h"

namespace slipway::scenarios {

namespace {

using enum KeyType;

// clang-format off
const Key training_table[] = {
    {.path = "training", .type = section,
     .meaning = "how the batch grows and the loss falls (`slipway growth`, `slipway execute`)", .derived = "none"},
    {.path = "training.target_loss", .type = number, .meaning = "loss in nats, to which the time is computed; ends training without run.tokens",
     .derived = "run.tokens end it", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::target_loss>},
    {.path = "training.source", .type = text, .meaning = "who measured training.loss and training.noise, on what",
     .derived = "unknown, with a note",
     .bound = field<growth, &GrowthChoice::source>},
    {.path = "training.fitted", .type = section, .meaning = "the runs that training.loss and training.noise were fitted to; answers outside them get a note",
     .derived = "unknown"},
    {.path = "training.fitted.batches", .type = integers, .meaning = "least and most sequences per step", .derived = "unknown", .min = 1,
     .bound = field<growth, &GrowthChoice::fitted_batches>},
    {.path = "training.fitted.lowest_loss", .type = number, .meaning = "lowest loss, nats", .derived = "unknown", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::fitted_loss>},
    {.path = "training.growth", .type = section, .meaning = "how the batch grows from schedule.global_batch on",
     .derived = "the batch stays"},
    {.path = "training.growth.rule", .type = choice,
     .meaning = "norm-test: by the gradient's noise (Lau et al. 2024); linear and stages: by the sequences seen",
     .derived = "needed by `growth` and `execute`", .choices = words_of<batch_rule_names>,
     .bound = choice_field<batch_rule_names, growth, &GrowthChoice::rule>},
    {.path = "training.growth.largest", .type = integer, .meaning = "largest batch of every rule, sequences per step",
     .derived = "needed by `growth` and `execute`", .min = 1, .max = 1e12,
     .bound = field<growth, &GrowthChoice::largest>},
    {.path = "training.growth.sizes", .type = integer,
     .meaning = "number of batches from the first to the largest, evenly on a logarithmic scale; a rule's batch is rounded up to the next",
     .derived = "every batch that the schedule can run", .min = 2, .max = 1e6,
     .bound = field<growth, &GrowthChoice::sizes>},
    {.path = "training.growth.eta", .type = number,
     .meaning = "norm test: allowed noise as a share of the gradient's norm; smaller values need larger batches",
     .derived = "needed by norm-test", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::eta>},
    {.path = "training.growth.test_every", .type = integer, .meaning = "norm test: steps between two tests",
     .derived = "1", .min = 1, .max = 1e9,
     .bound = field<growth, &GrowthChoice::test_every>},
    {.path = "training.growth.warmup", .type = integer,
     .meaning = "linear: sequences until the largest batch", .derived = "needed by linear", .min = 1, .max = 1e15,
     .bound = field<growth, &GrowthChoice::warmup>},
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
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::start>},
    {.path = "training.loss.floor", .type = number, .meaning = "lower limit of the loss, nats",
     .derived = "needed by `slipway growth`", .max = 1e3,
     .bound = field<growth, dynamics, &LossDynamics::floor>},
    {.path = "training.loss.offset", .type = number, .meaning = "noiseless steps before the beginning",
     .derived = "needed by `slipway growth`", .max = 1e12, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::offset>},
    {.path = "training.loss.exponent", .type = number, .meaning = "exponent of the power law",
     .derived = "needed by `slipway growth`", .max = 100, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::exponent>},
    {.path = "training.noise", .type = section,
     .meaning = "gradient noise scale (McCandlish et al. 2018): the batch whose steps get half as far as a noiseless one",
     .derived = "needed by `slipway growth`"},
    {.path = "training.noise.scale", .type = number, .meaning = "noise scale at at_loss",
     .derived = "needed by `slipway growth`", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, dynamics, &LossDynamics::noise_tokens>},
    {.path = "training.noise.at_loss", .type = number, .meaning = "loss at which scale was measured, nats",
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::noise_loss>},
    {.path = "training.noise.exponent", .type = number,
     .meaning = "scale grows as loss^-exponent; 0: it stays", .derived = "1/0.21 (Kaplan et al. 2020)", .max = 100,
     .bound = field<growth, dynamics, &LossDynamics::noise_exponent>},
    {.path = "training.noise.least", .type = number, .meaning = "lower end of scale's range, for a range of answers",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, &GrowthChoice::noise_least>},
    {.path = "training.noise.most", .type = number, .meaning = "upper end of scale's range",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, &GrowthChoice::noise_most>},
};
// clang-format on

}  // namespace

std::span<const Key> training_keys() { return training_table; }

}  // namespace slipway::scenarios
