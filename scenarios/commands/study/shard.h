// Rows of a study as rows of a shard's file (scenarios/commands/command_line/shard.h). Guarded by
// tests/scenarios/study_shard_test.cpp.
#pragma once

#include <vector>

#include "scenarios/commands/command_line/shard.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

// `rows` are those of points_in, in order.
std::vector<ShardRow> shard_rows_of(const std::vector<StudyRow>& rows, const std::vector<std::size_t>& points);
// The rows of all points.
std::vector<StudyRow> study_rows_of(const std::vector<ShardRow>& rows, const std::vector<StudyPoint>& points);

}  // namespace slipway::scenarios
