#include "scenarios/commands/study/shard.h"

#include <cmath>

#include "scenarios/commands/study/study_report.h"

namespace slipway::scenarios {

std::vector<ShardRow> shard_rows_of(const std::vector<StudyRow>& rows, const std::vector<std::size_t>& points) {
  std::vector<ShardRow> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ShardRow row{points[i], rows[i].error, {}};
    if (row.error.empty())
      for (const StudyColumn& column : study_columns()) row.values.push_back(rows[i].number(column.key.name));
    all.push_back(std::move(row));
  }
  return all;
}

std::vector<StudyRow> study_rows_of(const std::vector<ShardRow>& rows, const std::vector<StudyPoint>& points) {
  std::vector<StudyRow> all(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) all[i].point = points[i];
  for (const ShardRow& from : rows) {
    StudyRow& row = all.at(from.part);
    row.error = from.error;
    if (!row.error.empty()) continue;
    std::size_t at = 0;
    for (const StudyColumn& column : study_columns())
      if (const double value = from.values.at(at++); !std::isnan(value)) row.numbers[column.key.name] = value;
    row.basis = basis_of_point(row.point);
  }
  return all;
}

}  // namespace slipway::scenarios
