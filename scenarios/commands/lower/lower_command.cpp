#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/execute/bundle.h"
#include "scenarios/commands/weights/read_weight_folder.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

int lower_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options(
      "lower SCENARIO -o FILE [options]",
      "Writes the bundle: the step, the global order of its tasks and the run, as checksummed text. The rank\n"
      "program (slipway-rank) makes the task graph of it, with nothing but the standard library.",
      "slipway lower scenarios/examples/tiny-llama-cpu.yaml -o run.slip");
  options.positional("scenario file (YAML)", 1, 1)
      .value("output", "FILE", "the bundle to write; required")
      .letter('o')
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("weights", "DIR", "also list the Hugging Face weights to start from, in FILE.weights, for slipway-rank");
  if (!options.parse(args, out)) return status_done;
  const auto path = options.text("output");
  if (!path) throw UsageError("the output is missing; give -o FILE");
  Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  check_output("-o", *path, inputs_of(scenario));
  check_ladder(scenario);
  const std::optional<WeightFiles> weights =
      options.text("weights") ? std::optional(weights_in("--weights", *options.text("weights"), scenario.step.model))
                              : std::nullopt;
  const std::string weights_path = *path + ".weights";
  if (weights) check_output("-o", weights_path, inputs_of(scenario));
  const PreparedStep prepared = prepared_showing(std::move(scenario), err);
  const Bundle bundle = bundle_of(prepared, larger_steps(prepared, err));
  OutputFile file(*path);
  write_bundle(file.stream(), bundle);
  const std::uint64_t bytes = file.commit();
  out << headline(prepared) << '\n'
      << fmt::format("{}: {}, {} a step{}\n", *path, counted(rank_count(prepared.graph.step.layout), "rank"),
                     counted(static_cast<std::int64_t>(prepared.graph.tasks.size()), "task"),
                     bytes > 0 ? ", " + readable_bytes(static_cast<double>(bytes)) : "");
  if (weights) {
    OutputFile list(weights_path);
    list.stream() << to_text(*weights);
    list.commit();
    out << weights_path << ": where each weight is in " << weights->folder << '\n';
  }
  if (grows(bundle)) out << "first of " << ladder_text(bundle.batches) << '\n';
  return status_done;
}

const RegisterCommand registered(
    {.place = 16, .name = "lower", .summary = "write the bundle that the ranks run", .run = lower_command});

}  // namespace

}  // namespace slipway::scenarios
