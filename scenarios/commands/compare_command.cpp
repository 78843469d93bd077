#include <fstream>
#include <ostream>

#include "scenarios/chrome_trace.h"
#include "scenarios/commands/command.h"
#include "scenarios/commands/options.h"
#include "scenarios/comparison.h"

namespace slipway {
namespace {

Trace trace_from(const std::string& path) {
  std::ifstream in(path);
  if (!in)
    throw UsageError("cannot read the trace " + path +
                     "; give a file that simulate --trace or execute wrote");
  return read_chrome_trace(in, path);
}

}  // namespace

int compare_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options(
      "compare PREDICTED MEASURED [options]",
      "Joins a predicted and a measured trace task by task: error of the step time and of every kind of\n"
      "task, the five tasks with the largest difference, time lost to waiting.",
      "slipway compare predicted.json tiny-llama-cpu.run/trace.json");
  options.positional("pair of traces, predicted and measured (Chrome JSON)", 2, 2)
      .flag("json", "print the comparison as JSON (`slipway list json-keys`)")
      .notes(
          "Tasks are joined on (rank, label). Of the prediction its last step with a successor is taken; "
          "of the\n"
          "measurement the median over all steps with a successor but step 0, which warms up. Work times "
          "are\n"
          "compared (without waiting for other members of a transfer or collective), waiting is shown "
          "beside them.\n"
          "Tasks that only one trace has are listed.");
  if (!options.parse(args, out)) return status_done;
  const Trace predicted = trace_from(options.arguments()[0]), measured = trace_from(options.arguments()[1]);
  if (predicted.scenario != measured.scenario || predicted.summary != measured.summary) {
    err << "note: the traces are of different scenarios (" << predicted.scenario << ", "
        << measured.scenario << ", or the same with other settings)\n";
  }
  const Comparison comparison = compare_traces(predicted, measured);
  out << (options.has("json") ? json_text(comparison) : report_text(comparison));
  return status_done;
}

}  // namespace slipway
