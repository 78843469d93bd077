#include "models/machine/step_constants.h"

namespace slipway::models {
namespace {

using C = StepConstants;

constexpr std::array<StepConstant, step_constant_count> constants{{
    {"gemm", "factor", "share of peak of products in training, over that of the kernel alone", &C::gemm, 0.95, 0.1,
     0.06, 0, 0, "clocks fall under load: 0.9 to 1 of kernels timed alone"},
    {"gemm_hopper", "factor", "the same of Hopper and later, over that of earlier GPUs", &C::gemm_hopper, 0.92, 0.06, 0,
     0, 0, "long steps run into the power limit, single products into none: 0.85 to 1"},
    {"attention", "factor", "the same of flash attention, forward", &C::attention, 0.95, 0.15, 0.05, 0.1, 0,
     "as products"},
    {"attention_backward", "factor", "share of peak of attention's backward pass, over that of its forward pass",
     &C::attention_backward, 0.8, 0.15, 0, 0, 0, "Dao 2023 (arXiv 2307.08691), figures 4 to 6"},
    {"flash1", "factor", "share of peak of flash attention 1, over that of 2", &C::flash1, 0.53, 0.15, 0, 0, 0,
     "Dao 2023 (arXiv 2307.08691): 1.7 to 3 times as fast"},
    {"flash2_hopper", "factor", "share of peak of flash attention 2 after Ampere, over that of the best kernel",
     &C::flash2_hopper, 0.6, 0.15, 0, 0, 0, "Shah et al. 2024 (arXiv 2407.08608): 1.5 to 2 times as fast"},
    {"scores", "share of peak", "products of attention that writes its scores to memory", &C::scores, 0.45, 0.3, 0, 0,
     0, "products with a side of 64 to 128: half of what large ones reach"},
    {"traffic", "factor", "bytes of element-wise kernels over their count", &C::traffic, 1.1, 0.2, 0, 0.15, 0,
     "counted, and 10 % for what is not"},
    {"eager_traffic", "factor", "more of it, where no compiler or hand fuses kernels", &C::eager_traffic, 1.15, 0.15, 0,
     0, 0, "a bias, a dropout or a conversion as kernels of their own"},
    {"logit_bytes", "bytes per logit", "traffic of the loss beside its count", &C::logit_bytes, 20, 0.5, 0, 0, 0,
     "logits in 16 and 32 bits, read and written once each way"},
    {"accumulate_traffic", "factor", "bytes of gradient accumulation over the trainer's count", &C::accumulate_traffic,
     1, 0.3, 0, 0, 0, "counted"},
    {"update_bytes", "bytes per parameter", "traffic of the update", &C::update_bytes, 30, 0.2, 0, 0, 0,
     "counted: gradient, weight, both moments and the master weight, read and written"},
    {"node_share", "factor", "bandwidth of collectives inside a node in training, over that of NCCL alone",
     &C::node_share, 0.85, 0.2, 0.1, 0, 0, "SMs and memory are shared with products"},
    {"node_start", "s", "of a collective inside a node, beside that of NCCL alone", &C::node_start, 4e-05, 0.7, 0, 0.3,
     0, "streams wait for each other, and ranks for the last of them"},
    {"network_share", "share of ports", "bandwidth of messages between nodes", &C::network_share, 0.8, 0.2, 0, 0, 0.3,
     "protocol, and rings that share a switch"},
    {"network_start", "s", "of a message between nodes", &C::network_start, 3e-05, 0.7, 0, 0, 0.3, "as node_start"},
    {"network_hop", "s", "of each further node of a collective", &C::network_hop, 1e-05, 0.7, 0, 0, 0.3,
     "NCCL tuner (src/graph/tuning.cc): 5 to 10 us"},
    {"beside", "share", "by which a product takes longer while a message runs beside it", &C::beside, 0.5, 0.7, 0, 0.5,
     0, "a message takes a third of the SMs' time and of memory"},
    {"host_kernel", "s", "of the host for each counted kernel", &C::host_kernel, 5e-05, 0.6, 0.1, 0.4, 0,
     "5 to 10 us a launch; a counted kernel is several launches and their Python"},
    {"host_member", "s", "of the host for each member of a tensor group that it drives itself", &C::host_member, 0.0002,
     0.7, 0, 0, 0, "copies, chunks and synchronisation for each member"},
    {"fixed", "s", "per step", &C::fixed, 0.009, 1, 0, 0.5, 0, "data, logging, learning rate"},
    {"whole", "factor", "time of everything in the steps of one trainer on one cluster, over what the others say",
     &C::whole, 1, 0, 0, 0, 0.06, "clusters of the same GPUs differ in clocks, cooling, drivers and noise"},
}};

}  // namespace

std::span<const StepConstant> step_constants() { return constants; }

StepConstants book_constants() {
  StepConstants values;
  for (const StepConstant& constant : constants) values.*constant.value = constant.book;
  return values;
}

}  // namespace slipway::models
