// Whole trainings against closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "models/training/batch_rules.h"
#include "models/training/growth.h"
#include "models/training/loss_dynamics.h"
#include "models/training/norm_test.h"

namespace slipway::test {

namespace {

LossDynamics steady_noise() { return {3, 1, 1000, 0.5, 4096, 2.5, 0}; }

BatchSchedule constant(std::int64_t batch) { return {BatchRule::constant, {batch}, 0, {}, 0, 1, 8}; }

TEST(Growth, ConstantBatchesLieOnMcCandlishsHyperbola) {
  LossDynamics dynamics = steady_noise();
  dynamics.offset = 20'000;  // many steps: they are whole
  const double target = 2.2, least_steps = noiseless_steps_to(dynamics, target);
  constexpr double sequence = 2, noise = 4096 / sequence;
  for (const std::int64_t batch : {64, 256, 2048, 65536}) {
    const Course course = course_of(constant(batch), dynamics, sequence, {0, target});
    const double steps = static_cast<double>(course.end.steps);
    // (S/S_min − 1)(E/E_min − 1) = 1, E_min = B·S_min
    EXPECT_NEAR((steps / least_steps - 1) * (course.end.samples / (noise * least_steps) - 1), 1, 2e-3) << batch;
    EXPECT_EQ(course.end.samples, steps * static_cast<double>(batch));
    EXPECT_EQ(course.target->steps, course.end.steps);
  }
}

TEST(Growth, TheLossAfterStepsOfOneBatchIsTheClosedForm) {
  const Course course = course_of(constant(4096), steady_noise(), 1, {4096.0 * 500, 0});
  EXPECT_EQ(course.end.steps, 500);
  EXPECT_NEAR(course.end.loss, loss_after(steady_noise(), 250), 1e-12);
  EXPECT_FALSE(course.target);
}

TEST(Growth, TheNormTestEndsAtTheBatchThatItIsContentWith) {
  BatchSchedule schedule{BatchRule::norm_test, {}, 0, {}, 0.4, 1, 8};
  for (std::int64_t rung = 64; rung <= 1 << 20; rung += 64) schedule.rungs.push_back(rung);
  const Course course = course_of(schedule, steady_noise(), 1, {1e8, 0});
  const double content = batch_content_with(4096, 0.4);
  EXPECT_GE(static_cast<double>(course.spans.back().batch), content - 64);
  EXPECT_LE(static_cast<double>(course.spans.back().batch), content + 64);
}

TEST(Growth, WithTheNoiseTheBatchGrowsToTheEnd) {
  BatchSchedule schedule{BatchRule::norm_test, {}, 0, {}, 0.9, 1, 8};
  for (std::int64_t rung = 64; rung <= 1 << 20; rung += 64) schedule.rungs.push_back(rung);
  LossDynamics growing = steady_noise();
  growing.noise_exponent = kaplan_noise_exponent;
  const Course course = course_of(schedule, growing, 1, {1e7, 0});
  ASSERT_GT(course.spans.size(), 10U);
  for (std::size_t i = 1; i < course.spans.size(); ++i) {
    EXPECT_GT(course.spans[i].batch, course.spans[i - 1].batch);
    EXPECT_LT(course.spans[i].from_loss, course.spans[i - 1].from_loss);
  }
  const double content = batch_content_with(noise_scale_at(growing, course.end.loss), 0.9);
  EXPECT_NEAR(static_cast<double>(course.spans.back().batch), content, 128);
}

TEST(Growth, SpansAddUpToTheCourse) {
  const BatchSchedule schedule{BatchRule::stages, {8, 16, 32}, 0, {{100, 16}, {200, 32}}, 0, 1, 8};
  const Course course = course_of(schedule, steady_noise(), 1, {400, 0});
  ASSERT_EQ(course.spans.size(), 3U);
  EXPECT_EQ(course.spans[0].steps, 13);  // 104 samples: the first step's end at or above 100
  EXPECT_EQ(course.spans[1].from_samples, 104);
  EXPECT_EQ(course.spans[1].steps, 6);
  EXPECT_EQ(course.spans[2].from_samples, 200);
  EXPECT_EQ(course.end.samples, 424);
  const auto seconds = [](std::int64_t batch) { return batch == 8 ? 1.0 : batch == 16 ? 1.5 : 2.5; };
  EXPECT_DOUBLE_EQ(seconds_of(course, course.end.steps, seconds), 13 + 6 * 1.5 + 7 * 2.5);
  EXPECT_DOUBLE_EQ(seconds_of(course, 15, seconds), 13 + 2 * 1.5);
}

TEST(Growth, RefusesATrainingWithoutAnEnd) {
  EXPECT_THROW(course_of(constant(8), steady_noise(), 1, {0, 0}), std::invalid_argument);
  EXPECT_THROW(course_of(constant(8), steady_noise(), 1, {0, 0.9}), std::invalid_argument) << "below the floor";
}

TEST(Growth, ACourseOfMoreStepsThanAllowedIsNotWhole) {
  const Course cut = course_of(constant(8), steady_noise(), 1, {1e9, 0, 1000});
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(cut.end.steps, 1000);
  EXPECT_TRUE(course_of(constant(8), steady_noise(), 1, {8000, 0, 1000}).whole);
}

}  // namespace

// The loss against its closed form, and the noise scale against the papers' numbers.

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

}  // namespace slipway::test
