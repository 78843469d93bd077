// Model verification cards of NVIDIA-NeMo/Megatron-Bridge (examples/model_verification_cards): the mean step of 41 to
// 50. `functional` rows are sanity runs; a card without degrees does not say its recipe.
#include <fmt/format.h>

#include <string_view>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

// "{'implementation': 'transformer_engine', 'scopes': ['attn', 'mlp']}" as "attn mlp"; "{}": none.
std::string scopes_of(const std::string& written) {
  constexpr std::string_view key = "'scopes': [";
  const std::size_t at = written.find(key);
  const std::size_t end = at == std::string::npos ? at : written.find(']', at);
  if (end == std::string::npos) return "";
  std::string words = written.substr(at + key.size(), end - at - key.size());
  std::erase_if(words, [](char c) { return c == '\'' || c == ','; });
  return words;
}

}  // namespace

void read_verification_card(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  row.tflops_per_gpu = cells.number_or("tflops_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("hardware", cells.text("hardware"), {"h100-80gb"});
  row.gpus = cells.count("gpus");
  const std::string model = set_model(keys, cells.text("model"));
  row.group = model + " on " + row.machine;
  row.choice = model;  // a family is left out as a whole
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.step_s = cells.above_zero("step_ms") / 1e3;
  row.unknown_recipe = cells.text("mode") != "performance";
  if (lacks(row, cells, {"mbs", "tp", "pp"})) return;

  keys.set("cluster.trainer", "megatron-bridge");
  set_cluster(keys, row.machine, row.gpus);
  const RunLayout layout{.tensor = cells.count("tp"),
                         .context = degree(cells, "cp"),
                         .pipeline = cells.count("pp"),
                         .chunks = degree(cells, "vpp"),
                         .full_shards = cells.text("other_features").find("megatron_fsdp") != std::string::npos,
                         .micro_batch = cells.integer("mbs"),
                         .global_batch = cells.integer("gbs"),
                         .sequence = cells.integer("seq")};
  set_layout(keys, layout);
  set_pipeline(keys, model, layout.pipeline, layout.chunks);
  set_experts(keys, degree(cells, "ep"), cells.whole_or("etp", 0), cells.text("dispatcher"));
  set_precision(keys, cells.text("precision"));
  set_usual_recompute(keys, model, row.machine, cells.text("precision"));
  set_usual_moments(keys, model);
  if (const std::string scopes = scopes_of(cells.text("cuda_graph")); !scopes.empty())
    set_graphs(keys, "transformer_engine", scopes);
  if (cells.text("other_features").find("sequence_packing") != std::string::npos) keys.refuse(std::string(packed));
  if (cells.text("item").starts_with("peft")) keys.refuse("LoRA of a rank that is not given");
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
