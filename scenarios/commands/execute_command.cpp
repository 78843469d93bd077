// `slipway execute`: refuses before anything starts, starts the ranks or joins those that a launcher started, and merges
// what they measured. Its options: execute_options.h. Guarded by tests/command_execute_test.cpp.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <sstream>

#include "exec/checkpoint_folder.h"
#include "exec/run_files.h"
#include "scenarios/chrome_trace.h"
#include "scenarios/commands/command.h"
#include "scenarios/commands/execute_options.h"
#include "scenarios/commands/outputs.h"
#include "scenarios/commands/progress.h"
#include "scenarios/comparison.h"
#include "scenarios/execution/bundle.h"
#include "scenarios/execution/execution.h"
#include "scenarios/execution/folder_lock.h"
#include "scenarios/execution/learning_rate.h"
#include "scenarios/execution/rank_program.h"
#include "scenarios/execution/resumption.h"
#include "scenarios/execution/run_folder.h"
#include "scenarios/execution/set_aside.h"
#include "scenarios/output_file.h"
#include "scenarios/readable.h"
#include "scenarios/terminal_timeline.h"
#include "scenarios/validation/prediction.h"
#include "schedules/graph/timeline_trace.h"
#include "sim/simulate.h"

namespace slipway {
namespace {

constexpr int fewest_confirmed = 3;  // steps: the first warms up, the last has no successor

// What all parts of one execution need.
struct Request {
  const Plan& plan;
  const std::vector<Plan>& larger;  // where the batch grows
  std::string folder, trace_path;
  Resumption from;
  std::vector<Trace> predicted;  // with --confirm, of every step program
  bool json = false, cuda_graphs = false;
  std::ostream &out, &err;
  bool resumes() const { return !from.checkpoint.empty(); }
  int ranks_per_process() const { return plan.scenario.cluster.ranks_per_gpu; }
  // What a rank program is given.
  std::vector<std::string> arguments(const std::string& bundle) const {
    std::vector<std::string> words{bundle, "--out", folder};
    if (resumes()) words.insert(words.end(), {"--resume", from.checkpoint});
    if (cuda_graphs) words.emplace_back("--cuda-graphs");
    return words;
  }
};

// Rank 0's standard output is the run's; others, and every error line, say whose they are.
// `told`: gets the first cause of a failure that they tell.
LaunchOptions passing_output_of(const Request& request, SetAside& earlier, std::string& told) {
  LaunchOptions options;
  options.line = [&request, &earlier, &told](int rank, std::string_view line, bool is_error) {
    if (rank == 0 && !is_error && line.starts_with("step ")) earlier.drop();
    if (is_error && told.empty()) told = told_cause(line);
    std::ostream& to = is_error || request.json ? request.err : request.out;
    const std::string own = "rank " + std::to_string(rank) + " ";
    if ((rank != 0 || is_error) && !line.starts_with(own))
      to << '[' << own.substr(0, own.size() - 1) << "] ";
    to << line << std::endl;
  };
  return options;
}

std::string write_bundle_to(const std::string& path, const Request& request) {
  OutputFile file(path);
  write_bundle(file.stream(), bundle_of(request.plan, request.larger));
  file.commit();
  return path;
}

// Says why ranks first_rank to last_rank did not get to the end, if so, and what is left of them.
int told_failure(const Request& request, const LaunchResult& result, const std::string& told, int first_rank, int last_rank,
                 SetAside& earlier) {
  if (!result.interrupted && !result.first_failure) {
    earlier.drop();
    return status_done;
  }
  // Of ranks that joined, but for rank 0, which may have put its losses back already, the records tell.
  if (first_rank == 0 ? has_done_a_step(request.folder, request.from.done) : has_records_of_two_steps(request.folder, first_rank))
    earlier.drop();
  request.err << "slipway execute: "
              << (result.interrupted
                      ? "interrupted (Ctrl-C, SIGINT, SIGTERM or SIGHUP); all ranks that were started here have ended"
                      : first_cause(result, request.folder, told))
              << '\n'
              << (earlier.put_back() ? "no step was completed; what the earlier run left in " + request.folder + " is there again"
                                     : kept_text(request.folder, first_rank, last_rank))
              << '\n';
  return status_failed;
}

MergedRun merged_with_progress(const Request& request) {
  const Ticking ticking(request.err, "merging the ranks' records");
  return merged_run(request.folder, rank_count(request.plan.graph.layout), request.plan.scenario.run.steps - request.from.done);
}

void write_trace(const Request& request, const Trace& trace) {
  const Ticking ticking(request.err, "writing " + request.trace_path);
  OutputFile file(request.trace_path);
  try {
    write_chrome_trace(file.stream(), trace);
    file.commit();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(request.trace_path + ": " + error.what() + "\n(the training is complete; with room, the same command " +
                             "with --resume latest makes the trace)");
  }
}

void wait_for_the_others(const Request& request, int ranks) {
  constexpr double others_end_s = 60;
  const Ticking ticking(request.err, "waiting for the other ranks to end");
  wait_for_done(request.folder, ranks, others_end_s);
}

const Plan& plan_of_program(const Request& request, std::size_t program) {
  return program == 0 ? request.plan : request.larger[program - 1];
}

// Of the batch of which most steps ran, where that can be compared.
std::optional<Comparison> confirmed(const Request& request, const Execution& run) {
  if (request.predicted.empty()) return std::nullopt;
  if (run.batches.empty()) return compare_traces(request.predicted.front(), run.trace);
  const BatchMeasured& longest = longest_of(run.batches);
  if (longest.last - longest.first + 1 < fewest_confirmed) return std::nullopt;
  for (std::size_t i = 0; i < request.predicted.size(); ++i)
    if (plan_of_program(request, i).graph.global_batch == longest.batch)
      return compare_traces(request.predicted[i], steps_of_batch(run.trace, longest.batch));
  throw std::runtime_error("the run has steps of a batch that was not simulated: " + std::to_string(longest.batch));
}

// The last step that counts, or its window.
std::string drawn_steps(const Execution& run) {
  const int last = steps_before(run.trace) + run.times.last + 1;
  if (run.trace.window == 1) return "Step " + std::to_string(last);
  return "Steps " + std::to_string(last + 1 - run.trace.window) + " to " + std::to_string(last);
}

int merge_and_report(const Request& request) {
  const Plan& plan = request.plan;
  write_losses_csv(request.folder);  // first: it is short, and says that here is a run, should the rest be interrupted
  MergedRun merged = merged_with_progress(request);
  for (const std::string& note : merged.notes) request.err << "note: " << note << '\n';
  Execution run{std::move(merged.trace), {}, request.trace_path, request.folder};
  run.trace.scenario = plan.scenario.name;
  run.trace.summary = plan.scenario.resolved;
  run.trace.window = plan.graph.window;
  run.times = step_times(run.trace);
  run.batches = batches_of(run.trace, run.times);
  for (std::size_t i = 0; i < request.predicted.size() && !run.batches.empty(); ++i)
    run.predicted_step_s[plan_of_program(request, i).graph.global_batch] = step_times(request.predicted[i]).period_s.back();
  write_trace(request, run.trace);
  const std::optional<Comparison> comparison = confirmed(request, run);
  if (request.json) {
    request.out << json_text(plan, run, comparison);
    return status_done;
  }
  request.out << '\n'
              << report_text(plan, run) << drawn_steps(run) << ":\n"
              << draw(picture_of(run.trace, plan.graph.layout, run.times.last), terminal_width())
              << "\ntrace: " << request.trace_path << ", losses: " << losses_csv_path(request.folder) << '\n';
  if (comparison)
    request.out << "\nPredicted before the run, and measured"
                << (run.batches.empty() ? "" : fmt::format(" (batch {})", longest_of(run.batches).batch)) << ":\n"
                << report_text(*comparison);
  else if (!request.predicted.empty())
    request.out << "\nNo task is compared with its prediction: no batch had the " << fewest_confirmed << " steps that this needs.\n";
  return status_done;
}

// Says which checkpoints the run leaves behind.
void tell_abandoned(const SetAside& earlier, std::ostream& err) {
  for (const std::string& checkpoint : earlier.abandoned())
    err << "note: a later checkpoint, which this run does not come from, is kept as " << checkpoint << '\n';
}

std::optional<int> goes_on_from(const Request& request) {
  return request.from.is_here ? std::optional(request.from.done) : std::nullopt;
}

// Of a training that is complete but for its trace.
int merge_only(const Request& request) {
  const FolderLock lock(request.folder);
  std::ostringstream bundle, left;
  write_bundle(bundle, bundle_of(request.plan, request.larger));
  left << std::ifstream(bundle_path(request.folder)).rdbuf();
  if (left.str() != bundle.str())
    throw UsageError(bundle_path(request.folder) + " is of another scenario, whose training is complete but has no trace; give the " +
                     "scenario and each --set as they were, or --out another folder");
  return merge_and_report(request);
}

int start_and_merge(const Request& request, const std::string& program) {
  const int ranks = rank_count(request.plan.graph.layout);
  SetAside earlier(request.folder, 0, ranks - 1, goes_on_from(request));
  tell_abandoned(earlier, request.err);
  const std::string bundle = write_bundle_to(bundle_path(request.folder), request);
  std::string told;
  const LaunchResult result =
      launch(local_ranks(program, request.arguments(bundle), ranks, request.ranks_per_process(), request.folder),
             passing_output_of(request, earlier, told));
  if (result.first_failure) remove_partial_checkpoints(request.folder);  // room for losses.csv: the disk may be full of it
  const int status = told_failure(request, result, told, 0, ranks - 1, earlier);
  return status == status_done ? merge_and_report(request) : status;
}

// Each rank clears its own old files before its rank program starts, and no rank program gets past the
// first meeting before all have started: a .done file that rank 0 sees after its own end is of this run.
int join_and_merge(const Request& request, const std::string& program, const JoinedRank& joined) {
  const int each = request.ranks_per_process(), first = joined.rank * each, last = first + each - 1;
  SetAside earlier(request.folder, first, last, goes_on_from(request));
  tell_abandoned(earlier, request.err);
  const std::string bundle = write_bundle_to(bundle_path(request.folder, first), request);
  std::vector<std::string> command = request.arguments(bundle);
  command.insert(command.begin(), program);
  for (const std::string& word : sharing_arguments(each)) command.push_back(word);
  std::string told;
  const LaunchResult result = launch({{first, command, {}, error_path(request.folder, first)}},
                                     passing_output_of(request, earlier, told));
  const int status = told_failure(request, result, told, first, last, earlier);
  for (int rank = first; rank <= last; ++rank) mark_done(request.folder, rank, status);
  if (status != status_done || first != 0) return status;
  wait_for_the_others(request, rank_count(request.plan.graph.layout));
  return merge_and_report(request);
}

// The same tasks on SimGrid, before any rank starts.
Trace prediction_of(const Plan& plan, std::ostream& err) {
  const Ticking ticking(err, "simulating");
  const Timeline timeline = simulate(plan.graph, plan.scenario.cluster, plan.durations, {}).timeline;
  Trace trace = trace_of(plan.graph, timeline, "simgrid");
  trace.peak_bytes = rank_peaks(plan, timeline);
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
  const int ranks = rank_count(scenario.layout), each = scenario.cluster.ranks_per_gpu;
  if (joined.world * each == ranks) return;
  const std::string sharing = each > 1 ? " in processes of " + std::to_string(each) + " (cluster.ranks_per_gpu)" : "";
  throw UsageError(joined.launcher + " started " + std::to_string(joined.world) +
                   (each > 1 ? " processes" : " ranks") + ", but the layout has " + std::to_string(ranks) +
                   (each > 1 ? " ranks" + sharing + "; start " + std::to_string(ranks / each) : "; start that many") +
                   ", or change the layout");
}

}  // namespace

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
  const std::string folder =
      std::filesystem::absolute(options.text("out").value_or(scenario.name + ".run")).string();
  if (!joined || joined->rank == 0) restore_killed_start(folder);
  const std::optional<int> unmerged = options.text("resume") == "latest" && !joined
                                          ? unmerged_from(folder, rank_count(scenario.layout), scenario.run.steps)
                                          : std::nullopt;
  const Resumption from = unmerged ? Resumption{"", *unmerged, 0, 0, true}
                                   : resumption_of(options.text("resume"), folder, scenario.run, options.has("overwrite"));
  if (!unmerged) refuse_warmup_beyond_end(scenario, from);
  refuse_shrinking_growth(scenario, from);
  if (options.has("confirm")) refuse_unconfirmable(from, scenario.run, 1);
  check_output_folder("--out", folder);
  if (!options.has("overwrite") && !from.is_here) refuse_finished_run(folder);
  if (const auto trace = options.text("trace")) check_output("--trace", *trace, inputs_of(scenario));
  if (!options.text("trace") && std::filesystem::is_directory(trace_path(folder)))
    throw UsageError(trace_path(folder) + ", where the trace goes, is a folder; move it, or give --trace another file");
  const std::string program = rank_program();
  const Plan plan = planned(std::move(scenario), err);
  refuse_graphs_with_kfac(plan, options.has("cuda-graphs"));
  if (options.has("confirm")) refuse_unconfirmable(from, plan.scenario.run, plan.graph.window);
  const std::vector<Plan> larger = larger_plans(plan, err);
  if (!options.has("force"))  // more micro-batches never hold less
    refuse_what_does_not_fit(larger.empty() ? plan : larger.back());
  Request request{
      plan, larger, folder, options.text("trace").value_or(trace_path(folder)), from, {}, options.has("json"),
      options.has("cuda-graphs"), out, err};
  const bool reports = !joined || joined->rank == 0;
  if (options.has("confirm") && reports)
    for (std::size_t i = 0; i <= larger.size(); ++i) request.predicted.push_back(prediction_of(plan_of_program(request, i), err));
  if (reports) {
    std::ostream& talk = request.json ? err : out;
    talk << headline(plan) << '\n';
    for (const std::string& note : execution_notes(plan.scenario, program)) talk << "note: " << note << '\n';
    if (!unmerged)
      for (const std::string& note : rate_notes(plan.scenario.run, from)) talk << "note: " << note << '\n';
    for (const std::string& note : batch_notes(plan.scenario, from)) talk << "note: " << note << '\n';
    if (!plan.scenario.run.optimizer.lr_schedule.is_constant()) talk << rate_text(plan.scenario.run.optimizer) << '\n';
    if (!larger.empty()) talk << ladder_text(ladder_of(plan.scenario)) << '\n';
    if (!request.predicted.empty())
      talk << "predicted: " << readable_seconds(step_times(request.predicted.front()).period_s.back()) << " a step"
           << (larger.empty() ? "" : fmt::format(" of batch {}", plan.graph.global_batch)) << '\n';
    if (unmerged) talk << "its " << counted(plan.scenario.run.steps, "step") << " are done; the trace is made of what the ranks left\n";
    if (request.resumes()) talk << "from step " << from.done << ": " << from.checkpoint << '\n';
    talk << std::flush;
  }
  if (unmerged) return merge_only(request);
  return joined ? join_and_merge(request, program, *joined) : start_and_merge(request, program);
}

}  // namespace slipway
