#include "exec/run/executable.h"

#include <algorithm>

#include "schedules/graph/bubble_work.h"

namespace slipway::exec {
namespace {

void refuse_evaluation(const Step& step, const Run& run, std::vector<Refusal>& refusals) {
  if (run.evaluation_data.empty())
    refusals.push_back({"run.evaluation_data", "it is not set", "",
                        "name a file of held-out text or tokens, which schedule.fill evaluation passes through the "
                        "pipeline"});
  else if (step.layout.zero > 0)
    refusals.push_back({"layout.zero", "evaluation in the bubbles needs all weights on each rank when a window begins",
                        "0", "set layout.zero to 0"});
  else if (dispatches_tokens(step))
    refusals.push_back({"layout.expert", "evaluation in the bubbles sends no tokens to experts of other ranks", "1",
                        "set layout.expert to 1 and leave layout.expert_tensor out"});
  else if (step.slices > 1)
    refusals.push_back({"schedule.slices", "evaluation in the bubbles passes whole sequences", "1",
                        "choose a schedule without slices"});
}

// The first feature of a block that the executor does not compute.
struct Feature {
  const char* key;
  const char* words;
  bool (*of)(const Block& block);
};
const Feature only_predicted[] = {
    {"model.kv_latent", "latent attention", [](const Block& b) { return is_latent(b); }},
    {"model.predicted_tokens", "multi-token prediction", [](const Block& b) { return b.predicted_tokens > 0; }},
    {"model.window", "attention in a window", [](const Block& b) { return b.window > 0; }},
    {"model.sinks", "attention with sinks", [](const Block& b) { return b.sinks; }},
    {"model.v_head_dim", "values of another width than keys", [](const Block& b) { return b.v_head_dim > 0; }},
    {"model.rope_head_dim", "rotary positions of a part of each head",
     [](const Block& b) { return b.rope_head_dim > 0; }},
    {"model.positions", "attention without rotary or learned positions",
     [](const Block& b) {
       return b.kind == BlockKind::transformer && (b.positions == Positions::alibi || b.positions == Positions::none);
     }},
    {"model.mlp", "this kind of MLP",
     [](const Block& b) { return b.kind == BlockKind::transformer && b.mlp != Mlp::swiglu && b.mlp != Mlp::gelu; }},
    {"model.norms", "norms of a sub-layer's result", [](const Block& b) { return b.norms != NormPlace::input; }},
    {"model.parallel", "an MLP beside attention", [](const Block& b) { return b.parallel != Parallel::none; }},
    {"model.qk_norm_over", "norms of all heads at once, or without weights",
     [](const Block& b) { return b.qk_norm && b.qk_norm_over != QkNorm::head; }},
    {"model.embedding_norm", "a norm behind the embedding", [](const Block& b) { return b.embedding_norm; }},
    {"model.out_bias", "a bias of attention's output alone", [](const Block& b) { return b.out_bias; }},
    {"model.mlp_bias", "biases of the MLP alone", [](const Block& b) { return b.mlp_bias; }},
    {"model.bias", "biases of experts", [](const Block& b) { return b.experts > 0 && b.bias; }},
};

void refuse_model(const Model& model, std::vector<Refusal>& refusals) {
  for (const Feature& feature : only_predicted)
    if (std::any_of(model.runs.begin(), model.runs.end(), [&](const BlockRun& run) { return feature.of(run.block); }))
      refusals.push_back({feature.key, std::string("the executor does not compute ") + feature.words,
                          "models without it", "choose another model; this one is for predictions"});
  for (const std::string& field : model.only_predicted)
    refusals.push_back({"model", "the executor does not compute what '" + field + "' of its config.json changes",
                        "models without it", "choose another model; this one is for predictions"});
}

bool is_kfac_work(const Work& work) {
  return work.kind == WorkKind::precondition ||
         (work.kind == WorkKind::bubble_work && !is_evaluation(work) && !sends_evaluated(work));
}

// Turns go by a token's place in its sequence. So a rank's part of the sequence must hold whole rounds of turns, or it
// would begin another one than a single rank.
void refuse_uneven_turns(const Step& step, std::vector<Refusal>& refusals) {
  const Layout& layout = step.layout;
  const std::int64_t parts = std::int64_t{step.slices} * (layout.context > 1 ? 2 * layout.context : 1) *
                             (layout.sequence_parallel ? layout.tensor : 1);
  for (const BlockRun& run : step.model->runs) {
    const Block& block = run.block;
    if (block.experts == 0 || step.model->sequence % parts != 0) continue;
    const std::int64_t tokens = step.model->sequence / parts;
    if (tokens * block.experts_per_token % block.experts == 0) continue;
    refusals.push_back({"run.forced_routing",
                        "a rank has parts of " + std::to_string(tokens) + " tokens, so " +
                            std::to_string(tokens * block.experts_per_token) + " rows for " +
                            std::to_string(block.experts) + " experts to take in turn",
                        "false", "choose a sequence and degrees by which experts take equally many, or leave it out"});
    return;
  }
}

}  // namespace

std::vector<Refusal> not_executable(const Step& step, const Run& run, bool batch_grows) {
  std::vector<Refusal> refusals;
  refuse_model(step.model, refusals);
  const LearningRateSchedule& rate = step.optimizer.lr_schedule;
  if (batch_grows && rate.decay != DecayStyle::constant && rate.decay_samples == 0)
    refusals.push_back({"run.optimizer.lr_decay_samples",
                        "the learning rate decays to the end of the training, in samples, and the batch grows", "",
                        "set run.optimizer.lr_decay_samples"});
  if (step.optimizer.name != "adamw" && step.optimizer.name != "kfac")
    refusals.push_back(
        {"run.optimizer.name", step.optimizer.name + " is not executed", "adamw, kfac", "use one of them"});
  if (step.dtype == Dtype::float16)
    refusals.push_back({"run.dtype", "small gradients of float16 need loss scaling, which the executor does not do",
                        "float64, float32, bfloat16", "set run.dtype to bfloat16 or float32"});
  if (step.narrow != NarrowRecipe::none)
    refusals.push_back(
        {"run.fp8", "the executor computes products in run.dtype", "none", "leave run.fp8 out; it is for predictions"});
  if (!step.levers.recomputed.empty())
    refusals.push_back({"schedule.recompute_modules", "the executor recomputes whole layers or attention's scores",
                        "[]", "set schedule.recompute to full or selective instead"});
  if (!step.levers.graphs.empty())
    refusals.push_back({"schedule.cuda_graphs", "the executor records segments, not modules", "[]",
                        "leave it out; execute --cuda-graphs records segments"});
  if (step.layout.replicate > 1)
    refusals.push_back(
        {"layout.replicate", "the executor shards over all data ranks", "1", "leave it out; it is for predictions"});
  if (step.levers.offloads())
    refusals.push_back({"schedule.offload", "the executor keeps everything on its device", "[]",
                        "leave it out; it is for predictions"});
  if (step.optimizer.offload_fraction > 0)
    refusals.push_back({"run.optimizer.offload_fraction", "the executor keeps optimizer states on its device", "0",
                        "leave it out; it is for predictions"});
  if (step.delay_weight_grads)
    refusals.push_back({"schedule.delay_wgrad", "the executor computes a backward pass at once in these pairs", "false",
                        "leave it out; it is for predictions"});
  if (step.levers.lora.rank > 0)
    refusals.push_back(
        {"run.lora.rank", "the executor trains all weights", "0", "leave it out; it is for predictions"});
  if (step.optimizer.moment_dtype != Dtype::float32)
    refusals.push_back({"run.optimizer.moment_dtype", "the executor keeps moments in float32 or wider", "float32",
                        "leave it out; it is for predictions"});
  if (step.overlap_tensor)
    refusals.push_back({"schedule.overlap_tensor", "the executor runs a gather and its product one after the other",
                        "false", "leave it out; it is for predictions"});
  if (step.layout.dispatcher != Dispatcher::alltoall && dispatches_tokens(step))
    refusals.push_back({"layout.dispatcher", "the executor sends each row by itself", "alltoall",
                        "leave it out; others are for predictions"});
  if (step.routing.skew > 0)
    refusals.push_back({"run.routing_skew", "the executor routes tokens as the router says", "0",
                        "leave it out; it is for predictions"});
  if (step.routing.forced) refuse_uneven_turns(step, refusals);
  if (run.data.empty())
    refusals.push_back({"run.data", "it is not set", "",
                        "name a text file or Megatron token files to train on, for example with --set run.data=FILE"});
  if (step.fill == Fill::evaluation) refuse_evaluation(step, run, refusals);
  return refusals;
}

std::vector<Refusal> not_executable(const Bundle& bundle) {
  const TaskGraph& graph = bundle.graph;
  Step step = graph.step;
  step.fill = evaluates(graph) ? Fill::evaluation : Fill::none;  // as the tasks are
  std::vector<Refusal> refusals = not_executable(step, bundle.run, grows(bundle));
  if (!uses_kfac(graph.step) && std::any_of(graph.works.begin(), graph.works.end(), is_kfac_work))
    refusals.push_back({"run.optimizer.name",
                        "the bundle's tasks are not those of its optimizer " + graph.step.optimizer.name, "",
                        "lower the scenario again"});
  return refusals;
}

std::optional<Refusal> not_recordable(const TaskGraph& graph) {
  const auto refuse = [](const char* problem) { return Refusal{"--cuda-graphs", problem, "", "leave it out"}; };
  if (uses_kfac(graph.step))
    return refuse("K-FAC keeps inputs and gradients of Linears beyond their passes, which a replay would overwrite");
  if (evaluates(graph)) return refuse("evaluation in the bubbles has not been tried beside CUDA graphs");
  if (has_experts(graph.step.model)) return refuse("segments with experts have not been tried as CUDA graphs");
  return std::nullopt;
}

}  // namespace slipway::exec
