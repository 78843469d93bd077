// The loss against its closed form, and the noise scale against the papers' numbers.
#include "models/loss_dynamics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace slipway {
namespace {

const LossDynamics dynamics{3, 1, 100, 0.5, 1e6, 2.5, kaplan_noise_exponent};

TEST(LossDynamics, FallsFromStartToFloorAsAPowerOfNoiselessSteps) {
  EXPECT_DOUBLE_EQ(loss_after(dynamics, 0), 3);
  EXPECT_NEAR(loss_after(dynamics, 300), 1 + 2 / std::sqrt(4), 1e-12);
  EXPECT_NEAR(loss_after(dynamics, 1e18), 1, 1e-6);
}

TEST(LossDynamics, StepsToALossAreTheInverse) {
  for (const double steps : {1e-6, 1.0, 300.0, 1e6})
    EXPECT_NEAR(noiseless_steps_to(dynamics, loss_after(dynamics, steps)) / steps, 1, 1e-6);
  EXPECT_EQ(noiseless_steps_to(dynamics, 3.5), 0);
  EXPECT_EQ(noiseless_steps_to(dynamics, 1), std::numeric_limits<double>::infinity());
}

TEST(LossDynamics, TheNoiseScaleGrowsAsKaplansCriticalBatch) {
  LossDynamics kaplan = dynamics;  // 2e8 tokens at a loss of 1 nat
  kaplan.noise_tokens = 2e8, kaplan.noise_loss = 1;
  EXPECT_NEAR(noise_scale_at(kaplan, 1), 2e8, 1);
  // 2e8 / 3^4.76: about a million tokens.
  EXPECT_NEAR(noise_scale_at(kaplan, 3) / 1.07e6, 1, 0.01);
  LossDynamics still = dynamics;
  still.noise_exponent = 0;
  EXPECT_EQ(noise_scale_at(still, 3), noise_scale_at(still, 1.5));
}

TEST(LossDynamics, AStepOfTheNoiseScaleIsHalfOfANoiselessOne) {
  EXPECT_DOUBLE_EQ(progress_of_step(1e6, 1e6), 0.5);
  EXPECT_NEAR(progress_of_step(1e12, 1e6), 1, 1e-5);
  EXPECT_NEAR(progress_of_step(1, 1e6), 1e-6, 1e-11);
}

TEST(LossDynamics, TokensToALossAreStepsTimesBatchAndNoiseWhereThatStays) {
  LossDynamics still = dynamics;
  still.noise_exponent = 0;
  for (const double loss : {2.9, 2.0, 1.01})
    EXPECT_NEAR(tokens_to(still, 5e5, loss) / ((5e5 + 1e6) * noiseless_steps_to(still, loss)), 1, 1e-9);
  EXPECT_EQ(tokens_to(still, 5e5, 3), 0);
  EXPECT_TRUE(std::isinf(tokens_to(still, 5e5, 1)));
}

TEST(LossDynamics, AnotherNoiseScaleKeepsTheTokensOfTheMeasuredBatchThoughNoiseGrows) {
  // The noise scale grows by half on the way. To first order, by offset (scale + batch), it would be off.
  constexpr double batch = 5e5, loss = 2.3;
  for (const double scale : {1e5, 8e6}) {
    const LossDynamics other = with_noise(dynamics, scale, batch, loss);
    EXPECT_NEAR(tokens_to(other, batch, loss) / tokens_to(dynamics, batch, loss), 1, 1e-9);
    EXPECT_EQ(other.noise_tokens, scale);
    // Step by step, in small steps: sum of batches until the loss.
    double noiseless = 0, steps = 0;
    constexpr double small = 0.01;  // of a step
    for (; loss_after(other, noiseless) > loss; steps += small)
      noiseless += small * progress_of_step(batch, noise_scale_at(other, loss_after(other, noiseless)));
    EXPECT_NEAR(steps * batch / tokens_to(dynamics, batch, loss), 1, 1e-3);
  }
}

TEST(LossDynamics, AnotherNoiseScaleKeepsTheLossByTheBatchThatWasMeasured) {
  LossDynamics still = dynamics;
  still.noise_exponent = 0;
  const LossDynamics other = with_noise(still, 8e6, 5e5, 1.5);
  constexpr double steps = 1000;
  EXPECT_NEAR(loss_after(other, steps * progress_of_step(5e5, 8e6)),
              loss_after(still, steps * progress_of_step(5e5, 1e6)), 1e-12);
  EXPECT_LT(loss_after(other, steps * progress_of_step(5e6, 8e6)),
            loss_after(still, steps * progress_of_step(5e6, 1e6)))
      << "the noisier the gradient, the more a larger batch gains";
}

TEST(LossDynamics, RefusesWhatIsNoLoss) {
  for (const auto& change :
       {+[](LossDynamics& d) { d.floor = d.start; }, +[](LossDynamics& d) { d.offset = 0; },
        +[](LossDynamics& d) { d.exponent = -1; }, +[](LossDynamics& d) { d.noise_tokens = 0; },
        +[](LossDynamics& d) { d.noise_loss = 0; }, +[](LossDynamics& d) { d.noise_exponent = -1; }}) {
    LossDynamics wrong = dynamics;
    change(wrong);
    EXPECT_THROW(check_dynamics(wrong), std::invalid_argument);
  }
}

}  // namespace
}  // namespace slipway
