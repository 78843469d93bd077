#include "schedules/step/step.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

Step of(std::int64_t micro_batch, int data, std::int64_t global_batch) {
  Step step;
  step.model = tiny_llama(4, false);
  step.layout.data = data;
  step.micro_batch = micro_batch;
  step.global_batch = global_batch;
  return step;
}

TEST(Step, EachPipelineHasTheBatchDividedByMicroBatchAndReplicas) {
  EXPECT_EQ(micro_batches_of(of(2, 4, 64)), 8);
  EXPECT_EQ(micro_batches_of(of(1, 1, 1)), 1);
  EXPECT_THROW(micro_batches_of(of(2, 4, 60)), std::invalid_argument);
  EXPECT_THROW(micro_batches_of(of(0, 4, 64)), std::invalid_argument);
}

TEST(Step, TheWorkOfASliceHasItsShareOfTheSequence) {
  Step step = of(2, 1, 8);
  step.layout.tensor = 2;
  step.slices = 4;
  step.dtype = Dtype::float16;
  const WorkShape shape = work_shape(step);
  EXPECT_EQ(shape.sequence, step.model->sequence / 4);
  EXPECT_EQ(shape.micro_batch, 2);
  EXPECT_EQ(shape.sharding.tensor, 2);
  EXPECT_EQ(shape.dtype, Dtype::float16);
}

TEST(Step, ActionsAreThoseOfTheNamedScheduleUnlessThereAreImportedOnes) {
  Step step = of(1, 1, 4);
  step.layout.pipeline = 2;
  step.schedule = "gpipe";
  EXPECT_EQ(action_lists(step), schedule_named("gpipe")->actions(schedule_shape(step)));
  const ActionLists imported{{{Pass::forward, 0, 0}, {Pass::backward, 0, 0}}};
  step.actions = std::make_shared<const ActionLists>(imported);
  EXPECT_EQ(action_lists(step), imported);
}

TEST(Step, AnUnknownOrRefusingScheduleHasNoActions) {
  Step step = of(1, 1, 4);
  step.schedule = "sideways";
  EXPECT_THROW(action_lists(step), std::invalid_argument);
  step.schedule = "zb-v";  // needs two chunks
  EXPECT_THROW(action_lists(step), std::invalid_argument);
}

TEST(Step, CopiesShareTheirModelAndEqualModelsAreEqual) {
  const Step one = of(1, 1, 4), copy = one;
  EXPECT_EQ(&*one.model, &*copy.model);
  EXPECT_TRUE(one.model == of(1, 1, 4).model);
  EXPECT_FALSE(one.model == SharedModel(tiny_llama(5, false)));
}

}  // namespace
}  // namespace slipway::test
