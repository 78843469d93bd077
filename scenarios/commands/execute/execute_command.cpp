// `slipway execute`: checks everything first, starts the ranks or joins those of a launcher, and merges their records.
// Options and answer: execute_request.h. Guarded by tests/scenarios/execute_command_test.cpp.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/execute/bundle.h"
#include "scenarios/commands/execute/execute_options.h"
#include "scenarios/commands/execute/execute_request.h"
#include "scenarios/commands/execute/execution.h"
#include "scenarios/commands/execute/folder_lock.h"
#include "scenarios/commands/execute/learning_rate_end.h"
#include "scenarios/commands/execute/rank_program.h"
#include "scenarios/commands/execute/resumption.h"
#include "scenarios/commands/execute/run_folder.h"
#include "scenarios/commands/execute/set_aside.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/page.h"
#include "schedules/draw/timeline_trace.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"

namespace slipway::scenarios {
namespace {

// Rank 0's standard output is the run's. Lines of other ranks, and all error lines, get the rank's number in front.
// `cause` becomes the first cause of a failure in these lines.
LaunchOptions passing_output_of(const ExecuteRequest& request, SetAside& earlier, std::string& cause) {
  LaunchOptions options;
  options.stopped_s = request.prepared.scenario.run.heartbeat_s;
  options.line = [&request, &earlier, &cause](int rank, std::string_view line, bool is_error) {
    if (rank == 0 && !is_error && line.starts_with("step ")) earlier.drop();
    if (is_error && cause.empty()) cause = cause_in(line);
    std::ostream& to = is_error || request.json ? request.err : request.out;
    const std::string own = "rank " + std::to_string(rank) + " ";
    if ((rank != 0 || is_error) && !line.starts_with(own)) to << '[' << own.substr(0, own.size() - 1) << "] ";
    to << line << std::endl;
  };
  return options;
}

std::string write_bundle_to(const std::string& path, const ExecuteRequest& request) {
  OutputFile file(path);
  write_bundle(file.stream(), bundle_of(request.prepared, request.larger));
  file.commit();
  return path;
}

// Returns `path`, which gets the list of the weights that the run starts from, if it does.
std::string write_weight_files_to(const std::string& path, const ExecuteRequest& request) {
  if (!request.weights.starts_from_files()) return path;
  OutputFile file(path);
  file.stream() << to_text(request.weights.files);
  file.commit();
  return path;
}

// If ranks first_rank to last_rank did not finish: prints why, and what is left of them.
int report_failure(const ExecuteRequest& request, const LaunchResult& result, const std::string& cause, int first_rank,
                   int last_rank, SetAside& earlier) {
  if (!result.interrupted && !result.first_failure) {
    earlier.drop();
    return status_done;
  }
  // For joined ranks the records decide. Rank 0 has the losses, but it may have put back earlier ones already.
  if (first_rank == 0 ? has_done_a_step(request.folder, request.from.done)
                      : has_records_of_two_steps(request.folder, first_rank))
    earlier.drop();
  request.err << "slipway execute: "
              << (result.interrupted
                      ? "interrupted (Ctrl-C, SIGINT, SIGTERM or SIGHUP); all ranks that were started here have ended"
                      : first_cause(result, request.folder, cause))
              << '\n'
              << (earlier.put_back()
                      ? "no step was completed; the files of the earlier run in " + request.folder + " are there again"
                      : kept_text(request.folder, first_rank, last_rank))
              << '\n';
  return status_failed;
}

void wait_for_the_others(const ExecuteRequest& request, int ranks) {
  constexpr double others_end_s = 60;
  const ProgressLine progress(request.err, "waiting for the other ranks to end");
  wait_for_done(request.folder, ranks, others_end_s);
}

// Prints the checkpoints that the run leaves behind.
void print_abandoned(const SetAside& earlier, std::ostream& err) {
  for (const std::string& checkpoint : earlier.abandoned())
    err << "note: a later checkpoint of another course is kept as " << checkpoint << '\n';
}

std::optional<int> goes_on_from(const ExecuteRequest& request) {
  return request.from.is_here ? std::optional(request.from.done) : std::nullopt;
}

// For a complete training without a trace.
int merge_only(const ExecuteRequest& request) {
  const FolderLock lock(request.folder);
  std::string of_run = bundle_path(request.folder);  // ranks that joined a run have separate bundles
  if (!std::filesystem::exists(of_run)) of_run = bundle_path(request.folder, 0);
  if (!std::filesystem::exists(of_run))
    throw UsageError("the run in " + request.folder +
                     " is complete but has no trace, and its bundle is not there to compare with this scenario; copy "
                     "the bundle that its ranks ran to " +
                     bundle_path(request.folder) + ", and the same command makes the trace");
  std::ostringstream bundle, left;
  write_bundle(bundle, bundle_of(request.prepared, request.larger));
  left << std::ifstream(of_run).rdbuf();
  if (left.str() != bundle.str())
    throw UsageError(of_run + " is of another scenario, whose training is complete but has no trace; give the " +
                     "scenario and each --set as they were, or --out another folder");
  return merge_and_report(request);
}

int start_and_merge(const ExecuteRequest& request, const std::string& program) {
  const int ranks = rank_count(request.prepared.graph.step.layout);
  SetAside earlier(request.folder, 0, ranks - 1, goes_on_from(request));
  print_abandoned(earlier, request.err);
  const std::string bundle = write_bundle_to(bundle_path(request.folder), request);
  const std::string initial = write_weight_files_to(weights_path(request.folder), request);
  std::string cause;
  const LaunchResult result = launch(
      local_ranks(program, request.arguments(bundle, initial), ranks, request.ranks_per_process(), request.folder),
      passing_output_of(request, earlier, cause));
  // No rank is left to complete them. Removing them frees space for losses.csv where the disk is full.
  if (result.first_failure || result.interrupted) remove_partial_checkpoints(request.folder);
  const int status = report_failure(request, result, cause, 0, ranks - 1, earlier);
  return status == status_done ? merge_and_report(request) : status;
}

// Each rank clears its own old files before its rank program starts. No rank program gets past the first meeting
// before all have started. So a .done file that rank 0 sees after its own end is from this run.
int join_and_merge(const ExecuteRequest& request, const std::string& program, const JoinedRank& joined) {
  const int each = request.ranks_per_process(), first = joined.rank * each, last = first + each - 1;
  SetAside earlier(request.folder, first, last, goes_on_from(request));
  print_abandoned(earlier, request.err);
  const std::string bundle = write_bundle_to(bundle_path(request.folder, first), request);
  const std::string initial = write_weight_files_to(weights_path(request.folder, first), request);
  std::vector<std::string> command = request.arguments(bundle, initial);
  command.insert(command.begin(), program);
  for (const std::string& word : sharing_arguments(each)) command.push_back(word);
  std::string cause;
  const LaunchResult result =
      launch({{first, command, {}, error_path(request.folder, first)}}, passing_output_of(request, earlier, cause));
  const int status = report_failure(request, result, cause, first, last, earlier);
  for (int rank = first; rank <= last; ++rank) mark_done(request.folder, rank, status);
  if (status != status_done || first != 0) return status;
  wait_for_the_others(request, rank_count(request.prepared.graph.step.layout));
  return merge_and_report(request);
}

// Simulates the same tasks before any rank starts.
Trace prediction_of(const PreparedStep& prepared, std::ostream& err) {
  SimulationOptions how;
  const Timeline timeline =
      simulate_showing("simulating", err, prepared, prepared.cluster, prepared.durations, how, {how.steps})
          .front()
          .timeline;
  Trace trace = trace_of(prepared.graph, timeline, "simgrid");
  trace.peak_bytes = rank_peaks(prepared, timeline);
  return trace;
}

// `window`: steps after which tasks repeat.
void refuse_unconfirmable(const Resumption& from, const Run& run, int window) {
  const int fewest = fewest_confirmed * window;
  if (run.steps - from.done >= fewest) return;
  const std::string what = window > 1 ? "windows of " + std::to_string(window) + " steps" : "steps";
  throw UsageError("--confirm compares with " + what + " after the first and before the last: this run has " +
                   std::to_string(run.steps - from.done) + (window > 1 ? " steps" : "") + "; set run.steps to " +
                   std::to_string(from.done + fewest) + " or more");
}

void refuse_other_world(const JoinedRank& joined, const Scenario& scenario) {
  const int ranks = rank_count(scenario.step.layout), each = scenario.cluster.ranks_per_gpu;
  if (joined.world * each == ranks) return;
  const std::string sharing = each > 1 ? " in processes of " + std::to_string(each) + " (cluster.ranks_per_gpu)" : "";
  throw UsageError(joined.launcher + " started " + std::to_string(joined.world) + (each > 1 ? " processes" : " ranks") +
                   ", but the layout has " + std::to_string(ranks) +
                   (each > 1 ? " ranks" + sharing + "; start " + std::to_string(ranks / each) : "; start that many") +
                   ", or change the layout");
}

// Prints a headline in front of the run's own lines. `is_complete`: only the trace is missing.
void print_beginning(const ExecuteRequest& request, const std::string& program, bool is_complete) {
  const PreparedStep& prepared = request.prepared;
  const Run& run = prepared.scenario.run;
  std::ostream& talk = request.json ? request.err : request.out;
  talk << headline(prepared) << '\n';
  for (const std::string& note : execution_notes(prepared.scenario, program)) talk << "note: " << note << '\n';
  if (!is_complete) {
    for (const std::string& note : evaluation_notes(prepared, request.from.done)) talk << "note: " << note << '\n';
    for (const std::string& note : rate_notes(prepared.scenario, request.from)) talk << "note: " << note << '\n';
  }
  for (const std::string& note : batch_notes(prepared.scenario, request.from)) talk << "note: " << note << '\n';
  if (!prepared.scenario.step.optimizer.lr_schedule.is_constant())
    talk << rate_text(prepared.scenario.step.optimizer) << '\n';
  if (!request.larger.empty()) talk << ladder_text(ladder_of(prepared.scenario)) << '\n';
  if (!request.predicted.empty())
    talk << "predicted: " << readable_seconds(step_times(request.predicted.front()).period_s.back()) << " a step"
         << (request.larger.empty() ? "" : fmt::format(" of batch {}", prepared.graph.step.global_batch)) << '\n';
  if (is_complete)
    talk << "its " << counted(run.steps, "step") << " are done; makes the trace from the ranks' records\n";
  if (request.weights.starts_from_files()) talk << "weights: " << request.weights.from << '\n';
  if (request.resumes() && !request.weights.from.empty())
    talk << "note: no weights of " << request.weights.from << " are read: the training goes on with its own\n";
  for (const std::string& note : request.from.notes) talk << "note: not resumed from: " << note << '\n';
  if (request.resumes()) talk << "from step " << request.from.done << ": " << request.from.checkpoint << '\n';
  talk << std::flush;
}

// For a complete training whose weights are asked for.
int only_write_weights(const CommandOptions& options, const Scenario& scenario, const std::string& folder,
                       const std::string& checkpoint, std::ostream& out, std::ostream& err) {
  for (const char* other : {"trace", "report", "confirm"})
    if (options.has(other))
      throw UsageError(std::string("--") + other +
                       ": the steps of this run are done, and only its weights are written; leave it out, or raise "
                       "run.steps");
  const RunWeights weights = run_weights(options, scenario, folder, true);
  write_run_weights(weights, scenario, checkpoint, err);
  if (options.has("json"))
    out << nlohmann::json({{"folder", folder}, {"steps", scenario.run.steps}, {"weights", weights.to}}).dump(2) << '\n';
  else
    out << "its " << counted(scenario.run.steps, "step") << " are done; weights: " << weights.to << '\n';
  return status_done;
}

// With --resume if-any, where a launcher starts a complete training again.
int nothing_to_do(const CommandOptions& options, const Scenario& scenario, const std::string& folder, bool reports,
                  std::ostream& out) {
  if (!reports) return status_done;
  const bool has_trace = std::filesystem::exists(trace_path(folder));
  if (options.has("json"))
    out << nlohmann::json({{"folder", folder}, {"steps", scenario.run.steps}}).dump(2) << '\n';
  else
    out << "its " << counted(scenario.run.steps, "step") << " are done"
        << (has_trace ? "; trace: " + trace_path(folder) : " (without a trace)") << '\n';
  return status_done;
}

int execute_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = execute_options();
  if (!options.parse(args, out)) return status_done;
  Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  refuse_what_cannot_run(scenario);
  check_ladder(scenario);
  refuse_uncalibrated(scenario);
  const auto joined = joined_rank([](const char* name) { return std::getenv(name); });
  if (joined) refuse_other_world(*joined, scenario);
  if (options.text("out") == "") throw UsageError("--out is empty; name a folder");
  const std::string folder = std::filesystem::absolute(options.text("out").value_or(scenario.name + ".run")).string();
  if (!joined || joined->rank == 0) restore_killed_start(folder);
  const std::optional<std::string> resume = options.text("resume");
  const std::optional<int> unmerged = resume && resumes_here(*resume) && !joined
                                          ? unmerged_from(folder, rank_count(scenario.step.layout), scenario.run.steps)
                                          : std::nullopt;
  if (const auto complete = complete_checkpoint(options, folder, scenario); complete && !unmerged) {
    if (joined && joined->rank != 0) return status_done;  // one rank writes for all
    return only_write_weights(options, scenario, folder, *complete, out, err);
  }
  const Resumption from = unmerged ? Resumption{"", *unmerged, 0, 0, true}
                                   : resumption_of(resume, folder, scenario, options.has("overwrite"));
  if (from.is_complete) return nothing_to_do(options, scenario, folder, !joined || joined->rank == 0, out);
  const RunWeights weights = run_weights(options, scenario, folder, unmerged || !from.checkpoint.empty());
  save_last_step(weights, scenario);
  if (!unmerged) refuse_warmup_beyond_end(scenario, from);
  refuse_shrinking_growth(scenario, from);
  check_output_folder("--out", folder);
  const bool goes_on = from.is_here || (resume == resume_if_any && is_unfinished(folder, scenario.run.steps));
  if (!options.has("overwrite") && !goes_on) refuse_finished_run(folder);
  if (const auto trace = options.text("trace")) check_output("--trace", *trace, inputs_of(scenario));
  check_report(options, inputs_of(scenario));
  if (!options.text("trace") && std::filesystem::is_directory(trace_path(folder)))
    throw UsageError(trace_path(folder) + ", where the trace goes, is a folder; move it, or give --trace another file");
  const PreparedStep prepared = prepared_showing(std::move(scenario), err);
  if (options.has("cuda-graphs")) refuse_graphs(prepared);
  if (options.has("confirm")) refuse_unconfirmable(from, prepared.scenario.run, prepared.graph.window);
  const std::string program = rank_program();
  const std::vector<PreparedStep> larger = larger_steps(prepared, err);
  if (!options.has("force"))  // more micro-batches never hold less
    refuse_what_does_not_fit(larger.empty() ? prepared : larger.back());
  ExecuteRequest request{prepared,
                         larger,
                         folder,
                         options.text("trace").value_or(trace_path(folder)),
                         options.text("report"),
                         from,
                         weights,
                         {},
                         options.has("json"),
                         options.has("cuda-graphs"),
                         out,
                         err};
  const bool reports = !joined || joined->rank == 0;
  if (options.has("confirm") && reports)
    for (std::size_t i = 0; i <= larger.size(); ++i)
      request.predicted.push_back(prediction_of(prepared_of_program(request, i), err));
  if (reports) print_beginning(request, program, unmerged.has_value());
  if (unmerged) return merge_only(request);
  return joined ? join_and_merge(request, program, *joined) : start_and_merge(request, program);
}

const RegisterCommand registered({.place = 9,
                                  .name = "execute",
                                  .summary = "train a scenario on this machine and trace it",
                                  .run = execute_command,
                                  .answers = execute_answers});

}  // namespace

}  // namespace slipway::scenarios
