// Bytes as Megatron-LM prints them, against the sources of the two workspaces and a count by hand.
#include "models/memory/printed_memory.h"

#include <gtest/gtest.h>

namespace slipway::test {
namespace {

constexpr double mebibyte = 1048576;

TEST(PrintedMemory, WorkspacesAreThoseOfPyTorchAndTransformerEngine) {
  // Two handles of cuBLAS: 4096 KiB × 2 + 16 KiB × 8 each until Ampere; 4096 KiB × 8 of Hopper and where it is set.
  EXPECT_EQ(workspace_bytes({.generation = Generation::ampere, .transformer_engine = false}), 2 * 8519680.0);
  EXPECT_EQ(workspace_bytes({.generation = Generation::ampere, .fixed_workspace = true, .transformer_engine = false}),
            64 * mebibyte);
  EXPECT_EQ(workspace_bytes({.generation = Generation::hopper, .transformer_engine = false}), 64 * mebibyte);
  EXPECT_EQ(workspace_bytes({.generation = Generation::ampere}), 2 * 8519680.0 + 4 * mebibyte);
  EXPECT_EQ(workspace_bytes({.generation = Generation::hopper}), 96 * mebibyte);
  EXPECT_EQ(workspace_bytes({.generation = Generation::blackwell}), 2 * 8519680.0 + 32 * mebibyte);
}

TEST(PrintedMemory, ThePeakHoldsTheLogitsWhileTheLossIsMade) {
  StageTerms terms;
  terms.parts[MemoryPart::weights] = 2000;
  terms.parts[MemoryPart::gradients] = 4000;
  terms.parts[MemoryPart::optimizer] = 12000;
  terms.parts[MemoryPart::mlp] = 500;
  terms.parts[MemoryPart::logits] = 77;  // counted otherwise
  terms.parameters = 1000;
  terms.heads_held = 1;
  terms.logits = 100;
  terms.hidden_cut = 10;
  terms.layers_kept = 3;
  const PrintedSettings settings{.generation = Generation::ampere, .transformer_engine = false, .dropout = true};
  const double workspaces = workspace_bytes(settings);
  const PrintedMemory printed = printed_memory(terms, settings);
  EXPECT_EQ(printed.allocated, 18000 + workspaces);
  EXPECT_EQ(printed.peak, 18000 + workspaces + 500 + 2 * 10 * 3 + 6 * 100);
  const PrintedSettings half{
      .generation = Generation::ampere, .transformer_engine = false, .logit_bytes = 10, .optimizer_more_bytes = 4};
  EXPECT_EQ(printed_memory(terms, half).allocated, 22000 + workspaces);
  EXPECT_EQ(printed_memory(terms, half).peak, 22000 + workspaces + 500 + 10 * 100);
}

}  // namespace
}  // namespace slipway::test
