// Golden values of Megatron-LM's functional tests (NVIDIA/Megatron-LM tests/functional_tests): the bytes that the last
// rank prints, and the arguments of the test. The models are tiny, so their times are the host's and are not scored.
#include <fmt/format.h>

#include <charconv>

#include "scenarios/language/keys.h"
#include "scenarios/language/profiles.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

bool is_set(const Cells& cells, std::string_view column) { return cells.text(column) == "True"; }

// The value of "name=value" in the other arguments; empty: not there.
std::string other(const Cells& cells, const std::string& name) {
  const std::string text = " " + cells.text("other_args") + " ", begin = " " + name + "=";
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const std::size_t value = at + begin.size();
  return text.substr(value, text.find(' ', value) - value);
}

std::int64_t number(const Cells& cells, std::string_view column, std::int64_t otherwise) {
  return cells.empty(column) ? otherwise : cells.integer(column);
}

// The whole number that `text` begins with, 1 to 1e9.
std::int64_t number_in(const std::string& text, const char* where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 1 || value > 1'000'000'000)
    throw CellError(fmt::format("{}: '{}' is no whole number from 1 to 1e9", where, text));
  return value;
}

// The same of the other arguments, where they say it.
std::int64_t number_of(const Cells& cells, const char* name, std::int64_t otherwise) {
  const std::string said = other(cells, name);
  return said.empty() ? otherwise : number_in(said, name);
}

// GPT-2's byte pairs, the tokens of the tests' data, padded as Megatron-LM does; unless the test says a vocabulary.
std::int64_t vocabulary(RunKeys& keys, const Cells& cells) {
  std::int64_t tokens = 50257;
  if (const std::string said = other(cells, "vocab-size"); !said.empty())
    tokens = number_in(said, "vocab-size");
  else if (cells.text("family") == "mixtral")
    tokens = cells.text("test_case").starts_with("mixtral") ? 32000 : 129280;
  else if (cells.text("test_case").find("15b_8t") != std::string::npos)
    tokens = 256000;
  const std::int64_t multiple = number(cells, "vocab_div", 128) * number(cells, "tp", 1);
  const std::int64_t padded = (tokens + multiple - 1) / multiple * multiple;
  keys.assume(fmt::format("a vocabulary of {} tokens", tokens));
  return padded;
}

void set_experts_of(RunKeys& keys, const Cells& cells) {
  keys.set("model.experts", cells.integer("experts"));
  keys.set("model.experts_per_token", number(cells, "topk", 2));
  if (!cells.empty("shared_ffn")) keys.set("model.shared_ffn", cells.integer("shared_ffn"));
  const std::string& frequency = cells.text("moe_layer_freq");  // "([0]*3+[1]*11)"
  if (frequency.starts_with("([0]*")) {
    keys.set("model.dense_layers", number_in(frequency.substr(5), "moe_layer_freq"),
             "dense layers before those with experts");
    keys.set("model.dense_ffn", number(cells, "ffn", 4 * cells.integer("hidden")),
             "dense layers before those with experts");
  }
  set_experts(keys, static_cast<int>(number(cells, "ep", 1)), static_cast<int>(number(cells, "etp", 0)),
              cells.text("flex_backend").empty() ? cells.text("dispatcher") : cells.text("flex_backend"));
}

void set_shapes(RunKeys& keys, const Cells& cells) {
  const std::int64_t hidden = cells.integer("hidden"), ffn = number(cells, "ffn", 4 * hidden);
  const bool gated = is_set(cells, "swiglu"), rotary = cells.text("pos") == "rope",
             has_experts = !cells.empty("experts");
  const bool plain = !gated && !has_experts && cells.empty("kv_groups") && cells.empty("norm") && !is_set(cells, "mla");
  // A GPT as the language has it has learned positions and biases.
  const bool as_gpt = plain && (!rotary || key_of(scenario_keys(), "model.positions") == nullptr);
  keys.set("model.family", as_gpt ? "gpt" : "llama");
  keys.set("model.layers", cells.integer("layers"));
  keys.set("model.hidden", hidden);
  keys.set("model.heads", cells.integer("heads"));
  keys.set("model.ffn", has_experts ? number(cells, "moe_ffn", ffn) : ffn);
  keys.set("model.vocab", vocabulary(keys, cells));
  keys.set("model.tied", is_set(cells, "untied") ? "false" : "true");
  if (as_gpt) {
    keys.set("model.max_positions", cells.integer("seq"));
    if (rotary) keys.assume("learned positions instead of rotary ones");
    if (other(cells, "disable-bias-linear") == "True") keys.assume("Linears with biases");
    return;
  }
  keys.set("model.kv_heads", number(cells, "kv_groups", cells.integer("heads")));
  if (!cells.empty("kv_channels") && !is_set(cells, "mla")) keys.set("model.head_dim", cells.integer("kv_channels"));
  if (!gated) keys.set("model.mlp", "gelu", "an MLP with GELU");
  if (cells.text("norm") != "RMSNorm") keys.set("model.norm", "layer", "LayerNorm");
  if (!rotary)
    keys.set("model.positions", "learned", "learned positions"), keys.set("model.max_positions", cells.integer("seq"));
  if (other(cells, "disable-bias-linear") != "True") keys.set("model.bias", "true", "biases of Linears");
  if (is_set(cells, "mla")) {
    // Defaults of Megatron-LM's arguments, where a test does not say otherwise.
    const auto latent = "latent attention";
    keys.set("model.kv_latent", number(cells, "kv_lora", 32), latent);
    keys.set("model.q_latent", number(cells, "q_lora", 0), latent);
    keys.set("model.qk_head_dim", number_of(cells, "qk-head-dim", 128), latent);
    keys.set("model.rope_head_dim", number_of(cells, "qk-pos-emb-head-dim", 64), latent);
    keys.set("model.v_head_dim", number_of(cells, "v-head-dim", 128), latent);
  }
  if (!cells.empty("mtp_layers"))
    keys.set("model.predicted_tokens", cells.integer("mtp_layers"), "multi-token prediction");
  if (has_experts) set_experts_of(keys, cells);
}

RunLayout layout_of(RunKeys& keys, const Cells& cells) {
  RunLayout layout{.tensor = degree(cells, "tp"),
                   .context = degree(cells, "cp"),
                   .pipeline = degree(cells, "pp"),
                   .chunks = degree(cells, "vp"),
                   .full_shards = is_set(cells, "fsdp"),
                   .micro_batch = cells.integer("mbs"),
                   .global_batch = cells.integer("gbs"),
                   .sequence = cells.integer("seq")};
  const auto layers = static_cast<int>(cells.integer("layers"));
  if (!cells.empty("layers_per_vp"))
    layout.chunks = std::max(1, layers / layout.pipeline / static_cast<int>(cells.integer("layers_per_vp")));
  if (!cells.empty("pp_layout")) keys.set("layout.split", "\"" + cells.text("pp_layout") + "\"");
  return layout;
}

PrintedSettings printed_settings(const Cells& cells, Generation generation) {
  PrintedSettings settings;
  settings.generation = generation;
  settings.fixed_workspace = cells.text("env_vars").find("CUBLAS_WORKSPACE_CONFIG=:4096:8") != std::string::npos;
  settings.transformer_engine = cells.text("transformer_impl") != "local";
  settings.dropout = cells.text("dropout") != "0.0";
  // Megatron's own fused cross entropy keeps the fp32 logits beside their exponentials.
  const bool fused = other(cells, "cross-entropy-loss-fusion") == "True";
  if (fused && other(cells, "cross-entropy-fusion-impl") != "te") settings.logit_bytes = 10;
  // Gradients and their fp32 copies for the optimizer: megatron/core/optimizer/optimizer.py, Float16Optimizer.
  if (is_set(cells, "fp16") && !is_set(cells, "dist_opt")) settings.optimizer_more_bytes = 4;
  return settings;
}

}  // namespace

void read_megatron_golden(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  RunKeys keys;
  const std::string gpu = cells.text("gpu") == "unspecified" ? "A100-80GB" : cells.text("gpu");
  row.machine = machine_named("gpu", gpu, {"h100-80gb", "a100-80gb"});
  row.group = row.choice = cells.text("family") + " on " + row.machine;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.memory_only = true;
  row.step_s = cells.number_or("iter_s_median", 1);
  row.version_of = cells.text("test_case") + " on " + cells.text("gpu");
  row.version = cells.text("date");
  const std::string& family = cells.text("family");
  if (cells.empty("mem_alloc_bytes") || (family != "gpt" && family != "moe" && family != "mixtral")) {
    row.status = RowStatus::other;
    row.unpriceable = "column family: only gpt, moe and mixtral with bytes are read";
    return;
  }
  row.allocated_bytes = cells.number("mem_alloc_bytes");
  row.reserved_bytes = cells.number("mem_max_alloc_bytes");
  if (lacks(row, cells, {"hidden", "layers", "heads", "seq", "mbs", "gbs"})) return;
  const std::string_view gpus = !cells.empty("gpus") ? "gpus" : "gpus_inferred";
  row.gpus = static_cast<int>(number(cells, gpus, 8));
  if (cells.empty(gpus)) keys.assume("eight GPUs");

  keys.set("cluster.trainer", "megatron-core");
  set_cluster(keys, row.machine, row.gpus);
  set_shapes(keys, cells);
  const RunLayout layout = layout_of(keys, cells);
  const bool shards = is_set(cells, "dist_opt"), has_sp = is_set(cells, "sp");
  set_layout(keys, layout);
  keys.set("layout.vocab_multiple", 1);  // it is padded
  if (!layout.full_shards) keys.set("layout.zero", shards ? 1 : 0);
  keys.set("layout.sequence_parallel", has_sp && layout.tensor > 1 ? "true" : "false");
  keys.set("run.dtype", is_set(cells, "fp16") ? "float16" : is_set(cells, "bf16") ? "bfloat16" : "float32");
  if (!cells.empty("fp8")) set_precision(keys, cells.empty("fp8_recipe") ? "fp8" : cells.text("fp8_recipe"));
  const bool unfused = cells.text("attn_backend") == "unfused" || cells.text("transformer_impl") == "local";
  keys.set("schedule.kernels", unfused ? "fused_softmax" : "flash2_rmsnorm");
  if (cells.text("recompute") == "selective" && !cells.empty("recompute_modules")) {
    std::string modules;
    for (const char c : cells.text("recompute_modules"))
      if (c != '[' && c != ']') modules += c;
    set_recompute(keys, modules);
  } else {
    set_recompute(keys, cells.text("recompute") == "full"        ? "full"
                        : cells.text("recompute") == "selective" ? "core_attn"
                                                                 : "");
  }
  if (is_set(cells, "fine_offload"))
    keys.set("schedule.offload", cells.text("offload_modules"), "activations kept in the host's memory");
  if (cells.text("optimizer") == "muon") keys.refuse("the optimizer Muon");
  if (other(cells, "num-distributed-optimizer-instances") == "2")
    keys.set("layout.replicate", 2, "several instances of the distributed optimizer");
  if (family == "gpt" && cells.text("test_case").find("grpo") != std::string::npos)
    keys.refuse("a second model for sampling (GRPO)");
  row.printed = printed_settings(cells, built_in_machine(row.machine).generation);
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
