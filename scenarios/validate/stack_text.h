// A stack profile's sections with constants that were fitted to a table: what `slipway validate
// --constants` writes, in the form that load_stack.h reads. The value is new; prior, spread and source stay
// as they were. Guarded by tests/models/trainers_test.cpp: what is written reads back.
#pragma once

#include <string>
#include <vector>

#include "scenarios/validate/validation.h"

namespace slipway::scenarios {

// For every trainer and machine of the tables, in order: "# nanotron", then the section.
std::string fitted_constants_text(const std::vector<Validation>& validations);

}  // namespace slipway::scenarios
