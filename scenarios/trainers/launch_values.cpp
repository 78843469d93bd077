// The names that a dictionary's `launch` may use beside scenario keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/language/keys.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/quantity.h"
#include "scenarios/trainers/launch.h"
#include "scenarios/trainers/launch_values.h"

namespace slipway::scenarios {

std::int64_t planned_steps(const Scenario& s) {
  const double of_step = static_cast<double>(s.step.global_batch) * static_cast<double>(s.step.model->sequence);
  return static_cast<std::int64_t>(std::ceil(s.tokens / of_step));
}

std::int64_t torchtitan_steps(const Scenario& s) { return s.tokens > 0 ? planned_steps(s) : s.run.steps; }

std::vector<int> layers_per_stage(const Scenario& s) {
  std::vector<int> layers;
  const std::vector<Block> blocks = blocks_of(s.step.model);
  for (const BlockRange& range : split_blocks(s.step.model, s.step.layout)) {
    int count = 0;
    for (int i = range.first; i < range.last; ++i)
      count += blocks[static_cast<std::size_t>(i)].kind == BlockKind::transformer ? 1 : 0;
    layers.push_back(count);
  }
  return layers;
}

bool scales_rotary_angles(std::string_view model) {
  return model.starts_with("llama-3.1") || model.starts_with("llama-3.2");
}

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }
std::string flag(bool value) { return value ? "true" : "false"; }

bool is_uneven(const Scenario& s) {
  return s.step.layout.split != SplitKind::even || layer_count(s.step.model) % stage_count(s.step.layout) != 0;
}

// Megatron-Core's name for what run.balancing_sequences balances together; none where it has no such loss.
std::optional<std::string> balancing_type(const Step& step) {
  if (step.routing.balancing_loss == 0) return "none";
  const std::int64_t together = balanced_sequences(step.routing, step.micro_batch);
  if (together == step.micro_batch) return "aux_loss";
  if (together == 1) return "seq_aux_loss";
  if (together == step.micro_batch * step.layout.data) return "global_aux_loss";
  return std::nullopt;
}

// Megatron-LM rounds the product of the width and this share down. A quotient may be a little too small for that.
std::string rotary_share(const Block& block) {
  const auto width = static_cast<double>(block.head_dim), turned = static_cast<double>(block.rope_head_dim);
  const double share = turned / width;
  return number_text(std::floor(share * width) == turned ? share : (turned + 0.5) / width);
}

// "[1]*3+[0]*2": runs of equal numbers.
std::string python_list(const std::vector<bool>& ones) {
  std::string list;
  for (auto at = ones.begin(); at != ones.end();) {
    const auto end = std::find(at, ones.end(), !*at);
    list += (list.empty() ? "" : "+") + std::string(*at ? "[1]*" : "[0]*") + text(end - at);
    at = end;
  }
  return list;
}

// "[0]*3+[1]*58": which layers have experts.
std::string layers_with_experts(const Model& model) {
  std::vector<bool> with;
  for (const BlockRun& run : model.runs)
    if (run.block.kind == BlockKind::transformer)
      with.insert(with.end(), static_cast<std::size_t>(run.count), run.block.experts > 0);
  return python_list(with);
}

// Values of the step that are not keys, by name. Words of the dictionaries' `launch`.
struct Derived {
  std::string_view name;
  std::string (*value)(const Scenario& scenario);  // empty: absent
};

const Block& first_of(const Scenario& s) { return s.step.model->runs[1].block; }
const Block& last_of(const Scenario& s) { return s.step.model->runs[s.step.model->runs.size() - 2].block; }
const Block& head_of(const Scenario& s) { return s.step.model->runs.back().block; }

std::string positive(std::int64_t value) { return value > 0 ? text(value) : ""; }

bool any_block(const Scenario& s, bool (*of)(const Block& block)) {
  return std::any_of(s.step.model->runs.begin(), s.step.model->runs.end(),
                     [&](const BlockRun& run) { return run.block.kind == BlockKind::transformer && of(run.block); });
}

// The layers with a window, those without one, and the widest window.
struct Windows {
  std::int64_t width = 0;
  std::vector<bool> with, without;
};
Windows windows_of(const Scenario& s) {
  Windows windows;
  for (const BlockRun& run : s.step.model->runs) {
    if (run.block.kind != BlockKind::transformer) continue;
    windows.width = std::max(windows.width, run.block.window);
    windows.with.insert(windows.with.end(), static_cast<std::size_t>(run.count), run.block.window > 0);
    windows.without.insert(windows.without.end(), static_cast<std::size_t>(run.count), run.block.window == 0);
  }
  return windows;
}

// "6": all but the last of every six have one; a list where the windows lie otherwise; empty: all layers have one.
std::string window_skips(const Scenario& s) {
  const Windows windows = windows_of(s);
  if (windows.width == 0) return "";
  const std::optional<std::int64_t> every = period_of_last(windows.without);
  return every == 0 ? "" : every ? text(*every) : "'" + python_list(windows.with) + "'";
}

// Kernels of a tensor or context group must reach the GPU in the order of their launch before Blackwell, where one queue
// keeps it. Megatron-FSDP wants several.
bool needs_one_queue(const Scenario& s) {
  const bool ordered = s.step.layout.tensor > 1 || s.step.layout.context > 1;
  return ordered && s.cluster.groups.front().machine.generation != Generation::blackwell && s.step.layout.zero < 2;
}

const Derived derived[] = {
    // The model.
    {"launch.family",
     [](const Scenario& s) { return std::string(s.step.model->family == Family::bert ? "bert" : "gpt"); }},
    {"launch.first_ffn", [](const Scenario& s) { return text(first_of(s).ffn); }},
    {"launch.own_head_dim",
     [](const Scenario& s) {
       const Block& block = first_of(s);
       return is_latent(block) || block.head_dim * block.heads == block.hidden ? "" : text(block.head_dim);
     }},
    {"launch.own_kv_heads",
     [](const Scenario& s) {
       const Block& block = first_of(s);
       return is_latent(block) || block.kv_heads == block.heads ? "" : text(block.kv_heads);
     }},
    {"launch.rotary_share",
     [](const Scenario& s) {
       const Block& block = first_of(s);
       return is_latent(block) || block.rope_head_dim == 0 ? "" : rotary_share(block);
     }},
    {"launch.window",
     [](const Scenario& s) {  // Megatron-LM's is of the tokens before a token, Slipway's counts the token too
       const std::int64_t width = windows_of(s).width;
       return width > 0 ? text(width - 1) + ",0" : "";
     }},
    {"launch.window_skips", window_skips},
    {"launch.layers_with_experts",
     [](const Scenario& s) {
       return last_of(s).experts > 0 && first_of(s).experts == 0 ? layers_with_experts(s.step.model) : "";
     }},
    {"launch.rotary_angles",
     [](const Scenario& s) {
       const std::string& name = s.step.model->name;
       return std::string(!scales_rotary_angles(name) ? "" : name.starts_with("llama-3.2") ? "llama-3.2" : "llama-3.1");
     }},
    {"launch.other_rope_theta",
     [](const Scenario& s) {
       const auto unlike = [&](const BlockRun& run) {
         return run.block.kind == BlockKind::transformer && run.block.rope_theta != first_of(s).rope_theta;
       };
       return flag(std::any_of(s.step.model->runs.begin(), s.step.model->runs.end(), unlike));
     }},
    {"launch.window_chunks",
     [](const Scenario& s) { return flag(any_block(s, [](const Block& b) { return b.window_chunks; })); }},
    {"launch.sinks", [](const Scenario& s) { return flag(any_block(s, [](const Block& b) { return b.sinks; })); }},
    {"launch.result_norms",
     [](const Scenario& s) { return flag(any_block(s, [](const Block& b) { return b.norms != NormPlace::input; })); }},
    {"launch.parallel",
     [](const Scenario& s) { return flag(any_block(s, [](const Block& b) { return b.parallel != Parallel::none; })); }},
    {"launch.geglu_or_relu",
     [](const Scenario& s) {
       return flag(any_block(s, [](const Block& b) { return b.mlp == Mlp::geglu || b.mlp == Mlp::relu; }));
     }},
    {"launch.other_positions",
     [](const Scenario& s) {
       return flag(any_block(
           s, [](const Block& b) { return b.positions == Positions::alibi || b.positions == Positions::none; }));
     }},
    {"launch.partial_bias",
     [](const Scenario& s) { return flag(any_block(s, [](const Block& b) { return b.out_bias || b.mlp_bias; })); }},
    {"launch.embedding_norm", [](const Scenario& s) { return flag(s.step.model->runs.front().block.embedding_norm); }},
    {"launch.other_qk_norm",
     [](const Scenario& s) {
       return flag(any_block(s, [](const Block& b) { return b.qk_norm && b.qk_norm_over != QkNorm::head; }));
     }},
    {"launch.kv_copies",
     [](const Scenario& s) { return flag(!kv_copies(s.step.model, s.step.layout.tensor).empty()); }},
    {"launch.vocab_is_padded",
     [](const Scenario& s) { return flag(head_of(s).vocab % (std::int64_t{128} * s.step.layout.tensor) == 0); }},
    {"launch.has_experts", [](const Scenario& s) { return flag(has_experts(s.step.model)); }},
    // The layout and the batch.
    {"launch.replicas",
     [](const Scenario& s) { return text(std::int64_t{s.step.layout.data} * s.step.layout.context); }},
    {"launch.expert_tensor",
     [](const Scenario& s) {
       return text(s.step.layout.expert_tensor == 0 ? s.step.layout.tensor : s.step.layout.expert_tensor);
     }},
    {"launch.stages",
     [](const Scenario& s) {
       return s.step.layout.pipeline > 1 && is_uneven(s)
                  ? "'" + pipeline_layout(layers_per_stage(s), head_of(s).predicted_tokens) + "'"
                  : "";
     }},
    {"launch.shards_weights",
     [](const Scenario& s) { return flag(s.step.layout.zero >= 2 && s.step.layout.data > 1); }},
    {"launch.shard_degree",
     [](const Scenario& s) { return text(s.step.layout.data / std::max(1, s.step.layout.replicate)); }},
    {"launch.share_of_batch",
     [](const Scenario& s) {
       return text(s.step.layout.pipeline > 1 ? s.step.global_batch / s.step.layout.data : s.step.micro_batch);
     }},
    {"launch.balancing", [](const Scenario& s) { return balancing_type(s.step).value_or(""); }},
    {"launch.is_balanced",
     [](const Scenario& s) {
       const Routing& routing = s.step.routing;
       return flag(routing.forced || routing.balancing_loss > 0 || s.step.optimizer.router_bias_speed > 0);
     }},
    {"launch.whole_graph", [](const Scenario& s) { return flag(s.step.levers.graphs.has(GraphScope::full)); }},
    {"launch.offloads_layer_inputs",
     [](const Scenario& s) { return flag(s.step.levers.offloaded.has(OffloadedInput::layer_inputs)); }},
    {"launch.needs_one_queue", [](const Scenario& s) { return flag(needs_one_queue(s)); }},
    // Number types and the training.
    {"launch.gathers_narrow_weights",
     [](const Scenario& s) {
       return flag(s.step.narrow != NarrowRecipe::none && narrow_habits(s.step).gathers_weights);
     }},
    {"launch.dispatches_narrow",
     [](const Scenario& s) { return flag(s.step.narrow != NarrowRecipe::none && narrow_habits(s.step).dispatches); }},
    {"launch.steps", [](const Scenario& s) { return text(torchtitan_steps(s)); }},
    {"launch.lr_is_slipways", [](const Scenario& s) { return flag(s.step.optimizer.lr == Optimizer{}.lr); }},
};

// Keys of `model` as the first layer has them, those of experts as the last one does.
void add_model(const Scenario& s, LaunchValues& values) {
  const Block &block = first_of(s), &last = last_of(s), &head = head_of(s);
  values["model.layers"] = text(layer_count(s.step.model));
  values["model.hidden"] = text(block.hidden);
  values["model.heads"] = text(block.heads);
  values["model.sequence"] = text(s.step.model->sequence);
  values["model.vocab"] = text(head.vocab);
  values["model.ffn"] = text(last.ffn);
  values["model.experts"] = positive(last.experts);
  values["model.experts_per_token"] = positive(last.experts_per_token);
  values["model.shared_ffn"] = positive(last.shared_ffn);
  values["model.router_scores"] = name_in(router_scores_names, last.scores);
  values["model.score_scale"] = last.experts > 0 && last.score_scale != 1 ? number_text(last.score_scale) : "";
  values["model.expert_groups"] = last.expert_groups > 1 ? text(last.expert_groups) : "";
  values["model.groups_per_token"] = last.expert_groups > 1 ? text(last.groups_per_token) : "";
  values["model.kv_latent"] = positive(block.kv_latent);
  values["model.q_latent"] = positive(block.q_latent);
  if (is_latent(block)) {
    values["model.qk_head_dim"] = text(block.head_dim - block.rope_head_dim);
    values["model.rope_head_dim"] = text(block.rope_head_dim);
    values["model.v_head_dim"] = text(value_dim(block));
  }
  values["model.mlp"] = name_in(mlp_names, block.mlp);
  values["model.norm"] = name_in(norm_names, block.norm);
  values["model.positions"] = name_in(positions_names, block.positions);
  values["model.bias"] = flag(block.bias);
  values["model.qkv_bias"] = flag(block.qkv_bias);
  values["model.qk_norm"] = flag(block.qk_norm);
  values["model.norm_epsilon"] = number_text(block.norm_epsilon);
  values["model.rope_theta"] =
      block.positions == Positions::rotary ? text(static_cast<std::int64_t>(block.rope_theta)) : "";
  values["model.predicted_tokens"] = positive(head.predicted_tokens);
  values["model.tied"] = flag(head.tied);
}

// "[attn, moe_router]" as a command line has it: "attn moe_router".
std::string as_words(std::string list) {
  if (!list.starts_with('[')) return list;
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ','; });
  return list;
}

}  // namespace

LaunchValues model_values(const Scenario& scenario) {
  LaunchValues values;
  add_model(scenario, values);
  return values;
}

std::optional<std::string> launch_value(const Scenario& scenario, const LaunchValues& model, std::string_view name) {
  std::string value;
  const auto found =
      std::find_if(std::begin(derived), std::end(derived), [&](const Derived& each) { return each.name == name; });
  if (found != std::end(derived)) {
    value = found->value(scenario);
  } else if (const auto of_model = model.find(name); of_model != model.end()) {
    value = of_model->second;
  } else if (const Key* key = key_of(scenario_keys(), name); key != nullptr && key->bound.write != nullptr) {
    value = as_words(key->bound.write(scenario));
  }
  return value.empty() ? std::nullopt : std::optional(value);
}

bool is_launch_value(std::string_view name) {
  return std::any_of(std::begin(derived), std::end(derived), [&](const Derived& each) { return each.name == name; });
}

}  // namespace slipway::scenarios
