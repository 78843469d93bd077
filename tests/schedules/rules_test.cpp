// The rule book: each rule refuses what it is for, under its key, and a legal step is one that the lowering can make.
// How refusals look in a scenario's file is in tests/scenarios/scenario_errors_test.cpp.
#include "schedules/rules/rules.h"
#include "models/machine/priced_cluster.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/hand_graph.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Step sound() {
  Step step;
  step.model = tiny_llama(8, false);
  step.layout = {.tensor = 2, .pipeline = 2, .data = 2};
  step.global_batch = 16;
  step.dtype = Dtype::float32;
  return step;
}

struct Mistake {
  const char* key;
  const char* problem;
  std::function<void(Step&)> make;
};

TEST(Rules, EachRefusesItsMistakeUnderItsKeyAndNoOther) {
  const std::vector<Mistake> mistakes{
      {"layout.expert", "no experts to divide", [](Step& s) { s.layout.expert = 2; }},
      {"layout.sequence_parallel", "layout.tensor is 1",
       [](Step& s) { s.layout.tensor = 1, s.layout.sequence_parallel = true; }},
      {"layout.tensor", "K-FAC's factors", [](Step& s) { s.optimizer.name = "kfac"; }},
      {"layout.zero", "ZeRO shards",
       [](Step& s) { s.layout.tensor = 1, s.layout.zero = 1, s.optimizer.name = "kfac"; }},
      {"schedule.fill", "no K-FAC work", [](Step& s) { s.fill = Fill::kfac; }},
      {"schedule.fill", "one kind of work",
       [](Step& s) { s.layout.tensor = 1, s.fill = Fill::evaluation, s.optimizer.name = "kfac"; }},
      {"layout.tensor", "evaluation", [](Step& s) { s.fill = Fill::evaluation; }},
      {"layout.context", "evaluation",
       [](Step& s) { s.layout.tensor = 1, s.layout.context = 2, s.fill = Fill::evaluation; }},
      {"layout.tensor", "does not divide model.heads", [](Step& s) { s.layout.tensor = 8; }},
      {"layout.context", "does not divide model.sequence", [](Step& s) { s.layout.context = 3; }},
      {"layout.context", "two pieces", [](Step& s) { s.layout.context = 16; }},
      {"layout.context_exchange", "log-sum-exp",
       [](Step& s) { s.layout.context_exchange = ContextExchange::ring, s.kernels = Kernels::torch; }},
      {"layout.pipeline", "more than the model's 8", [](Step& s) { s.layout.pipeline = 16; }},
      {"layout.split", "negative number of layers",
       [](Step& s) {
         s.layout.split = SplitKind::list, s.layout.split_list = {9, -1};
       }},
      {"schedule.overlap_tensor", "all-reduces",
       [](Step& s) { s.overlap_tensor = true, s.layout.sequence_parallel = false; }},
      {"schedule.group", "has no groups", [](Step& s) { s.group = 4; }},
      {"schedule.name", "less than layout.pipeline = 2",
       [](Step& s) { s.schedule = "interleaved-1f1b", s.layout.chunks = 2, s.group = 1; }},
      {"layout.split", "3 numbers for 2 stages",
       [](Step& s) {
         s.layout.split = SplitKind::list, s.layout.split_list = {4, 3, 1};
       }},
      {"layout.split", "adds up to 7",
       [](Step& s) {
         s.layout.split = SplitKind::list, s.layout.split_list = {4, 3};
       }},
      {"schedule.micro_batch", "more than can be counted",
       [](Step& s) { s.micro_batch = std::int64_t{1} << 50, s.global_batch = std::int64_t{1} << 51; }},
      {"schedule.global_batch", "not divisible", [](Step& s) { s.global_batch = 15; }},
      {"schedule.global_batch", "micro-batches per pipeline",
       [](Step& s) { s.global_batch = 2 * (most_micro_batches + 1); }},
      {"schedule.name", "needs causal attention",
       [](Step& s) { s.model = tiny_bert(8), s.schedule = "terapipe", s.slices = 2; }},
      {"schedule.slices", "does not divide model.sequence", [](Step& s) { s.schedule = "terapipe", s.slices = 3; }},
      {"layout.zero", "different copies", [](Step& s) { s.schedule = "chimera", s.layout.zero = 2; }},
      {"layout.context", "both cut the sequence",
       [](Step& s) { s.schedule = "terapipe", s.slices = 2, s.layout.context = 2; }},
      {"schedule.recompute", "make again",
       [](Step& s) { s.schedule = "terapipe", s.slices = 2, s.recompute = Recompute::full; }},
      {"schedule.name", "", [](Step& s) { s.schedule = "zb-v"; }},
      {"training.growth.rule", "one data parallel worker", [](Step& s) { s.worker_norms = true, s.layout.data = 1; }},
  };
  ASSERT_THAT(refusals(sound()), IsEmpty());
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(std::string(mistake.key) + " " + mistake.problem);
    Step step = sound();
    mistake.make(step);
    const std::vector<Refusal> found = refusals(step);
    ASSERT_EQ(found.size(), 1U) << (found.size() > 1 ? text_of(found[1]) : "");
    EXPECT_EQ(found[0].key, mistake.key);
    EXPECT_THAT(found[0].problem, HasSubstr(mistake.problem));
    EXPECT_NE(found[0].remedy, "");
    EXPECT_FALSE(legal(step));
  }
}

TEST(Rules, OfAClusterNeedItsRanksItsDtypesAndItsNodes) {
  PricedCluster cluster = hand_cluster(1, 8, 1e11, 1e-6);
  cluster.groups.front().machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e13;
  const Step step = sound();
  ASSERT_THAT(refusals(step, cluster), IsEmpty());
  const auto keys = [&](auto change) {
    Step changed = step;
    change(changed);
    std::vector<std::string> keys;
    for (const Refusal& refusal : refusals(changed, cluster)) keys.push_back(refusal.key);
    return keys;
  };
  EXPECT_THAT(keys([](Step& s) { s.layout.data = 4; }), ElementsAre("layout.data"));
  EXPECT_THAT(keys([](Step& s) { s.layout.placement = {1}; }), ElementsAre("layout.placement"));
  EXPECT_THAT(keys([](Step& s) { s.dtype = Dtype::bfloat16; }), ElementsAre("run.dtype"));
  cluster.fabrics.clear();
  EXPECT_THAT(keys([](Step&) {}), ElementsAre("cluster.fabrics"));
}

// One mistake makes one refusal: a rule that reads a refused key is not asked.
TEST(Rules, AreNotAskedAboutKeysThatAreNotGood) {
  Step step = sound();
  step.layout.tensor = 8;
  step.global_batch = 15;
  const auto all_but = [](std::string_view bad) { return [bad](std::string_view key) { return key != bad; }; };
  EXPECT_EQ(refusals(step).size(), 2U);
  EXPECT_EQ(refusals(step, all_but("layout.tensor")).size(), 1U);
  EXPECT_EQ(refusals(step, all_but("model")).front().key, "schedule.global_batch");
}

Step drawn(std::mt19937& random) {
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  Step step;
  step.model = random() % 4 == 0 ? tiny_bert(4) : tiny_llama(4, random() % 2 == 0);
  step.layout = {.tensor = one_of(1, 2, 3),
                 .pipeline = one_of(1, 2, 4),
                 .chunks = one_of(1, 1, 2),
                 .context = one_of(1, 1, 2),
                 .data = one_of(1, 2),
                 .sequence_parallel = random() % 2 == 0,
                 .zero = one_of(0, 1, 2, 3)};
  step.schedule = all_schedules()[random() % all_schedules().size()].name;
  step.slices = one_of(1, 1, 2);
  step.micro_batch = one_of(1, 2);
  step.global_batch = one_of(4, 8, 12);
  step.dtype = Dtype::float32;
  step.recompute = one_of(Recompute::none, Recompute::selective, Recompute::full);
  if (random() % 4 == 0) step.optimizer.name = "kfac";
  step.worker_norms = random() % 4 == 0;
  step.clip_norm = one_of(0.0, 1.0);
  return step;
}

TEST(Rules, ALegalStepHasNoRefusalAndCanBeLowered) {
  std::mt19937 random(7);
  int lowered = 0;
  for (int i = 0; i < 3000; ++i) {
    const Step step = drawn(random);
    const std::vector<Refusal> found = refusals(step);
    ASSERT_EQ(legal(step), found.empty()) << (found.empty() ? "" : text_of(found.front()));
    if (!found.empty()) continue;
    ++lowered;
    TaskGraph graph = lower(step);
    set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1)));
    for (const Violation& violation : check_graph(graph)) ADD_FAILURE() << step.schedule << ": " << violation.message;
  }
  EXPECT_GT(lowered, 100);
}

// A search asks rules as keys are decided; all of them together must be the whole book.
TEST(Rules, AskedInPartsSayWhatTheWholeBookSays) {
  const auto early = rules_without({"layout.zero", "schedule.name", "schedule.slices"});
  const auto all = rules_without({});
  const auto middle = rules_of({"schedule.name", "schedule.slices"}, {"layout.zero"}), late = rules_of({"layout.zero"});
  EXPECT_LT(early.size(), all.size());
  std::mt19937 random(8);
  int refused_early = 0;
  for (int i = 0; i < 2000; ++i) {
    Step step = drawn(random);
    if (!legal(step, early)) {
      ++refused_early;
      EXPECT_FALSE(legal(step));
      step.layout.zero = 0, step.schedule = "1f1b", step.slices = 1;  // no choice of these helps
      EXPECT_FALSE(legal(step));
    }
    EXPECT_EQ(legal(step, all), legal(step));
    EXPECT_EQ(legal(step, early) && legal(step, middle) && legal(step, late), legal(step));
  }
  EXPECT_GT(refused_early, 100);
}

TEST(Rules, ABatchThatIsTakenIsOneWithWhichTheStepIsLegal) {
  std::mt19937 random(9);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    Step step = drawn(random);
    if (!legal(step)) continue;
    for (std::int64_t batch = 1; batch <= 24; ++batch) {
      const bool takes = takes_batch(step, batch);
      step.global_batch = batch;
      EXPECT_EQ(takes, legal(step)) << step.schedule << " " << batch;
      taken += takes;
    }
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace slipway::test
