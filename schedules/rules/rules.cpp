#include "schedules/rules/rules.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "models/model/token_ranges.h"

namespace slipway::schedules {
namespace {

using Keys = std::vector<std::string_view>;

// A refusal of a key, in words.
struct Text {
  std::string problem, allowed, remedy;
};

// The refusals of the rules. Their text is made only on request.
class Findings {
 public:
  Findings(bool with_text, const KeyIsGood& good) : with_text_(with_text), good_(good) {}

  template <typename MakeText>
  void refuse(std::string_view key, const MakeText& make_text) {
    broken_ = true;
    if (!with_text_) return;
    Text text = make_text();
    refusals_.push_back({std::string(key), std::move(text.problem), std::move(text.allowed), std::move(text.remedy)});
  }
  bool are_good(const Keys& keys) const {
    return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
      return (good_ == nullptr || good_(key)) &&
             std::none_of(refusals_.begin(), refusals_.end(), [&](const Refusal& r) { return r.key == key; });
    });
  }
  bool broken() const { return broken_; }
  std::vector<Refusal> take() { return std::move(refusals_); }

 private:
  bool with_text_, broken_ = false;
  const KeyIsGood& good_;
  std::vector<Refusal> refusals_;
};

std::string str(std::int64_t number) { return std::to_string(number); }

// Digits, not 8e+06, as far as a double has them all.
std::string str(double number) {
  constexpr double exact = 9e15;
  if (number < exact) return str(static_cast<std::int64_t>(number));
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// "1, 2, 4, 8": the divisors of `number` up to 1024.
std::string divisors_of(std::int64_t number) {
  std::string out;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(number, 1024); ++d)
    if (number % d == 0) out += (out.empty() ? "" : ", ") + str(d);
  return out;
}

// nullptr without a block of the kind.
const Block* first_block(const Model& model, BlockKind kind) {
  for (const BlockRun& run : model.runs)
    if (run.block.kind == kind) return &run.block;
  return nullptr;
}

void degree_divides(Findings& found, const char* key, std::int64_t degree, const char* name, std::int64_t size) {
  if (size % degree == 0) return;
  found.refuse(key, [&] {
    const bool pads = name == std::string_view("model.vocab");
    return Text{std::string(key) + " = " + str(degree) + " does not divide " + name + " = " + str(size),
                divisors_of(size),
                pads ? "pad the vocabulary: set model.vocab to " + str((size / degree + 1) * degree) +
                           ", or layout.vocab_multiple to 128"
                     : "choose one of these, or change " + std::string(name)};
  });
}

// Rules of the layout for any model.

void sequence_parallelism_needs_a_tensor_group(const Step& step, Findings& found) {
  if (!step.layout.sequence_parallel || step.layout.tensor > 1) return;
  found.refuse("layout.sequence_parallel", [] {
    return Text{"sequence_parallel shards over the tensor group, but layout.tensor is 1", "with tensor of 2 or more",
                "turn sequence_parallel off or raise layout.tensor"};
  });
}

void overlap_cuts_gathers_of_sequence_parallelism(const Step& step, Findings& found) {
  if (!step.overlap_tensor || step.layout.tensor == 1 || step.layout.sequence_parallel) return;
  found.refuse("schedule.overlap_tensor", [] {
    return Text{
        "only gathers and scatters of sequence parallelism are cut into pieces; without it they are all-reduces",
        "false, or layout.sequence_parallel true", "turn sequence_parallel on, or leave overlap_tensor out"};
  });
}

// Levers (models/model/levers.h).

void recomputed_modules_stand_alone(const Step& step, Findings& found) {
  if (step.levers.recomputed.empty() || step.recompute == Recompute::none) return;
  found.refuse("schedule.recompute_modules", [&] {
    return Text{"schedule.recompute " + std::string(name_of(step.recompute)) + " says already what is recomputed",
                "with schedule.recompute none", "leave one of the two out; selective is [core_attn]"};
  });
}

void recomputed_modules_are_there(const Step& step, Findings& found) {
  const auto& modules = step.levers.recomputed;
  if (modules.empty()) return;
  // Without shared experts or plain MLPs, these two do nothing, and recipes name them all the same.
  for (const auto& [module, what] : {std::pair{RecomputedModule::moe_act, "experts"},
                                     {RecomputedModule::moe, "experts"},
                                     {RecomputedModule::layernorm, "layers with norms before attention and MLP"},
                                     {RecomputedModule::mla_up_proj, "latent attention"}}) {
    const auto has = [&](const BlockRun& run) {
      return run.block.kind == BlockKind::transformer && has_module(run.block, module);
    };
    const std::vector<BlockRun>& runs = step.model->runs;
    if (!modules.has(module) || std::any_of(runs.begin(), runs.end(), has)) continue;
    found.refuse("schedule.recompute_modules", [&] {
      return Text{std::string(name_in(recomputed_module_names, module)) + " is a part of " + what + ", which model " +
                      step.model->name + " does not have",
                  "parts of its layers", "leave it out of the list"};
    });
  }
}

void graphs_have_fixed_shapes(const Step& step, Findings& found) {
  const auto& graphs = step.levers.graphs;
  const auto refuse = [&](const char* problem, const char* remedy) {
    found.refuse("schedule.cuda_graphs", [&] { return Text{problem, "as Megatron-Core captures them", remedy}; });
  };
  if (graphs.has(GraphScope::full) && graphs != set_of(GraphScope::full))
    refuse("full is the whole step, so there is nothing beside it", "leave the others out");
  if (graphs.has(GraphScope::moe_preprocess) && !graphs.has(GraphScope::moe_router))
    refuse("moe_preprocess is captured together with the router", "add moe_router");
  if (graphs.has(GraphScope::moe) && step.routing.capacity == 0)
    refuse("whole experts are captured only where they drop and pad: else the number of their rows changes",
           "set run.expert_capacity, or capture moe_router and moe_preprocess");
}

void hybrid_shards_are_whole_groups(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  if (layout.replicate == 1) return;
  const auto refuse = [&](const std::string& problem, const std::string& allowed, const std::string& remedy) {
    found.refuse("layout.replicate", [&] { return Text{problem, allowed, remedy}; });
  };
  if (layout.zero == 0)
    return refuse("without ZeRO every data rank is a replica", "1", "leave it out, or set layout.zero");
  if (layout.data % layout.replicate != 0)
    return refuse("it does not divide layout.data = " + str(std::int64_t{layout.data}), divisors_of(layout.data),
                  "choose one of these");
  if (shards_of(layout) == 1)
    return refuse("every rank would have a copy of its own, so nothing is sharded", "fewer than data x context ranks",
                  "leave it out, and set layout.zero to 0");
  const Schedule* schedule = known_schedule(step);
  if (schedule != nullptr && schedule->copies > 1)
    return refuse("the copies of the model in " + schedule->name + " share their shards", "1", "leave it out");
  if (dispatches_tokens(step))
    return refuse(
        "experts on ranks of their own have data groups of their own, whose shards are not divided in two ways", "1",
        "leave it out, or set layout.expert to 1");
  if (uses_kfac(step) || step.worker_norms)
    return refuse("K-FAC and the norm test reduce over all data ranks at once", "1", "leave it out");
  if (layout.zero >= 2 && step.model->runs.back().block.tied)
    refuse("slices of a tied embedding and head are reduced over all data ranks",
           "with ZeRO 2 and 3 and a tied head: 1", "leave it out, or set layout.zero to 1");
}

void inputs_are_offloaded_once(const Step& step, Findings& found) {
  const auto& inputs = step.levers.offloaded;
  const bool layers = inputs.has(OffloadedInput::layer_inputs), full = step.recompute == Recompute::full;
  const auto refuse = [&](const char* problem, const char* remedy) {
    found.refuse("schedule.offload", [&] { return Text{problem, "what the backward pass reads", remedy}; });
  };
  if (layers && !full)
    return refuse("layer_inputs are what whole recomputed layers keep", "set schedule.recompute to full");
  if (!inputs.empty() && full && inputs != set_of(OffloadedInput::layer_inputs))
    return refuse("a layer that is recomputed keeps nothing but its input", "offload layer_inputs alone");
  if (!has_experts(step.model) && (inputs.has(OffloadedInput::expert_fc1) || inputs.has(OffloadedInput::moe_act)))
    refuse("the model has no experts", "leave expert_fc1 and moe_act out");
}

void offloaded_layers_are_there(const Step& step, Findings& found) {
  const std::int64_t asked = step.levers.offloaded_layers, layers = layer_count(step.model);
  if (asked == 0) return;
  const auto refuse = [&](const std::string& problem, const std::string& allowed, const char* remedy) {
    found.refuse("schedule.offload_layers", [&] { return Text{problem, allowed, remedy}; });
  };
  if (asked > layers)
    return refuse("the model has " + str(layers) + " layers", "0 to " + str(layers), "choose one of these");
  if (step.recompute == Recompute::full)
    refuse("a layer that is recomputed keeps nothing but its input", "0",
           "set schedule.offload to layer_inputs instead");
}

void offload_has_a_link(const Step& step, const Cluster& cluster, Findings& found) {
  if (!step.levers.offloads()) return;
  for (const NodeGroup& group : cluster.groups) {
    if (group.machine.host_to_device.bandwidth > 0 && group.machine.device_to_host.bandwidth > 0) continue;
    return found.refuse("schedule.offload", [&] {
      return Text{"the profile of " + group.machine.name + " has no host_to_device and device_to_host bandwidth",
                  "machines whose link to the host is known",
                  "leave it out, or give the profile both links with their source (`slipway calibrate` measures them)"};
    });
  }
}

void adapters_are_trained_by_adamw(const Step& step, Findings& found) {
  if (step.levers.lora.rank == 0) return;
  if (uses_kfac(step))
    found.refuse("run.lora.rank", [] {
      return Text{"K-FAC's factors are those of trained Linears, and LoRA freezes them", "with kfac: 0",
                  "choose adamw, or leave run.lora out"};
    });
  if (step.levers.lora.modules.empty())
    found.refuse("run.lora.modules", [] {
      return Text{"no Linear has an adapter, so nothing is trained", all_names(lora_module_names), "name one or more"};
    });
}

void offloaded_states_are_those_of_adamw(const Step& step, Findings& found) {
  if (step.optimizer.offload_fraction == 0 || step.optimizer.name == "adamw") return;
  found.refuse("run.optimizer.offload_fraction", [&] {
    return Text{step.optimizer.name + " is not computed on hosts", "0",
                "leave it out, or set run.optimizer.name to adamw"};
  });
}

void offloaded_states_have_a_host(const Step& step, const Cluster& cluster, Findings& found) {
  if (step.optimizer.offload_fraction == 0) return;
  for (const NodeGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    const bool has_link = machine.host_to_device.bandwidth > 0 && machine.device_to_host.bandwidth > 0;
    if (has_link && machine.host_memory_bandwidth > 0) continue;
    found.refuse("run.optimizer.offload_fraction", [&] {
      const std::string lacks = has_link ? "host_memory_bandwidth" : "host_to_device and device_to_host bandwidth";
      return Text{"the profile of " + machine.name + " has no " + lacks, "0",
                  "add it with its source to a profile of your own (slipway list machine-keys), or leave it out"};
    });
    return;
  }
}

void narrow_moments_stand_beside_a_copy(const Step& step, Findings& found) {
  if (step.optimizer.moment_dtype == Dtype::float32) return;
  if (bytes_of(step.dtype) == 2 && !uses_kfac(step)) return;
  found.refuse("run.optimizer.moment_dtype", [] {
    return Text{"moments of 2 bytes belong to adamw beside weights of 2 bytes", "float32",
                "set run.dtype to bfloat16, or leave it out"};
  });
}

// K-FAC and work in the bubbles.

void kfac_has_no_experts(const Step& step, Findings& found) {
  if (!uses_kfac(step) || !has_experts(step.model)) return;
  found.refuse("run.optimizer", [] {
    return Text{"K-FAC of experts is not modelled: each has few tokens for factors of its own",
                "with model.experts: adamw", "choose adamw, or a model without experts"};
  });
}

void kfac_knows_the_projections(const Step& step, Findings& found) {
  if (!uses_kfac(step)) return;
  const auto refuse = [&](const char* what) {
    found.refuse("run.optimizer", [&] {
      return Text{std::string("K-FAC of ") + what + " is not modelled", "adamw",
                  "choose adamw, or a model without " + std::string(what)};
    });
  };
  const auto& runs = step.model->runs;
  if (std::any_of(runs.begin(), runs.end(), [](const BlockRun& run) { return is_latent(run.block); }))
    return refuse("latent attention");
  if (runs.back().block.predicted_tokens > 0) refuse("multi-token prediction");
}

// A window of keys is cut out of all that a context rank has gathered; a ring's rounds would each see another part.
void windows_see_gathered_keys(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  if (layout.context == 1 || layout.context_exchange != ContextExchange::ring) return;
  const bool has_window = std::any_of(step.model->runs.begin(), step.model->runs.end(), [&](const BlockRun& run) {
    return run.block.window > 0 && run.block.window < step.model->sequence;
  });
  if (!has_window) return;
  found.refuse("layout.context_exchange", [] {
    return Text{"rounds of a ring with a sliding window are not modelled", "all-gather",
                "set layout.context_exchange to all-gather, or layout.context to 1"};
  });
}

void norms_of_all_heads_are_whole(const Step& step, Findings& found) {
  if (step.layout.tensor == 1) return;
  const bool over_all = std::any_of(step.model->runs.begin(), step.model->runs.end(), [](const BlockRun& run) {
    return run.block.qk_norm && run.block.qk_norm_over == QkNorm::all;
  });
  if (!over_all) return;
  found.refuse("layout.tensor", [] {
    return Text{"the norms of queries and keys go over all heads, which tensor parallelism divides", "1",
                "set layout.tensor to 1"};
  });
}

void kfac_needs_whole_layers(const Step& step, Findings& found) {
  if (!uses_kfac(step) || step.layout.tensor == 1) return;
  found.refuse("layout.tensor", [] {
    return Text{"K-FAC's factors belong to whole layers, which tensor parallelism splits", "with run.optimizer kfac: 1",
                "set layout.tensor to 1, or choose another optimizer"};
  });
}

void kfac_needs_whole_gradients(const Step& step, Findings& found) {
  if (!uses_kfac(step) || step.layout.zero == 0) return;
  found.refuse("layout.zero", [] {
    return Text{"K-FAC preconditions the gradient of a whole layer, which ZeRO shards", "with run.optimizer kfac: 0",
                "set layout.zero to 0, or choose another optimizer"};
  });
}

void bubbles_take_one_kind_of_work(const Step& step, Findings& found) {
  if (step.fill == Fill::kfac && !uses_kfac(step))
    found.refuse("schedule.fill", [&] {
      return Text{"there is no K-FAC work: run.optimizer is " + step.optimizer.name, "with it: none, evaluation",
                  "set run.optimizer to kfac"};
    });
  if (step.fill == Fill::evaluation && uses_kfac(step))
    found.refuse("schedule.fill", [] {
      return Text{"the bubbles take one kind of work, and run.optimizer kfac brings its own", "with it: none, kfac",
                  "leave schedule.fill out, or choose another optimizer"};
    });
}

void evaluates_on_whole_layers(const Step& step, Findings& found, const char* key, int degree) {
  if (step.fill != Fill::evaluation || degree == 1) return;
  found.refuse(key, [&] {
    return Text{"evaluation in the bubbles passes whole layers on a rank, because sharded ones communicate",
                "with schedule.fill evaluation: 1", std::string("set ") + key + " to 1, or leave schedule.fill out"};
  });
}

// Shards and stages of the model.

// With more ranks than key-value heads, as many ranks have each head.
void heads_are_shared_evenly(Findings& found, std::int64_t tensor, const Block& block) {
  found.refuse("layout.tensor", [&] {
    std::string allowed;
    for (std::int64_t d = 1; d <= std::min<std::int64_t>(block.heads, 1024); ++d)
      if (block.heads % d == 0 && (block.kv_heads % d == 0 || d % block.kv_heads == 0))
        allowed += (allowed.empty() ? "" : ", ") + str(d);
    return Text{"layout.tensor = " + str(tensor) + " neither divides model.kv_heads = " + str(block.kv_heads) +
                    " nor is a multiple of it",
                allowed, "choose one of these, or change model.kv_heads"};
  });
}

void tensor_shards_the_model(const Step& step, Findings& found) {
  const int tensor = step.layout.tensor;
  const Block* block = first_block(step.model, BlockKind::transformer);
  const Block* head = first_block(step.model, BlockKind::head);
  if (block == nullptr || head == nullptr) return;
  degree_divides(found, "layout.tensor", tensor, "model.heads", block->heads);
  for (const BlockRun& run : step.model->runs) {
    const Block& each = run.block;
    if (each.kind != BlockKind::transformer || each.heads % tensor != 0 || each.kv_heads % tensor == 0) continue;
    if (kv_copies(each, tensor) > 1) continue;
    heads_are_shared_evenly(found, tensor, each);
    break;
  }
  for (const BlockRun& run : step.model->runs) {
    const bool dense = run.block.experts == 0;
    const std::int64_t width = dense ? run.block.ffn : run.block.shared_ffn;
    if (run.block.kind != BlockKind::transformer || width % tensor == 0) continue;
    degree_divides(found, "layout.tensor", tensor, dense ? "model.ffn" : "model.shared_ffn", width);
    break;
  }
  degree_divides(found, "layout.tensor", tensor, "model.vocab", head->vocab);
}

// Experts on separate ranks. Each rule applies only where the one before it holds.

constexpr const char* expert_key = "layout.expert";
constexpr const char* expert_tensor_key = "layout.expert_tensor";

void dispatch_needs_experts(const Step& step, Findings& found) {
  if (has_experts(step.model) || !dispatches(sharding_of(step.layout))) return;
  const bool divided = step.layout.expert > 1;
  found.refuse(divided ? expert_key : expert_tensor_key, [&] {
    return Text{"the model has no experts to " + std::string(divided ? "divide among ranks" : "cut"),
                divided ? "1" : "that of layout.tensor",
                divided ? "set layout.expert to 1, or choose a model with experts"
                        : "leave layout.expert_tensor out, or choose a model with experts"};
  });
}

void expert_degrees_divide_experts(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  const Sharding cut = sharding_of(layout);
  if (!has_experts(step.model)) return;
  for (const BlockRun& run : step.model->runs) {
    const Block& block = run.block;
    if (block.experts == 0) continue;
    if (block.experts % layout.expert != 0)
      return degree_divides(found, expert_key, layout.expert, "model.experts", block.experts);
    if (block.ffn % expert_tensor_of(cut) != 0)
      return degree_divides(found, layout.expert_tensor > 0 ? expert_tensor_key : "layout.tensor",
                            expert_tensor_of(cut), "model.ffn", block.ffn);
  }
}

void expert_groups_fill_a_pipeline_rank(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  const std::int64_t members = member_count(layout), cut = expert_tensor_of(sharding_of(layout));
  if (!has_experts(step.model) || !dispatches(sharding_of(layout)) || members % (layout.expert * cut) == 0) return;
  found.refuse(layout.expert > 1 ? expert_key : expert_tensor_key, [&] {
    return Text{"expert " + str(std::int64_t{layout.expert}) + " x expert_tensor " + str(cut) + " = " +
                    str(layout.expert * cut) + " ranks do not divide the " + str(members) +
                    " (tensor x context x data) that share a stage",
                "products among " + divisors_of(members), "lower layout.expert or layout.expert_tensor"};
  });
}

void dispatched_tokens_are_those_of_one_rank(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  if (!dispatches_tokens(step) || layout.tensor == 1 || layout.sequence_parallel) return;
  found.refuse("layout.sequence_parallel", [] {
    return Text{"where tokens travel to experts, each tensor rank routes its own ones",
                "true with layout.tensor above 1",
                "turn sequence_parallel on, or set layout.expert to 1 and leave layout.expert_tensor out"};
  });
}

void balance_needs_experts(const Step& step, Findings& found) {
  if (has_experts(step.model)) return;
  const auto refuse = [&](const char* key, bool is_set, const char* unset = "0") {
    if (!is_set) return;
    found.refuse(key, [&] {
      return Text{"the model has no experts", unset, "leave it out, or choose a model with experts"};
    });
  };
  refuse("run.forced_routing", step.routing.forced, "false");
  refuse("run.balancing_loss", step.routing.balancing_loss != 0);
  refuse("run.expert_capacity", step.routing.capacity != 0);
  refuse("run.router_bias_speed", step.optimizer.router_bias_speed != 0);
}

void forced_routing_is_even(const Step& step, Findings& found) {
  if (!step.routing.forced || !has_experts(step.model) || step.routing.skew == 0) return;
  found.refuse("run.routing_skew", [] {
    return Text{"run.forced_routing gives all experts the same number of tokens", "0", "leave out one of the two"};
  });
}

// The share of a micro-batch's choices is known when all of it is routed.
void balance_counts_whole_micro_batches(const Step& step, Findings& found) {
  if (step.routing.balancing_loss == 0 || step.slices == 1) return;
  found.refuse("run.balancing_loss", [] {
    return Text{"slices of a sequence are routed one after the other, and the loss is of whole sequences", "0",
                "choose a schedule without slices, or leave it out"};
  });
}

constexpr const char* balanced_key = "run.balancing_sequences";

// A micro-batch is routed at once, by all data ranks; earlier and later ones are not known.
void balanced_sequences_are_routed_together(const Step& step, Findings& found) {
  const std::int64_t together = step.routing.balancing_sequences, own = step.micro_batch;
  if (together == 0) return;
  if (step.routing.balancing_loss == 0)
    return found.refuse(balanced_key, [] {
      return Text{"no loss balances experts", "0", "set run.balancing_loss, or leave it out"};
    });
  if (own % together == 0 || (together % own == 0 && step.layout.data % (together / own) == 0)) return;
  found.refuse(balanced_key, [&] {
    return Text{str(together) + " sequences are neither parts of a micro-batch (" + str(own) +
                    " sequences) nor the micro-batches of data ranks (" + str(std::int64_t{step.layout.data}) + ")",
                divisors_of(own) + ", or " + str(own) + " x one of " + divisors_of(step.layout.data),
                "choose one of these, or change schedule.micro_batch or layout.data"};
  });
}

void gathered_tokens_meet_whole_experts(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  if (layout.dispatcher != Dispatcher::allgather || layout.expert == 1 || !dispatches_tokens(step) ||
      expert_tensor_of(sharding_of(layout)) == 1)
    return;
  found.refuse("layout.dispatcher", [] {
    return Text{"allgather is modelled for whole experts only",
                "alltoall, deepep, hybridep; any with layout.expert_tensor 1",
                "set layout.expert_tensor to 1, or choose another dispatcher"};
  });
}

// Each rank of a context group has one piece of the sequence, or two if it is causal (models/model/token_ranges.h).
void context_cuts_the_sequence(const Step& step, Findings& found) {
  const int context = step.layout.context;
  const std::int64_t sequence = step.model->sequence;
  if (context == 1) return;
  degree_divides(found, "layout.context", context, "model.sequence", sequence);
  const auto pieces = pieces_of(is_causal(step.model), context);
  if (sequence % context != 0 || sequence % pieces == 0) return;
  found.refuse("layout.context", [&] {
    return Text{"a causal sequence is cut into two pieces for each context rank, and " + str(std::int64_t{pieces}) +
                    " does not divide model.sequence = " + str(sequence),
                divisors_of(sequence / 2), "choose one of these, or change model.sequence"};
  });
}

void sequence_parallelism_shards_whole_tokens(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  const std::int64_t sequence = step.model->sequence;
  if (!layout.sequence_parallel || layout.tensor < 2 || sequence % layout.context != 0) return;
  const std::int64_t local = sequence / layout.context;
  if (local % layout.tensor == 0) return;
  found.refuse("layout.sequence_parallel", [&] {
    return Text{"tensor = " + str(std::int64_t{layout.tensor}) + " does not divide the " + str(local) +
                    " tokens of a context rank, which sequence_parallel shards",
                "tensor " + divisors_of(local),
                "choose one of these, turn sequence_parallel off, or change model.sequence"};
  });
}

// The scores that unfused kernels write are of whole rows; only fused ones give a log-sum-exp to merge by.
void ring_needs_fused_kernels(const Step& step, Findings& found) {
  if (step.layout.context_exchange != ContextExchange::ring || !writes_scores(step.kernels)) return;
  found.refuse("layout.context_exchange", [] {
    return Text{"ring attention merges partial results by their log-sum-exp, which unfused kernels do not make",
                "all-gather",
                "set schedule.kernels to flash1, flash2 or flash2_rmsnorm, or layout.context_exchange to all-gather"};
  });
}

// A list may leave stages without a block, which then only hand on what they get.
void every_stage_has_a_block(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  const std::int64_t layers = layer_count(step.model), most = layers + 2;
  const std::int64_t stages = std::int64_t{layout.pipeline} * layout.chunks;
  if (stages <= most || layout.split == SplitKind::list) return;
  found.refuse(layout.pipeline > 1 ? "layout.pipeline" : "layout.chunks", [&] {
    return Text{"pipeline " + str(std::int64_t{layout.pipeline}) + " x chunks " + str(std::int64_t{layout.chunks}) +
                    " = " + str(stages) + " stages are more than the model's " + str(layers) +
                    " transformer blocks, embedding and head",
                "up to " + str(most),
                "lower layout.pipeline or layout.chunks, or list stages without a layer in layout.split"};
  });
}

void split_names_every_layer(const Step& step, Findings& found) {
  const Layout& layout = step.layout;
  if (layout.split != SplitKind::list) return;
  const std::int64_t layers = layer_count(step.model);
  const std::int64_t stages = std::int64_t{layout.pipeline} * layout.chunks;
  const std::int64_t entries = std::ssize(layout.split_list);
  const std::int64_t sum = std::accumulate(layout.split_list.begin(), layout.split_list.end(), std::int64_t{0});
  const auto refuse = [&](const std::string& problem, const char* remedy) {
    found.refuse("layout.split", [&] {
      return Text{problem, str(stages) + " numbers that add up to " + str(layers), remedy};
    });
  };
  if (entries != stages)
    refuse("the list has " + str(entries) + " numbers for " + str(stages) + " stages",
           "give one number of layers for each of pipeline x chunks stages");
  else if (sum != layers)
    refuse("the list adds up to " + str(sum) + " of " + str(layers) + " layers", "change the list so that it adds up");
  else if (std::any_of(layout.split_list.begin(), layout.split_list.end(), [](int count) { return count < 0; }))
    refuse("a stage has a negative number of layers", "change the list");
}

// The batch and the schedule.

std::int64_t rows_of(const Block& block) { return std::max<std::int64_t>(1, block.experts_per_token); }

// Numbers of a layer's widest tensor are counted as 64-bit integers, with factors below a hundred on them.
void elements_can_be_counted(const Step& step, Findings& found) {
  constexpr double most = 9e16;
  std::int64_t widest = 0;
  for (const BlockRun& run : step.model->runs)
    widest = std::max({widest, rows_of(run.block) * std::max(run.block.hidden, run.block.ffn), run.block.shared_ffn,
                       run.block.experts, run.block.vocab});
  const double tokens = static_cast<double>(step.micro_batch) * static_cast<double>(step.model->sequence);
  if (tokens * static_cast<double>(widest) <= most) return;
  found.refuse("schedule.micro_batch", [&] {
    return Text{"micro_batch " + str(step.micro_batch) + " x model.sequence " + str(step.model->sequence) + " x " +
                    str(widest) +
                    " (the largest of hidden, ffn and vocab, with experts those of a token together) is more than can "
                    "be counted",
                "products up to 9e16", "lower schedule.micro_batch or model.sequence"};
  });
}

// Sequences that one micro-batch of every replica takes. A data degree that is not known counts as 1.
std::int64_t sequences_per_round(const Step& step) { return step.micro_batch * std::max(1, step.layout.data); }

void batch_is_whole_micro_batches(const Step& step, Findings& found) {
  const std::int64_t batch = step.global_batch, unit = sequences_per_round(step);
  if (batch % unit == 0) return;
  found.refuse("schedule.global_batch", [&] {
    const std::int64_t below = batch / unit * unit;
    return Text{"global_batch = " + str(batch) + " is not divisible by micro_batch " + str(step.micro_batch) +
                    (step.layout.data > 1 ? " x data " + str(std::int64_t{step.layout.data}) + " = " + str(unit) : ""),
                "multiples of " + str(unit), "set it to " + (below > 0 ? str(below) + " or " : "") + str(below + unit)};
  });
}

void micro_batches_can_be_numbered(const Step& step, Findings& found) {
  const std::int64_t count = step.global_batch / sequences_per_round(step);
  if (count <= most_micro_batches) return;
  found.refuse("schedule.global_batch", [&] {
    return Text{"that is " + str(count) + " micro-batches per pipeline", "up to " + str(most_micro_batches),
                "raise schedule.micro_batch or lower schedule.global_batch"};
  });
}

void slices_need_causal_attention(const Step& step, Findings& found) {
  const Block* block = first_block(step.model, BlockKind::transformer);
  if (block == nullptr || block->causal) return;
  if (const Schedule* schedule = known_schedule(step);
      schedule != nullptr && schedule->needs_causal && step.actions == nullptr)
    found.refuse("schedule.name", [&] {
      return Text{schedule->name + " needs causal attention, which " + step.model->name + " does not have",
                  "schedules without slices", "choose another schedule (slipway list schedules)"};
    });
  else if (step.slices > 1)
    found.refuse("schedule.slices", [&] {
      return Text{"a sequence of " + step.model->name + " cannot be cut into slices: its attention is not causal", "1",
                  "set schedule.slices to 1"};
    });
}

void slices_divide_the_sequence(const Step& step, Findings& found) {
  degree_divides(found, "schedule.slices", step.slices, "model.sequence", step.model->sequence);
}

// Each micro-batch of a copy would be reduced with another one of the other copy, which comes at another time.
void copies_of_the_model_reduce_once(const Step& step, Findings& found) {
  if (step.layout.zero < 2) return;
  const Schedule* schedule = known_schedule(step);
  if (schedule == nullptr || schedule->copies == 1) return;
  found.refuse("layout.zero", [&] {
    return Text{"layout.zero " + str(std::int64_t{step.layout.zero}) +
                    " reduces the gradients of every micro-batch, but " + schedule->name +
                    " sends them through different copies of the model",
                "0, 1", "set layout.zero to 0 or 1, or choose another schedule"};
  });
}

void slices_keep_the_sequence_on_a_rank(const Step& step, Findings& found) {
  if (step.slices == 1 || step.layout.context == 1) return;
  found.refuse("layout.context", [&] {
    return Text{"context parallelism and slices both cut the sequence",
                "with schedule.slices " + str(std::int64_t{step.slices}) + ": 1",
                "set layout.context to 1 or schedule.slices to 1"};
  });
}

void slices_keep_their_keys(const Step& step, Findings& found) {
  if (step.slices == 1 || step.recompute != Recompute::full) return;
  found.refuse("schedule.recompute", [] {
    return Text{
        "a slice attends to the keys and values of the slices before it, which full recomputation would have to "
        "make again for each of them",
        "with slices: none, selective", "set schedule.recompute to selective or schedule.slices to 1"};
  });
}

ScheduleShape shape_of(const Step& step, const Schedule& schedule, std::int64_t batch) {
  return {step.layout.pipeline, step.layout.chunks, static_cast<int>(batch / sequences_per_round(step)),
          step.slices,          schedule.copies,    step.group};
}

void groups_are_of_interleaved_schedules(const Step& step, Findings& found) {
  const Schedule* schedule = known_schedule(step);
  if (step.group == 0 || schedule == nullptr || (schedule->has_groups && step.actions == nullptr)) return;
  found.refuse("schedule.group", [&] {
    std::string named;
    for (const Schedule& each : all_schedules())
      if (each.has_groups) named += (named.empty() ? "" : ", ") + each.name;
    return Text{(step.actions ? "a CSV has its own order" : step.schedule + " has no groups of micro-batches"),
                "0, or with schedule.name " + named, "leave it out, or choose one of these schedules"};
  });
}

void schedule_runs_the_shape(const Step& step, Findings& found) {
  const Schedule* schedule = known_schedule(step);
  if (schedule == nullptr || step.actions != nullptr) return;
  const std::optional<ShapeRefusal> reason = schedule->refuse(shape_of(step, *schedule, step.global_batch));
  if (!reason) return;
  found.refuse("schedule.name", [&] {
    return Text{reason->problem, "shapes that the schedule can run (slipway list schedules)", reason->remedy};
  });
}

// The norm test (models/training/batch_rules.h) needs the norm of each worker's gradient before it is reduced.

// By the smallest step: a schedule does it or does not.
bool splits_backward(const Step& step) {
  if (step.actions != nullptr) return splits_backward(*step.actions);
  const Schedule& schedule = schedule_of(step);
  for (int count = 1; count <= 8 * step.layout.pipeline; ++count) {
    const ScheduleShape shape{step.layout.pipeline, step.layout.chunks, count, step.slices, schedule.copies};
    if (!schedule.refuse(shape)) return splits_backward(schedule.actions(shape));
  }
  return false;  // it runs no step
}

void workers_have_gradients_to_compare(const Step& step, Findings& found) {
  if (!step.worker_norms) return;
  const Layout& layout = step.layout;
  const auto refuse = [&](const std::string& problem, const std::string& remedy) {
    found.refuse("training.growth.rule", [&] {
      return Text{"the norm test compares the gradients of data parallel workers, but " + problem,
                  "constant, linear, stages", "choose one of these, or " + remedy};
    });
  };
  if (layout.data * schedule_of(step).copies < 2)
    return refuse("there is one data parallel worker", "set layout.data to 2 or more");
  if (layout.context > 1)
    return refuse("gradients are reduced over data and context ranks at once, so no worker ever has its own",
                  "set layout.context to 1");
  if (dispatches_tokens(step))
    return refuse("an expert of another rank sums the gradients of several workers' tokens", "set layout.expert to 1");
  if (layout.zero < 2) return;
  const auto refuse_sharded = [&](const char* what) {
    refuse("with layout.zero " + str(std::int64_t{layout.zero}) + " " + what, "set layout.zero to 1");
  };
  const auto is_partial = [](const BlockRun& run) { return run.block.qk_norm || run.block.experts > 0; };
  const std::vector<BlockRun>& runs = step.model->runs;
  const bool partial = std::any_of(runs.begin(), runs.end(), is_partial);
  if (layout.tensor > 1 && (layout.sequence_parallel || partial))
    return refuse_sharded(
        "gradients of norms and routers are summed over the tensor group after the reduction over the workers");
  if (reads_table(runs.back().block))
    return refuse_sharded("the tied embedding's two gradients are added after the reduction over the workers");
  if (step.slices > 1) return refuse_sharded("each slice of a sequence is reduced by itself");
  if (splits_backward(step))  // small gradients are added up in the input gradient's pass, also of later micro-batches
    refuse_sharded(
        "gradients of norms and biases go with those of other micro-batches where the schedule splits the backward");
}

// The step on a cluster.

void ranks_fill_the_cluster(const Step& step, const Cluster& cluster, Findings& found) {
  const Layout& layout = step.layout;
  // In double: each degree is at most 1e6, the product of them need not fit an integer.
  const double others = static_cast<double>(layout.tensor) * layout.context * layout.pipeline;
  const double gpus = rank_capacity(cluster), share = gpus / others;
  if (others * layout.data == gpus) return;
  found.refuse("layout.data", [&] {
    const bool whole = share >= 1 && share == static_cast<double>(static_cast<std::int64_t>(share));
    const bool known = layout.data > 0;  // else the loader found none
    const std::string product = "tensor " + str(std::int64_t{layout.tensor}) + " x context " +
                                str(std::int64_t{layout.context}) + " x pipeline " +
                                str(std::int64_t{layout.pipeline}) +
                                (known ? " x data " + str(std::int64_t{layout.data}) : "");
    return Text{product + " = " + str(known ? others * layout.data : others) + " ranks do not " +
                    (known ? "equal" : "divide") + " the cluster's " + str(gpus) + " GPUs",
                "a product of tensor, context, data and pipeline of " + str(gpus),
                whole ? "set layout.data to " + str(share) + ", or leave it out"
                      : "change layout.tensor, context or pipeline, or cluster.nodes and gpus_per_node"};
  });
}

void machines_compute_in_the_dtype(const Step& step, const Cluster& cluster, Findings& found) {
  if (computes_in(cluster, step.dtype)) return;
  found.refuse("run.dtype", [&] {
    std::string allowed;
    for (const Dtype each : {Dtype::float64, Dtype::float32, Dtype::bfloat16, Dtype::float16})
      if (computes_in(cluster, each)) allowed += (allowed.empty() ? "" : ", ") + name_of(each);
    return Text{"a machine profile of the cluster gives no peak FLOP/s for " + name_of(step.dtype),
                allowed.empty() ? "none of float64, float32, bfloat16, float16 in all profiles" : allowed,
                "choose one of these, or add peak_flops." + name_of(step.dtype) + " with its source to the profile"};
  });
}

void weight_gradients_are_delayed_in_pairs(const Step& step, Findings& found) {
  const auto has_place = [](const Schedule& schedule) { return schedule.hides_exchanges; };
  const Schedule* schedule = known_schedule(step);
  const bool is_paired = schedule != nullptr && has_place(*schedule) && step.actions == nullptr;
  if (!step.delay_weight_grads || is_paired) return;
  found.refuse("schedule.delay_wgrad", [&] {
    return Text{step.actions != nullptr ? "the order of schedule.csv has its own weight gradients"
                                        : "the schedule " + step.schedule + " has no pairs to delay them in",
                "false",
                "set schedule.name to " + schedules_with(has_place, " or ") + ", or leave schedule.delay_wgrad out"};
  });
}

void narrow_tokens_are_those_of_narrow_products(const Step& step, Findings& found) {
  if (!step.narrow_habits.dispatches) return;
  const bool gathers = step.layout.dispatcher == Dispatcher::allgather && dispatches_tokens(step);
  if (step.narrow != NarrowRecipe::none && !gathers) return;
  found.refuse("run.fp8_dispatch", [&] {
    if (gathers)
      return Text{"layout.dispatcher allgather sends tokens in run.dtype", "false",
                  "choose the dispatcher alltoall, deepep or hybridep, or leave run.fp8_dispatch out"};
    return Text{"products in run.dtype take no tokens of 8 bits", "false",
                "set run.fp8, or leave run.fp8_dispatch out"};
  });
}

// A user's profile may state peaks of the dtype only.
void machines_compute_in_the_narrow_format(const Step& step, const Cluster& cluster, Findings& found) {
  const auto narrow = format_of(step.narrow);
  if (!narrow) return;
  const Format format = computes_as(*narrow);
  for (const NodeGroup& group : cluster.groups) {
    if (group.machine.peak_flops[static_cast<std::size_t>(format)] > 0) continue;
    found.refuse("run.fp8", [&] {
      return Text{
          group.machine.name + " has no peak_flops." + name_of(format) + ", which " + name_of(step.narrow) + " needs",
          "none", "leave run.fp8 out, or choose a machine that has it (slipway list machines)"};
    });
    return;
  }
}

void placement_names_every_node(const Step& step, const Cluster& cluster, Findings& found) {
  if (step.layout.placement.empty()) return;
  std::vector<int> sorted = step.layout.placement, nodes(static_cast<std::size_t>(node_count(cluster)));
  std::sort(sorted.begin(), sorted.end());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (sorted == nodes) return;
  found.refuse("layout.placement", [&] {
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    const std::string problem = twice != sorted.end() ? "node " + str(std::int64_t{*twice}) + " is named twice"
                                : sorted.size() != nodes.size()
                                    ? "it names " + str(std::ssize(sorted)) + " of " + str(std::ssize(nodes)) + " nodes"
                                    : "there is no node " + str(std::int64_t{sorted.back()});
    return Text{problem, "each of 0 to " + str(std::ssize(nodes) - 1) + " once, in any order",
                "list every node, or leave layout.placement out"};
  });
}

void block_times_are_those_of_the_model(const Step& step, const Cluster& cluster, Findings& found) {
  const BlockTable& table = cluster.groups.front().machine.blocks;
  if (table.empty()) return;
  for (const BlockRun& run : step.model->runs) {
    if (run.block.kind != BlockKind::transformer) continue;
    const std::string reason = mismatch(table, run.block, work_shape(step));
    if (reason.empty()) continue;
    return found.refuse("cluster.block_times", [&] {
      return Text{reason, "what was measured",
                  "change the scenario, or leave cluster.block_times out to price from the machine"};
    });
  }
}

std::string in_words(const Place& place) {
  return "GPU " + std::to_string(place.gpu) + " of node " + std::to_string(place.node) + " (group " +
         std::to_string(place.group) + ")";
}

// One refusal: of the first pair of neighbours along an axis that no fabric connects.
void fabrics_connect_every_group(const Step& step, const Cluster& cluster, Findings& found) {
  const Layout& layout = step.layout;
  struct {
    const char* name;
    int degree;
    int Coordinates::*position;
  } const axes[] = {{"tensor", layout.tensor, &Coordinates::tensor},
                    {"context", layout.context, &Coordinates::context},
                    {"data", layout.data, &Coordinates::data},
                    {"pipeline", layout.pipeline, &Coordinates::pipeline}};
  for (const auto& axis : axes) {
    for (int rank = 0; rank < rank_count(layout) && axis.degree > 1; ++rank) {
      Coordinates at = coordinates_of(layout, rank);
      at.*axis.position = (at.*axis.position + 1) % axis.degree;
      const int peer = rank_of(layout, at);
      const Place here = place_of(cluster, rank), there = place_of(cluster, peer);
      if (std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                      [&](const Fabric& fabric) { return connects(fabric, here, there); }))
        continue;
      return found.refuse("cluster.fabrics", [&] {
        return Text{"ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " of a " + axis.name +
                        " group have no common fabric: " + in_words(here) + " and " + in_words(there),
                    "clusters in which all members of a group are connected",
                    "add a fabric with both groups as members (scope cluster between nodes), or give the machine "
                    "profile a " +
                        std::string(here.node == there.node ? "node_link" : "network_link")};
      });
    }
  }
}

}  // namespace

struct Rule {
  Keys reads;
  void (*of_step)(const Step&, Findings&) = nullptr;
  void (*on_cluster)(const Step&, const Cluster&, Findings&) = nullptr;
};

namespace {

constexpr std::string_view model = "model", name = "schedule.name", slices = "schedule.slices",
                           micro_batch = "schedule.micro_batch", batch = "schedule.global_batch",
                           recompute = "schedule.recompute", fill = "schedule.fill", tensor = "layout.tensor",
                           context = "layout.context", pipeline = "layout.pipeline", chunks = "layout.chunks",
                           data = "layout.data", zero = "layout.zero", sequence_parallel = "layout.sequence_parallel",
                           optimizer = "run.optimizer.name", dtype = "run.dtype", sequence = "model.sequence";

// The book. Rules stand in the order in which their refusals are reported.
const std::vector<Rule>& book() {
  static const std::vector<Rule> rules{
      {{sequence_parallel, tensor}, sequence_parallelism_needs_a_tensor_group},
      {{"schedule.overlap_tensor", sequence_parallel, tensor}, overlap_cuts_gathers_of_sequence_parallelism},
      {{"schedule.recompute_modules", recompute}, recomputed_modules_stand_alone},
      {{model, "schedule.recompute_modules"}, recomputed_modules_are_there},
      {{"schedule.cuda_graphs", "run.expert_capacity"}, graphs_have_fixed_shapes},
      {{model, "layout.replicate", zero, data, context, name, tensor, expert_key, expert_tensor_key, optimizer},
       hybrid_shards_are_whole_groups},
      {{model, "schedule.offload", recompute}, inputs_are_offloaded_once},
      {{model, "schedule.offload_layers", recompute}, offloaded_layers_are_there},
      {{"schedule.offload", "schedule.offload_layers"}, nullptr, offload_has_a_link},
      {{"run.lora.rank", "run.lora.modules", optimizer}, adapters_are_trained_by_adamw},
      {{"run.optimizer.moment_dtype", dtype, optimizer}, narrow_moments_stand_beside_a_copy},
      {{"layout.placement"}, nullptr, placement_names_every_node},
      {{tensor, context, pipeline, data}, nullptr, ranks_fill_the_cluster},
      {{dtype}, nullptr, machines_compute_in_the_dtype},
      {{name, "schedule.csv", "schedule.delay_wgrad"}, weight_gradients_are_delayed_in_pairs},
      {{optimizer, "run.optimizer.offload_fraction"}, offloaded_states_are_those_of_adamw},
      {{"run.optimizer.offload_fraction"}, nullptr, offloaded_states_have_a_host},
      {{"run.fp8"}, nullptr, machines_compute_in_the_narrow_format},
      {{model, "run.fp8_dispatch", "run.fp8", "layout.dispatcher", tensor, expert_key, expert_tensor_key},
       narrow_tokens_are_those_of_narrow_products},
      {{model, optimizer}, kfac_has_no_experts},
      {{model, optimizer}, kfac_knows_the_projections},
      {{model, context, "layout.context_exchange"}, windows_see_gathered_keys},
      {{model, tensor}, norms_of_all_heads_are_whole},
      {{optimizer, tensor}, kfac_needs_whole_layers},
      {{optimizer, zero}, kfac_needs_whole_gradients},
      {{fill, optimizer}, bubbles_take_one_kind_of_work},
      {{fill, tensor},
       [](const Step& s, Findings& f) { evaluates_on_whole_layers(s, f, "layout.tensor", s.layout.tensor); }},
      {{fill, context},
       [](const Step& s, Findings& f) { evaluates_on_whole_layers(s, f, "layout.context", s.layout.context); }},
      {{"cluster.block_times", model, name, slices, micro_batch, tensor, context, dtype},
       nullptr,
       block_times_are_those_of_the_model},
      {{model, tensor}, tensor_shards_the_model},
      {{model, tensor, expert_key, expert_tensor_key}, dispatch_needs_experts},
      {{model, tensor, expert_key, expert_tensor_key}, expert_degrees_divide_experts},
      {{model, tensor, context, data, expert_key, expert_tensor_key}, expert_groups_fill_a_pipeline_rank},
      {{model, tensor, sequence_parallel, expert_key, expert_tensor_key}, dispatched_tokens_are_those_of_one_rank},
      {{model, tensor, "layout.dispatcher", expert_key, expert_tensor_key}, gathered_tokens_meet_whole_experts},
      {{model, "run.forced_routing", "run.balancing_loss", "run.expert_capacity", "run.router_bias_speed"},
       balance_needs_experts},
      {{model, "run.forced_routing", "run.routing_skew"}, forced_routing_is_even},
      {{micro_batch, data, "run.balancing_loss", balanced_key}, balanced_sequences_are_routed_together},
      {{model, "schedule.slices", "run.balancing_loss"}, balance_counts_whole_micro_batches},
      {{model, context}, context_cuts_the_sequence},
      {{model, context, sequence_parallel},
       sequence_parallelism_shards_whole_tokens},  // also of a tensor that is refused
      {{model, "layout.context_exchange", "schedule.kernels"}, ring_needs_fused_kernels},
      {{model, pipeline, chunks, "layout.split"}, every_stage_has_a_block},
      {{model, pipeline, chunks, "layout.split"}, split_names_every_layer},
      {{model, sequence, micro_batch}, elements_can_be_counted},
      {{batch, micro_batch}, batch_is_whole_micro_batches},
      {{batch, micro_batch, data}, micro_batches_can_be_numbered},
      {{"schedule.group", name}, groups_are_of_interleaved_schedules},
      {{model, name, slices, pipeline, chunks}, slices_need_causal_attention},
      {{model, name, slices, pipeline, chunks}, slices_divide_the_sequence},
      {{name, slices, pipeline, chunks, zero}, copies_of_the_model_reduce_once},
      {{name, slices, pipeline, chunks, context}, slices_keep_the_sequence_on_a_rank},
      {{name, slices, pipeline, chunks, recompute}, slices_keep_their_keys},
      {{name, slices, pipeline, chunks, batch, micro_batch, data, "schedule.group"}, schedule_runs_the_shape},
      {{tensor, context, pipeline, chunks, data, "layout.split"}, nullptr, fabrics_connect_every_group},
      {{model, name, slices, pipeline, chunks, batch, micro_batch, data, context, zero, tensor, sequence_parallel},
       workers_have_gradients_to_compare},
  };
  return rules;
}

std::vector<Refusal> found_by_book(const Step& step, const Cluster* cluster, const KeyIsGood& good) {
  Findings found(true, good);
  for (const Rule& rule : book()) {
    if (!found.are_good(rule.reads)) continue;
    if (rule.of_step != nullptr) rule.of_step(step, found);
    if (rule.on_cluster != nullptr && cluster != nullptr) rule.on_cluster(step, *cluster, found);
  }
  return found.take();
}

}  // namespace

std::vector<Refusal> refusals(const Step& step, const KeyIsGood& good) { return found_by_book(step, nullptr, good); }

std::vector<Refusal> refusals(const Step& step, const Cluster& cluster, const KeyIsGood& good) {
  return found_by_book(step, &cluster, good);
}

namespace {

bool reads_any(const Rule& rule, KeyNames keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return std::find(rule.reads.begin(), rule.reads.end(), key) != rule.reads.end();
  });
}

template <class Wanted>
std::vector<const Rule*> rules_that(const Wanted& wanted) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : book())
    if (rule.of_step != nullptr && wanted(rule)) rules.push_back(&rule);
  return rules;
}

}  // namespace

std::vector<const Rule*> rules_without(KeyNames undecided) {
  return rules_that([&](const Rule& rule) { return !reads_any(rule, undecided); });
}

std::vector<const Rule*> rules_of(KeyNames keys, KeyNames undecided) {
  return rules_that([&](const Rule& rule) { return reads_any(rule, keys) && !reads_any(rule, undecided); });
}

bool legal(const Step& step, std::span<const Rule* const> rules) {
  static const KeyIsGood all;
  Findings found(false, all);
  return std::all_of(rules.begin(), rules.end(), [&](const Rule* rule) {
    rule->of_step(step, found);
    return !found.broken();
  });
}

bool legal(const Step& step) {
  static const std::vector<const Rule*> all = rules_without({});
  return legal(step, all);
}

bool takes_batch(const Step& step, std::int64_t global_batch) {
  const std::int64_t unit = sequences_per_round(step), count = global_batch / unit;
  if (count < 1 || global_batch % unit != 0 || count > most_micro_batches) return false;
  const Schedule& schedule = schedule_of(step);
  return !schedule.refuse(shape_of(step, schedule, global_batch));
}

}  // namespace slipway::schedules
