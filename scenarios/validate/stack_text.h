// The output of `slipway validate --constants`: a stack profile's sections with constants fitted to a table, in the
// form that load_stack.h reads. The value is new; prior, spread and source stay. Guarded by
// tests/models/trainers_test.cpp: the text reads back.
#pragma once

#include <string>
#include <vector>

#include "scenarios/validate/validation.h"

namespace slipway::scenarios {

// For every trainer and machine of the tables, in order: "# nanotron", then the section.
std::string fitted_constants_text(const std::vector<Validation>& validations);

}  // namespace slipway::scenarios
