// Sections that the pages of several commands have. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/report/report.h"
#include "scenarios/report/timeline_view.h"

namespace slipway::scenarios {

// The name by which page.css has the colour.
const char* name_of(SpanColour colour);
// Ascending ranks: "0–3, 8".
std::string ranks_text(const std::vector<int>& ranks);

TimelineSection timeline_section(TimelineView view, const std::string& title = "Timeline");
Bar path_bar(const TimelineView& view);
// Loss and batch over the steps of a training: one plot each, the second where the batch grew. Empty without losses.
std::vector<Plot> training_plots(const std::vector<LossPoint>& losses);
// The memory curves of a view as a plot, with the capacity of the fullest rank as a level where it is known.
Plot memory_plot(const TimelineView& view, const std::vector<double>& capacities);

}  // namespace slipway::scenarios
