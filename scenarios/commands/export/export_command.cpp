#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/export/execution_nodes.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

CommandOptions export_options() {
  CommandOptions options(
      "export SCENARIO --chakra -o FOLDER [options]",
      "Writes the task graph of a step for other simulators: as Chakra execution traces, a file for each rank,\n"
      "and the ranks of each group of collectives.",
      "slipway export scenarios/examples/tiny-llama-cpu.yaml --chakra -o tiny-llama.chakra");
  options.positional("scenario file (YAML)", 1, 1)
      .flag("chakra",
            "as Chakra execution traces (mlcommons/chakra, schema 0.0.4); required, as there is no other format")
      .value("output", "FOLDER", "the folder to write to; required")
      .letter('o')
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .notes(
          "FOLDER/NAME.R.et is rank R of the scenario NAME.yaml, FOLDER/groups.json the ranks of each group "
          "(ASTRA-sim's\n"
          "comm_group). Nodes carry the task's label, its predicted duration in whole µs, FLOPs (num_ops), and for\n"
          "messages the bytes that the rank gives (comm_size), group (pg_name), or source, destination and tag.\n"
          "Order on a lane is a data dependency too, because Chakra's feeder reads no others.");
  return options;
}

void write_rank(const std::string& path, const PreparedStep& prepared, std::int32_t rank,
                std::span<const std::uint32_t> tasks) {
  OutputFile file(path);
  ExecutionTraceWriter writer(file.stream(), {{"schema", "symbolic"},
                                              {"writer", "slipway " + std::string(slipway_version())},
                                              {"scenario", std::filesystem::path(prepared.scenario.path).stem()},
                                              {"rank", std::to_string(rank)}});
  each_node(prepared.graph, prepared.durations, rank, tasks, [&](const ExecutionNode& node) { writer.write(node); });
  file.commit();
}

// {"0": [0, 1], "1": [2, 3]}
void write_groups(const std::string& path, const TaskGraph& graph) {
  OutputFile file(path);
  std::ostream& out = file.stream();
  out << "{";
  for (std::size_t i = 0; i < graph.communicators.size(); ++i)
    out << fmt::format("{}\"{}\": [{}]", i == 0 ? "\n  " : ",\n  ", i, fmt::join(graph.communicators[i].ranks, ", "));
  out << "\n}\n";
  file.commit();
}

int export_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = export_options();
  if (!options.parse(args, out)) return status_done;
  if (!options.has("chakra")) throw UsageError("the format is missing; give --chakra");
  const auto folder = options.text("output");
  if (!folder) throw UsageError("the output is missing; give -o FOLDER");
  Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  check_output_folder("-o", *folder);
  const std::string prefix = *folder + "/" + std::filesystem::path(scenario.path).stem().string();
  const PreparedStep prepared = prepared_showing(std::move(scenario), err);
  std::filesystem::create_directories(*folder);
  const Rows tasks = tasks_of_ranks(prepared.graph);
  const auto ranks = static_cast<std::int32_t>(tasks.size());
  {
    ProgressLine progress(err, "writing " + *folder);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      write_rank(fmt::format("{}.{}.et", prefix, rank), prepared, rank, tasks[rank]);
      progress.report(static_cast<double>(rank + 1) / ranks);
    }
  }
  write_groups(*folder + "/groups.json", prepared.graph);
  out << headline(prepared) << '\n'
      << fmt::format("{}: Chakra execution traces of {}, {} in all; groups.json names {}\n", *folder,
                     counted(ranks, "rank"), counted(static_cast<std::int64_t>(tasks.values.size()), "task"),
                     counted(static_cast<std::int64_t>(prepared.graph.communicators.size()), "group"));
  return status_done;
}

const RegisterCommand registered({.place = 17,
                                  .name = "export",
                                  .summary = "write the task graph for other simulators (Chakra)",
                                  .run = export_command});

}  // namespace

}  // namespace slipway::scenarios
