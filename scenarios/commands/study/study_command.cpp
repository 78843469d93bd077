#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/study/plot.h"
#include "scenarios/commands/study/shard.h"
#include "scenarios/commands/study/study_page.h"
#include "scenarios/commands/study/study_report.h"
#include "scenarios/commands/study/vary_option.h"
#include "scenarios/files/output_file.h"
#include "scenarios/language/document.h"
#include "scenarios/language/given_scenarios.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/page.h"
#include "scenarios/search/workers.h"

namespace slipway::scenarios {
namespace {

constexpr std::size_t most_scenarios = 1000;

std::string metric_names() {
  std::string text;
  for (const StudyColumn& column : study_columns()) text += (text.empty() ? "" : ", ") + column.key.name;
  return text;
}

CommandOptions declared_options() {
  CommandOptions options(
      "study SCENARIO... --vary KEY=VALUE,VALUE [options]",
      "Simulates every combination of the varied keys, on all cores, and prints a table of "
      "the results:\n"
      "step time, throughput, bubble, memory, and utilization with bubble work.",
      "slipway study scenarios/studies/pipefisher-2022/bert-base.yaml --vary schedule.name=" +
          schedules_with([](const Schedule& schedule) { return schedule.has_filled_form && schedule.copies == 1; },
                         ",") +
          " --plot u.svg");
  options.positional("scenario files (YAML)", 1, most_scenarios)
      .values("vary", "KEY=A,B",
              "values of a key; may be repeated, the last varies fastest. Keys of one --vary, separated by "
              "spaces, move together: --vary \"layout.pipeline=4,8 cluster.gpus_per_node=4,8\"")
      .values("set", "KEY=VALUE", "override a key in all points; may be repeated (`slipway list keys`)")
      .value("columns", "NAME,...",
             "columns of the printed table (default: all that any point has, without peak_memory_bytes)")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the points, as JSON, on standard output")
      .json_keys(study_answers)
      .value("csv", "FILE", "write the table as CSV, with all digits and an `error` column")
      .value("plot", "FILE", "write a bar chart as SVG")
      .value("figure", "NAME", "column to plot (default: utilization with bubble work, otherwise step_time_s)")
      .value("jobs", "N", "points simulated at the same time (default: one per core)");
  declare_shard_options(options, "point");
  options.notes("Columns of the CSV, as in simulate --json: " + metric_names() +
                ".\nA point that is refused or fails is a row with its reason, and the exit status is 0 as "
                "long as\n"
                "one point succeeds. Ctrl-C ends the study, prints the completed points and exits with status 1.");
  return options;
}

const StudyColumn& figure_of(const std::optional<std::string>& name, const std::vector<StudyRow>& rows) {
  if (name) return *study_column(*name);
  const bool filled =
      std::ranges::any_of(rows, [](const StudyRow& row) { return row.numbers.contains("utilization"); });
  return *study_column(filled ? "utilization" : "step_time_s");
}

void check_column(const std::string& option, const std::string& name) {
  if (study_column(name) != nullptr) return;
  std::vector<std::string> names;
  for (const StudyColumn& column : study_columns()) names.push_back(column.key.name);
  throw UsageError(option + " " + name + ": there is no such figure" + suggestion(name, names) +
                   "; allowed: " + metric_names());
}

std::vector<std::string> columns_of(const std::optional<std::string>& option) {
  std::vector<std::string> columns;
  std::istringstream names(option.value_or(""));
  for (std::string name; std::getline(names, name, ',');) {
    check_column("--columns", name);
    columns.push_back(name);
  }
  return columns;
}

// Refuses a key that is varied twice, or varied and set: it would take only one value.
void check_spoken_once(const std::vector<std::string>& keys, const std::vector<std::string>& overrides) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (std::find(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(i), keys[i]) !=
        keys.begin() + static_cast<std::ptrdiff_t>(i))
      throw UsageError("--vary: " + keys[i] + " is varied twice; write its values in one list");
    for (const std::string& each : overrides)
      if (each.starts_with(keys[i] + "="))
        throw UsageError("--set " + each + ": " + keys[i] + " is varied as well; leave one of the two out");
  }
}

void check_size(std::size_t scenarios, const std::vector<VariedKeys>& variations) {
  constexpr double most_points = 100000;
  double points = static_cast<double>(scenarios);
  std::string product = std::to_string(scenarios);
  for (const VariedKeys& variation : variations) {
    points *= static_cast<double>(variation.values.size());
    product += " x " + std::to_string(variation.values.size());
  }
  if (points > most_points)
    throw UsageError("that is " + product + " points; allowed: up to 100000; vary fewer keys or values");
}

// Checked once, because an unreadable file is the same mistake in every point.
void check_readable(const std::vector<std::string>& scenarios) {
  std::vector<ScenarioError> errors;
  for (const std::string& path : scenarios)
    if (!source_of(path, {}).text) read_document(path, {path, 0}, "", errors);
  if (!errors.empty()) throw ScenarioRefused(std::move(errors));
}

// The words that name the points of this study, and the files they come from.
ShardIdentity identity_of(const CommandOptions& options, const std::vector<StudyPoint>& points) {
  std::vector<std::string> words = options.arguments();
  for (const char* option : {"set", "vary"})
    for (const std::string& value : options.all(option)) {
      words.push_back(std::string("--") + option);
      words.push_back(value);
    }
  // Loading takes a millisecond, so of many points only those are loaded that may read other files than the first.
  std::set<std::string> paths(options.arguments().begin(), options.arguments().end()), loaded_once;
  for (const StudyPoint& point : points) {
    const bool names_file = std::any_of(point.values.begin(), point.values.end(), [](const std::string& value) {
      return value.find('/') != std::string::npos || value.find(".yaml") != std::string::npos ||
             value.find(".json") != std::string::npos;
    });
    if (!loaded_once.insert(point.path).second && !names_file) continue;
    const LoadResult loaded = load_scenario(point.path, point.overrides);
    paths.insert(loaded.scenario.files.begin(), loaded.scenario.files.end());
  }
  return scenarios::identity_of(std::move(words), paths);
}

std::vector<StudyPoint> points_of_shard(const std::vector<StudyPoint>& points, const Shard& shard) {
  std::vector<StudyPoint> own;
  for (const std::size_t at : points_in(shard, points.size())) own.push_back(points[at]);
  return own;
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.stream() << text;
  file.commit();
}

struct StudyRun {
  std::vector<StudyRow> rows;
  bool interrupted = false;
};

StudyRun simulated(const std::vector<StudyPoint>& points, int jobs, std::ostream& err) {
  const CatchInterrupts guard;
  ProgressLine progress(err, "studying");
  progress.counts(static_cast<double>(points.size()), "points");
  StudyRun run;
  run.rows = run_study(
      points, jobs, [&](double share) { progress.report(share); }, CatchInterrupts::asked);
  run.interrupted = CatchInterrupts::asked();
  return run;
}

// --shard: simulates its points and writes its file.
int study_shard(const CommandOptions& options, const std::vector<StudyPoint>& points, int jobs, std::ostream& out,
                std::ostream& err) {
  const Shard shard = shard_from(*options.text("shard"));
  make_shard_folder(options);
  const StudyRun run = simulated(points_of_shard(points, shard), jobs, err);
  if (run.interrupted) {
    err << "slipway study: interrupted; this shard has no file\n";
    return status_failed;
  }
  const std::string path =
      write_shard(options, identity_of(options, points), shard_rows_of(run.rows, points_in(shard, points.size())));
  out << fmt::format("shard {} of {}, {}: {}\n", shard.number, shard.count, counted(run.rows.size(), "point"), path);
  return status_done;
}

// Table, files and pictures of a study whose rows are known.
int answer(const CommandOptions& options, const Study& study, bool interrupted, std::ostream& out, std::ostream& err) {
  std::ostream& talk = options.has("json") ? err : out;
  out << (options.has("json") ? study_json(study) : study_text(study));
  if (const auto path = options.text("csv")) write_file(*path, study_csv(study)), talk << "\ntable: " << *path << '\n';
  if (const auto path = options.text("plot")) {
    write_file(*path, study_svg(study, figure_of(options.text("figure"), study.rows)));
    talk << "plot: " << *path << '\n';
  }
  const bool any = std::any_of(study.rows.begin(), study.rows.end(), [](const StudyRow& r) { return r.error.empty(); });
  if (const auto path = options.text("report"); path && any)
    write_report(*path, report_of(study)), talk << "report: " << *path << '\n';
  if (interrupted) {
    err << "slipway study: interrupted; the table has the points completed until then\n";
    return status_failed;
  }
  return any ? status_done : status_failed;
}

int study_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const int jobs = options.integer("jobs", core_count(), 1);
  if (const auto name = options.text("figure")) check_column("--figure", *name);
  std::vector<VariedKeys> variations;
  Study study;
  study.scenarios = options.arguments();
  study.columns = columns_of(options.text("columns"));
  for (const std::string& option : options.all("vary")) {
    variations.push_back(variation_from(option));
    study.first_keys.push_back(study.keys.size());
    study.keys.insert(study.keys.end(), variations.back().keys.begin(), variations.back().keys.end());
  }
  check_spoken_once(study.keys, options.all("set"));
  check_size(study.scenarios.size(), variations);
  check_readable(study.scenarios);
  if (options.text("csv") && options.text("csv") == options.text("plot"))
    throw UsageError("--csv and --plot name the same file, " + *options.text("csv") + "; give each its own");
  if (options.text("figure") && !options.text("plot"))
    throw UsageError("--figure is what --plot draws; give --plot a file as well");
  for (const char* output : {"csv", "plot"})
    if (const auto path = options.text(output)) check_output(std::string("--") + output, *path, study.scenarios);
  check_report(options, study.scenarios);
  if (const auto scheduler = options.text("emit"); scheduler && *scheduler != "slurm")
    throw UsageError("--emit " + *scheduler + " is not known; allowed: slurm");
  check_shard_options(options, {"json", "csv", "plot", "report"});
  if (options.has("emit")) {
    out << slurm_script("study", args, options, " --jobs \"${SLURM_CPUS_PER_TASK:-1}\"");
    return status_done;
  }
  const std::vector<StudyPoint> points = points_of(study.scenarios, options.all("set"), variations);
  if (options.has("shard")) return study_shard(options, points, jobs, out, err);
  StudyRun run;
  if (const auto folder = options.text("merge"))
    run.rows = study_rows_of(merged_rows(*folder, identity_of(options, points), study_columns().size(), points.size()),
                             points);
  else
    run = simulated(points, jobs, err);
  study.rows = std::move(run.rows);
  return answer(options, study, run.interrupted, out, err);
}

const RegisterCommand registered({.place = 8,
                                  .name = "study",
                                  .summary = "simulate every combination of varied keys; table, CSV and plot",
                                  .run = study_command,
                                  .answers = study_answers});

}  // namespace

}  // namespace slipway::scenarios
