// Effects of single features, as NVIDIA's skills and guides of Megatron-Bridge and Megatron-Core publish them: rows of
// one `study` differ in one lever each. Seconds where they are given, else from TFLOP/s by Megatron's own FLOP formula.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "models/model/megatron_flops.h"
#include "scenarios/language/scenario.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

// "TE: attn, mamba" as "attn mamba".
std::string scopes_of(const std::string& written) {
  if (!written.starts_with("TE: ")) return "";
  std::string words = written.substr(4);
  std::erase(words, ',');
  return words;
}

// "25 %", "100 %, overlapped d2h/h2d" as "0.25", "1".
std::optional<std::string> share_of(const std::string& written) {
  double percent = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), percent);
  if (error != std::errc() || !std::string_view(end).starts_with(" %")) return std::nullopt;
  return fmt::format("{}", percent / 100);
}

// What the row's other words say that is a key.
void set_others(RunKeys& keys, const Cells& cells, const std::string& model) {
  const std::string& other = cells.text("other");
  if (cells.text("overlap").starts_with("EP overlap")) set_merged(keys);
  if (cells.text("overlap").find("delay_wgrad") != std::string::npos) keys.set("schedule.delay_wgrad", "true");
  if (!cells.empty("offload") && cells.text("offload") != "0 %") {
    if (const auto share = share_of(cells.text("offload")))
      keys.set("run.optimizer.offload_fraction", *share);
    else
      keys.refuse("the offload \"" + cells.text("offload") + "\"");
  }
  if (cells.text("model").find("LoRA") != std::string::npos) keys.refuse("LoRA of a rank that is not given");
  if (other.starts_with("+ ")) keys.refuse("the step \"" + other + "\" of a ladder of kernels");
  if (other.find("layout ") != std::string::npos && model == "deepseek-v3")
    keys.set("model.predicted_tokens", 0, "no MTP");
}

}  // namespace

void read_feature_effects(const Cells& cells, PublishedRow& row) {
  const std::string& outcome = cells.text("outcome");
  row.status = outcome == "ok" ? RowStatus::ok : outcome == "OOM" ? RowStatus::out_of_memory : RowStatus::other;
  row.tflops_per_gpu = cells.number_or("tflops_per_gpu", 0);
  RunKeys keys;
  row.machine = machine_named("system", cells.text("system"), {"h100-80gb"});
  const std::string model = set_model(keys, cells.text("model"));
  row.group = row.choice = row.table = row.study = cells.text("study");
  if (!cells.empty("step_s")) row.step_s = cells.above_zero("step_s");
  if (row.step_s == 0 && row.status == RowStatus::ok && cells.empty("tflops_per_gpu")) row.status = RowStatus::other;
  if (lacks(row, cells, {"gpus", "gbs"})) return;
  row.gpus = cells.count("gpus");

  keys.set("cluster.trainer", "megatron-bridge");
  set_cluster(keys, row.machine, row.gpus);
  RunLayout layout{.tensor = degree(cells, "tp"),
                   .context = degree(cells, "cp"),
                   .pipeline = degree(cells, "pp"),
                   .chunks = degree(cells, "vp"),
                   .full_shards = false,
                   .micro_batch = degree(cells, "mbs"),
                   .global_batch = cells.integer("gbs"),
                   .sequence = cells.empty("seq") ? 4096 : cells.integer("seq")};
  if (cells.empty("seq")) keys.assume("sequences of 4,096 and micro-batches of one, as in the study beside it");
  set_layout(keys, layout);
  set_pipeline(keys, model, layout.pipeline, layout.chunks);
  const int expert = degree(cells, "ep");
  auto expert_tensor = cells.whole_or("etp", 0);
  if (expert_tensor == 0 && layout.tensor > 1 && 1.0 * expert * layout.tensor * layout.pipeline > row.gpus) {
    expert_tensor = 1;
    keys.assume("experts are not cut, as no GPUs are left for it");
  }
  if (!cells.empty("ep"))
    set_experts(keys, expert, expert_tensor, cells.text("dispatcher"));
  else if (layout.tensor > 1)
    keys.set("schedule.overlap_tensor", "true");
  set_precision(keys, cells.text("precision") == "FP8 current scaling" ? "FP8_CS" : cells.text("precision"));
  const std::string& modules = cells.text("recompute_modules");
  set_recompute(keys, modules == "[]" ? "" : modules);
  set_graphs(keys, scopes_of(cells.text("cuda_graph")).empty() ? "" : "transformer_engine",
             scopes_of(cells.text("cuda_graph")));
  set_usual_moments(keys, model);
  set_others(keys, cells, model);
  set_scenario(row, keys);
  if (row.step_s == 0 && row.status == RowStatus::ok && row.scenario) {
    constexpr double tera = 1e12;
    row.step_s = tokens_per_step(row) * megatron_flops_per_token(megatron_count(*row.step.model)) /
                 (row.gpus * cells.above_zero("tflops_per_gpu") * tera);
    assume(row, "seconds follow from TFLOP/s by Megatron's FLOP formula");
  }
}

}  // namespace slipway::scenarios
