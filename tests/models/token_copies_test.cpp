// Copies of tokens by hand, and messages of tokens against measured ones of DeepEP.
#include "models/model/token_copies.h"
#include "models/machine/ring.h"

#include <gtest/gtest.h>

#include "models/machine/collectives.h"

namespace slipway::test {
namespace {

TEST(TokenCopies, OfAnAllToAllAreOneForEachRow) {
  EXPECT_EQ(route_bytes({Dispatcher::alltoall, 8}, 4, 8), RouteBytes{});
  EXPECT_EQ(route_bytes({Dispatcher::deepep, 0}, 4, 8), RouteBytes{});
}

TEST(TokenCopies, GoToThePlacesThatHaveOneOfATokensExperts) {
  EXPECT_DOUBLE_EQ(places_hit({Dispatcher::deepep, 1}, 64), 1);
  EXPECT_DOUBLE_EQ(places_hit({Dispatcher::deepep, 2}, 2), 1.5);       // both at one place half of the time
  EXPECT_DOUBLE_EQ(places_hit({Dispatcher::deepep, 2, 0.5}, 4), 1.5);  // a router of groups reaches two places of four
  EXPECT_LT(places_hit({Dispatcher::deepep, 8, 0.5}, 8), 4);           // DeepSeek-V3: at most four nodes
}

TEST(TokenCopies, OfTheModelAreThoseOfItsRouter) {
  Model model = llama("experts", {.layers = 2,
                                  .hidden = 64,
                                  .ffn = 32,
                                  .heads = 4,
                                  .kv_heads = 4,
                                  .vocab = 128,
                                  .sequence = 64,
                                  .experts = 8,
                                  .experts_per_token = 2});
  EXPECT_EQ(token_traffic(model, Dispatcher::deepep), (TokenTraffic{Dispatcher::deepep, 2, 1}));
  for (BlockRun& run : model.runs) run.block.expert_groups = 4, run.block.groups_per_token = 2;
  EXPECT_EQ(token_traffic(model, Dispatcher::deepep), (TokenTraffic{Dispatcher::deepep, 2, 0.5}));
}

// Combine of DeepEP on H100 SXM, hidden 7168, 8 of 256 experts a token, 20 SMs
// (ai-dynamo/aiconfigurator@095f58a51, Apache-2.0). The shares of ports were taken from those of 4096 tokens.
TEST(TokenCopies, TakeAsLongAsDeepEpWasMeasured) {
  struct Row {
    int nodes;
    double tokens, ms, within;
  };
  for (const Row& row : {Row{1, 4096, 0.977595, 0.03}, Row{1, 16384, 3.53935, 0.15}, Row{2, 4096, 2.099, 0.45},
                         Row{2, 16384, 7.624, 0.45}, Row{4, 4096, 3.528, 0.03}, Row{4, 16384, 13.578, 0.05}}) {
    const Span span{row.nodes, 8, 8, {0, 450e9}, {0, 50e9}};
    const RouteBytes bytes = route_bytes({Dispatcher::deepep, 8}, row.nodes, 8);
    const Links links = pairwise_as_ring(span, bytes.inside, bytes.between);
    const double sent = row.tokens * 8 * 7168 * 2;
    const double ms =
        1e3 * ring_seconds(Collective::all_to_all, span.members(), sent, links.latency, links.bandwidth, 0);
    EXPECT_NEAR(ms, row.ms, row.within * row.ms) << row.nodes << " nodes, " << row.tokens << " tokens";
  }
}

}  // namespace
}  // namespace slipway::test
