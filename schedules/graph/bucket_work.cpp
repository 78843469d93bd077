// What a collective on one block's gradients or parameters moves, and what it is called.
#include "models/parameters.h"
#include "schedules/graph/lowering_state.h"

namespace slipway {

Work bucket_work(const LoweringState& state, WorkKind kind, int stage, int block) {
  const LoweringInput& input = state.input;
  const int tensor = input.layout.tensor;
  Work work;
  work.kind = kind;
  work.stage = stage;
  work.block = block;
  work.dtype = state.graph.gradient_dtype;
  work.collective = Collective::all_reduce;
  double elements = state.elements_of_block(block);
  const char* tail = ".ar_grad";
  if (kind == WorkKind::norm_grad_reduce) {
    elements = static_cast<double>(block_tensor_sum_elements(input.model, block, tensor, input.layout.sequence_parallel));
    tail = ".norm_grad";
  } else if (kind == WorkKind::tied_grad_reduce) {
    const Block& head = state.blocks.back();
    elements = static_cast<double>(head.vocab) / tensor * static_cast<double>(head.hidden);
    tail = ".tied_grad";
  } else if (kind == WorkKind::parameter_gather) {
    work.collective = Collective::all_gather;
    work.dtype = state.graph.shape.dtype;
    tail = ".ag_param";
  } else if (input.layout.zero >= 1) {
    work.collective = Collective::reduce_scatter;
    tail = ".rs_grad";
  }
  work.bytes = elements * bytes_of(work.dtype);
  work.suffix = "." + block_name(state.blocks, block) + tail;
  return work;
}

Work worker_norm_work(const LoweringState& state, int stage, int block) {
  Work work;
  work.kind = WorkKind::worker_norm;
  work.stage = stage;
  work.block = block;
  work.dtype = state.graph.gradient_dtype;
  work.elements = state.elements_of_block(block);
  work.suffix = "." + block_name(state.blocks, block) + ".worker_norm";
  return work;
}

}  // namespace slipway
