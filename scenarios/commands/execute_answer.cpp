// The answer of `slipway execute`: one trace of all ranks, losses, and the prediction beside it. Guarded by
// tests/command_execute_test.cpp and tests/command_confirm_test.cpp.
#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <stdexcept>

#include "exec/run_files.h"
#include "scenarios/chrome_trace.h"
#include "scenarios/commands/command.h"
#include "scenarios/commands/execute_request.h"
#include "scenarios/commands/progress.h"
#include "scenarios/comparison.h"
#include "scenarios/execution/execution.h"
#include "scenarios/execution/run_folder.h"
#include "scenarios/output_file.h"
#include "scenarios/terminal_timeline.h"

namespace slipway {
namespace {

MergedRun merged_with_progress(const ExecuteRequest& request) {
  const Ticking ticking(request.err, "merging the ranks' records");
  return merged_run(request.folder, rank_count(request.plan.graph.layout),
                    request.plan.scenario.run.steps - request.from.done);
}

void write_trace(const ExecuteRequest& request, const Trace& trace) {
  const Ticking ticking(request.err, "writing " + request.trace_path);
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

// Of the batch of which most steps ran, where that can be compared.
std::optional<Comparison> confirmed(const ExecuteRequest& request, const Execution& run) {
  if (request.predicted.empty()) return std::nullopt;
  if (run.batches.empty()) return compare_traces(request.predicted.front(), run.trace);
  const BatchMeasured& longest = longest_of(run.batches);
  if (longest.last - longest.first + 1 < fewest_confirmed) return std::nullopt;
  for (std::size_t i = 0; i < request.predicted.size(); ++i)
    if (plan_of_program(request, i).graph.global_batch == longest.batch)
      return compare_traces(request.predicted[i], steps_of_batch(run.trace, longest.batch));
  throw std::runtime_error("the run has steps of a batch that was not simulated: " +
                           std::to_string(longest.batch));
}

// The last step that counts, or its window, of which a short training has only the beginning.
std::string drawn_steps(const Execution& run) {
  const int before = steps_before(run.trace), last = run.times.last,
            first = last / run.trace.window * run.trace.window;
  if (first == last) return "Step " + std::to_string(before + last + 1);
  return "Steps " + std::to_string(before + first + 1) + " to " + std::to_string(before + last + 1);
}

}  // namespace

int merge_and_report(const ExecuteRequest& request) {
  const Plan& plan = request.plan;
  write_losses_csv(
      request.folder);  // first: it is short, and says that here is a run, should the rest be interrupted
  MergedRun merged = merged_with_progress(request);
  for (const std::string& note : merged.notes) request.err << "note: " << note << '\n';
  Execution run{std::move(merged.trace), {}, request.trace_path, request.folder};
  run.trace.scenario = plan.scenario.name;
  run.trace.summary = plan.scenario.resolved;
  run.trace.window = plan.graph.window;
  run.times = step_times(run.trace);
  run.batches = batches_of(run.trace, run.times);
  for (std::size_t i = 0; i < request.predicted.size() && !run.batches.empty(); ++i)
    run.predicted_step_s[plan_of_program(request, i).graph.global_batch] =
        step_times(request.predicted[i]).period_s.back();
  write_trace(request, run.trace);
  const std::optional<Comparison> comparison = confirmed(request, run);
  if (request.json) {
    request.out << json_text(plan, run, comparison);
    return status_done;
  }
  request.out << '\n'
              << report_text(plan, run) << drawn_steps(run) << ":\n"
              << draw(picture_of(run.trace, plan.graph.layout, run.times.last), terminal_width())
              << "\ntrace: " << request.trace_path << ", losses: " << losses_csv_path(request.folder)
              << '\n';
  if (comparison)
    request.out << "\nPredicted before the run, and measured"
                << (run.batches.empty() ? "" : fmt::format(" (batch {})", longest_of(run.batches).batch))
                << ":\n"
                << report_text(*comparison);
  else if (!request.predicted.empty())
    request.out << "\nNo task is compared with its prediction: no batch had the " << fewest_confirmed
                << " steps that this needs.\n";
  return status_done;
}

}  // namespace slipway
