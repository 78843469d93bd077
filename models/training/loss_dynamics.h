// The fall of a loss with batches of any size, from the noise of their gradients.
//
//   L(S) = floor + (start − floor)·(1 + S/offset)^(−exponent)      after S noiseless steps (endless batches)
//   a step of b tokens is 1/(1 + B/b) of a noiseless one           McCandlish et al. 2018, arXiv 1812.06162
//   B(L) = noise_tokens·(noise_loss/L)^noise_exponent              Kaplan et al. 2020, arXiv 2001.08361:
//                                                                  2e8 tokens / L^(1/0.21)
//
// With B constant, steps and tokens to a loss lie on the hyperbola (steps/S − 1)(tokens/(B·S) − 1) = 1. A small batch
// takes 1 + B/b times the steps, a large one 1 + b/B times the tokens. `offset` is the training before the start, so
// that a run may begin at a checkpoint. There are seven numbers:
//
//   start, floor     nats     the first loss; the limit of any training (0 to start)
//   offset           steps    noiseless, > 0
//   exponent         -        > 0; Kaplan et al. 2020 found 0.76 for whole trainings
//   noise_tokens     tokens   the noise scale at noise_loss, > 0
//   noise_loss       nats     the loss at which it was measured
//   noise_exponent   -        ≥ 0; Kaplan et al. 2020: 1/0.21 = 4.76; 0: the noise scale is constant
//
// The learning rate is not among them: progress per noiseless step is that of the runs from which the numbers come.
// Guarded by tests/models/growth_test.cpp.
#pragma once

#include "models/namespaces.h"

namespace slipway::models {

constexpr double kaplan_noise_exponent = 1 / 0.21;

struct LossDynamics {
  double start = 0, floor = 0;
  double offset = 0, exponent = 0;
  double noise_tokens = 0, noise_loss = 0;
  double noise_exponent = kaplan_noise_exponent;
};

// Throws std::invalid_argument for numbers outside these ranges.
void check_dynamics(const LossDynamics& dynamics);

double loss_after(const LossDynamics& dynamics, double noiseless_steps);
// Infinity for a loss at or below the floor, 0 at or above the start.
double noiseless_steps_to(const LossDynamics& dynamics, double loss);
double noise_scale_at(const LossDynamics& dynamics, double loss);  // tokens
// batch + noise scale: the tokens that a constant batch needs for the progress of a noiseless step.
double tokens_per_noiseless_step(const LossDynamics& dynamics, double batch_tokens, double loss);
// Tokens until a loss with one constant batch and small steps; infinity at or below the floor.
double tokens_to(const LossDynamics& dynamics, double batch_tokens, double loss);
// The same dynamics with another noise scale, for one measured curve and a guessed noise scale. A constant batch of
// `batch_tokens` still reaches `loss`, between start and floor, after equally many tokens. On the way its loss is
// unchanged to first order.
LossDynamics with_noise(LossDynamics dynamics, double scale_tokens, double batch_tokens, double loss);
// Progress of a step in noiseless steps, 0..1. Batch and noise scale have the same unit.
double progress_of_step(double batch, double noise_scale);

}  // namespace slipway::models
