#include "scenarios/commands/simulate/simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"
#include "scenarios/report/sections.h"

namespace slipway::scenarios {
namespace {

Card step_card(const Prediction& prediction) {
  return {"step time", readable_seconds(prediction.step.step_time_s), interval_note(prediction.interval)};
}

Card memory_card(const Prediction& prediction) {
  const Verdict& verdict = prediction.verdict;
  return {"memory, fullest rank", readable_bytes(verdict.odds.bytes),
          fmt::format("of {}; fits: {}, probability {}", readable_bytes(verdict.capacity), yes_no(verdict.fits),
                      readable_share(verdict.probability)),
          verdict.fits ? Tone::good : Tone::bad};
}

std::vector<Card> cards_of(const Scenario& scenario, const Prediction& prediction) {
  const StepMetrics& step = prediction.step;
  std::vector<Card> cards{step_card(prediction)};
  if (step.mfu > 0)
    cards.push_back(
        {"MFU", readable_share(step.mfu),
         fmt::format("{:.4g} TFLOP/s per GPU as Megatron-LM counts", megatron_tflops(scenario, step.step_time_s))});
  cards.push_back({"tokens per second", readable_count(prediction.tokens_per_s),
                   counted(rank_count(scenario.step.layout), "rank")});
  cards.push_back(memory_card(prediction));
  if (prediction.training) {
    const TrainingCost& training = *prediction.training;
    cards.push_back({"training on " + whole_training_text(scenario), fmt::format("{:.4g} days", training.days),
                     readable_count(training.gpu_hours) + " GPU-hours" +
                         (training.cost ? ", costs " + readable_count(*training.cost) : "")});
  }
  return cards;
}

std::string share_of_step(const StepMetrics& step, double share) {
  return fmt::format("{} of the step ({})", readable_share(share), readable_seconds(share * step.step_time_s));
}

// Exposed communication by group, the largest first: "tensor parallel 289 ms, data parallel 12 ms".
std::string exposed_text(const TimelineView& view) {
  static const std::map<std::string, std::string> words = {{"tp", "tensor parallel"}, {"cp", "context parallel"},
                                                           {"dp", "data parallel"},   {"pp", "pipeline"},
                                                           {"ep", "experts"},         {"world", "gradient norm"}};
  std::string text;
  for (const auto& [axis, seconds] : exposed_by_axis(view)) {
    const auto found = words.find(axis);
    text +=
        (text.empty() ? "" : ", ") + (found == words.end() ? axis : found->second) + ' ' + readable_seconds(seconds);
  }
  return text;
}

std::string why_bubble(const PreparedStep& prepared) {
  const int pipeline = prepared.scenario.step.layout.pipeline;
  if (pipeline < 2) return " Ranks wait for the slowest one.";
  return fmt::format(" {} pipeline ranks fill and drain for {}.", pipeline,
                     counted(micro_batches_of(prepared), "micro-batch"));
}

// The main reason for the step's time.
std::string reason_of(const PreparedStep& prepared, const Prediction& prediction, const TimelineView& view) {
  constexpr double little = 0.05;
  const StepMetrics& step = prediction.step;
  std::string text = "Compute fills " + share_of_step(step, step.compute_share) + ".";
  if (const auto& cost = prediction.degradation; cost && cost->lost_s() > 0)
    text = fmt::format("What is slow on this cluster ({}, {}) costs {} of the step, {}. ",
                       counted(cost->slow_gpus, "GPU"), counted(cost->slow_ports, "port"),
                       readable_share(cost->lost_s() / cost->step_s), readable_seconds(cost->lost_s())) +
           text;
  if (!prediction.fits())
    text = fmt::format("It does not fit: pipeline rank {} needs {} of {}. ", prediction.verdict.fullest,
                       readable_bytes(prediction.verdict.odds.bytes), readable_bytes(prediction.verdict.capacity)) +
           text;
  if (std::max(step.exposed_comm_share, step.bubble_share) < little) return text + " Little else is left to gain.";
  const bool exposed = step.exposed_comm_share > step.bubble_share;
  text += fmt::format(" The largest loss is {}: {}.",
                      exposed ? "communication that nothing hides" : "the bubble, in which ranks idle",
                      share_of_step(step, exposed ? step.exposed_comm_share : step.bubble_share));
  return text + (exposed ? " By group: " + exposed_text(view) + "." : why_bubble(prepared));
}

}  // namespace

Bar shares_bar(const StepMetrics& step) {
  const auto share = [&](const char* name, double part, const char* colour) {
    return Share{name, readable_seconds(part * step.step_time_s), part, colour};
  };
  return {
      "Where the time of a rank goes",
      "Mean over ranks. Exposed communication: compute idles while communication runs that it needs. Bubble: it idles "
      "for any other reason.",
      {share("compute", step.compute_share, "compute"),
       share("exposed communication", step.exposed_comm_share, "exposed"),
       share("bubble", step.bubble_share, "bubble")}};
}

Report report_of(const SimulatedStep& simulated, const Prediction& prediction) {
  const PreparedStep& prepared = simulated.prepared;
  TimelineView view = view_of(prepared.graph, simulated.simulation.timeline);
  Report report;
  report.command = "simulate";
  report.headline = headline(prepared);
  report.reason = reason_of(prepared, prediction, view);
  report.cards = cards_of(prepared.scenario, prediction);
  report.sections.push_back(shares_bar(prediction.step));
  report.sections.push_back(path_bar(view));
  Plot memory = memory_plot(view, memory_capacities(prepared.scenario));
  report.sections.push_back(timeline_section(std::move(view)));
  if (!memory.series.empty()) report.sections.push_back(std::move(memory));
  report.sections.push_back(ReportTable{"Memory by pipeline rank", "The fullest rank of each.",
                                        memory_rows(prediction.memory, prediction.needs)});
  return report;
}

}  // namespace slipway::scenarios
