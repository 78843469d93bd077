#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "schedules/graph/bundle.h"
#include "schedules/lower/lowering.h"

namespace slipway::test {
namespace {

Bundle small_bundle() {
  Step input;
  input.model = llama("small \"quoted\" model",
                      {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
  input.layout = {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .zero = 1};
  input.micro_batch = 1;
  input.dtype = Dtype::float64;
  input.global_batch = 8;
  input.clip_norm = 0.3;
  Bundle bundle;
  bundle.scenario = "small";
  bundle.graph = lower(input);
  set_global_order(bundle.graph, Durations(std::vector<double>(bundle.graph.tasks.size(), 1.0)));
  bundle.run.steps = 3;
  bundle.run.seed = 18446744073709551615ull;
  bundle.run.data = "/a path/with \\ and \"quotes\".txt";
  bundle.graph.step.optimizer.lr = 0.1;
  bundle.graph.step.optimizer.lr_schedule = {1L << 40, DecayStyle::cosine, 1L << 62, 1.0 / 3};
  return bundle;
}

std::string written(const Bundle& bundle) {
  std::ostringstream out;
  write_bundle(out, bundle);
  return out.str();
}

Bundle read(const std::string& text) {
  std::istringstream in(text);
  return read_bundle(in, "run.slip");
}

std::string failure(const std::string& text) {
  try {
    read(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Bundle, ReadingAndWritingAgainGivesTheSameBytes) {
  const std::string text = written(small_bundle());
  EXPECT_EQ(written(read(text)), text);
}

TEST(Bundle, WhatIsNotInTheTextIsDerivedAsTheLoweringMadeIt) {
  const Bundle original = small_bundle();
  const Bundle copy = read(written(original));
  EXPECT_EQ(copy.run.data, original.run.data);
  const LearningRateSchedule& rate = copy.graph.step.optimizer.lr_schedule;
  EXPECT_EQ(rate.warmup_samples, 1L << 40);
  EXPECT_EQ(rate.decay, DecayStyle::cosine);
  EXPECT_EQ(rate.decay_samples, 1L << 62);
  EXPECT_EQ(rate.least, 1.0 / 3);
  EXPECT_EQ(copy.graph.compute_order.values, original.graph.compute_order.values);
  EXPECT_EQ(copy.graph.successors.values, original.graph.successors.values);
  EXPECT_EQ(copy.graph.step.model, original.graph.step.model);
  ASSERT_EQ(copy.graph.stage_operators.size(), original.graph.stage_operators.size());
  for (TaskId id = 0; id < original.graph.tasks.size(); ++id) {
    ASSERT_EQ(label_of(copy.graph, id), label_of(original.graph, id));
  }
}

TEST(Bundle, AChangedByteIsRefusedByTheChecksum) {
  std::string text = written(small_bundle());
  const auto at = text.find("\nlayout ") + 8;
  text[at] = '9';
  EXPECT_THAT(failure(text), testing::HasSubstr("checksum does not match"));
}

TEST(Bundle, ANewerVersionIsRefusedByName) {
  std::string text = written(small_bundle());
  text.replace(text.find("slipway-bundle 19"), 17, "slipway-bundle 20");
  EXPECT_THAT(failure(text), testing::AllOf(testing::HasSubstr("version 19"), testing::HasSubstr("run.slip:1")));
}

// Two batches of one model. A change in the second, or in the rule, makes them incompatible.
Bundle growing() {
  Bundle bundle = small_bundle();
  bundle.graph.step.worker_norms = true;
  bundle.larger = {bundle.graph};
  bundle.larger[0].step.global_batch *= 2;
  bundle.batches = {.rule = BatchRule::norm_test,
                    .rungs = {bundle.graph.step.global_batch, 2 * bundle.graph.step.global_batch},
                    .eta = 0.3};
  return bundle;
}

TEST(Bundle, StepProgramsOfABatchThatGrowsComeBackAndMustGoTogether) {
  const std::string text = written(growing());
  std::istringstream in(text);
  const Bundle back = read_bundle(in, "run.slip");
  EXPECT_EQ(written(back), text);
  EXPECT_EQ(program_of(back, back.larger[0].step.global_batch), 1);
  EXPECT_THROW(program_of(back, 3), std::out_of_range);
  const auto refusal = [](const std::function<void(Bundle&)>& change) {
    Bundle bundle = growing();
    change(bundle);
    return failure(written(bundle));
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](Bundle& b) { b.batches.test_every = 0; }), HasSubstr("lacks a number"));
  EXPECT_THAT(refusal([](Bundle& b) { b.batches.eta = 0; }), HasSubstr("lacks a number"));
  EXPECT_THAT(refusal([](Bundle& b) { b.batches.rule = static_cast<BatchRule>(9); }), HasSubstr("is unknown"));
  EXPECT_THAT(refusal([](Bundle& b) { b.batches.rungs.back() += 1; }), HasSubstr("not those of the batches"));
  EXPECT_THAT(refusal([](Bundle& b) { b.larger[0].step.worker_norms = false; }), HasSubstr("measure"));
  EXPECT_THAT(refusal([](Bundle& b) { b.larger[0].step.clip_norm += 1; }), HasSubstr("do not compute alike"));
  EXPECT_THAT(refusal([](Bundle& b) { b.larger[0].window = 2; }), HasSubstr("bubble work"));
  EXPECT_THAT(refusal([](Bundle& b) { b.batches.rungs.clear(); }), HasSubstr("no rule leads to"));
}

TEST(Bundle, AFileCutShortIsRefused) {
  const std::string text = written(small_bundle());
  EXPECT_THAT(failure(text.substr(0, text.size() / 2)), testing::HasSubstr("cut short"));
  EXPECT_THAT(failure(""), testing::HasSubstr("not a bundle"));
  EXPECT_THAT(failure("hello"), testing::HasSubstr("not a bundle"));
}

}  // namespace
}  // namespace slipway::test
