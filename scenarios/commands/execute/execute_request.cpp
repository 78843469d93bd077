#include "scenarios/commands/execute/execute_request.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <stdexcept>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/compare/comparison.h"
#include "scenarios/commands/execute/confirm_page.h"
#include "scenarios/commands/execute/execution.h"
#include "scenarios/commands/execute/run_folder.h"
#include "scenarios/files/files.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/predict/terminal_timeline.h"

namespace slipway::scenarios {

namespace {

constexpr const char* how_it_runs =
    "The ranks are processes of slipway-rank (beside slipway, or SLIPWAY_RANK), one per rank, on this\n"
    "machine, each on cores of its own where there are enough. With cluster.ranks_per_gpu a process\n"
    "runs that many ranks, which share its device. So one GPU can try any small layout.\n"
    "DIR gets the bundle (run.slip), the ranks' records, losses.csv and trace.json.\n"
    "\n"
    "Started by torchrun, srun or mpirun, once per rank, execute joins that run instead of starting\n"
    "one. It recognises RANK and WORLD_SIZE, SLURM_PROCID inside a job step, and OMPI_COMM_WORLD_RANK.\n"
    "Every rank lowers the scenario by itself, with the same result. The process of rank 0\n"
    "merges the records when all have ended, so --out must name a folder that the machines share.\n"
    "\n"
    "With run.checkpoint_steps the ranks save checkpoints in DIR/checkpoints. --resume latest resumes\n"
    "from the newest one, --resume FOLDER from another run's. --resume if-any starts where DIR has no\n"
    "checkpoint and resumes from the newest whole one where it has: one command for torchrun\n"
    "--max-restarts, srun with requeued jobs, or a loop. The layout may change; model, seed,\n"
    "sequence length and data must be the same (the data may lie elsewhere). Steps are\n"
    "counted from the beginning of the training. With the same layout on the same machine, the losses\n"
    "are those of an uninterrupted run, to the last bit. A decaying learning rate needs\n"
    "run.optimizer.lr_decay_samples for that; otherwise it decays to the end of the training by this\n"
    "start's run.steps.\n"
    "\n"
    "--weights and --save-weights read and write what transformers saves of dense Llama, Qwen2 and Qwen3\n"
    "models. The layout does not matter. Saved weights have run.dtype and are those of the checkpoint of\n"
    "the last step, which is made also without run.checkpoint_steps. With --resume, a training goes on\n"
    "with its own weights; of a complete one, --resume latest --save-weights DIR writes the weights.\n"
    "\n"
    "If a complete training was interrupted (or the disk was full) while its trace was made, --resume\n"
    "latest makes the trace and prints the answer, without training again.\n"
    "\n"
    "With training.growth the batch grows. A step program for each batch is lowered beforehand. The line\n"
    "of a step prints its batch; the answer prints the step time of each batch. The norm test adds\n"
    "noise/norm, the share of noise in the gradient's norm, which grows the batch when it exceeds\n"
    "training.growth.eta, and the gradient noise scale of each batch.\n"
    "\n"
    "With schedule.fill evaluation, held-out micro-batches of run.evaluation_data run in the bubbles. The\n"
    "line of a window's last step prints their loss with the weights of the window's beginning.\n"
    "\n"
    "When a rank fails or is killed, all others end within ten seconds. The error names the first one and\n"
    "its cause. Ctrl-C (SIGTERM, SIGHUP) ends all ranks, with exit status 1 too. Either way the losses of\n"
    "all completed steps are kept in DIR/losses.csv, and the records of the ranks that could still\n"
    "write them; no trace is made. A training that diverges (a loss, or with run.clip_norm a gradient's\n"
    "norm, that is not finite) fails in the same way at that step, without a checkpoint.";

}  // namespace

CommandOptions execute_options() {
  CommandOptions options("execute SCENARIO [options]",
                         "Trains the scenario: starts one process per rank (LibTorch, Gloo), streams the loss, and\n"
                         "writes the same kind of trace as simulate, for `slipway compare`.",
                         "slipway execute scenarios/examples/tiny-llama-cpu.yaml --set run.steps=10 --out /tmp/run");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("out", "DIR", "folder of the run (default: <scenario>.run here)")
      .value("trace", "FILE", "write the trace there instead of DIR/trace.json")
      .value("report", "FILE", report_meaning)
      .value(
          "resume", "WHAT",
          "resume from a checkpoint: latest (of --out), if-any (the same, or start), a run's folder, or a checkpoint's")
      .value("weights", "DIR", "start from Hugging Face safetensors: config.json and model.safetensors, or shards")
      .value("save-weights", "DIR", "write the weights after the last step there, in the same form")
      .flag("confirm", "simulate first, and print the prediction's error per kind of task at the end")
      .flag("cuda-graphs", "record segments and replay them as CUDA graphs; needs slipway-rank-cuda as SLIPWAY_RANK")
      .json_keys(execute_answers)
      .flag("json", "print only the summary, as JSON, on standard output")
      .flag("overwrite",
            "replace the run of --out: its trace, losses and checkpoints (once a step of this one is done)")
      .flag("force", "start even if the simulator predicts too little memory")
      .notes(how_it_runs);
  return options;
}

// The answer of `slipway execute`: one trace of all ranks, losses, and the prediction beside it.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/confirm_command_test.cpp.

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
