// The count before a graph, the timeline of a graph's buffers and the closed form of Fujii et al. 2024 agree.
#include <gtest/gtest.h>

#include "scenarios/commands/memory/report.h"
#include "schedules/time/replay.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

class MemoryTermsOf : public testing::Test {
 protected:
  Scenario scenario(const std::vector<std::string>& overrides) {
    folder_.write("box.yaml", test_machine());
    LoadResult loaded = folder_.load(sound_scenario(), overrides);
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    return loaded.scenario;
  }
  ScenarioFolder folder_;
};

const std::vector<std::vector<std::string>> layouts{
    {},
    {"schedule.kernels=torch"},
    {"schedule.kernels=torch", "schedule.recompute=selective"},
    {"schedule.recompute=full"},
    {"layout.sequence_parallel=true", "layout.zero=1", "schedule.global_batch=32"},
    {"layout.pipeline=4", "schedule.name=gpipe", "layout.zero=0"},
    {"layout.pipeline=4", "schedule.name=interleaved-1f1b", "layout.chunks=2", "layout.data=1"},
    {"layout.pipeline=1", "layout.context=2", "layout.data=2", "layout.zero=2"},
    {"layout.pipeline=1", "schedule.recompute=full"}};

// Within 3 % on the terms that both count.
TEST_F(MemoryTermsOf, TheTimelineAgreesWithTheCountOnEveryRankWithin3Percent) {
  for (const auto& overrides : layouts) {
    const Scenario s = scenario(overrides);
    const PreparedStep prepared = prepared_step(s);
    const MemoryReport report = memory_report(prepared, replay(prepared.graph, prepared.durations));
    const std::vector<StageTerms> counted = counted_memory(s);
    for (std::size_t stage = 0; stage < report.stages.size(); ++stage) {
      const MemoryParts& count = counted[stage].parts;
      // Added up there, the larger of the two on the timeline.
      if (s.step.recompute == Recompute::full && count[MemoryPart::logits] > 0) continue;
      const MemoryParts& seen = report.stages[stage].timeline;
      const auto shared = [](const MemoryParts& parts) {
        return sum(parts) - parts[MemoryPart::messages] - parts[MemoryPart::gradient_buckets] -
               parts[MemoryPart::gathered_weights];
      };
      // With a block's unreduced gradient or gathered weights a rank may be fullest at another task, where less is
      // kept.
      const double with_buckets = sum(seen) - seen[MemoryPart::messages];
      EXPECT_LT(shared(seen) / shared(count), 1.03) << testing::PrintToString(overrides) << " rank " << stage;
      EXPECT_GT(with_buckets / shared(count), 0.97) << testing::PrintToString(overrides) << " rank " << stage;
    }
  }
}

// On the first rank, beside the embedding input, which is the author's own term.
TEST_F(MemoryTermsOf, TheClosedFormAgreesWithTheCountWithin3Percent) {
  int described = 0;
  for (const auto& overrides : layouts) {
    const Scenario s = scenario(overrides);
    std::string why;
    const std::optional<MemoryTerms> closed = closed_form_of(s, &why);
    EXPECT_NE(closed.has_value(), !why.empty());
    if (!closed || writes_scores(s.step.kernels) || s.step.layout.context > 1) continue;
    const MemoryParts count = counted_memory(s)[0].parts;
    const double without = total_bytes(*closed) - closed->embedding_input;
    const double copies = count[MemoryPart::norm_copies];  // norms without a kernel of their own, which the form lacks
    EXPECT_NEAR(sum(count) - copies, without, 0.03 * without) << testing::PrintToString(overrides);
    ++described;
  }
  EXPECT_GE(described, 2);
}

TEST_F(MemoryTermsOf, AModelOfAnotherFamilyHasNoClosedFormButACount) {
  const Scenario s = scenario({"model={name: gpt2, vocab: 50304}", "schedule.micro_batch=2"});
  EXPECT_FALSE(closed_form_of(s));
  EXPECT_GT(counted_memory(s)[0].parts[MemoryPart::mlp], 0);
}

}  // namespace
}  // namespace slipway::test
