#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <sstream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/files/csv.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/files/output_file.h"
#include "scenarios/laboratory/tables/embedded_tables.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "scenarios/laboratory/validate/graph_prices.h"
#include "scenarios/laboratory/validate/memory_text.h"
#include "scenarios/laboratory/validate/pooled.h"
#include "scenarios/laboratory/validate/report.h"
#include "scenarios/laboratory/validate/validate_page.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options("validate [TABLE.csv ...] [options]",
                         "Scores predictions against published runs: error of step times, rank "
                         "correlation, regret of\n"
                         "the recommended layout, out-of-memory verdicts. Without a table, scores those of the "
                         "study folders.",
                         "slipway validate scenarios/studies/hagemann-2023/runs.csv --refit");
  options.positional("table (CSV)", 0, 100)
      .flag("refit", "also predict every row by constants that were fitted without it (by layout, group, choice)")
      .value("engine", "NAME",
             "replay (the task graph with the fitted constants, without contention; default), simulation (the\n"
             "same with contention) or book (a replay by constants that were fitted to no run)")
      .flag("pooled",
            "fit the constants to all tables together, and say what a stranger should expect: errors and regret\n"
            "without any run of a trainer, errors after 1, 3 and 10 runs of yours, with intervals")
      .json_keys(validate_answers)
      .value("report", "FILE", report_meaning)
      .flag("json", "print the scores as JSON and nothing else (`slipway list json-keys`)")
      .value("constants", "FILE",
             "with --pooled: write the fitted constants and their covariance, for cluster.constants")
      .value("memory-constants", "FILE",
             "write the memory constants of all trainers, fitted to the published runs and these tables")
      .value("rows", "FILE", "write every row, its prediction and its verdict as CSV")
      .notes(
          "A row of a table is a scenario and its results (`slipway list tables`). A publisher's own table\n"
          "is converted first; validate names the converter. Measured values never enter a prediction. Rows take part "
          "by rules that do not look at predictions: status (only runs that\n"
          "ended have a step time), after_pp_fix (a version of the trainer before its pipeline was\n"
          "repaired), all_reduce_test (below 300 GB/s the node's network was faulty). A row that cannot be\n"
          "priced counts as 100 % error and is named. MAPE, median and bias are of step times; rank is\n"
          "Spearman's correlation of MFU; regret is 1 - measured MFU of the layout that is recommended\n"
          "among those predicted to fit / best measured MFU of its table.");
  return options;
}

std::vector<PublishedTable> tables_of(const std::vector<std::string>& paths) {
  std::vector<PublishedTable> tables;
  for (const std::string& path : paths) tables.push_back(read_table_file(path));
  if (!paths.empty()) return tables;
  for (const EmbeddedFile& file : embedded_tables()) {
    std::istringstream in{std::string(file.text)};
    tables.push_back(read_table(in, std::string(file.path)));
  }
  return tables;
}

GraphEngine engine_of(const CommandOptions& options) {
  const std::string name = options.text("engine").value_or(name_of(GraphEngine::replay));
  if (const auto engine = value_in(engine_names, name)) return *engine;
  throw UsageError("--engine " + name + " is none of " + all_names(engine_names));
}

std::string number_text(double value) {
  if (!(value > 0)) return "";
  std::ostringstream text;
  text.precision(7);
  text << value;
  return text.str();
}

// Columns of the scenario, for a spreadsheet.
std::vector<std::string> layout_fields(const PublishedRow& row) {
  if (!row.scenario) return std::vector<std::string>(11);
  const Step& step = row.scenario->step;
  const Layout& cut = step.layout;
  const auto text = [](auto value) { return fmt::format("{}", value); };
  return {text(step.model->sequence), text(gpus_of(row)),    text(cut.tensor),       text(cut.sequence_parallel),
          text(cut.context),          text(cut.pipeline),    text(cut.data),         text(step.micro_batch),
          text(step.global_batch),    name_of(step.kernels), name_of(step.recompute)};
}

// The results, what a spreadsheet wants of the scenario, predictions, and the scenario. It reads back as a table.
void write_rows(const std::string& path, const std::vector<Validation>& validations) {
  OutputFile file(path);
  std::vector<std::string> columns;
  for (const RunColumn& column : run_columns())
    if (column.name != "scenario") columns.emplace_back(column.name);
  for (const char* column : {"machine",
                             "sequence",
                             "gpus",
                             "tensor",
                             "sequence_parallel",
                             "context",
                             "pipeline",
                             "data",
                             "micro_batch",
                             "global_batch",
                             "kernels",
                             "recompute",
                             "predicted_step_s",
                             "left_out_by_layout_s",
                             "left_out_by_group_s",
                             "left_out_by_choice_s",
                             "predicted_peak_bytes",
                             "predicted_to_fit",
                             "predicted_safe",
                             "cannot_be_priced",
                             "scenario"})
    columns.emplace_back(column);
  file.stream() << csv_line(columns);
  for (const Validation& validation : validations) {
    for (const RowResult& result : validation.rows) {
      PublishedRow row = *result.row;
      if (row.scenario) row.model = row.scenario->step.model->name;
      std::vector<std::string> fields = run_fields(row);
      fields.erase(fields.begin());  // the scenario, which stands last
      fields.push_back(row.machine);
      for (std::string& field : layout_fields(row)) fields.push_back(std::move(field));
      fields.push_back(number_text(result.price.step_s));
      for (const double seconds : result.left_out_s) fields.push_back(number_text(seconds));
      fields.push_back(result.price.memory ? number_text(result.price.memory->odds.bytes) : "");
      for (const bool MemoryPrice::*verdict : {&MemoryPrice::fits, &MemoryPrice::fits_cautious})
        fields.push_back(!result.price.memory ? "" : (*result.price.memory).*verdict ? "true" : "false");
      fields.push_back(result.price.cannot);
      fields.push_back(row.text);
      file.stream() << csv_line(fields);
    }
  }
  file.commit();
}

int pooled(const CommandOptions& options, const std::vector<PublishedTable>& tables, std::ostream& out,
           std::ostream& err) {
  const PooledValidation validation = [&] {
    ProgressLine progress(err, "validating");
    return pooled_validation(tables, [&](const std::string& what, double share) { progress.report(share, what); });
  }();
  if (validation.runs.empty()) throw UsageError("no run of these tables can be predicted; give tables with step times");
  if (const auto path = options.text("rows")) {
    OutputFile file(*path);
    file.stream() << pooled_rows_csv(validation);
    file.commit();
  }
  if (const auto path = options.text("constants")) {
    PooledConstants fitted = without_sites(validation.fitted);
    std::vector<PublishedRow> rows;
    for (const PublishedTable& table : tables) rows.insert(rows.end(), table.rows.begin(), table.rows.end());
    fitted.seen = fitted_runs(rows);
    OutputFile file(*path);
    file.stream() << constants_to_yaml(
        fitted,
        fmt::format("Constants of a step, fitted to {} published runs, without those of single clusters; written by "
                    "slipway validate --pooled --constants.",
                    validation.runs.size()),
        validation.fitted_tables);
    file.commit();
  }
  if (const auto path = options.text("report")) write_report(*path, report_of(validation));
  out << (options.has("json") ? pooled_json(validation) : pooled_text(validation));
  return status_done;
}

int validate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const std::vector<std::string>& paths = options.arguments();
  const GraphEngine engine = engine_of(options);
  if (engine != GraphEngine::replay && options.has("refit"))
    throw UsageError("--refit fits constants through replays; leave it or --engine out");
  for (const char* output : {"rows", "constants", "memory-constants"})
    if (const auto path = options.text(output)) check_output(std::string("--") + output, *path, paths);
  check_report(options, paths);
  for (const char* other : {"refit", "engine"})
    if (options.has("pooled") && options.has(other))
      throw UsageError(std::string("--pooled has a fit of its own; leave --") + other + " out");
  if (options.has("constants") && !options.has("pooled"))
    throw UsageError("--constants writes what --pooled fits; give both");
  const std::vector<PublishedTable> tables = tables_of(paths);
  if (options.has("pooled")) return pooled(options, tables, out, err);
  const bool refit = options.has("refit");
  std::vector<Validation> validations;
  {
    ProgressLine progress(err, refit ? "fitting without the scored rows" : "pricing");
    progress.counts(static_cast<double>(tables.size()), "tables");
    for (const PublishedTable& table : tables) {
      progress.report(static_cast<double>(validations.size()) / static_cast<double>(tables.size()), table.file);
      validations.push_back(validate(table, refit));
    }
  }
  for (Validation& validation : validations) {
    if (engine == GraphEngine::replay) break;
    ProgressLine progress(err, "pricing " + validation.table->file);
    price_by_graph(validation, engine, [&](double share) { progress.report(share); });
  }
  if (const auto path = options.text("rows")) write_rows(*path, validations);
  if (const auto path = options.text("memory-constants")) {
    OutputFile file(*path);
    file.stream() << memory_constants_text(tables);
    file.commit();
  }
  if (const auto path = options.text("report")) write_report(*path, report_of(validations));
  if (options.has("json")) {
    out << json_text(validations);
    return status_done;
  }
  for (const Validation& validation : validations) out << report_text(validation) << '\n';
  return status_done;
}

const RegisterCommand registered({.place = 14,
                                  .name = "validate",
                                  .summary = "score predictions against published runs",
                                  .run = validate_command,
                                  .answers = validate_answers});

}  // namespace

}  // namespace slipway::scenarios
