// The timeline of a step as text: a row per rank, a column per slice of time.
//
//   rank 0 │FFFFFFFF····BBBBBBBBO│      F forward, B backward, I input gradient, W weight gradient,
//   rank 1 │··FFFFFFBBBBBBBBBB··O│      R recompute, O optimizer, N gradient norm,
//                                          T tied gradients added, P preconditioning, C curvature, V inversion,
//                                          E evaluation, · idle
//
// A column shows what the rank's compute lane did for most of that slice; where a slice holds many tasks,
// the letters of a row take turns in proportion to their time. Guarded by tests/scenarios/answers_test.cpp
// (pictures that a person can check).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/trace/trace.h"
#include "schedules/time/order.h"

namespace slipway::scenarios {

struct TimelineSpan {
  double start_s = 0, end_s = 0;
  char letter = ' ';
};

struct TimelineRow {
  std::string name;
  std::vector<TimelineSpan> spans;  // do not overlap
};

// Rows of one picture and what was left out of it.
struct TimelinePicture {
  std::vector<TimelineRow> rows;
  double begin_s = 0, end_s = 0;  // what the columns cover
  int ranks = 0;                  // of the run, shown or not
};

// `kind` as in TraceRecord::kind.
char letter_of_kind(std::string_view kind);

// Step `step` of a timeline or trace: from its first start to its last end, what neighbouring steps do in
// between included. At most 16 ranks: the first of every pipeline rank, when all are more than that.
TimelinePicture picture_of(const TaskGraph& graph, const Timeline& timeline, int step);
// Of the trace's window that the step is in.
TimelinePicture picture_of(const Trace& trace, const Layout& layout, int step);

// `width` characters per line at most. Says how long a column is and how many ranks are not shown.
std::string draw(const TimelinePicture& picture, int width);

// Columns of the terminal on standard output, 100 when it is none.
int terminal_width();
// Columns that a table may have: of COLUMNS, else of the terminal; 0, any, where there is neither.
int table_columns();

}  // namespace slipway::scenarios
