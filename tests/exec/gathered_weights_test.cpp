#include "exec/operators/gathered_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "exec/operators/gathered_weights.h"
#include "exec/operators/region.h"

namespace slipway::test {
namespace {

TEST(GatheredWeights, HaveMemoryFromTheFirstUseToTheEndOfTheLast) {
  const at::Tensor flat = at::arange(6, at::kDouble), view = flat.narrow(0, 2, 2);
  const auto weights = std::make_shared<GatheredWeights>(flat);
  EXPECT_EQ(flat.storage().nbytes(), 0U);
  auto first = weights->use(), second = weights->use();
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(second.is_new);
  weights->target().copy_(at::full({6}, 7, at::kDouble));
  EXPECT_EQ(view[1].item<double>(), 7);
  first.hold.reset();
  EXPECT_TRUE(has_memory(flat));
  EXPECT_EQ(view[0].item<double>(), 7);
  second.hold.reset();
  EXPECT_EQ(flat.storage().nbytes(), 0U);
  EXPECT_TRUE(weights->use().is_new);
}

TEST(StorageMemory, IsHandedToANewTensorAndAViewFindsTheNext) {
  const at::Tensor flat = at::arange(4, at::kDouble), view = flat.narrow(0, 1, 2);
  const at::Tensor taken = take_memory(flat);
  EXPECT_FALSE(has_memory(flat));
  EXPECT_TRUE(at::equal(taken, at::arange(4, at::kDouble)));
  allocate_memory(flat);
  flat.zero_();
  view.add_(5);
  EXPECT_EQ(flat.sum().item<double>(), 10);
  EXPECT_EQ(taken.sum().item<double>(), 6);
}

// A forward saves the weight; the memory is freed and filled again by another gather, and the backward reads it.
TEST(GatheredWeights, SavedByAForwardAreFilledAgainForItsBackward) {
  const at::Tensor flat = at::zeros({3}, at::kDouble), values = at::arange(1, 4, at::kDouble);
  const auto weights = std::make_shared<GatheredWeights>(flat);
  const auto gathered = [&] {
    auto use = weights->use();
    weights->target().copy_(values);
    return use.hold;
  };
  Region region(true);
  {
    const auto hold = gathered();
    const at::Tensor x = region.enter(wire_residual, at::full({3}, 10, at::kDouble));
    region.leave(wire_residual, x * region.tap(flat, at::Tensor()), true);
  }
  EXPECT_FALSE(has_memory(flat));
  const auto hold = gathered();
  WireTensors gradients;
  gradients[index_of(wire_residual)] = at::ones({3}, at::kDouble);
  EXPECT_TRUE(at::equal(region.backward(gradients)[index_of(wire_residual)], values));
}

}  // namespace
}  // namespace slipway::test
