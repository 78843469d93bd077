// The timeline of a step as text: a row per rank, a column per slice of time.
//
//   rank 0 │FFFFFFFF····BBBBBBBBO│      F forward, B backward, I input gradient, W weight gradient,
//   rank 1 │··FFFFFFBBBBBBBBBB··O│      R recompute, O optimizer, N gradient norm,
//                                          T tied gradients added, P preconditioning, C curvature, V inversion,
//                                          E evaluation, · idle
//
// A column shows the work that took most of its slice on the rank's compute lane. Where a slice holds many tasks,
// the letters of a row take turns in proportion to their time.
// Guarded by tests/scenarios/answers_test.cpp (pictures that a person can check).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/trace/trace.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

struct TimelineSpan {
  double start_s = 0, end_s = 0;
  char letter = ' ';
};

struct TimelineRow {
  std::string name;
  std::vector<TimelineSpan> spans;  // do not overlap
};

// The rows of one picture, and its extent.
struct TimelinePicture {
  std::vector<TimelineRow> rows;
  double begin_s = 0, end_s = 0;  // extent of the columns
  int ranks = 0;                  // ranks of the run, shown or not
};

// `kind` as in TraceRecord::kind.
char letter_of_kind(std::string_view kind);

// Step `step` of a timeline, from its first start to its last end; work of neighbouring steps in between is included.
// At most 16 rows: with more ranks, the first rank of every pipeline rank.
TimelinePicture picture_of(const TaskGraph& graph, const Timeline& timeline, int step);
// The window of the trace that holds the step.
TimelinePicture picture_of(const Trace& trace, const Layout& layout, int step);

// At most `width` characters per line. States the length of a column and the number of ranks not shown.
std::string draw(const TimelinePicture& picture, int width);

// COLUMNS, otherwise the columns of the terminal on standard output; 100 without either.
int terminal_width();
// Most columns of a table: COLUMNS, otherwise the terminal's; 0 (any number) where there is neither.
int table_columns();

}  // namespace slipway::scenarios
