// Prices of published rows: what they take from a row, what they do not, and why there is none.
#include "scenarios/tables/price.h"

#include <gmock/gmock.h>

#include <sstream>

#include "scenarios/tables/formats.h"

namespace slipway {
namespace {

using testing::HasSubstr;

PublishedRow hagemann(const std::string& fields) {
  std::istringstream in(
      "model,seq_len,gpus,micro_batch,tensor,pipeline,sequence_parallel,recompute,kernel,status,step_time_"
      "s\n" +
      fields + "\n");
  return read_table(in, "t.csv").rows.at(0);
}

const std::string best = "llama-13b,2048,64,1,1,1,0,none,flash2+rmsnorm,ok,";

TEST(Price, TheMeasuredTimeDoesNotEnterIt) {
  const RowPrice fast = price(hagemann(best + "26.5")), slow = price(hagemann(best + "99"));
  EXPECT_GT(fast.step_s, 0);
  EXPECT_EQ(fast.step_s, slow.step_s);
}

TEST(Price, ARunOutOfMemoryHasAPredictedTimeToo) {
  const RowPrice out = price(hagemann("llama-13b,2048,64,8,1,1,0,none,flash2+rmsnorm,oom,"));
  EXPECT_GT(out.step_s, 0);
  ASSERT_TRUE(out.memory.has_value());
  EXPECT_FALSE(out.memory->fits);
}

// 13B parameters with a vocabulary of 128,000; ZeRO-1 over 64: 2 + 2 + 12/64 bytes each; 5 % for counting
// norms.
TEST(Price, StaticBytesAreThoseOfTheBook) {
  const PublishedRow row = hagemann(best + "26.5");
  const RowPrice result = price(row);
  ASSERT_TRUE(result.memory.has_value()) << result.cannot_memory;
  const double parameters = static_cast<double>(parameter_count(row.model));
  EXPECT_NEAR(result.memory->static_bytes, parameters * (4 + 12.0 / 64),
              0.05 * result.memory->static_bytes);
  EXPECT_EQ(result.memory->capacity_bytes, 80.0 * 1024 * 1024 * 1024);
}

// Outside the fitted range there is a price, and it says what it was made of.
TEST(Price, ATrainerThatWasNeverFittedOnAMachineBorrowsTheConstantsOfTheMostAlike) {
  PublishedRow row = hagemann(best + "26.5");
  EXPECT_EQ(price(row).borrowed_from, "");
  row.machine = "h100-80gb";
  EXPECT_EQ(price(row).borrowed_from, "a100-80gb");
  EXPECT_LT(price(row).step_s, price(hagemann(best + "26.5")).step_s);  // three times the peak
  row.trainer = "megatron-core";
  row.machine = "h200";
  EXPECT_EQ(price(row).borrowed_from, "h100-94gb");
  row.machine = "a100-80gb";
  EXPECT_EQ(price(row).borrowed_from, "a100-40gb");
}

TEST(Price, AnUnknownMachineOrTrainerHasNoneAndAReason) {
  PublishedRow row = hagemann(best + "26.5");
  row.machine = "abacus";
  EXPECT_THAT(price(row).cannot, HasSubstr("no machine profile 'abacus'"));
  EXPECT_THAT(price(row).cannot_memory, HasSubstr("no machine profile 'abacus'"));
  row.trainer = "nobody";
  EXPECT_THAT(price(row).cannot, HasSubstr("no stack profile of trainer 'nobody'"));
}

TEST(Price, WhatAFormulaDoesNotPriceHasNoTimeAndAReasonButAVerdictOfMemory) {
  PublishedRow row = hagemann(best + "26.5");
  row.zero = 3;
  EXPECT_EQ(price(row).step_s, 0);
  EXPECT_THAT(price(row).cannot, HasSubstr("outside what the formula of aa-scaling prices: ZeRO 2 and 3"));
  EXPECT_TRUE(price(row).memory.has_value());
}

// Weights and gradients, 2 bytes each, and the replica's share of Adam's 12: of 40 layers on 16 stages the first has
// three, on 20 all have two.
TEST(Price, AStageThatHasALayerMoreHasItsBytesToo) {
  const auto bytes = [](const char* pipeline, const char* gpus) {
    return price(hagemann(std::string("llama-13b,2048,") + gpus + ",1,1," + pipeline + ",0,none,flash2+rmsnorm,ok,30"))
        .memory->static_bytes;
  };
  const PublishedRow row = hagemann(best + "26.5");
  const double layer = static_cast<double>(parameter_count(row.model.runs[1].block));
  EXPECT_NEAR(bytes("16", "1024") - bytes("20", "1280"), layer * (4 + 12.0 / 64), 1e-3 * layer);
}

TEST(Price, MoreStagesThanLayersAreRefused) {
  PublishedRow row = hagemann("llama-13b,2048,64,1,1,64,0,none,flash2,ok,30");
  EXPECT_EQ(row.unpriceable, "");
  EXPECT_THAT(price(row).cannot, HasSubstr("more pipeline stages than layers"));
}

}  // namespace
}  // namespace slipway
