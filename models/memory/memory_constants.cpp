#include "models/memory/memory_constants.h"

namespace slipway::models {

std::span<const MemoryFact> memory_facts() {
  using F = MemoryFacts;
  static const MemoryFact table[] = {
      {"loss", "word", "vocabulary-parallel, plain (on gathered logits) or fused (in place)"},
      {"gathered_inputs", "word", "when projection inputs stay gathered: never, with-context or by-stages"},
      {"copies_gradient_shard", "true/false", "to fp32 at the update, with ZeRO", nullptr, &F::copies_gradient_shard},
      {"fused_gate", "true/false", "silu(gate) is made again in the backward pass, not kept", nullptr, &F::fused_gate},
      {"weighs_activation", "true/false", "weights of rows multiply the experts' activation; results are not kept",
       nullptr, &F::weighs_activation},
      {"gradient_bytes", "B/parameter", "gradients as they are accumulated", &F::gradient_bytes},
      {"replica_parameter_bytes", "B/parameter", "a second gradient for the reduction", &F::replica_parameter_bytes},
      {"zero_parameter_bytes", "B/parameter", "with ZeRO, on every rank", &F::zero_parameter_bytes},
      {"zero_shard_bytes", "B/parameter", "with ZeRO, divided by the replicas", &F::zero_shard_bytes},
      {"update_bytes", "B/parameter", "buffers of the update, without ZeRO", &F::update_bytes},
      {"buffer_hidden_bytes", "B/(token·h)", "lasting buffers of gathers", &F::buffer_hidden_bytes},
      {"table_bytes", "B", "tables of the model that are no parameters", &F::table_bytes},
  };
  return table;
}

std::span<const MemoryParameter> memory_parameters() {
  using C = MemoryConstants;
  static const MemoryParameter table[] = {
      {"layer_factor", "1", "norm and projection inputs, attention and mlp, times the count", &C::layer_factor},
      {"norm_copy_bytes", "B/(token·h)", "norms of a layer without a kernel of their own, copies", &C::norm_copy_bytes},
      {"score_bytes", "B/score", "softmax in single kernels", &C::score_bytes},
      {"fused_score_bytes", "B/score", "fused softmax", &C::fused_score_bytes},
      {"gathered_bytes", "B/(token·h)", "projection inputs of a layer that stay gathered", &C::gathered_bytes},
      {"embedding_bytes", "B/(token·h)", "output of the embedding, first stage", &C::embedding_bytes},
      {"logit_bytes", "B/logit", "vocabulary-parallel loss", &C::logit_bytes},
      {"plain_logit_bytes", "B/logit", "PyTorch's cross entropy", &C::plain_logit_bytes},
      {"gathered_logit_bytes", "B/logit", "logits gathered over the tensor group", &C::gathered_logit_bytes},
      {"fused_logit_bytes", "B/logit", "a loss that writes its gradient over the logits", &C::fused_logit_bytes},
      {"work_hidden_bytes", "B/(token·h)", "temporaries as wide as the hidden state", &C::work_hidden_bytes},
      {"work_ffn_bytes", "B/(token·column)", "temporaries as wide as the mlp's shard", &C::work_ffn_bytes},
      {"work_score_bytes", "B/score", "temporaries of one layer's softmax", &C::work_score_bytes},
      {"update_shard_bytes", "B/parameter", "an fp32 copy of the gradient's shard", &C::update_shard_bytes},
      {"fragmentation_share", "1", "of what is kept, lost between the allocator's blocks", &C::fragmentation_share},
      {"context_bytes", "B", "CUDA context and kernels", &C::context_bytes},
      {"communicator_bytes", "B/group", "buffers of the communication library", &C::communicator_bytes},
      {"fragmentation_factor", "1", "a trainer's own fragmentation", &C::fragmentation_factor},
      {"library_factor", "1", "a trainer's own context and communicators", &C::library_factor},
  };
  return table;
}

}  // namespace slipway::models
