// Attention in parts, with either kernel, against PyTorch's whole attention and its autograd.
#include "exec/operators/partial_attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace slipway::test {
namespace {

constexpr std::int64_t tokens = 6;  // of a part

struct Whole {
  at::Tensor q, k, v, out_gradient, out;
  AttentionGradients gradients;
};

// Two parts of keys and values, half as many heads of them; masked: the queries are those of the last part.
Whole whole_of(bool masked) {
  at::manual_seed(1);
  const auto draw = [](std::int64_t heads, std::int64_t length) {
    return at::randn({2, heads, length, 8}, at::kDouble).requires_grad_(true);
  };
  Whole whole{draw(4, tokens), draw(2, 2 * tokens), draw(2, 2 * tokens), at::Tensor(), at::Tensor(), {}};
  at::Tensor seen = at::ones({tokens, 2 * tokens}, at::kBool);
  if (masked) seen = seen.tril(tokens);
  at::AutoGradMode recording(true);
  whole.out =
      at::scaled_dot_product_attention(whole.q, whole.k.repeat_interleave(2, 1), whole.v.repeat_interleave(2, 1), seen);
  whole.out_gradient = at::randn_like(whole.out.detach());
  const auto found = torch::autograd::grad({whole.out}, {whole.q, whole.k, whole.v}, {whole.out_gradient});
  whole.gradients = {found[0], found[1], found[2]};
  return whole;
}

class Kernels : public testing::TestWithParam<PartKernel> {};

TEST_P(Kernels, OfPartsMakeWholeAttentionAndItsGradients) {
  for (const bool masked : {false, true}) {
    const Whole whole = whole_of(masked);
    at::NoGradGuard no_grad;
    const auto part = [](const at::Tensor& x, int i) { return x.detach().narrow(2, i * tokens, tokens); };
    const at::Tensor q = whole.q.detach();
    // The part with the mask first, as on a ring.
    at::Tensor running = running_attention(attend_to_part(q, part(whole.k, 1), part(whole.v, 1), masked, GetParam()));
    merge_into(running, attend_to_part(q, part(whole.k, 0), part(whole.v, 0), false, GetParam()), 0);
    const PartialAttention all = whole_attention(running, at::kDouble);
    EXPECT_TRUE(at::allclose(all.out, whole.out.detach(), 1e-12, 1e-12));
    at::Tensor query_gradient = at::zeros_like(q);
    for (const int i : {0, 1}) {
      const AttentionGradients found = gradients_of_part(whole.out_gradient, q, part(whole.k, i), part(whole.v, i), all,
                                                         masked && i == 1, GetParam());
      query_gradient += found.q;
      EXPECT_TRUE(at::allclose(found.k, part(whole.gradients.k, i), 1e-12, 1e-12)) << "part " << i;
      EXPECT_TRUE(at::allclose(found.v, part(whole.gradients.v, i), 1e-12, 1e-12)) << "part " << i;
    }
    EXPECT_TRUE(at::allclose(query_gradient, whole.gradients.q, 1e-12, 1e-12));
  }
}

// Only the second half of the queries sees what is merged.
TEST_P(Kernels, MergeIntoSomeOfTheQueriesLeavesTheOthers) {
  at::NoGradGuard no_grad;
  const Whole whole = whole_of(false);
  const at::Tensor q = whole.q.detach(), k = whole.k.detach().narrow(2, 0, tokens),
                   v = whole.v.detach().narrow(2, 0, tokens);
  at::Tensor running = running_attention(attend_to_part(q, k, v, true, GetParam()));
  const at::Tensor before = running.clone();
  merge_into(running, attend_to_part(q.narrow(2, 3, 3), k, v, false, GetParam()), 3);
  EXPECT_TRUE(at::equal(running.narrow(2, 0, 3), before.narrow(2, 0, 3)));
  EXPECT_FALSE(at::allclose(running.narrow(2, 3, 3), before.narrow(2, 3, 3)));
}

INSTANTIATE_TEST_SUITE_P(Part, Kernels, testing::Values(PartKernel::flash, PartKernel::plain),
                         [](const auto& info) { return info.param == PartKernel::flash ? "flash" : "plain"; });

TEST(PartKernels, TheProcessorHasAFlashKernelForEveryFormat) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
    EXPECT_EQ(part_kernel_for(at::empty({1, 1, 1, 8}, type)), PartKernel::flash);
}

}  // namespace
}  // namespace slipway::test
