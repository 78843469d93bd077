// Norms of workers' gradients against gradients of each worker's samples, made separately by one process. And a growing
// batch against one process.
#include <gmock/gmock.h>

#include "schedules/rules/rules.h"
#include "tests/support/layout_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

using Gradient = std::map<std::string, WholeGradient>;

// The gradients of parts of a batch, one after another, at the initial parameters: the learning rate is 0.
std::vector<Gradient> gradients_of_parts(Step input, int parts) {
  input.layout = {};
  input.schedule = "1f1b";
  input.slices = 1;
  input.global_batch /= parts;
  input.worker_norms = false;
  Bundle bundle = tiny_bundle(input);
  bundle.graph.step.optimizer.lr = 0;
  std::vector<Gradient> gradients;
  for (int part = 0; part < parts; ++part) {
    VirtualRanks ranks(bundle, at::kCPU);
    const std::string folder = temporary_folder().path("part");
    ranks.dump_gradients_of_step(part, folder);
    for (int step = 0; step <= part; ++step) ranks.run_step(step);
    gradients.push_back(read_gradients(folder, 1));
    if (blocks_of(input.model).back().tied)  // a copy of the embedding's
      std::erase_if(gradients.back(), [](const auto& each) { return each.first.ends_with("head.weight"); });
  }
  return gradients;
}

double square_of(const Gradient& gradient) {
  double sum = 0;
  for (const auto& [name, whole] : gradient)
    for (const double value : whole.values) sum += value * value;
  return sum;
}

Gradient mean_of(const std::vector<Gradient>& parts) {
  Gradient mean = parts.front();
  for (auto& [name, whole] : mean)
    for (std::size_t i = 0; i < whole.values.size(); ++i) {
      double sum = 0;
      for (const Gradient& part : parts) sum += part.at(name).values[i];
      whole.values[i] = sum / static_cast<double>(parts.size());
    }
  return mean;
}

GradientNorms norms_of_parts(const std::vector<Gradient>& parts) {
  GradientNorms norms{static_cast<std::int64_t>(parts.size()), 0, square_of(mean_of(parts))};
  for (const Gradient& part : parts) norms.sum_of_squares += square_of(part);
  return norms;
}

GradientNorms measured(Step input) {
  input.worker_norms = true;
  const Bundle bundle = tiny_bundle(input);
  for (const Violation& violation : check_graph(bundle.graph)) ADD_FAILURE() << describe(bundle.graph, violation);
  VirtualRanks ranks(bundle, at::kCPU);
  ranks.run_step(0);
  return ranks.take_norms(0).value();
}

void expect_same(const GradientNorms& norms, const GradientNorms& truth) {
  EXPECT_EQ(norms.workers, truth.workers);
  EXPECT_NEAR(norms.sum_of_squares, truth.sum_of_squares, 1e-11 * truth.sum_of_squares);
  EXPECT_NEAR(norms.square_of_mean, truth.square_of_mean, 1e-11 * truth.square_of_mean);
}

TEST(WorkerNorms, AreThoseOfEachWorkersSamplesInEveryLayout) {
  at::set_num_threads(1);
  for (const bool tied : {false, true}) {
    const Model model = tiny_llama(4, tied);
    const GradientNorms truth = norms_of_parts(gradients_of_parts(tiny_input(model), 2));
    ASSERT_GT(gradient_variance(truth), 0.01 * truth.square_of_mean);
    for (const Degrees& degrees :
         {Degrees{.data = 2}, Degrees{.data = 2, .zero = 1}, Degrees{.pipeline = 2, .data = 2},
          Degrees{.tensor = 2, .data = 2, .sequence_parallel = true}, Degrees{.tensor = 2, .data = 2},
          Degrees{.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true},
          Degrees{.pipeline = 2, .data = 2, .chunks = 2}}) {
      SCOPED_TRACE(describe_layout(with_layout(model, degrees)) + (tied ? ", tied" : ""));
      expect_same(measured(with_layout(model, degrees)), truth);
    }
  }
}

TEST(WorkerNorms, OfOtherModelsAreThoseOfEachWorkersSamples) {
  at::set_num_threads(1);
  for (const Model& model : {tiny_gpt(4), tiny_bert(4), tiny_qwen3(4)}) {
    const GradientNorms truth = norms_of_parts(gradients_of_parts(tiny_input(model), 2));
    for (const Degrees& degrees :
         {Degrees{.data = 2}, Degrees{.tensor = 2, .data = 2},
          Degrees{.tensor = 2, .pipeline = 2, .data = 2, .zero = 1, .sequence_parallel = true}}) {
      SCOPED_TRACE(model.name + ", " + describe_layout(with_layout(model, degrees)));
      expect_same(measured(with_layout(model, degrees)), truth);
    }
    Step split = with_layout(model, {.pipeline = 2, .data = 2, .zero = 1});
    split.schedule = "zb-h2";
    expect_same(measured(split), truth);
  }
}

TEST(WorkerNorms, UnderZero2And3AreThoseOfEachMicroBatch) {
  at::set_num_threads(1);
  const Model model = tiny_llama(4, false);
  const GradientNorms truth = norms_of_parts(gradients_of_parts(tiny_input(model), 8));
  for (const Degrees& degrees :
       {Degrees{.data = 2, .zero = 2}, Degrees{.data = 2, .zero = 3}, Degrees{.pipeline = 2, .data = 4, .zero = 2},
        Degrees{.tensor = 2, .pipeline = 2, .data = 2, .zero = 3}}) {
    SCOPED_TRACE(describe_layout(with_layout(model, degrees)));
    expect_same(measured(with_layout(model, degrees)), truth);
  }
}

TEST(WorkerNorms, AreTheSameInEverySchedule) {
  at::set_num_threads(1);
  const Model model = tiny_llama(4, false);
  const GradientNorms truth = norms_of_parts(gradients_of_parts(tiny_input(model), 2));
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "zb-h2", "terapipe"}) {
    SCOPED_TRACE(schedule);
    Step input = with_layout(model, {.pipeline = 2, .data = 2});
    input.schedule = schedule;
    if (input.schedule == "terapipe") input.slices = 2;
    input.clip_norm = 0.5;
    expect_same(measured(input), truth);
  }
  for (const char* schedule : {"zb-v", "dualpipe-v"}) {
    SCOPED_TRACE(schedule);
    Step input = with_layout(model, {.pipeline = 2, .data = 2, .chunks = 2});
    input.schedule = schedule;
    expect_same(measured(input), truth);
  }
}

// Its two copies of the model are two workers.
TEST(WorkerNorms, OfChimeraAreThoseOfItsCopies) {
  at::set_num_threads(1);
  Step input = with_layout(tiny_llama(4, false), {.pipeline = 2});
  input.schedule = "chimera";
  const GradientNorms norms = measured(input);
  EXPECT_EQ(norms.workers, 2);
  const Gradient whole = gradients_of_parts(tiny_input(input.model), 1).front();
  EXPECT_NEAR(norms.square_of_mean, square_of(whole), 1e-11 * square_of(whole));
  EXPECT_GT(norms.sum_of_squares, 2 * norms.square_of_mean);
  // One copy has the even micro-batches, the other the odd ones: means of gradients of single samples.
  const std::vector<Gradient> each = gradients_of_parts(tiny_input(input.model), 8);
  expect_same(norms, norms_of_parts({mean_of({each[0], each[2], each[4], each[6]}),
                                     mean_of({each[1], each[3], each[5], each[7]})}));
}

TEST(WorkerNorms, AreRefusedWhereNoWorkersGradientIsEverThere) {
  const auto why = [](Step step) {
    step.worker_norms = true;
    std::string reasons;
    for (const Refusal& refusal : refusals(step)) reasons += text_of(refusal);
    EXPECT_EQ(reasons.empty(), legal(step));
    return reasons;
  };
  const auto of = [](const Degrees& degrees, bool tied = false) { return with_layout(tiny_llama(2, tied), degrees); };
  EXPECT_EQ(why(of({.data = 2})), "");
  EXPECT_EQ(why(of({.tensor = 2, .data = 2, .zero = 2})), "");
  EXPECT_THAT(why(of({})), HasSubstr("one data parallel worker"));
  EXPECT_THAT(why(of({.data = 2, .context = 2})), HasSubstr("set layout.context to 1"));
  EXPECT_THAT(why(of({.tensor = 2, .data = 2, .zero = 2, .sequence_parallel = true})),
              HasSubstr("set layout.zero to 1"));
  EXPECT_THAT(why(of({.data = 2, .zero = 3}, true)), HasSubstr("tied embedding"));
  EXPECT_THAT(why(with_layout(tiny_qwen3(2, false), {.tensor = 2, .data = 2, .zero = 2})),
              HasSubstr("gradients of norms"));
  Step sliced = of({.pipeline = 2, .data = 2, .zero = 2});
  sliced.schedule = "terapipe";
  sliced.slices = 2;
  EXPECT_THAT(why(sliced), HasSubstr("slice"));
  // A micro-batch's part would contain what others' input gradients have added to norms and biases meanwhile.
  Step split = of({.pipeline = 2, .data = 2, .zero = 2});
  split.schedule = "zb-h2";
  EXPECT_THAT(why(split), HasSubstr("splits the backward"));
  split.layout.zero = 1;
  EXPECT_EQ(why(split), "");
}

Grown grown(const Step& input, const BatchSchedule& schedule) {
  Bundle bundle = growing_bundle(input, schedule);
  bundle.run.steps = 6;
  return train_growing(bundle);
}

TEST(GrowingBatch, GivesEveryLayoutTheLossesOfOneProcess) {
  const Model model = tiny_llama(4, true);
  const Grown one = grown(tiny_input(model), in_stages());
  EXPECT_EQ(one.batches, (std::vector<std::int64_t>{4, 4, 8, 8, 16, 16}));
  for (const Degrees& degrees : {Degrees{.data = 2, .zero = 1},
                                 Degrees{.tensor = 2, .pipeline = 2, .data = 2, .zero = 2, .sequence_parallel = true},
                                 Degrees{.pipeline = 2, .data = 2, .zero = 3}, Degrees{.pipeline = 2, .chunks = 2}}) {
    SCOPED_TRACE(describe_layout(with_layout(model, degrees)));
    const Grown many = grown(with_layout(model, degrees), in_stages());
    for (std::size_t step = 0; step < one.losses.size(); ++step)
      EXPECT_NEAR(many.losses[step], one.losses[step], 1e-9 * one.losses[step]) << step;
  }
}

// All have equally many workers; their measurements decide.
TEST(GrowingBatch, ByTheNormTestIsTheSameInEveryLayout) {
  const Model model = tiny_llama(4, false);
  const BatchSchedule schedule = by_norm_test(0.4);
  const Grown first = grown(with_layout(model, {.data = 2}), schedule);
  EXPECT_EQ(first.batches.front(), 4);
  EXPECT_GT(first.batches.back(), 4);
  for (const Degrees& degrees : {Degrees{.data = 2, .zero = 1}, Degrees{.pipeline = 2, .data = 2},
                                 Degrees{.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true}}) {
    SCOPED_TRACE(describe_layout(with_layout(model, degrees)));
    const Grown other = grown(with_layout(model, degrees), schedule);
    EXPECT_EQ(other.batches, first.batches);
    for (std::size_t step = 0; step < first.losses.size(); ++step)
      EXPECT_NEAR(other.losses[step], first.losses[step], 1e-9 * first.losses[step]) << step;
  }
}

}  // namespace
}  // namespace slipway::test
