// A Hugging Face config.json. The loader of models (load_model.cpp) reads the shapes and refuses what is not modelled;
// the rows say of the fields that it does not read why they have no effect.
#include <filesystem>

#include "scenarios/import/import.h"

namespace slipway::scenarios {

namespace {

constexpr std::string_view generation = "it is about generating text";
constexpr std::string_view numbers = "it changes numbers, not a step's time or memory";
constexpr std::string_view packaging = "it is about the files of the model";

const Row rows[] = {
    none("bos_token_id", generation),
    none("eos_token_id", generation),
    none("pad_token_id", generation),
    none("use_cache", generation),
    none("sep_token_id", generation),
    none("cls_token_id", generation),
    none("decoder_start_token_id", generation),
    none("architectures", packaging),
    none("transformers_version", packaging),
    none("auto_map", packaging),
    none("_name_or_path", packaging),
    none("torch_dtype", "training has its own: run.dtype"),
    none("dtype", "training has its own: run.dtype"),
    none("quantization_config", "weights are trained in run.dtype"),
    none("initializer_range", numbers),
    none("rope_scaling", numbers),
    none("pretraining_tp", numbers),
    none("router_aux_loss_coef", numbers),
    none("output_router_logits", numbers),
    none("aux_loss_alpha", numbers),
    none("seq_aux", numbers),
    none("routed_scaling_factor", numbers),
    none("scoring_func", numbers),
    none("topk_method", numbers),
    none("max_window_layers", "it belongs to use_sliding_window"),
    none("attention_dropout", "training sets its own"),
    none("hidden_dropout", "training sets its own"),
};

}  // namespace

std::span<const Row> hugging_face_rows() { return rows; }

void compose_hugging_face(Import& import, const std::string& path, const std::string& output) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(output, ignored).parent_path().lexically_normal();
  std::string relative =
      std::filesystem::absolute(path, ignored).lexically_normal().lexically_relative(folder).string();
  if (!relative.starts_with(".")) relative = "./" + relative;
  import.set("model.config", relative, "model.config");
  if (!import.has("schedule.global_batch")) {
    import.note(NoteKind::assumed, "schedule.global_batch",
                "8 sequences, one on each GPU of one node; --set schedule.global_batch=N");
    import.set("schedule.global_batch", "8", "schedule.global_batch");
  }
  if (import.has("cluster.nodes") || import.has("cluster.groups")) return;
  import.note(NoteKind::assumed, "cluster.nodes", "1 node of 8 GPUs; --set cluster.nodes=N");
  import.set("cluster.nodes", "1", "cluster.nodes");
}

}  // namespace slipway::scenarios
