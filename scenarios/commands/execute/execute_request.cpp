#include "scenarios/commands/execute/execute_request.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/terminal_timeline.h"
#include "scenarios/commands/compare/comparison.h"
#include "scenarios/commands/execute/confirm_page.h"
#include "scenarios/commands/execute/execution.h"
#include "scenarios/commands/execute/run_folder.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {

namespace {

MergedRun merged_with_progress(const ExecuteRequest& request) {
  const ProgressLine progress(request.err, "merging the ranks' records");
  return merged_run(request.folder, rank_count(request.prepared.graph.step.layout),
                    request.prepared.scenario.run.steps - request.from.done);
}

void write_trace(const ExecuteRequest& request, const Trace& trace) {
  const ProgressLine progress(request.err, "writing " + request.trace_path);
  OutputFile file(request.trace_path);
  try {
    write_chrome_trace(file.stream(), trace);
    file.commit();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(request.trace_path + ": " + error.what() +
                             "\n(the training is complete; with room, the same command " +
                             "with --resume latest makes the trace)");
  }
}

// The prediction and the measured steps that are compared.
struct Confirmed {
  const Trace& predicted;
  Comparison comparison;
};

// For the batch with the most steps, where it has enough of them.
std::optional<Confirmed> confirmed(const ExecuteRequest& request, const Execution& run) {
  if (request.predicted.empty()) return std::nullopt;
  if (run.batches.empty())
    return Confirmed{request.predicted.front(), compare_traces(request.predicted.front(), run.trace)};
  const BatchMeasured& longest = longest_of(run.batches);
  if (longest.last - longest.first + 1 < fewest_confirmed) return std::nullopt;
  for (std::size_t i = 0; i < request.predicted.size(); ++i)
    if (prepared_of_program(request, i).graph.step.global_batch == longest.batch)
      return Confirmed{request.predicted[i],
                       compare_traces(request.predicted[i], steps_of_batch(run.trace, longest.batch))};
  throw std::runtime_error("the run has steps of a batch that was not simulated: " + std::to_string(longest.batch));
}

void write_page(const ExecuteRequest& request, const Execution& run, const std::optional<Confirmed>& confirmed) {
  if (!request.report_path) return;
  const ProgressLine progress(request.err, "writing " + *request.report_path);
  write_report(*request.report_path, report_of(request.prepared, run, confirmed ? &confirmed->predicted : nullptr,
                                               confirmed ? &confirmed->comparison : nullptr));
}

// The last counted step, or its window. A short training has only the beginning of a window.
std::string drawn_steps(const Execution& run) {
  const int before = steps_before(run.trace), last = run.times.last, first = last / run.trace.window * run.trace.window;
  if (first == last) return "Step " + std::to_string(before + last + 1);
  return "Steps " + std::to_string(before + first + 1) + " to " + std::to_string(before + last + 1);
}

}  // namespace

int merge_and_report(const ExecuteRequest& request) {
  const PreparedStep& prepared = request.prepared;
  write_losses_csv(request.folder);  // first: it is short, and marks a run here if the rest is interrupted
  // Before the trace: a run without one is merged again by --resume latest, and so are these.
  write_run_weights(request.weights, prepared.scenario, checkpoint_path(request.folder, prepared.scenario.run.steps),
                    request.err);
  MergedRun merged = merged_with_progress(request);
  for (const std::string& note : merged.notes) request.err << "note: " << note << '\n';
  Execution run{std::move(merged.trace), {}, request.trace_path, request.folder};
  run.weights_path = request.weights.to;
  run.trace.scenario = prepared.scenario.name;
  run.trace.summary = prepared.scenario.resolved;
  run.trace.window = prepared.graph.window;
  run.times = step_times(run.trace);
  run.batches = batches_of(run.trace, run.times);
  for (std::size_t i = 0; i < request.predicted.size() && !run.batches.empty(); ++i)
    run.predicted_step_s[prepared_of_program(request, i).graph.step.global_batch] =
        step_times(request.predicted[i]).period_s.back();
  write_trace(request, run.trace);
  const std::optional<Confirmed> prediction = confirmed(request, run);
  const std::optional<Comparison> comparison = prediction ? std::optional(prediction->comparison) : std::nullopt;
  write_page(request, run, prediction);
  if (request.json) {
    request.out << json_text(prepared, run, comparison);
    return status_done;
  }
  request.out << '\n'
              << report_text(prepared, run) << drawn_steps(run) << ":\n"
              << draw(picture_of(run.trace, prepared.graph.step.layout, run.times.last), terminal_width())
              << "\ntrace: " << request.trace_path << ", losses: " << losses_csv_path(request.folder)
              << (request.weights.to.empty() ? "" : ", weights: " + request.weights.to) << '\n';
  if (comparison)
    request.out << "\nPredicted before the run, and measured"
                << (run.batches.empty() ? "" : fmt::format(" (batch {})", longest_of(run.batches).batch)) << ":\n"
                << report_text(*comparison);
  else if (!request.predicted.empty())
    request.out << "\nNo task is compared with its prediction: no batch had the " << fewest_confirmed
                << " steps that this needs.\n";
  return status_done;
}

}  // namespace slipway::scenarios
