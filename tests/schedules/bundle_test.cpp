#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "schedules/bundle/bundle.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"

namespace slipway::test {
namespace {

TaskGraph ordered(const Step& step) {
  TaskGraph graph = lower(step);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

Step small_step() {
  Step input;
  input.model = llama("small \"quoted\" model",
                      {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
  input.layout = {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .zero = 1};
  input.micro_batch = 1;
  input.dtype = Dtype::float64;
  input.global_batch = 8;
  input.clip_norm = 0.3;
  return input;
}

Bundle small_bundle() {
  Bundle bundle;
  bundle.scenario = "small";
  bundle.graph = ordered(small_step());
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
  const std::size_t at = std::string("slipway-bundle ").size(), end = text.find('\n');
  const std::string now = text.substr(at, end - at);
  text.replace(at, end - at, std::to_string(std::stoi(now) + 1));
  EXPECT_THAT(failure(text), testing::AllOf(testing::HasSubstr("version " + now), testing::HasSubstr("run.slip:1")));
}

// Two batches of one model.
Bundle growing() {
  Bundle bundle = small_bundle();
  Step step = small_step();
  step.worker_norms = true;
  bundle.graph = ordered(step);
  step.global_batch *= 2;
  bundle.larger = {ordered(step)};
  bundle.batches = {.rule = BatchRule::norm_test, .rungs = {step.global_batch / 2, step.global_batch}, .eta = 0.3};
  return bundle;
}

TEST(Bundle, StepProgramsOfABatchThatGrowsComeBack) {
  const std::string text = written(growing());
  const Bundle back = read(text);
  EXPECT_EQ(written(back), text);
  EXPECT_EQ(program_of(back, back.larger[0].step.global_batch), 1);
  EXPECT_THROW(program_of(back, 3), std::out_of_range);
}

TEST(Bundle, StepProgramsOfABatchThatGrowsMustGoTogether) {
  const auto defect = [](const std::function<void(Bundle&)>& change) {
    Bundle bundle = growing();
    change(bundle);
    return ladder_defect(bundle.batches, programs_of(bundle));
  };
  using testing::HasSubstr;
  EXPECT_EQ(defect([](Bundle&) {}), "");
  EXPECT_THAT(defect([](Bundle& b) { b.batches.test_every = 0; }), HasSubstr("lacks a number"));
  EXPECT_THAT(defect([](Bundle& b) { b.batches.eta = 0; }), HasSubstr("lacks a number"));
  EXPECT_THAT(defect([](Bundle& b) { b.batches.rule = static_cast<BatchRule>(9); }), HasSubstr("is unknown"));
  EXPECT_THAT(defect([](Bundle& b) { b.batches.rungs.back() += 1; }), HasSubstr("not those of the batches"));
  EXPECT_THAT(defect([](Bundle& b) { b.larger[0].step.worker_norms = false; }), HasSubstr("measure"));
  EXPECT_THAT(defect([](Bundle& b) { b.larger[0].step.clip_norm += 1; }), HasSubstr("do not compute alike"));
  EXPECT_THAT(defect([](Bundle& b) { b.larger[0].window = 2; }), HasSubstr("bubble work"));
  EXPECT_THAT(defect([](Bundle& b) { b.batches.rungs.clear(); }), HasSubstr("no rule leads to"));
}

// Of what a file might say instead, each with a checksum of its own: what the executor would follow blindly.
TEST(Bundle, WhatTheLoweringDoesNotMakeIsRefusedThoughTheChecksumIsRight) {
  const auto refusal = [](const std::function<void(TaskGraph&)>& change) {
    Bundle bundle = small_bundle();
    change(bundle.graph);
    return failure(written(bundle));
  };
  const auto model_with = [](const std::function<void(Block&)>& change) {
    return [change](TaskGraph& graph) {
      Model model = graph.step.model;
      change(model.runs[1].block);
      graph.step.model = model;
    };
  };
  using testing::HasSubstr;
  EXPECT_EQ(refusal([](TaskGraph&) {}), "");
  EXPECT_THAT(refusal(model_with([](Block& b) { b.heads = 0; })), HasSubstr("heads is 0"));
  EXPECT_THAT(refusal(model_with([](Block& b) { b.hidden = 1L << 62; })), HasSubstr("hidden is"));
  EXPECT_THAT(refusal([](TaskGraph& g) {
                Model model = g.step.model;
                model.runs[1].count = 1'000'000;
                g.step.model = model;
              }),
              HasSubstr("more blocks or parameters than can be counted"));
  EXPECT_THAT(refusal(model_with([](Block& b) { b.experts = 1'000'000'000, b.experts_per_token = 1; })),
              HasSubstr("experts is 1000000000"));
  EXPECT_THAT(refusal(model_with([](Block& b) { b.mlp = static_cast<Mlp>(77); })), HasSubstr("no value of its enum"));
  EXPECT_THAT(refusal(model_with([](Block& b) { b.ffn *= 2; })), HasSubstr("not those of the step"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.tasks[5].work = -1; }), HasSubstr("a task's work points outside"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.buffers[2].writer = 1 << 30; }), HasSubstr("a buffer's rank or writer"));
  EXPECT_THAT(refusal([](TaskGraph& g) { std::swap(g.tasks[3], g.tasks[4]); }), HasSubstr("the tasks are not"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.communicators[0].ranks[1] = 7; }), HasSubstr("the groups of ranks"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.works[1].bytes += 1e9; }), HasSubstr("the works are not"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.buffers[1].bytes = -4; }), HasSubstr("the buffers are not"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.window = 1000; }), HasSubstr("fewer tasks than passes"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.step.global_batch = 1L << 29; }), HasSubstr("fewer tasks than passes"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.step.layout.data = 4096; }), HasSubstr("another number of ranks"));
  EXPECT_THAT(refusal([](TaskGraph& g) { std::swap(g.order.front(), g.order.back()); }), HasSubstr("which it needs"));
  EXPECT_THAT(refusal([](TaskGraph& g) { g.order[1] = g.order[0]; }), HasSubstr("twice"));
}

TEST(Bundle, ARunOfImpossibleNumbersIsRefused) {
  const auto refusal = [](const std::function<void(schedules::Run&)>& change) {
    Bundle bundle = small_bundle();
    change(bundle.run);
    return failure(written(bundle));
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](schedules::Run& run) { run.steps = 0; }), HasSubstr("the run's steps is 0"));
  EXPECT_THAT(refusal([](schedules::Run& run) { run.checkpoint_steps = -1; }), HasSubstr("checkpoint_steps is -1"));
  EXPECT_THAT(refusal([](schedules::Run& run) { run.checkpoints_kept = 0; }), HasSubstr("checkpoints_kept is 0"));
  for (const double wrong : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(refusal([&](schedules::Run& run) { run.heartbeat_s = wrong; }), HasSubstr("the run's heartbeat is"))
        << wrong;
}

// Numbers of `text` that are followed by nothing else, as (begin, length).
std::vector<std::pair<std::size_t, std::size_t>> numbers_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (end > at && text.find_first_not_of("0123456789.-+e", at) >= end) numbers.emplace_back(at, end - at);
    at = end + 1;
  }
  return numbers;
}

// FNV-1a, as the format has it.
std::string with_checksum(std::string text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return text + "checksum " + std::to_string(hash) + "\n";
}

// Reads a mutated file. Either it is refused, or it says all that it said before but for numbers that only the training
// uses (learning rate, seed): the lowering of its step is the graph in it.
void read_mutated(const std::string& text, int& refused) {
  std::istringstream in(text);
  try {
    const Bundle bundle = read_bundle(in, "run.slip");
    EXPECT_EQ(bundle.graph.tasks.size(), lower(bundle.graph.step).tasks.size());
  } catch (const std::runtime_error&) {
    ++refused;
  }
}

TEST(Bundle, OneChangedNumberIsRefusedOrHarmless) {
  std::string text = written(small_bundle());
  text.resize(text.rfind("checksum "));
  const auto numbers = numbers_of(text);
  const std::size_t graph = text.find("\ncommunicators ");
  int tried = 0, refused = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const auto [at, length] = numbers[i];
    if (at > graph && i % 199 != 0) continue;  // of those of tasks and buffers, some
    for (const char* value : {"0", "-1", "1", "3", "255", "4294967295", "9223372036854775807", "1e308", "nan"}) {
      if (text.compare(at, length, value) == 0) continue;
      std::string changed = text;
      read_mutated(with_checksum(changed.replace(at, length, value)), refused);
      ++tried;
    }
  }
  EXPECT_GT(tried, 1500);
  EXPECT_GT(refused, tried / 2);
}

// Of this process, at any time so far.
long peak_megabytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss / 1024;
}

// Each item of a list is hundreds of bytes in memory, and a lowered layer of many ranks is thousands.
TEST(Bundle, AShortFileIsNoReasonToAskForMuchMemory) {
  constexpr long much = 500;  // gigabytes otherwise; a sanitizer takes its share
  const long before = peak_megabytes();
  std::string counts = written(small_bundle());
  counts.resize(counts.rfind("larger 0"));
  counts += "larger 1400000\n" + std::string(3'000'000, ' ') + "\nend\n";
  EXPECT_NE(failure(with_checksum(counts)), "");
  EXPECT_LT(peak_megabytes() - before, much);
  Bundle layers = small_bundle();
  Model model = layers.graph.step.model;
  model.runs[1].count = 9998;
  layers.graph.step.model = model;
  EXPECT_THAT(failure(written(layers)), testing::HasSubstr("tasks are missing"));
  EXPECT_LT(peak_megabytes() - before, much);
}

TEST(Bundle, AFileCutShortIsRefused) {
  const std::string text = written(small_bundle());
  EXPECT_THAT(failure(text.substr(0, text.size() / 2)), testing::HasSubstr("cut short"));
  EXPECT_THAT(failure(""), testing::HasSubstr("not a bundle"));
  EXPECT_THAT(failure("hello"), testing::HasSubstr("not a bundle"));
}

}  // namespace
}  // namespace slipway::test
