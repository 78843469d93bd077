// The price of one block of each run of the model: one micro-batch through it, its compute, the collectives between its
// segments, the launches of its host (private to schedules/bound).
//
// Prices come from work_price.h, message_price.h and host_issue.h, and from nowhere else.
// Guarded by tests/schedules/estimate_test.cpp.
#pragma once

#include <vector>

#include "models/machine/collectives.h"
#include "models/memory/memory_estimate.h"
#include "schedules/graph/task_graph.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

// Collectives within a layer, one after the other. The path prices them afterwards.
struct LayerMessages {
  struct Alike {
    Collective collective = Collective::none;
    int members = 1;
    double bytes = 0;
    int count = 0;
  };
  std::vector<Alike> list;
  void add(Collective collective, int members, double bytes);
};
double seconds_over(const LinkPath& path, const LayerMessages& messages);

// The messages of a layer's tokens in one pass over it, where they travel to experts (Axis::expert), and within the
// ranks that cut each expert; and what its shared experts do beside them.
//
//   compute   before │ shared │  . │ experts │      . │ after      a pass is longer than its compute by
//   messages         │     out     │         │  back  │              max(gather, out − shared) + back
struct TokenMessages {
  LayerMessages out, out_cut, back, back_cut;
  LayerMessages gather;  // of what the shared experts read, over the tensor group (backward: the scatter behind them)
  double shared_s = 0;   // compute of the shared experts, without their segment's overhead
};

struct BlockPrice {
  double forward_s = 0, backward_s = 0;  // backward: both gradients, and the forward again if recomputed
  double weight_s = 0;                   // part of backward_s: the weight gradients
  LayerMessages tensor_forward, tensor_backward, context_forward, context_backward;
  double again_s = 0;  // part of backward_s: the forward again, without its collectives
  LayerMessages tensor_again, context_again;
  TokenMessages tokens_forward, tokens_backward;
  double host_forward_s = 0, host_backward_s = 0;  // of the host
  int cuts = 0;                                    // communicate operators: each begins another segment
  double kept_bytes = 0;                           // from the forward to the backward of one micro-batch
  OptionalBytes optional;                          // of kept_bytes
};

// Block `block` of blocks_of(model). Throws std::invalid_argument as operators_of and cost.h do.
// `hides_tensor`: products hide gathers and scatters of sequence parallelism (Step::overlap_tensor), which are left out.
BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine, bool hides_tensor = false);

// A message, and its seconds as the trainer sends it.
Work message(WorkKind kind, Collective collective, double bytes);
double sent_seconds(const Layout& layout, const Work& work, int members, const LinkPath& path);

}  // namespace slipway::schedules
