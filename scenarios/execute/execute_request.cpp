#include "scenarios/execute/execute_request.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <stdexcept>

#include "exec/run/run_files.h"
#include "scenarios/answers/terminal_timeline.h"
#include "scenarios/command_line/command.h"
#include "scenarios/command_line/progress.h"
#include "scenarios/compare/comparison.h"
#include "scenarios/execute/execution.h"
#include "scenarios/execute/run_folder.h"
#include "scenarios/files/chrome_trace.h"
#include "scenarios/files/files.h"

namespace slipway::scenarios {

namespace {

constexpr const char* how_it_runs =
    "The ranks are processes of slipway-rank (beside slipway, or SLIPWAY_RANK), one per rank, on this\n"
    "machine, each on cores of its own where there are enough. With cluster.ranks_per_gpu a process\n"
    "runs so many ranks, which share its device: one GPU can try any small layout.\n"
    "DIR gets the bundle (run.slip), the ranks' records, losses.csv and trace.json.\n"
    "\n"
    "Started by torchrun, srun or mpirun, once per rank, execute joins that run instead of starting\n"
    "one: it recognises RANK and WORLD_SIZE, SLURM_PROCID inside a job step, or OMPI_COMM_WORLD_RANK.\n"
    "Every rank lowers the scenario for itself (the result is the same on all), and the one of rank 0\n"
    "merges the records when all have ended; so --out must name a folder that the machines share.\n"
    "\n"
    "With run.checkpoint_steps the ranks save what is needed to go on, in DIR/checkpoints; --resume\n"
    "latest goes on there, --resume FOLDER from another run's, also with another layout, but not with\n"
    "another model, seed or sequence length, nor with other data (the same elsewhere will do). Steps are\n"
    "counted from the beginning of the training; with the same layout on the same machine the losses\n"
    "are those of an uninterrupted run, to the last bit. Of a decaying learning rate that holds with\n"
    "run.optimizer.lr_decay_samples: else it decays to the end of the training as this start's\n"
    "run.steps say.\n"
    "\n"
    "A training that is complete but was interrupted (or found no room) while its trace was made is not\n"
    "run again: --resume latest makes the trace and answers.\n"
    "\n"
    "With training.growth the batch grows: a step program for each batch is lowered beforehand, the line\n"
    "of a step tells its batch, and the answer the step time of each. With the norm test it also tells\n"
    "noise/norm, the share of the gradient's norm that is noise, which grows the batch where it is above\n"
    "training.growth.eta, and the gradient noise scale of each batch.\n"
    "\n"
    "With schedule.fill evaluation held-out micro-batches of run.evaluation_data run in the bubbles; the\n"
    "line of a window's last step tells their loss with the weights of the window's beginning.\n"
    "\n"
    "When a rank fails or is killed, all others end within ten seconds and the first one is named with\n"
    "its cause. Ctrl-C (SIGTERM, SIGHUP) ends all ranks, with exit status 1 too. Either way the losses of\n"
    "all completed steps are kept in DIR/losses.csv, and the records of the ranks that could still\n"
    "write them; no trace is made. A training that diverges (a loss, or with run.clip_norm a gradient's\n"
    "norm, that is not finite) fails so too, at that step; no checkpoint of it is saved.";

}  // namespace

CommandOptions execute_options() {
  CommandOptions options(
      "execute SCENARIO [options]",
      "Really trains the scenario: starts one process per rank (LibTorch, Gloo), streams the loss, and\n"
      "writes the same kind of trace as simulate, for `slipway compare`.",
      "slipway execute scenarios/examples/tiny-llama-cpu.yaml --set run.steps=10 --out /tmp/run");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("out", "DIR", "folder of the run (default: <scenario>.run here)")
      .value("trace", "FILE", "write the trace there instead of DIR/trace.json")
      .value("resume", "WHAT", "go on from a checkpoint: latest (of --out), a run's folder, or a checkpoint's")
      .flag("confirm", "simulate first, and say at the end how far off the prediction was, per kind of task")
      .flag("cuda-graphs", "with slipway-rank-cuda as SLIPWAY_RANK: segments are recorded and replayed as CUDA graphs")
      .json_keys(execute_answers())
      .flag("json", "print the summary as JSON on standard output and nothing else there")
      .flag("overwrite",
            "replace the run of --out: its trace, losses and checkpoints (once a step of this one is done)")
      .flag("force", "start although the memory does not suffice by the simulator's count")
      .notes(how_it_runs);
  return options;
}

// The answer of `slipway execute`: one trace of all ranks, losses, and the prediction beside it.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/confirm_command_test.cpp.

namespace {

MergedRun merged_with_progress(const ExecuteRequest& request) {
  const Ticking ticking(request.err, "merging the ranks' records");
  return merged_run(request.folder, rank_count(request.plan.graph.step.layout),
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

// The comparison for the batch with the most steps, where it has enough of them.
std::optional<Comparison> confirmed(const ExecuteRequest& request, const Execution& run) {
  if (request.predicted.empty()) return std::nullopt;
  if (run.batches.empty()) return compare_traces(request.predicted.front(), run.trace);
  const BatchMeasured& longest = longest_of(run.batches);
  if (longest.last - longest.first + 1 < fewest_confirmed) return std::nullopt;
  for (std::size_t i = 0; i < request.predicted.size(); ++i)
    if (plan_of_program(request, i).graph.step.global_batch == longest.batch)
      return compare_traces(request.predicted[i], steps_of_batch(run.trace, longest.batch));
  throw std::runtime_error("the run has steps of a batch that was not simulated: " + std::to_string(longest.batch));
}

// The last counted step, or its window. A short training has only the beginning of a window.
std::string drawn_steps(const Execution& run) {
  const int before = steps_before(run.trace), last = run.times.last, first = last / run.trace.window * run.trace.window;
  if (first == last) return "Step " + std::to_string(before + last + 1);
  return "Steps " + std::to_string(before + first + 1) + " to " + std::to_string(before + last + 1);
}

}  // namespace

int merge_and_report(const ExecuteRequest& request) {
  const Plan& plan = request.plan;
  write_losses_csv(request.folder);  // first: it is short, and marks a run here if the rest is interrupted
  MergedRun merged = merged_with_progress(request);
  for (const std::string& note : merged.notes) request.err << "note: " << note << '\n';
  Execution run{std::move(merged.trace), {}, request.trace_path, request.folder};
  run.trace.scenario = plan.scenario.name;
  run.trace.summary = plan.scenario.resolved;
  run.trace.window = plan.graph.window;
  run.times = step_times(run.trace);
  run.batches = batches_of(run.trace, run.times);
  for (std::size_t i = 0; i < request.predicted.size() && !run.batches.empty(); ++i)
    run.predicted_step_s[plan_of_program(request, i).graph.step.global_batch] =
        step_times(request.predicted[i]).period_s.back();
  write_trace(request, run.trace);
  const std::optional<Comparison> comparison = confirmed(request, run);
  if (request.json) {
    request.out << json_text(plan, run, comparison);
    return status_done;
  }
  request.out << '\n'
              << report_text(plan, run) << drawn_steps(run) << ":\n"
              << draw(picture_of(run.trace, plan.graph.step.layout, run.times.last), terminal_width())
              << "\ntrace: " << request.trace_path << ", losses: " << losses_csv_path(request.folder) << '\n';
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
