// The number of copies of a token that travel to the ranks of its experts.
//
//   alltoall             a copy for each expert on another rank: k·(n−1)/n of them over n ranks
//   deepep, hybridep     one to each other node that has one of its experts, and there one to each GPU that has
//
//        token on GPU 0 of node A, experts on GPUs 1 and 3 of B:    A0 ══network══► B0 ─NVLink─► B1, B3
//
// Over the network a token goes to the equal GPU of the other node (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report",
// section 3.2.2), and a sum comes back the same way. A router is taken to choose experts evenly: of M places, k
// experts are at M·(1 − (1 − 1/M)^k). A router of groups (BlockRun: groups_per_token of expert_groups) reaches that share
// of the places. Guarded by tests/models/token_copies_test.cpp.
#pragma once

#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct TokenTraffic {
  Dispatcher dispatcher = Dispatcher::alltoall;
  int per_token = 0;  // experts of a token, k
  double reach = 1;   // share of all experts among which a token's are
  bool operator==(const TokenTraffic&) const = default;
};
// The traffic of the block with experts that has most per token.
TokenTraffic token_traffic(const Model& model, Dispatcher dispatcher);

// Places, of `places` with equally many experts, that have at least one of a token's.
double places_hit(const TokenTraffic& tokens, int places);

// Bytes over the links inside nodes and between them, by those of an all-to-all of every row, among `nodes` of
// `per_node` ranks. As many seconds more as the kernels reach less of a link's bandwidth are in them.
struct RouteBytes {
  double inside = 1, between = 1;
  bool operator==(const RouteBytes&) const = default;
};
RouteBytes route_bytes(const TokenTraffic& tokens, int nodes, int per_node);

}  // namespace slipway::models
