#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <ostream>
#include <set>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/named_trace.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/compare/batch_report.h"
#include "scenarios/commands/compare/compare_report.h"
#include "scenarios/commands/compare/comparison.h"
#include "scenarios/commands/compare/phase_comparison.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/scenario_of_trace.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

std::vector<AnswerKeys> compare_answers();

std::set<std::pair<int, std::string>> tasks_of(const Trace& trace, int step) {
  std::set<std::pair<int, std::string>> tasks;
  for (const TraceRecord& record : trace.records)
    if (record.step == step) tasks.insert({record.rank, record.label});
  return tasks;
}

// If the run's batch grew: its steps of the predicted batch, which have the same tasks.
Trace comparable(const Trace& predicted, Trace measured) {
  const std::vector<std::int64_t> batches = batches_in(measured);
  if (batches.empty()) return measured;
  for (const std::int64_t batch : batches) {
    Trace part = steps_of_batch(measured, batch);
    if (tasks_of(part, 0) == tasks_of(predicted, predicted.steps - 1)) return part;
  }
  throw std::invalid_argument(
      fmt::format("the measured run's batch grew, through {}, and the prediction has the tasks of none of "
                  "them; predict one of these (--set schedule.global_batch=...)",
                  fmt::join(batches, ", ")));
}

Comparison compared(const Trace& predicted, Trace& measured) {
  try {
    measured = comparable(predicted, std::move(measured));
    return compare_traces(predicted, measured);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

// The settings of `a` that `b` does not have, one per line. The machine's numbers are left out, because they always
// differ between a prediction and a measurement.
std::string only_in(const std::string& a, const std::string& b, const std::string& indent) {
  std::set<std::string> known;
  std::istringstream other(b), own(a);
  for (std::string line; std::getline(other, line);) known.insert(line);
  std::string result;
  for (std::string line; std::getline(own, line);) {
    const bool of_machine = line.starts_with("  machine:") || line.starts_with("    - {name:");
    if (!of_machine && !known.contains(line)) result += indent + line.substr(line.find_first_not_of(' ')) + '\n';
  }
  return result;
}

void refuse_wrong_engines(const std::vector<std::string>& paths, const Trace& predicted, const Trace& measured) {
  constexpr const char* order = "; give PREDICTED MEASURED, in this order";
  if (predicted.engine == "libtorch")
    throw UsageError(paths[0] + " is the trace of an executed run, not a prediction" + order);
  if (measured.engine != "libtorch")
    throw UsageError(paths[1] + " was made by '" + measured.engine + "', it is not the trace of an executed run" +
                     order);
}

// Memory capacities of the scenario in the prediction. Empty where the scenario cannot be read here: the page's curves
// then show no capacity.
std::vector<double> capacities_of(const Trace& predicted, const std::string& path) {
  const LoadResult loaded = scenario_of_trace(predicted, path);
  return loaded.errors.empty() ? memory_capacities(loaded.scenario) : std::vector<double>{};
}

// With a trace of PyTorch's profiler in place of one of an executed run.
void compare_with_profiler(const CommandOptions& options, std::ostream& out, std::ostream& err) {
  const std::string &predicted_path = options.arguments()[0], &path = options.arguments()[1];
  check_report(options, options.arguments());
  const Trace predicted = trace_from(predicted_path);
  if (predicted.engine == "libtorch")
    throw UsageError(predicted_path +
                     " is the trace of an executed run, not a prediction; give PREDICTED MEASURED, in "
                     "this order");
  std::optional<KinetoTrace> measured;
  {
    ProgressLine progress(err, "reading " + path);
    measured = read_kineto(path, [&](double share) { progress.report(share); });
  }
  if (measured->has_rank && measured->world != predicted.ranks)
    err << fmt::format("note: the profiler's trace is of {}, the prediction of {}\n", counted(measured->world, "rank"),
                       predicted.ranks);
  try {
    const PhaseComparison comparison = compare_phases(predicted, *measured);
    if (const auto page = options.text("report")) write_report(*page, report_of(comparison, predicted.scenario));
    out << (options.has("json") ? phase_description().text(comparison) : report_text(comparison));
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

std::vector<AnswerKeys> compare_answers() {
  return {{"compare --json", comparison_description().keys()},
          {"compare PREDICTED PROFILED --json", phase_description().keys()}};
}

int compare_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options(
      "compare PREDICTED MEASURED [options]",
      "Joins a predicted and a measured trace task by task. Prints the error of the step time and of every kind of\n"
      "task, the five tasks with the largest difference, time lost to waiting. Or sets a trace of PyTorch's profiler\n"
      "beside a prediction, phase by phase.",
      "slipway compare predicted.json tiny-llama-cpu.run/trace.json");
  options.positional("pair of traces, predicted and measured (Chrome JSON)", 2, 2)
      .json_keys(compare_answers)
      .value("report", "FILE", report_meaning)
      .flag("json", "print the comparison as JSON (`slipway list json-keys`)")
      .notes(
          "Tasks are joined on (rank, label): the prediction's last step with a successor, and the median "
          "of the\n"
          "measured steps with a successor, without step 0, which warms up. Work times "
          "are\n"
          "compared without waiting for other members of a transfer or collective; waiting is printed "
          "beside them.\n"
          "A transfer ends on both ranks when its bytes have arrived.\n"
          "If the run's batch grew, the steps with the prediction's tasks count.\n"
          "Tasks in only one trace are listed. Memory: the predicted timeline's peak of each rank against the "
          "most\n"
          "that its tensors took in the counted steps, by LibTorch's allocator.\n"
          "\n"
          "MEASURED may be a trace of PyTorch's profiler (JSON or .json.gz) of one rank. Then a step's time is "
          "compared\n"
          "by phase: forward, backward, optimizer, exposed messages of each axis, idle. An axis is read from the name\n"
          "of the process group (mesh_tp, DATA_PARALLEL_GROUP).");
  if (!options.parse(args, out)) return status_done;
  if (const std::string& path = options.arguments()[1]; may_be_kineto(path)) {
    compare_with_profiler(options, out, err);
    return status_done;
  }
  check_report(options, options.arguments());
  const Trace predicted = trace_from(options.arguments()[0]);
  Trace measured = trace_from(options.arguments()[1]);
  refuse_wrong_engines(options.arguments(), predicted, measured);
  const std::string differences = only_in(predicted.summary, measured.summary, "  predicted: ") +
                                  only_in(measured.summary, predicted.summary, "  measured:  ");
  if (!differences.empty()) err << "note: the traces were made with different settings\n" << differences;
  const Comparison comparison = compared(predicted, measured);
  if (const auto path = options.text("report"))
    write_report(*path, report_of(predicted, measured, comparison, capacities_of(predicted, options.arguments()[0])));
  out << (options.has("json") ? comparison_description().text(comparison) : report_text(comparison));
  return status_done;
}

const RegisterCommand registered({.place = 10,
                                  .name = "compare",
                                  .summary = "join a predicted and a measured trace, task by task",
                                  .run = compare_command,
                                  .answers = compare_answers});

}  // namespace

}  // namespace slipway::scenarios
