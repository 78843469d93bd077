// The page of `slipway compare --report`: predicted beside measured. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/compare/comparison.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// `capacities`: bytes of each rank's memory; empty: unknown.
Report report_of(const Trace& predicted, const Trace& measured, const Comparison& comparison,
                 const std::vector<double>& capacities);

// Its sections, for every report that has both traces.
void add_comparison(Report& report, const Trace& predicted, const Trace& measured, const Comparison& comparison,
                    const std::vector<double>& capacities);
// The error of a predicted step, and whether the measured one is in its interval; `high_s` 0: it has none.
Card error_card(double error, bool is_inside, double low_s, double high_s);
// Predicted and measured step time, and the error.
std::vector<Card> comparison_cards(const Comparison& comparison);

}  // namespace slipway::scenarios
