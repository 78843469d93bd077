#include "models/memory/memory_constants.h"

namespace slipway::models {

std::span<const MemoryParameter> memory_parameters() {
  using C = MemoryConstants;
  static constexpr MemoryParameter table[] = {
      {"gradient_bytes", "bytes/parameter", "a gradient as it is accumulated; 0: as the scenario says",
       &C::gradient_bytes},
      {"replica_parameter_bytes", "bytes/parameter", "with replicas: a second gradient for the reduction",
       &C::replica_parameter_bytes},
      {"zero_parameter_bytes", "bytes/parameter", "with replicas and ZeRO, on every rank", &C::zero_parameter_bytes},
      {"zero_shard_bytes", "bytes/parameter", "with replicas and ZeRO, divided among them", &C::zero_shard_bytes},
      {"update_bytes", "bytes/parameter", "with replicas, at the end of the step, without ZeRO", &C::update_bytes},
      {"zero_update_bytes", "bytes/parameter", "with replicas, at the end of the step, with ZeRO",
       &C::zero_update_bytes},
      {"update_shard_bytes", "bytes/parameter",
       "with ZeRO, at the end of the step, divided among the replicas (also where there is one)",
       &C::update_shard_bytes},
      {"layer_factor", "1", "bytes that a layer keeps (norm and projection inputs, attention, mlp) over the count",
       &C::layer_factor},
      {"norm_copy_bytes", "bytes/(token·h)", "of a layer whose norms have no kernel of their own", &C::norm_copy_bytes},
      {"score_bytes", "bytes/score", "kept by softmax in single kernels", &C::score_bytes},
      {"fused_score_bytes", "bytes/score", "kept by fused softmax", &C::fused_score_bytes},
      {"gathered_bytes", "bytes/(token·h)",
       "gathered inputs that a layer keeps; tensor > 1, pipeline = 1 unless more is known", &C::gathered_bytes},
      {"gathered_many_stage_bytes", "bytes/(token·h)", "gathered inputs that a layer keeps; tensor > 1, pipeline > 2",
       &C::gathered_many_stage_bytes},
      {"gathered_context_bytes", "bytes/(token·h)",
       "gathered inputs that a layer keeps besides; tensor > 1, context > 1", &C::gathered_context_bytes},
      {"embedding_bytes", "bytes/(token·h)", "on the first stage, per micro-batch in flight", &C::embedding_bytes},
      {"logit_bytes", "bytes/logit", "of the rank's vocabulary shard", &C::logit_bytes},
      {"gathered_logit_bytes", "bytes/logit", "of the whole vocabulary; tensor > 1", &C::gathered_logit_bytes},
      {"work_hidden_bytes", "bytes/(token·h)", "there once", &C::work_hidden_bytes},
      {"work_ffn_bytes", "bytes/(token·f/t)", "there once", &C::work_ffn_bytes},
      {"tensor_hidden_bytes", "bytes/(token·h)", "buffers of gathers, there once; tensor > 1", &C::tensor_hidden_bytes},
      {"buffer_hidden_bytes", "bytes/(token·h)", "buffers of gathers that outlive the step; tensor > 1",
       &C::buffer_hidden_bytes},
      {"table_bytes", "bytes", "tables of the model that are no parameters", &C::table_bytes},
      {"library_bytes", "bytes", "context, kernels, communication library", &C::library_bytes},
      {"fragmentation_share", "1", "share of kept bytes lost to fragmentation", &C::fragmentation_share},
      {"fragmenting_bytes", "bytes", "size of one MLP tensor at which that share is reached", &C::fragmenting_bytes},
      {"usable_share", "1", "share of the GPU's memory that fits", &C::usable_share},
      {"cautious_share", "1", "share of the GPU's memory below which almost no run fails", &C::cautious_share},
  };
  return table;
}

}  // namespace slipway::models
