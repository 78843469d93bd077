// A learning rate that warms up and decays, in layouts: every rank takes each step at the rate of one process.
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

constexpr int run_steps = 12;

std::vector<double> losses_of(const Degrees& degrees, const LearningRateSchedule& schedule) {
  Step input = with_layout(tiny_llama(4, true), degrees);
  input.clip_norm = 0.5;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = run_steps;
  bundle.graph.step.optimizer.lr_schedule = schedule;
  VirtualRanks ranks(bundle, at::kCPU);
  std::vector<double> losses;
  for (int step = 0; step < run_steps; ++step) {
    ranks.run_step(step);
    losses.push_back(ranks.take_loss(step));
  }
  return losses;
}

const LearningRateSchedule to_the_end{.warmup_samples = 32, .decay = DecayStyle::cosine, .least = 5e-4};

TEST(ScheduledRate, GivesEveryLayoutTheLossesOfOneProcess) {
  at::set_num_threads(1);
  const std::vector<double> one = losses_of({}, to_the_end);
  for (const Degrees& degrees :
       {Degrees{.tensor = 2, .data = 2, .zero = 2, .sequence_parallel = true},
        Degrees{.pipeline = 2, .data = 2, .zero = 1}, Degrees{.tensor = 2, .pipeline = 2, .zero = 3}}) {
    const std::vector<double> many = losses_of(degrees, to_the_end);
    for (std::size_t step = 0; step < one.size(); ++step)
      EXPECT_NEAR(many[step], one[step], 1e-9 * one[step]) << "step " << step << ", ZeRO " << degrees.zero;
  }
}

TEST(ScheduledRate, IsTheConstantOneToTheLastBitWhereNothingIsScheduled) {
  at::set_num_threads(1);
  const std::vector<double> constant = losses_of({}, {});
  EXPECT_EQ(losses_of({}, {.warmup_samples = 1}), constant) << "a warm-up within the first step";
  const std::vector<double> scheduled = losses_of({}, to_the_end);
  EXPECT_EQ(scheduled[0], constant[0]) << "the first update comes after it";
  EXPECT_GT(std::abs(scheduled[1] - constant[1]), 1e-6);
}

}  // namespace
}  // namespace slipway::test
