#include "scenarios/commands/simulate/prediction_text.h"

#include <fmt/format.h>

#include <optional>

#include "models/memory/closed_form.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"

namespace slipway::scenarios {
namespace {

std::string shares_text(const StepMetrics& step) {
  const auto row = [&](const char* name, double share) {
    return std::vector<std::string>{name, readable_share(share), readable_seconds(share * step.step_time_s)};
  };
  return "Where the time goes (mean over ranks):\n" +
         aligned_table({row("compute", step.compute_share), row("exposed communication", step.exposed_comm_share),
                        row("bubble", step.bubble_share)},
                       "  ");
}

std::string training_text(const Scenario& scenario, const TrainingCost& training) {
  std::string text = fmt::format("Training on {} takes {:.4g} days, {} GPU-hours", whole_training_text(scenario),
                                 training.days, readable_count(training.gpu_hours));
  if (training.cost) {
    text += fmt::format(" and costs {} at {:g} per GPU-hour", readable_count(*training.cost),
                        scenario.cluster.price_per_gpu_hour);
  }
  return text + ".\n\n";
}

// States how many ranks were simulated and that the others are identical.
std::string representatives_text(const PreparedStep& prepared) {
  const int ranks = rank_count(prepared.scenario.step.layout), simulated = simulated_ranks(prepared);
  if (!prepared.why_all_ranks.empty())
    return fmt::format("Simulated all {}: {}. ", counted(ranks, "rank"), prepared.why_all_ranks);
  if (simulated == ranks) return "";
  return fmt::format("Simulated {1} of {0}; the rest are identical. ", counted(ranks, "rank"), simulated);
}

// States how many micro-batches were simulated, and the period of the others.
std::string repeating_text(const PreparedStep& prepared, const Prediction& prediction) {
  if (!prepared.periodic) return "";
  return fmt::format("Simulated {} of {}; the rest repeat every {}. ", prepared.graph.micro_batches,
                     counted(micro_batches_of(prepared), "micro-batch"), readable_seconds(prediction.repeats_s));
}

// "80,610 tasks", "80,610 tasks (simulated as 9,000)"
std::string tasks_text(const PreparedStep& prepared, const Prediction& prediction) {
  const std::size_t tasks = prepared.graph.tasks.size();
  return counted(static_cast<std::int64_t>(tasks), "task") +
         (prediction.units == tasks ? ""
                                    : " (simulated as " + readable_count(static_cast<double>(prediction.units)) + ")");
}

std::string verdict_text(const PreparedStep& prepared, const Prediction& prediction) {
  const Verdict& verdict = prediction.verdict;
  return fmt::format("  Pipeline rank {} is least likely to fit. It needs {},\n  {}.\n", verdict.fullest,
                     odds_text(verdict, ""), way_text(prepared.scenario, verdict.way));
}

std::string skew_text(const Routing& routing, const SkewCost& cost, double step_s) {
  return fmt::format(
      "Routing skew {:g}: the rank with the most rows has {:.3g} times its part, on average over layers. It costs {} a "
      "step ({}).\n",
      routing.skew, cost.load, readable_seconds(cost.cost_s), readable_share(cost.cost_s / step_s));
}

}  // namespace

std::string memory_text(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs) {
  return aligned_table(memory_rows(memory, needs), "  ");
}

std::string report_text(const PreparedStep& prepared, const Prediction& prediction) {
  const StepMetrics& step = prediction.step;
  std::string text = headline(prepared) + "\n\n";
  text += aligned_table(prediction_rows(prepared, prediction), "  ") + "\n";
  if (prediction.training) text += training_text(prepared.scenario, *prediction.training);
  text += basis_text(prediction.basis) + shares_text(step) + "\n" + filling_text(prepared);
  if (prediction.degradation) text += degradation_text(*prediction.degradation);
  if (prediction.skew) text += skew_text(prepared.scenario.step.routing, *prediction.skew, step.step_time_s);
  text += fmt::format("Memory, the fullest rank of each pipeline rank (fits: {}):\n", yes_no(prediction.fits())) +
          memory_text(prediction.memory, prediction.needs) + "\n" + verdict_text(prepared, prediction) +
          closed_form_text(prepared, prediction.memory[0]) + "\n";
  const bool window = prepared.graph.window > 1;
  const std::string unit = window ? "window" : "step";
  text += fmt::format("One {}{} alone takes {}. {}{}{} a {}, {} simulated in {}.\n\n", unit,
                      window ? " of " + counted(prepared.graph.window, "step") : "", readable_seconds(step.makespan_s),
                      representatives_text(prepared), repeating_text(prepared, prediction),
                      tasks_text(prepared, prediction), unit, counted(prediction.steps, unit.c_str()),
                      readable_seconds(prediction.simulate_wall_s));
  return text;
}

std::string closed_form_text(const PreparedStep& prepared, const StageMemory& first) {
  const std::optional<MemoryTerms> described = closed_form_of(prepared.scenario);
  if (!described) return "";
  const MemoryTerms& terms = *described;
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
  return "\n  Pipeline rank 0 in closed form (Fujii et al. 2024) beside this timeline:\n" + aligned_table(rows, "  ");
}

}  // namespace slipway::scenarios
