// One figure of a study as an SVG picture: a group of bars per value of the last variation, a bar per combination of
// the others. Utilization also shows its value before filling and its ceiling.
//
//        ▐ █  ─ ceiling                SVG is written here: a bar chart needs rectangles and text, no library.
//      █ ▐ █  ░ filled                 Every browser opens it.
//      █ ▐ █  █ before
//      D=4     D=8
//
// Points without numbers leave a gap marked "×". The same study gives the same bytes.
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <string>

#include "scenarios/commands/study/study_report.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

std::string study_svg(const Study& study, const StudyColumn& figure);

}  // namespace slipway::scenarios
