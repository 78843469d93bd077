#include <fmt/format.h>

#include <stdexcept>

#include "models/memory.h"
#include "scenarios/readable.h"
#include "scenarios/validation/prediction.h"

namespace slipway {
namespace {

MemoryInput closed_form_input(const Plan& plan) {
  const Layout& layout = plan.graph.layout;
  MemoryInput input = memory_input(plan.graph.model, plan.graph.shape);
  input.pipeline = layout.pipeline;
  input.data = layout.data;
  input.chunks = layout.chunks;
  input.micro_batches = micro_batches_of(plan);
  input.zero = layout.zero;
  input.gradient_dtype = plan.graph.gradient_dtype;
  input.recompute = plan.graph.recompute;
  double layers = 0;  // on the first pipeline rank: its stages without embedding and head
  for (std::size_t stage = 0; stage < plan.graph.stages.size();
       stage += static_cast<std::size_t>(layout.pipeline)) {
    layers += plan.graph.stages[stage].last - plan.graph.stages[stage].first;
  }
  input.layers_on_first_stage = layers - 1 - (layout.pipeline == 1 ? 1 : 0);
  return input;
}

}  // namespace

std::string closed_form_text(const Plan& plan, const StageMemory& first) {
  const std::string& schedule = plan.scenario.schedule.name;
  if (plan.scenario.schedule.actions) return "";  // an order of its own
  if (schedule != "1f1b" && schedule != "interleaved-1f1b") return "";
  MemoryTerms terms;
  try {
    terms = closed_form_memory(closed_form_input(plan));
  } catch (const std::invalid_argument&) {
    return "";  // another model family: the formula does not exist for it
  }
  const auto row = [](const char* name, double formula, double timeline) {
    return std::vector<std::string>{name, readable_bytes(formula), readable_bytes(timeline)};
  };
  const RankMemory& use = first.use;
  const double sharded = use.parts[MemoryPart::gradient_buckets] + use.parts[MemoryPart::gathered_weights];
  const double both = terms.layer_activations + terms.head_and_loss;
  std::vector<std::vector<std::string>> rows{
      {"term", "closed form", "timeline"},
      row("weights", terms.weights, use.fixed.weights),
      row("gradients", terms.gradients, use.fixed.gradients),
      row("optimizer", terms.optimizer, use.fixed.optimizer),
      row("activations of layers, head, loss", both, use.activations_peak - sharded),
      {"activations of the embedding input", readable_bytes(terms.embedding_input), "-"}};
  if (sharded > 0) rows.push_back({"unreduced gradients, gathered weights", "-", readable_bytes(sharded)});
  return "\n  Pipeline rank 0 in closed form (Fujii et al. 2024) beside this timeline:\n" +
         aligned_table(rows, "  ");
}

}  // namespace slipway
