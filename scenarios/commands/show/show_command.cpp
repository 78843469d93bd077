#include <fmt/format.h>

#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "schedules/catalogue/schedule_csv.h"
#include "schedules/draw/grid.h"

namespace slipway::scenarios {
namespace {

// The schedule with another number of micro-batches per pipeline, for a picture that fits on a page.
void set_micro_batches(Scenario& scenario, int micro_batches) {
  scenario.step.global_batch =
      static_cast<std::int64_t>(micro_batches) * scenario.step.micro_batch * scenario.step.layout.data;
}

// An imported schedule has the micro-batches of its file.
void refuse_endless_grid(const Scenario& scenario) {
  constexpr std::int64_t most = 1000;  // no page has room for more
  const std::int64_t micro_batches = scenario.step.global_batch / scenario.step.micro_batch / scenario.step.layout.data;
  if (scenario.step.actions || micro_batches <= most) return;
  throw UsageError(fmt::format(
      "the grid would have columns for {} micro-batches; allowed: up to {}; give --micro-batches 16 for a picture, "
      "or --csv for the whole schedule",
      micro_batches, most));
}

// "-" is `out`.
void write_dot_to(const std::string& path, const TaskGraph& graph, std::ostream& out, std::ostream& talk) {
  if (path == "-") return write_dot(out, graph);
  OutputFile file(path);
  write_dot(file.stream(), graph);
  file.commit();
  talk << "\nDOT: " << path << " (dot -Tsvg " << path << " -o graph.svg)\n";
}

int show_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options(
      "show SCENARIO [options]",
      "Prints the schedule as a grid, a row per pipeline rank and a column per unit of time: 2F0 is stage "
      "2,\n"
      "forward, micro-batch 0; B backward, I input gradient, W weight gradient, R recompute.",
      "slipway show scenarios/examples/llama-8b-64xh100.yaml --micro-batches 8");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("micro-batches", "N", "show the schedule with N micro-batches per pipeline instead of the scenario's")
      .value("dot", "FILE", "write the whole task graph as DOT (Graphviz); - is standard output, instead of the grid")
      .flag("csv", "print the schedule as PyTorch's schedule CSV instead of the grid");
  if (!options.parse(args, out)) return status_done;
  const auto dot = options.text("dot");
  if (options.has("csv") && dot == "-")
    throw UsageError("--csv and --dot - both print on standard output; give --dot a file");
  Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  if (options.has("csv") && scenario.step.slices > 1)
    throw UsageError("--csv: PyTorch's schedule CSV has no slices, but schedule.slices is " +
                     std::to_string(scenario.step.slices) + "; set it to 1 or leave --csv out");
  if (options.has("micro-batches") && scenario.step.actions)
    throw UsageError("schedule.csv has its own number of micro-batches; leave --micro-batches out");
  if (options.has("micro-batches")) set_micro_batches(scenario, options.integer("micro-batches", 1, 1));
  if (dot && dot != "-") check_output("--dot", *dot, inputs_of(scenario));
  if (!options.has("csv") && dot != "-") refuse_endless_grid(scenario);
  // Members of a pipeline rank do the same, and the grid shows one of each.
  const PreparedStep prepared = prepared_showing(std::move(scenario), err, {.representatives_only = !dot});
  if (options.has("csv")) {
    write_schedule_csv(out, action_lists(prepared.scenario.step));
  } else if (dot != "-") {
    out << headline(prepared) << "\n\n" << grid(prepared.graph);
  }
  if (dot) write_dot_to(*dot, prepared.graph, out, options.has("csv") ? err : out);
  return status_done;
}

const RegisterCommand registered({.place = 15,
                                  .name = "show",
                                  .summary = "print the schedule as a rank x step grid; write DOT or CSV",
                                  .run = show_command});

}  // namespace

}  // namespace slipway::scenarios
