// Training with K-FAC, in any layout and schedule, with its work in the bubbles or behind the window. It equals a
// separate implementation (tests/support/kfac_runs.h), which gets the step from which a window's inverses are used.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "exec/rank/batches.h"
#include "exec/rank/memory_meter.h"
#include "exec/run/executable.h"
#include "tests/support/gradient_files.h"
#include "tests/support/kfac_runs.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {
namespace {

constexpr int compared_steps = 7;

struct Trained {
  std::vector<double> losses;
  std::string folder;  // gradients of the last step
};

Trained run_of(const Bundle& bundle, int steps) {
  static int folders = 0;
  at::set_num_threads(1);
  VirtualRanks ranks(bundle, at::kCPU);
  const int window = bundle.graph.window, windows = (steps + window - 1) / window;
  Trained run{{}, temporary_folder().path("kfac" + std::to_string(folders++))};
  ranks.dump_gradients_of_step(steps - 1, run.folder);
  for (int w = 0; w < windows; ++w) {
    ranks.run_step(w);
    for (int step = w * window; step < (w + 1) * window; ++step) run.losses.push_back(ranks.take_loss(step));
  }
  run.losses.resize(steps);
  return run;
}

// Losses of all steps, and the gradients that the last one's update used, to 1e-9 relative.
void expect_like_reference(const Step& input, const KfacWindow& window, int steps = compared_steps) {
  const Bundle bundle = kfac_bundle(input, window);
  SCOPED_TRACE(input.schedule + ", pipeline " + std::to_string(input.layout.pipeline) + ", data " +
               std::to_string(input.layout.data) + ", context " + std::to_string(input.layout.context) +
               ", window of " + std::to_string(bundle.graph.window) + (window.filled ? ", filled" : ""));
  KfacReference reference(bundle, first_steps_with_new_inverses(bundle.graph));
  const Trained run = run_of(bundle, steps);
  for (int step = 0; step < steps; ++step) {
    const double expected = reference.train(step);
    EXPECT_NEAR(run.losses[step], expected, 1e-9 * expected) << "step " << step;
  }
  const auto dumped = read_gradients(run.folder, rank_count(input.layout));
  for (const auto& [name, weight] : reference.weights()) {
    const at::Tensor ours = at::tensor(dumped.at(name).values, at::kDouble).view(weight.sizes());
    const double norm = ours.norm().item<double>();
    EXPECT_LE(dumped.at(name).disagreement, 1e-12 * norm) << name;
    if (input.clip_norm > 0) continue;  // the dump is from before it
    EXPECT_LE((ours - weight.grad()).norm().item<double>(), 1e-9 * norm) << name;
  }
  EXPECT_LE(run.losses.back(), 0.95 * run.losses.front()) << "the loss hardly falls: a weak test";
}

Step input_of(const Degrees& degrees, const std::string& schedule = "1f1b") {
  Step input = with_layout(tiny_llama(std::max(2, degrees.pipeline * degrees.chunks), false), degrees);
  if (degrees.chunks == 1) input.schedule = schedule;
  return input;
}

TEST(Kfac, OfOneProcessEqualsPlainFormulasForEveryModelFamily) {
  for (const Model& model : {tiny_llama(2, true), tiny_qwen3(2), tiny_gpt(2), tiny_bert(2)}) {
    SCOPED_TRACE(model.name);
    expect_like_reference(tiny_input(model), {.refresh_steps = 2});
  }
}

TEST(Kfac, ClipsTheNormOfThePreconditionedGradient) {
  Step input = tiny_input(tiny_llama(2, false));
  input.clip_norm = 0.3;
  expect_like_reference(input, {.refresh_steps = 1});
}

class KfacOfSchedule : public testing::TestWithParam<Schedule> {
 protected:
  static Step input(int data) {
    const Schedule& schedule = GetParam();
    Step input = with_layout(tiny_llama(4, false), {.pipeline = 2, .data = data, .chunks = schedule.default_chunks});
    input.schedule = schedule.name;
    input.slices = schedule.default_slices;
    return input;
  }
};

TEST_P(KfacOfSchedule, UnfilledUsesTheInversesOfTheWindowBefore) {
  for (const int data : {1, 2})
    for (const int refresh : {1, 3}) expect_like_reference(input(data), {.refresh_steps = refresh});
}

TEST_P(KfacOfSchedule, FilledUsesInversesFromTheStepOnInWhichTheGraphMakesThem) {
  for (const int data : {1, 2})
    for (const double seconds : {0.1, 0.4})
      expect_like_reference(input(data), {.filled = true, .bubble_work_seconds = seconds});
}

INSTANTIATE_TEST_SUITE_P(ByName, KfacOfSchedule, testing::ValuesIn(all_schedules()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
});

TEST(Kfac, UnfilledIsTheSameWithDataAndContextParallelism) {
  for (const int refresh : {1, 3}) {
    expect_like_reference(input_of({.data = 2}), {.refresh_steps = refresh});
    expect_like_reference(input_of({.context = 2}), {.refresh_steps = refresh});
    Step ring = input_of({.pipeline = 2, .context = 2});
    ring.layout.context_exchange = ContextExchange::ring;
    expect_like_reference(ring, {.refresh_steps = refresh});
  }
}

// Otherwise the test above would not find mixed-up steps.
TEST(Kfac, FilledWindowsOfTheTestsGiveSomeLinearsTheirInversesInTheirMidst) {
  const Bundle bundle = kfac_bundle(input_of({.pipeline = 2}), {.filled = true, .bubble_work_seconds = 0.4});
  std::set<int> steps;
  for (const auto& [linear, step] : first_steps_with_new_inverses(bundle.graph)) steps.insert(step);
  EXPECT_GT(*steps.rbegin(), *steps.begin());
  EXPECT_GT(bundle.graph.window, *steps.begin());
  EXPECT_GT(*steps.begin(), 0);
}

TEST(Kfac, FilledChimeraOfFourStagesSharesInversionsBetweenItsTwoCopies) {
  expect_like_reference(input_of({.pipeline = 4}, "chimera"), {.filled = true, .bubble_work_seconds = 0.2});
}

// Their factors are float32: rounding is that of the weights, not of a Cholesky.
TEST(Kfac, OfBfloat16WeightsFollowsThatOfFloat32) {
  Step input = tiny_input(tiny_llama(2, false));
  input.gradient_dtype = input.dtype = Dtype::float32;
  const Trained wide = run_of(kfac_bundle(input, {.refresh_steps = 1}), compared_steps);
  input.dtype = Dtype::bfloat16;
  const Trained narrow = run_of(kfac_bundle(input, {.refresh_steps = 1}), compared_steps);
  for (std::size_t step = 0; step < wide.losses.size(); ++step)
    EXPECT_NEAR(narrow.losses[step], wide.losses[step], 2e-2 * wide.losses[step]) << "step " << step;
}

TEST(Kfac, ATrainingThatDivergesIsToldByTheFactorThatCannotBeInverted) {
  Bundle bundle = kfac_bundle(tiny_input(tiny_llama(2, false)), {.refresh_steps = 1});
  bundle.graph.step.optimizer.lr = 1e200;
  EXPECT_THAT([&] { run_of(bundle, 5); }, testing::ThrowsMessage<std::runtime_error>(testing::AllOf(
                                              testing::HasSubstr(".inv"), testing::HasSubstr("cannot be inverted"),
                                              testing::HasSubstr("raise run.optimizer.damping"))));
}

TEST(Kfac, WithRecomputationTakesInputsThatAreMadeAgain) {
  Step input = input_of({.pipeline = 2}, "1f1b");
  for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
    input.recompute = recompute;
    for (const bool filled : {false, true}) expect_like_reference(input, {.filled = filled, .refresh_steps = 2});
  }
}

std::vector<double> losses_of_cut(const Bundle& bundle, int steps) {
  const StepPrograms programs(bundle, {bundle.run.steps - steps});
  VirtualRanks ranks(bundle, at::kCPU);
  if (programs.last) ranks.enter(*programs.last, {}, 0);
  ranks.run_step(0);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) losses.push_back(ranks.take_loss(step));
  return losses;
}

TEST(KfacWindow, CutAfterAnyStepHasTheLossesOfTheWholeOneToTheLastBit) {
  for (const Step& input :
       {input_of({.pipeline = 2}), input_of({.pipeline = 2, .data = 2}), input_of({.pipeline = 4}, "chimera")}) {
    Bundle bundle = kfac_bundle(input, {.filled = true, .bubble_work_seconds = 0.4});
    const int window = bundle.graph.window;
    ASSERT_GT(window, 2);
    bundle.run.steps = window;
    const std::vector<double> whole = losses_of_cut(bundle, window);
    for (const int steps : {1, window / 2, window - 1}) {
      const std::vector<double> expected(whole.begin(), whole.begin() + steps);
      EXPECT_EQ(losses_of_cut(bundle, steps), expected) << input.schedule << ", " << steps << " of " << window;
    }
  }
}

TEST(KfacWindow, CutRunsNoStepBeyondItsEndAndLeavesOutWhatNobodyWaitsFor) {
  const Bundle bundle = kfac_bundle(input_of({.pipeline = 2, .data = 2}), {.filled = true, .bubble_work_seconds = 0.4});
  const TaskGraph cut = cut_after(bundle.graph, 1);
  EXPECT_LT(cut.order.size(), bundle.graph.order.size());
  std::vector<bool> runs(cut.tasks.size(), false);
  int inversions = 0;
  for (const TaskId id : cut.order) {
    EXPECT_EQ(cut.tasks[id].step, 0);
    for (const TaskId before : cut.predecessors[id])
      EXPECT_TRUE(runs[before]) << label_of(cut, id) << " waits for " << label_of(cut, before);
    runs[id] = true;
    if (label_of(cut, id).find(".inv") != std::string::npos) ++inversions;
  }
  EXPECT_EQ(inversions, 0) << "they lie in later steps";
  EXPECT_THROW(cut_after(bundle.graph, 0), std::invalid_argument);
  EXPECT_THROW(cut_after(bundle.graph, bundle.graph.window), std::invalid_argument);
}

TEST(KfacWindow, AnotherOneTakesNoMoreMemory) {
  for (const bool filled : {false, true}) {
    const Bundle bundle =
        kfac_bundle(input_of({.pipeline = 2, .data = 2}), {.filled = filled, .bubble_work_seconds = 0.4});
    MemoryMeter meter(c10::DeviceType::CPU);
    VirtualRanks ranks(bundle, at::kCPU);
    std::vector<std::int64_t> after;
    for (int window = 0; window < 5; ++window) {
      ranks.run_step(window);
      for (int step = 0; step < bundle.graph.window; ++step) ranks.take_loss(window * bundle.graph.window + step);
      after.push_back(meter.bytes());
    }
    for (std::size_t window = 2; window < after.size(); ++window)
      EXPECT_EQ(after[window], after[1]) << (filled ? "filled" : "unfilled") << ", window " << window;
  }
}

TEST(KfacBundle, ThatCannotBeExecutedIsRefusedWithTheRemedy) {
  const Bundle sound = kfac_bundle(input_of({.pipeline = 2}), {.refresh_steps = 1});
  EXPECT_THAT(not_executable(sound), testing::IsEmpty());
  const auto reasons = [&](auto change) {
    Bundle bundle = sound;
    change(bundle);
    std::vector<std::string> texts;
    for (const Refusal& refusal : not_executable(bundle)) texts.push_back(text_of(refusal));
    return texts;
  };
  using testing::ElementsAre;
  using testing::HasSubstr;
  const char* of_another = "the bundle's tasks are not those of its optimizer";
  EXPECT_THAT(reasons([](Bundle& b) { b.graph.step.optimizer.name = "adamw"; }), ElementsAre(HasSubstr(of_another)));
  EXPECT_THAT(reasons([](Bundle& b) { b.graph.step.optimizer.name = "shampoo"; }),
              ElementsAre("run.optimizer.name: shampoo is not executed; allowed: adamw, kfac; use one of them",
                          HasSubstr(of_another)));
  EXPECT_THAT(reasons([](Bundle& b) { b.graph.works.back().bubble_work = "evaluation"; }),
              ElementsAre(HasSubstr("run.evaluation_data: it is not set")));
}

}  // namespace
}  // namespace slipway::test
