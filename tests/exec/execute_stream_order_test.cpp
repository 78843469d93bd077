// Whole runs of the rank program on the ordered device (tests/stream_order/). In every schedule and at products of
// degrees no stream reads, writes or frees what another one still uses. And a run without the executor's waits is
// found, though it computes the same.
#include <gmock/gmock.h>

#include "exec/run/executable.h"
#include "tests/support/layout_runs.h"
#include "tests/support/rank_processes.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

constexpr int run_steps = 4,
              saved_after = 3;  // the host is ahead of the first steps, and waits at a checkpoint

struct Finished {
  std::vector<Ended> processes;
  std::vector<double> losses;
  long long ordered = 0;  // accesses that had to be behind another stream's
};

Finished run(Bundle bundle, int processes = 1, const std::map<std::string, std::string>& more = {}) {
  static int count = 0;
  const std::string folder = temporary_folder().path("ordered" + std::to_string(count++));
  std::filesystem::create_directories(folder);
  bundle.run.checkpoint_steps = saved_after;
  write_bundle_file(folder + "/run.slip", bundle);
  const int each = rank_count(bundle.graph.step.layout) / processes;
  RankProcesses ranks(SLIPWAY_ORDERED_RANK_PROGRAM,
                      {folder + "/run.slip", "--out", folder, "--dump-gradients", "2", "--connect-timeout", "120",
                       "--ranks-per-process", std::to_string(each)},
                      processes, folder, more);
  Finished done{ranks.wait(120), {}, 0};
  for (const Ended& process : done.processes) {
    const std::size_t at = process.output.rfind("stream order: ");
    if (at != std::string::npos) done.ordered += std::stoll(process.output.substr(at + std::strlen("stream order: ")));
  }
  std::ifstream file(folder + "/rank-0.losses");
  long long step = 0, samples = 0;
  std::string rest;
  for (double loss = 0, rate = 0; file >> step >> samples >> loss >> rate && std::getline(file, rest);)
    done.losses.push_back(loss);
  return done;
}

Finished run(const Step& input, int processes = 1, const std::map<std::string, std::string>& more = {}) {
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = run_steps;
  return run(std::move(bundle), processes, more);
}

Finished expect_clean(const Step& input, int processes = 1) {
  SCOPED_TRACE(describe_layout(input));
  Finished done = run(input, processes);
  for (const Ended& process : done.processes) {
    EXPECT_EQ(process.status, 0);
    EXPECT_EQ(process.errors, "");
  }
  EXPECT_GT(done.ordered, rank_count(input.layout) > 1 ? 100 : 0) << "nothing was checked";
  return done;
}

void expect_no_race(const Step& input, int processes = 1) {
  const Finished done = expect_clean(input, processes);
  SCOPED_TRACE(describe_layout(input));
  const Trained expected = train(input, run_steps);
  ASSERT_EQ(done.losses.size(), expected.losses.size());
  for (std::size_t step = 0; step < done.losses.size(); ++step)
    EXPECT_NEAR(done.losses[step], expected.losses[step], 1e-9 * expected.losses[step]);
}

Step clipped(const Model& model, const Degrees& degrees) {
  Step input = with_layout(model, degrees);
  input.clip_norm = 0.5;
  return input;
}

// Lanes meet and continue with another graph; one lane makes norms, another sums them and the host reads them.
TEST(GrowingBatch, LeavesNoRaceBetweenItsPrograms) {
  for (const Degrees& degrees :
       {Degrees{.data = 2}, Degrees{.tensor = 2, .data = 2, .zero = 1, .sequence_parallel = true},
        Degrees{.pipeline = 2, .data = 2, .zero = 2}, Degrees{.data = 2, .zero = 3}}) {
    for (const BatchSchedule& schedule : {in_stages(), by_norm_test(0.4)}) {
      const Step input = clipped(llama_for(2, false), degrees);
      SCOPED_TRACE(describe_layout(input));
      Bundle bundle = growing_bundle(input, schedule);
      bundle.run.steps = 6;
      const Grown expected = train_growing(bundle);
      const Finished done = run(bundle);
      EXPECT_EQ(done.processes[0].status, 0);
      EXPECT_EQ(done.processes[0].errors, "");
      EXPECT_GT(done.ordered, 100) << "nothing was checked";
      ASSERT_EQ(done.losses.size(), expected.losses.size());
      for (std::size_t step = 0; step < done.losses.size(); ++step)
        EXPECT_NEAR(done.losses[step], expected.losses[step], 1e-9 * expected.losses[step]) << step;
    }
  }
}

class EverySchedule : public testing::TestWithParam<Schedule> {};

TEST_P(EverySchedule, LeavesNoRaceBetweenItsLanes) {
  Step input =
      clipped(llama_for(4, true), {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true});
  input.schedule = GetParam().name;
  input.layout.chunks = GetParam().default_chunks;
  input.slices = GetParam().default_slices;
  expect_no_race(input);
}

INSTANTIATE_TEST_SUITE_P(ByName, EverySchedule, testing::ValuesIn(all_schedules()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
});

TEST(EveryStageOfZero, LeavesNoRaceBetweenItsLanes) {
  for (const int zero : {0, 1, 2, 3})
    expect_no_race(clipped(llama_for(2, true), {.pipeline = 2, .data = 2, .zero = zero}));
}

TEST(ASplitBackward, OfShardedGradientsLeavesNoRaceBetweenItsLanes) {
  for (const int zero : {2, 3}) {
    Step input = clipped(llama_for(2, true), {.pipeline = 2, .data = 2, .zero = zero});
    input.schedule = "zb-h1";
    expect_no_race(input);
  }
}

TEST(ARingOfContext, LeavesNoRaceBetweenItsLanes) {
  for (const auto& [recompute, zero] :
       {std::pair{Recompute::none, 0}, {Recompute::none, 3}, {Recompute::selective, 0}, {Recompute::full, 0}}) {
    Step input = clipped(llama_for(2, true), {.tensor = 2, .context = 2, .zero = zero});
    input.recompute = recompute;
    expect_no_race(input);
  }
}

TEST(Recomputation, LeavesNoRaceBetweenItsLanes) {
  for (const auto& [recompute, zero] :
       {std::pair{Recompute::selective, 0}, {Recompute::full, 0}, {Recompute::full, 3}}) {
    Step input =
        clipped(llama_for(2, false),
                {.tensor = 2, .pipeline = 2, .data = zero > 0 ? 2 : 1, .zero = zero, .sequence_parallel = true});
    input.recompute = recompute;
    expect_no_race(input);
  }
}

TEST(OtherModels, LeaveNoRaceBetweenTheirLanes) {
  for (const Model& model : {tiny_gpt(2), tiny_bert(2)})
    expect_no_race(clipped(model, {.tensor = 2, .pipeline = 2, .data = 2, .zero = 2}));
}

// The host reads how many rows travel, in the lane that sends them.
TEST(TravellingRows, LeaveNoRaceBetweenTheirLanes) {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    for (const int cut : {1, 2}) {
      Step input = clipped(tiny_mixtral(2), {.tensor = 2, .data = 2, .zero = 1, .sequence_parallel = true});
      input.layout.expert = 2, input.layout.expert_tensor = cut;
      input.recompute = recompute;
      input.routing.balancing_loss = 0.1;
      expect_no_race(input);
    }
  }
  Step processes = clipped(tiny_mixtral(2), {.data = 2});
  processes.layout.expert = 2;
  expect_no_race(processes, 2);
}

TEST(NarrowWeights, LeaveNoRaceBetweenTheirMastersAndTheirGathers) {
  for (const int zero : {1, 3}) {
    Step input = clipped(llama_for(2, true), {.data = 2, .zero = zero});
    input.dtype = Dtype::bfloat16;
    input.gradient_dtype = Dtype::float32;
    expect_clean(input);
  }
}

// Communicators between processes are c10d's.
TEST(RanksInProcessesOfTheirOwn, LeaveNoRaceBetweenTheirLanes) {
  expect_no_race(clipped(llama_for(2, true), {.tensor = 2, .pipeline = 2, .zero = 0, .sequence_parallel = true}), 4);
  expect_no_race(clipped(llama_for(2, true), {.data = 2, .zero = 3}), 2);
}

class SomethingLeftOut : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SomethingLeftOut, IsFoundAndFailsTheRun) {
  const auto [what, race] = GetParam();
  const Step input = clipped(llama_for(2, true), {.tensor = 2, .pipeline = 2, .data = 2, .zero = 3});
  const Finished done = run(input, 1, {{"SLIPWAY_ORDER_WITHOUT", what}});
  EXPECT_EQ(done.processes[0].status, 1);
  EXPECT_THAT(done.processes[0].errors, HasSubstr(race));
  EXPECT_EQ(done.losses.size(), std::size_t{run_steps}) << "the run itself ends well";
}

INSTANTIATE_TEST_SUITE_P(OfTheExecutor, SomethingLeftOut,
                         testing::Values(std::pair{"wait", "may not have written yet"},
                                         std::pair{"keep", "not kept for it"},
                                         std::pair{"finish", "_local_scalar_dense"}),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace slipway::test
