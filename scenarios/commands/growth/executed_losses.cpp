#include "scenarios/commands/growth/executed_losses.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "exec/run/run_files.h"
#include "scenarios/files/cells.h"
#include "scenarios/files/csv.h"
#include "scenarios/files/usage_error.h"
#include "schedules/bundle/bundle.h"

namespace slipway::scenarios {

namespace {

CsvTable losses_of(const std::string& folder) {
  const std::string path = losses_csv_path(folder);
  std::ifstream in(path);
  if (!in)
    throw UsageError("cannot read '" + path +
                     "'; give the folder (--out) of a run of `slipway execute` that has ended");
  try {
    CsvTable table = read_csv(in, path);
    for (const char* column : {"step", "loss", "learning_rate"})
      if (std::find(table.header.begin(), table.header.end(), column) == table.header.end())
        throw UsageError(path + ": there is no column " + column +
                         "; it is not the losses of a run of `slipway execute`");
    return table;
  } catch (const std::runtime_error& reason) {
    throw UsageError(reason.what());
  }
}

// The graph of the run's bundle, with a sequence's tokens and the first batch.
TaskGraph graph_of(const std::string& folder) {
  const std::string path = bundle_path(folder);
  std::ifstream in(path);
  if (!in)
    throw UsageError("cannot read '" + path + "', which says how many tokens a sequence has; give the folder of a run");
  try {
    return read_bundle(in, path).graph;
  } catch (const std::runtime_error& reason) {
    throw UsageError(reason.what());
  }
}

void add_step(const CsvTable& table, const CsvRow& row, double constant_batch, ExecutedRun& run) {
  if (row.fields.size() != table.header.size())
    throw CellError(std::to_string(row.fields.size()) + " fields below " + std::to_string(table.header.size()) +
                    " columns");
  const Cells cells(table.header, row);
  const std::size_t next = run.steps.size() + 1;
  if (next == 1 && cells.integer("step") > 1)
    throw CellError("the losses begin with step " + cells.text("step") +
                    ": the run went on from a checkpoint of another folder; resume in that folder (--out), or give a "
                    "run from its beginning");
  if (static_cast<std::size_t>(cells.integer("step")) != next)
    throw CellError("column step: " + cells.text("step") + " where " + std::to_string(next) + " follows");
  GradientStep step{(cells.empty("batch") ? constant_batch : cells.above_zero("batch")) * run.sequence,
                    cells.above_zero("loss"), 0, 0};
  if (run.has_norms) step.square = cells.number("gradient_square"), step.variance = cells.number("gradient_variance");
  run.steps.push_back(step);
  run.learning_rates.push_back(cells.number("learning_rate"));
}

template <typename Values>
Interval extent(const Values& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most};
}

}  // namespace

double ExecutedRun::tokens() const {
  double sum = 0;
  for (const GradientStep& step : steps) sum += step.batch_tokens;
  return sum;
}

Interval ExecutedRun::batches() const {
  std::vector<double> sequences;
  for (const GradientStep& step : steps) sequences.push_back(step.batch_tokens / sequence);
  return extent(sequences);
}

Interval ExecutedRun::rates() const { return extent(learning_rates); }

ExecutedRun read_executed_run(const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    throw UsageError("'" + folder + "' is no folder; give the folder (--out) of a run of `slipway execute`");
  const CsvTable table = losses_of(folder);
  const TaskGraph graph = graph_of(folder);
  ExecutedRun run{folder, static_cast<double>(graph.step.model->sequence), false, {}, {}};
  run.has_norms = std::find(table.header.begin(), table.header.end(), "gradient_variance") != table.header.end();
  for (const CsvRow& row : table.rows) {
    try {
      add_step(table, row, static_cast<double>(graph.step.global_batch), run);
    } catch (const CellError& reason) {
      throw UsageError(losses_csv_path(folder) + ":" + std::to_string(row.line) + ": " + reason.what());
    }
  }
  if (run.steps.empty()) throw UsageError(losses_csv_path(folder) + ": the run has no step");
  return run;
}

}  // namespace slipway::scenarios
