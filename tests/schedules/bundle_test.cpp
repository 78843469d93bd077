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
#include "schedules/fill/evaluation.h"
#include "schedules/fill/kfac.h"
#include "schedules/lower/lowering.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "tests/support/hand_graph.h"
#include "tests/support/same_graph.h"

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
  EXPECT_EQ(copy.graph.step.model, original.graph.step.model);
  EXPECT_EQ(difference(copy.graph, original.graph), "");
}

// Passes take uneven times, so that the order is not that of equal ones.
TaskGraph unevenly_ordered(const Step& step) {
  if (!legal(step)) throw std::invalid_argument(text_of(refusals(step).front()));
  TaskGraph graph = lower(step);
  Durations durations(std::vector<double>(graph.tasks.size(), 1.0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) durations[id] += 0.37 * static_cast<double>(id * 7919 % 11);
  set_global_order(graph, durations);
  return graph;
}

Model model_with_experts() {
  return llama("experts", {.layers = 8,
                           .hidden = 32,
                           .ffn = 24,
                           .heads = 4,
                           .kv_heads = 2,
                           .vocab = 256,
                           .sequence = 32,
                           .experts = 4,
                           .experts_per_token = 2});
}

std::string lost(const Step& step) {
  Bundle bundle;
  bundle.graph = unevenly_ordered(step);
  return difference(read(written(bundle)).graph, bundle.graph);
}

TEST(Bundle, HasTheWholeGraphOfEverySchedule) {
  int tried = 0;
  for (const Schedule& schedule : all_schedules()) {
    Step step = small_step();
    step.model = model_with_experts();
    step.layout = {.pipeline = 2, .data = 2};
    step.slices = 1;
    set_schedule(step, schedule);
    for (const int chunks : {1, 2, 3}) {
      step.layout.chunks = chunks;
      if (!legal(step)) continue;
      EXPECT_EQ(lost(step), "") << schedule.name << " of " << chunks;
      ++tried;
      Step imported = step;
      imported.actions = std::make_shared<const ActionLists>(action_lists(step));
      EXPECT_EQ(lost(imported), "") << "actions of " << schedule.name;
    }
  }
  EXPECT_GE(tried, std::ssize(all_schedules()));
}

TEST(Bundle, HasTheWholeGraphOfEveryKindOfLayout) {
  const auto lost_with = [](const std::function<void(Step&)>& change) {
    Step step = small_step();
    step.model = model_with_experts();
    step.global_batch = 16;
    change(step);
    return lost(step);
  };
  EXPECT_EQ(lost_with([](Step& s) { s.layout = {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .zero = 1}; }),
            "");
  EXPECT_EQ(lost_with([](Step& s) { s.layout = {.data = 4, .expert = 4, .zero = 2}; }), "");
  EXPECT_EQ(lost_with([](Step& s) {
              s.layout = {.tensor = 2, .data = 2, .expert = 2, .expert_tensor = 1, .sequence_parallel = true};
            }),
            "");
  EXPECT_EQ(lost_with([](Step& s) {
              s.layout = {.context = 2, .data = 2, .context_exchange = ContextExchange::ring};
              s.model = small_step().model;
            }),
            "");
  EXPECT_EQ(lost_with([](Step& s) {
              s.layout = {.pipeline = 2, .data = 2, .split = SplitKind::list, .split_list = {3, 5}};
              s.recompute = Recompute::full;
            }),
            "");
  EXPECT_EQ(
      lost_with([](Step& s) { s.layout = {.data = 2, .zero = 3}, s.clip_norm = 0, s.overlap_grad_reduce = false; }),
      "");
  EXPECT_EQ(lost_with([](Step& s) { s.layout = {.pipeline = 4}, s.blocking_transfers = true; }), "");
}

PricedCluster fast_cluster(const Step& step) {
  PricedCluster cluster = hand_cluster(1, rank_count(step.layout), 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) machine.peak_flops[static_cast<std::size_t>(dtype)] = 1e12;
  machine.memory_bandwidth = 1e12;
  return cluster;
}

// K-FAC's work, or held-out micro-batches, in the bubbles of steps or behind them.
Bundle filled_bundle(Step step, const FillOptions& options) {
  step.layout.tensor = 1;
  step.layout.sequence_parallel = false;
  step.dtype = Dtype::float32;
  const PricedCluster cluster = fast_cluster(step);
  TaskGraph graph = lower(step);
  const Durations durations = order_and_price(graph, cluster);
  const BubbleWork work =
      uses_kfac(step) ? kfac_bubble_work(graph, cluster) : evaluation_bubble_work(graph, cluster, durations, 3);
  Bundle bundle;
  bundle.graph = fill(graph, durations, work, options).graph;
  return bundle;
}

Bundle kfac_bundle(const FillOptions& options = {}, int data = 2) {
  Step step = small_step();
  step.layout.data = data;
  step.layout.zero = 0;
  step.global_batch = 4 * data;
  step.optimizer.name = "kfac";
  step.fill = options.use_bubbles ? Fill::kfac : Fill::none;
  return filled_bundle(step, options);
}

Bundle evaluating_bundle() {
  Step step = small_step();
  step.layout.zero = 0;
  step.fill = Fill::evaluation;
  return filled_bundle(step, {});
}

TEST(Bundle, HasTheBubbleWorkAndItsPlaces) {
  for (const int data : {1, 2})
    for (const FillOptions& options : {FillOptions{}, FillOptions{.use_bubbles = false, .steps = 3}}) {
      const Bundle bundle = kfac_bundle(options, data);
      EXPECT_GE(bundle.graph.window, options.steps);
      EXPECT_EQ(difference(read(written(bundle)).graph, bundle.graph), "") << data;
    }
  const Bundle evaluating = evaluating_bundle();
  EXPECT_EQ(difference(read(written(evaluating)).graph, evaluating.graph), "");
}

TEST(Bundle, AChangedByteIsRefusedByTheChecksum) {
  std::string text = written(small_bundle());
  const auto at = text.find("\nlayout ") + 8;
  text[at] = '9';
  EXPECT_THAT(failure(text), testing::HasSubstr("checksum does not match"));
}

TEST(Bundle, AnotherVersionIsRefusedWithTheCommandThatWritesItAgain) {
  for (const int step : {-1, 1}) {
    std::string text = written(small_bundle());
    const std::size_t at = std::string("slipway-bundle ").size(), end = text.find('\n');
    const std::string now = text.substr(at, end - at), other = std::to_string(std::stoi(now) + step);
    text.replace(at, end - at, other);
    EXPECT_THAT(failure(text),
                testing::AllOf(testing::HasSubstr("run.slip:1: bundle version " + other +
                                                  (step < 0 ? " of an older slipway" : " of a newer slipway")),
                               testing::HasSubstr("reads version " + now),
                               testing::HasSubstr("`slipway lower SCENARIO -o FILE`")));
  }
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
  EXPECT_EQ(difference(back.larger.at(0), growing().larger[0]), "");
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
std::string refusal(Bundle bundle, const std::function<void(TaskGraph&)>& change) {
  change(bundle.graph);
  return failure(written(bundle));
}

TEST(Bundle, AStepThatCannotBeLoweredIsRefusedThoughTheChecksumIsRight) {
  const auto refused = [](const std::function<void(TaskGraph&)>& change) { return refusal(small_bundle(), change); };
  const auto model_with = [](const std::function<void(Block&)>& change) {
    return [change](TaskGraph& graph) {
      Model model = graph.step.model;
      change(model.runs[1].block);
      graph.step.model = model;
    };
  };
  using testing::HasSubstr;
  EXPECT_EQ(refused([](TaskGraph&) {}), "");
  EXPECT_THAT(refused(model_with([](Block& b) { b.heads = 0; })), HasSubstr("heads is 0"));
  EXPECT_THAT(refused(model_with([](Block& b) { b.hidden = 1L << 62; })), HasSubstr("hidden is"));
  EXPECT_THAT(refused([](TaskGraph& g) {
                Model model = g.step.model;
                model.runs[1].count = 1'000'000;
                g.step.model = model;
              }),
              HasSubstr("more blocks or parameters than can be counted"));
  EXPECT_THAT(refused(model_with([](Block& b) { b.experts = 1'000'000'000, b.experts_per_token = 1; })),
              HasSubstr("experts is 1000000000"));
  EXPECT_THAT(refused(model_with([](Block& b) { b.mlp = static_cast<Mlp>(77); })), HasSubstr("no value of its enum"));
  EXPECT_THAT(refused(model_with([](Block& b) { b.heads = 5; })), HasSubstr("do not divide its heads"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.step.schedule = "no schedule"; }), HasSubstr("schedule"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.window = 1000; }), HasSubstr("fewer tasks than passes"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.window = 2; }), HasSubstr("a window of a step without bubble work"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.step.global_batch = 1L << 29; }), HasSubstr("fewer tasks than passes"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.step.layout.data = 4096; }), HasSubstr("fewer tasks than passes"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.step.global_batch *= 2; }), HasSubstr("tasks are missing"));
}

TEST(Bundle, AnOrderThatDoesNotGoWithTheStepIsRefused) {
  const auto refused = [](const std::function<void(TaskGraph&)>& change) { return refusal(small_bundle(), change); };
  using testing::HasSubstr;
  EXPECT_THAT(refused([](TaskGraph& g) { std::swap(g.order.front(), g.order.back()); }), HasSubstr("which it needs"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.order[1] = g.order[0]; }), HasSubstr("twice"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.order[1] = 1U << 31; }), HasSubstr("a task that is none"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.order.pop_back(); }), HasSubstr("tasks are missing"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.order.push_back(0); }), HasSubstr("the order names"));
  // A rank's first two forward passes need nothing of each other, but its schedule has them in this order.
  Bundle swapped;
  Step step = small_step();
  step.layout = {.pipeline = 2};
  swapped.graph = ordered(step);
  std::vector<TaskId>& order = swapped.graph.order;
  const auto place = [&](const std::string& label) {
    return std::find_if(order.begin(), order.end(), [&](TaskId id) { return label_of(swapped.graph, id) == label; });
  };
  std::rotate(place("0F0"), place("0F1"), place("0F1") + 1);
  EXPECT_THAT(failure(written(swapped)), HasSubstr("where the schedule has another task"));
}

// As where two machines have different versions, whose bundles have one format.
TEST(Bundle, AProgramThatMakesOtherTasksOfTheStepRefusesItRatherThanRunThem) {
  using testing::HasSubstr;
  const std::string other = "makes other tasks of the bundle's step";
  const auto refused = [](const std::function<void(TaskGraph&)>& change) { return refusal(small_bundle(), change); };
  EXPECT_THAT(refused([](TaskGraph& g) { std::swap(g.tasks[3], g.tasks[4]); }), HasSubstr(other));
  EXPECT_THAT(refused([](TaskGraph& g) { g.communicators[0].ranks[1] = 7; }), HasSubstr(other));
  EXPECT_THAT(refused([](TaskGraph& g) { g.works[1].last_op += 1; }), HasSubstr(other));
  EXPECT_THAT(refused([](TaskGraph& g) { g.stage_operators[0][0].kind = OpKind::communicate; }), HasSubstr(other));
  EXPECT_EQ(refused([](TaskGraph& g) { g.works[1].bytes *= 1 + 1e-15; }), "") << "as another compiler rounds";
}

TEST(Bundle, BubbleWorkThatPointsNowhereIsRefused) {
  const Bundle sound = kfac_bundle();
  const auto refused = [&](const std::function<void(TaskGraph&)>& change) { return refusal(sound, change); };
  using testing::HasSubstr;
  EXPECT_EQ(refused([](TaskGraph&) {}), "");
  EXPECT_THAT(refused([](TaskGraph& g) { g.tasks.back().work = 1 << 30; }), HasSubstr("points outside"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.tasks.back().work = 0; }), HasSubstr("points outside"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.tasks.back().communicator = 1 << 30; }), HasSubstr("points outside"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.tasks.back().step = g.window; }), HasSubstr("points outside"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.predecessors.values.back() = 1U << 31; }), HasSubstr("points outside"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.works.back().kind = WorkKind::segment; }), HasSubstr("that are none"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.works.back().bytes = -1; }), HasSubstr("that are none"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.works.back().stage = 99; }), HasSubstr("that are none"));
  EXPECT_THAT(refused([](TaskGraph& g) {
                g.communicators.back().ranks = {0, 99};
              }),
              HasSubstr("a group of bubble work"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.buffers.back().writer = none; }), HasSubstr("what bubble work keeps"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.buffers.back().bytes = -4; }), HasSubstr("what bubble work keeps"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.static_bytes[0].weights = 0; }), HasSubstr("the memory"));
  EXPECT_THAT(refused([](TaskGraph& g) { g.static_bytes.pop_back(); }), HasSubstr("another number of ranks"));
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
  const std::size_t order = text.find("\norder ");
  int tried = 0, refused = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const auto [at, length] = numbers[i];
    if (at > order && i % 199 != 0) continue;  // of those of tasks, some
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
