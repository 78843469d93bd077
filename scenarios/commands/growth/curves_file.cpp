#include "scenarios/commands/growth/curves_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "scenarios/files/cells.h"
#include "scenarios/files/csv.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/description.h"

namespace slipway::scenarios {

namespace {

constexpr const char* columns[] = {"submission", "run", "sequence", "global_batch", "learning_rate", "tokens", "loss"};

CsvTable read_table(const std::string& path) {
  CsvTable table = read_csv_file(path);
  std::string all;
  for (const char* column : columns) all += (all.empty() ? "" : ",") + std::string(column);
  if (!table.header.empty() && table.header[0] == "step")
    throw UsageError(path + ": these are the losses of one run of `slipway execute`; to fit that run, give its folder");
  for (const char* column : columns)
    if (std::find(table.header.begin(), table.header.end(), column) == table.header.end())
      throw UsageError(path + ":" + std::to_string(table.header_line) + ": there is no column " + column +
                       "; needed are " + all);
  return table;
}

double whole(const Cells& cells, const char* column) {
  const double value = cells.above_zero(column);
  if (value == std::floor(value)) return value;
  throw CellError("column " + std::string(column) + ": " + cells.text(column) + " is no whole number");
}

using CurveName = std::tuple<std::string, std::string, double, double>;  // submission, run, batch, rate

void add_row(const CsvTable& table, const CsvRow& row, CurvesFile& file, std::map<CurveName, LossCurve>& curves) {
  if (row.fields.size() != table.header.size())
    throw CellError(std::to_string(row.fields.size()) + " fields below " + std::to_string(table.header.size()) +
                    " columns");
  const Cells cells(table.header, row);
  const double sequence = whole(cells, "sequence");
  if (file.sequence > 0 && file.sequence != sequence)
    throw CellError("column sequence: " + cells.text("sequence") + " after " +
                    std::to_string(static_cast<std::int64_t>(file.sequence)) + "; allowed: one for all rows");
  file.sequence = sequence;
  const double batch = whole(cells, "global_batch") * sequence, rate = cells.above_zero("learning_rate");
  LossCurve& curve = curves[{cells.text("submission"), cells.text("run"), batch, rate}];
  curve.submission = cells.text("submission");
  curve.batch_tokens = batch, curve.learning_rate = rate;
  const CurvePoint point{cells.above_zero("tokens"), cells.above_zero("loss")};
  if (!curve.points.empty() && point.tokens <= curve.points.back().tokens)
    throw CellError("column tokens: " + cells.text("tokens") + " is not above that of the run's row before");
  curve.points.push_back(point);
}

}  // namespace

CurvesFile read_curves(const std::string& path) {
  const CsvTable table = read_table(path);
  CurvesFile file{path, 0, {}};
  std::map<CurveName, LossCurve> curves;
  for (const CsvRow& row : table.rows) {
    try {
      add_row(table, row, file, curves);
    } catch (const CellError& reason) {
      throw UsageError(path + ":" + std::to_string(row.line) + ": " + reason.what());
    }
  }
  for (auto& [name, curve] : curves) file.curves.push_back(std::move(curve));
  return file;
}

}  // namespace slipway::scenarios
