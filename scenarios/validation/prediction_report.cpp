#include <fmt/format.h>

#include <algorithm>

#include "scenarios/filling.h"
#include "scenarios/readable.h"
#include "scenarios/training_words.h"
#include "scenarios/validation/prediction.h"

namespace slipway {
namespace {

std::string shares_text(const StepMetrics& step) {
  const auto row = [&](const char* name, double share) {
    return std::vector<std::string>{name, readable_share(share),
                                    readable_seconds(share * step.step_time_s)};
  };
  return "Where the time goes (mean over ranks):\n" +
         aligned_table(
             {row("compute", step.compute_share), row("exposed communication", step.exposed_comm_share),
              row("bubble", step.bubble_share)},
             "  ");
}

std::string training_text(const Scenario& scenario, const TrainingCost& training) {
  std::string text =
      fmt::format("Training on {} takes {:.4g} days, {} GPU-hours", whole_training_text(scenario),
                  training.days, readable_count(training.gpu_hours));
  if (training.cost) {
    text += fmt::format(" and costs {} at {:g} per GPU-hour", readable_count(*training.cost),
                        scenario.cluster.price_per_gpu_hour);
  }
  return text + ".\n\n";
}

// "131,072 ranks simulated as 16: the others do the same at the same time. "
std::string folding_text(const Plan& plan) {
  const int ranks = rank_count(plan.scenario.layout), simulated = simulated_ranks(plan);
  if (!plan.unfolded.empty()) return fmt::format("All {} simulated: {}. ", counted(ranks, "rank"), plan.unfolded);
  if (simulated == ranks) return "";
  return fmt::format("{} simulated as {}: the others do the same at the same time. ", counted(ranks, "rank"),
                     simulated);
}

// "22 of 1,024 micro-batches simulated: the others repeat these, 12.3 ms a period. "
std::string repeating_text(const Plan& plan, const Prediction& prediction) {
  if (!plan.shortened) return "";
  return fmt::format("{} of {} simulated: the others repeat these every {}. ", plan.graph.micro_batches,
                     counted(micro_batches_of(plan), "micro-batch"), readable_seconds(prediction.repeats_s));
}

// "80,610 tasks", "80,610 tasks (simulated as 9,000)"
std::string tasks_text(const Plan& plan, const Prediction& prediction) {
  const std::size_t tasks = plan.graph.tasks.size();
  return counted(static_cast<std::int64_t>(tasks), "task") +
         (prediction.units == tasks ? "" : " (simulated as " + readable_count(static_cast<double>(prediction.units)) + ")");
}

}  // namespace

namespace {

// Parts of the peak that are no activations, but live as long as they.
struct Column {
  const char* name;
  MemoryPart part;
};
constexpr Column columns[] = {{"unreduced gradients", MemoryPart::gradient_buckets},
                              {"gathered weights", MemoryPart::gathered_weights}};

std::vector<Column> columns_of(const std::vector<StageMemory>& memory) {
  std::vector<Column> used;
  for (const Column& column : columns)
    if (std::any_of(memory.begin(), memory.end(), [&](const auto& m) { return m.use.parts[column.part] > 0; }))
      used.push_back(column);
  return used;
}

std::string verdict_text(const Plan& plan, const Prediction& prediction) {
  const Verdict& verdict = prediction.verdict;
  return fmt::format("  Pipeline rank {} is fullest and needs {} of {} ({}), the largest of what `slipway memory` knows, {};\n  cautiously, up to {}: {}.\n",
                     verdict.fullest, readable_bytes(verdict.bytes),
                     readable_bytes(verdict.usable), readable_share(verdict.share()),
                     way_text(plan.scenario, verdict.way), readable_share(plan.scenario.trainer.cautious_share),
                     verdict.fits_cautious ? "fits" : "does not fit");
}

}  // namespace

std::string memory_text(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs,
                        double usable_share) {
  const std::vector<Column> more = columns_of(memory);
  std::vector<std::string> heading{"pipeline rank", "peak", "weights", "gradients", "optimizer", "activations"};
  for (const Column& column : more) heading.emplace_back(column.name);
  if (!needs.empty()) heading.emplace_back("needs");
  heading.insert(heading.end(), {"of a GPU's", "fits", "peaks in"});
  std::vector<std::vector<std::string>> rows{heading};
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const StageMemory& m = memory[stage];
    double activations = m.use.activations_peak;
    for (const Column& column : more) activations -= m.use.parts[column.part];
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("{} (rank {})", stage, m.rank), readable_bytes(m.use.peak), readable_bytes(m.use.fixed.weights),
           readable_bytes(m.use.fixed.gradients), readable_bytes(m.use.fixed.optimizer), readable_bytes(activations)};
    for (const Column& column : more) row.push_back(readable_bytes(m.use.parts[column.part]));
    if (!needs.empty()) row.push_back(readable_bytes(needs[stage].bytes));
    const bool fits = needs.empty() ? m.fits() : needs[stage].bytes <= usable_share * m.capacity;
    row.insert(row.end(), {readable_bytes(m.capacity) + m.on, fits ? "yes" : "no", m.use.peak_task});
  }
  return aligned_table(rows, "  ");
}

std::string report_text(const Plan& plan, const Prediction& prediction) {
  const StepMetrics& step = prediction.step;
  std::string text = headline(plan) + "\n\n";
  text += aligned_table({{"step time", "MFU", "tokens/s", "fits"},
                         {readable_seconds(step.step_time_s), step.mfu > 0 ? readable_share(step.mfu) : "-",
                          readable_count(prediction.tokens_per_s), prediction.fits() ? "yes" : "no"}},
                        "  ") +
          "\n";
  if (prediction.training) text += training_text(plan.scenario, *prediction.training);
  text += basis_text(prediction.basis) + shares_text(step) + "\n" + filling_text(plan);
  if (prediction.stragglers) text += straggler_text(*prediction.stragglers);
  text += fmt::format("Memory, the fullest rank of each pipeline rank (fits: {}):\n", prediction.fits() ? "yes" : "no") +
          memory_text(prediction.memory, prediction.needs, plan.scenario.trainer.usable_share) + "\n" +
          verdict_text(plan, prediction) + closed_form_text(plan, prediction.memory[0]) + "\n";
  const bool window = plan.graph.window > 1;
  const std::string unit = window ? "window" : "step";
  text += fmt::format("One {}{} alone takes {}. {}{}{} a {}, {} simulated in {}.\n\n", unit,
                      window ? " of " + counted(plan.graph.window, "step") : "", readable_seconds(step.makespan_s),
                      folding_text(plan), repeating_text(plan, prediction), tasks_text(plan, prediction), unit,
                      counted(prediction.steps, unit.c_str()), readable_seconds(prediction.simulate_wall_s));
  return text;
}

}  // namespace slipway
